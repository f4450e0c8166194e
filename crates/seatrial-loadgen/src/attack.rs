//! The event loop: fires requests at their intended times, moves bytes, gives up on time, never waits for anything else.
//!
//! Rules. A request that is due while `max_in_flight` are out waits for a free place until its time-out, counted from
//! its intended time, and is then `not_sent`. The timetable is never shifted. A request that found a reused connection
//! closed is tried once more on a new one.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    os::unix::net::UnixStream,
    sync::mpsc::SyncSender,
    time::{Duration, Instant},
};

use rustix::{
    buffer::spare_capacity,
    event::{Timespec, epoll},
    fd::OwnedFd,
    io::Errno,
};

use crate::{
    Error,
    connection::{Connection, Flight, Moved},
    health::{self, Lateness},
    pace::Pace,
    recorder::{Blocked, Outbox},
    row::{Outcome, Row, StageTimes},
    tally::{Done, Second, Tally},
};

const SECOND_NS: i64 = 1_000_000_000;
const FLUSH_EVERY_NS: i64 = 200_000_000;
/// After a stop, requests that are out get this long to finish.
const GRACE_NS: i64 = SECOND_NS;
/// The kernel wakes a sleeper some microseconds late; the rest of a gap is spent looking.
const SPIN_NS: i64 = 20_000;
/// Requests fired before events are looked at again.
const BURST: usize = 64;
/// The peer will send nothing more.
const CLOSED: epoll::EventFlags =
    epoll::EventFlags::RDHUP.union(epoll::EventFlags::HUP).union(epoll::EventFlags::ERR);
const STOP_TOKEN: u64 = u64::MAX;

/// What an attack needs and does not make itself.
pub struct Orders {
    /// When requests are due.
    pub pace: Box<dyn Pace>,
    /// Where they go.
    pub target: SocketAddr,
    /// Their bytes.
    pub requests: Vec<Vec<u8>>,
    /// Whether answers have no body (HEAD).
    pub bodyless: bool,
    /// Most that may be out.
    pub max_in_flight: usize,
    /// From the intended time.
    pub timeout: Duration,
    /// Readable or closed when the run shall stop.
    pub stop: UnixStream,
    /// Where rows go.
    pub outbox: Outbox,
    /// Where the figures of each second go; those that find it full are dropped.
    pub seconds: SyncSender<Second>,
}

/// The state of a run.
pub struct Attack {
    orders: Orders,
    origin: Instant,
    epoll: OwnedFd,
    timeout_ns: i64,
    connections: Vec<Connection>,
    idle: Vec<usize>,
    deadlines: VecDeque<Deadline>,
    tally: Tally,
    late: Lateness,
    buffer: Vec<u8>,
    next_second: i64,
    next_flush: i64,
    stopped_at: Option<i64>,
    stop_asked: u32,
    round: Round,
    spin_ns: i64,
    blocked: Option<Blocked>,
}

#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: i64,
    slot: usize,
    number: u64,
}

impl Attack {
    /// Readies a run whose times count from `origin`.
    pub fn new(orders: Orders, origin: Instant) -> Result<Self, Error> {
        let set_up = |error: Errno| Error::Other(format!("epoll cannot be set up: {error}"));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(set_up)?;
        let interest = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &orders.stop, epoll::EventData::new_u64(STOP_TOKEN), interest).map_err(set_up)?;
        let timeout_ns = i64::try_from(orders.timeout.as_nanos()).unwrap_or(i64::MAX / 2);
        Ok(Self {
            orders,
            origin,
            epoll,
            timeout_ns,
            connections: Vec::new(),
            idle: Vec::new(),
            deadlines: VecDeque::new(),
            tally: Tally::default(),
            late: Lateness::default(),
            buffer: vec![0; 65_536],
            next_second: SECOND_NS,
            next_flush: FLUSH_EVERY_NS,
            stopped_at: None,
            stop_asked: 0,
            round: Round::default(),
            spin_ns: 0,
            blocked: None,
        })
    }

    /// Runs to the end of the timetable and of the last request, or to a stop.
    pub fn run(mut self) -> Result<Done, Blocked> {
        let mut events = Vec::with_capacity(256);
        while !self.finished() {
            self.fire();
            self.expire();
            self.tick();
            self.poll(&mut events);
            for event in events.drain(..) {
                self.handle(event);
            }
            if let Some(blocked) = self.blocked {
                // What is still in memory goes out at the disk's own pace; the first reason is the one that counts.
                let _ = self.orders.outbox.finish();
                return Err(blocked);
            }
        }
        self.done()
    }

    fn now(&self) -> i64 {
        nanoseconds_since(self.origin)
    }

    fn finished(&self) -> bool {
        match self.stopped_at {
            None => self.tally.in_flight == 0 && self.orders.pace.due().is_none(),
            Some(at) => {
                let patience = GRACE_NS.min(self.timeout_ns);
                self.tally.in_flight == 0 || self.stop_asked > 1 || self.now() >= at.saturating_add(patience)
            }
        }
    }

    fn fire(&mut self) {
        if self.stopped_at.is_some() {
            return;
        }
        for _ in 0..BURST {
            let now = self.now();
            let Some(due) = self.orders.pace.due().filter(|due| *due <= now) else { return };
            if now - due >= self.timeout_ns {
                self.orders.pace.take();
                self.not_sent(due, now);
            } else if self.tally.in_flight < self.orders.max_in_flight as u64 {
                self.orders.pace.take();
                self.launch(due, now);
            } else {
                return;
            }
        }
    }

    fn launch(&mut self, intended: i64, sent: i64) {
        let slot = self.idle.pop().unwrap_or_else(|| {
            self.connections.push(Connection::new(self.orders.bodyless));
            self.connections.len() - 1
        });
        let number = self.tally.number();
        let body = (number % self.orders.requests.len().max(1) as u64) as u32;
        self.tally.sent += 1;
        self.tally.in_flight += 1;
        self.late.add(sent - intended);
        self.deadlines.push_back(Deadline { at: intended.saturating_add(self.timeout_ns), slot, number });
        if let Some(connection) = self.connections.get_mut(slot) {
            connection.flight = Some(Flight {
                number,
                intended,
                sent,
                first_byte: None,
                body,
                written: 0,
                bytes_in: 0,
                retried: false,
            });
        }
        self.start(slot);
    }

    /// Writes the request of a place, connecting first where there is no connection.
    fn start(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        if !connection.is_open() {
            self.tally.sockets += 1;
            if let Err(error) = connection.open(&self.epoll, slot, self.orders.target) {
                self.fail(slot, Outcome::Connect, &format!("no connection: {error}"));
                return;
            }
        }
        self.write(slot);
    }

    fn write(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let Some(flight) = &connection.flight else { return };
        let request = self.orders.requests.get(flight.body as usize).map_or(&[][..], Vec::as_slice);
        let moved = connection.write(request);
        if matches!(moved, Moved::Failed(..) | Moved::Stale) {
            // The peer may have answered before it closed, as a refusal of a large body does.
            let read = self.read(slot, true);
            self.decide(slot, if read == Moved::Wait { moved } else { read });
        }
    }

    fn read(&mut self, slot: usize, to_the_end: bool) -> Moved {
        let origin = self.origin;
        let Some(connection) = self.connections.get_mut(slot) else { return Moved::Wait };
        connection.read(&mut self.buffer, to_the_end, || nanoseconds_since(origin))
    }

    fn decide(&mut self, slot: usize, moved: Moved) {
        match moved {
            Moved::Wait => {}
            Moved::Answered => self.answered(slot),
            Moved::Failed(outcome, why) => self.fail(slot, outcome, &why),
            Moved::Stale => self.retry(slot),
            Moved::IdleEnded => {
                if let Some(connection) = self.connections.get_mut(slot) {
                    connection.close();
                }
            }
        }
    }

    fn retry(&mut self, slot: usize) {
        if let Some(connection) = self.connections.get_mut(slot) {
            connection.close();
            if let Some(flight) = &mut connection.flight {
                flight.retried = true;
                flight.written = 0;
            }
        }
        self.tally.retries += 1;
        self.start(slot);
    }

    fn answered(&mut self, slot: usize) {
        let now = self.now();
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let Some(flight) = connection.flight else { return };
        let (status, stages) = (connection.response.status(), connection.response.stages());
        let length = self.orders.requests.get(flight.body as usize).map_or(0, Vec::len);
        connection.settle(length);
        let outcome = if (200..300).contains(&status) { Outcome::Ok } else { Outcome::HttpError };
        if outcome == Outcome::HttpError {
            self.tally.remember(|| format!("status {status}"));
        }
        self.end(slot, &flight, Ending { now, outcome, status, stages });
    }

    fn fail(&mut self, slot: usize, outcome: Outcome, why: &str) {
        let now = self.now();
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let status = connection.response.status();
        connection.abort();
        let Some(flight) = connection.flight.take() else { return };
        self.tally.remember(|| why.to_owned());
        self.end(slot, &flight, Ending { now, outcome, status, stages: StageTimes::default() });
    }

    fn end(&mut self, slot: usize, flight: &Flight, ending: Ending) {
        self.idle.push(slot);
        self.tally.in_flight -= 1;
        self.orders.pace.ended(ending.now, ending.outcome != Outcome::Connect);
        self.keep(Row {
            intended: flight.intended,
            sent: Some(flight.sent),
            first_byte: flight.first_byte,
            end: ending.now,
            status: ending.status,
            outcome: ending.outcome,
            bytes_out: u32::try_from(flight.written).unwrap_or(u32::MAX),
            bytes_in: u32::try_from(flight.bytes_in).unwrap_or(u32::MAX),
            body: flight.body,
            stages: ending.stages,
        });
    }

    fn not_sent(&mut self, intended: i64, now: i64) {
        let body = (self.tally.number() % self.orders.requests.len().max(1) as u64) as u32;
        self.keep(Row {
            intended,
            sent: None,
            first_byte: None,
            end: now,
            status: 0,
            outcome: Outcome::NotSent,
            bytes_out: 0,
            bytes_in: 0,
            body,
            stages: StageTimes::default(),
        });
    }

    fn keep(&mut self, row: Row) {
        self.tally.count(row.outcome);
        if let Err(blocked) = self.orders.outbox.push(row) {
            self.blocked = Some(blocked);
        }
    }

    /// Gives up on requests whose time has come. Deadlines rise with the number, so only the front matters.
    fn expire(&mut self) {
        let now = self.now();
        while let Some(Deadline { at, slot, number }) = self.deadlines.front().copied() {
            let out = self.connections.get(slot).and_then(|c| c.flight).is_some_and(|f| f.number == number);
            if out && at > now {
                return;
            }
            self.deadlines.pop_front();
            if out {
                self.fail(slot, Outcome::Timeout, "no whole answer before the time-out");
            }
        }
    }

    fn tick(&mut self) {
        let now = self.now();
        if now >= self.next_flush {
            self.next_flush = now + FLUSH_EVERY_NS;
            if let Err(blocked) = self.orders.outbox.flush() {
                self.blocked = Some(blocked);
            }
        }
        if now >= self.next_second {
            self.next_second += SECOND_NS;
            let intended = self.orders.pace.intended(now);
            // A reader that does not keep up loses a progress line, never a row.
            let _ = self.orders.seconds.try_send(self.tally.second(now, intended));
        }
    }

    /// How long nothing has to be done, and whether a request is what comes next.
    fn gap(&self, now: i64) -> (i64, bool) {
        let mut next = self.next_second.min(self.next_flush);
        if let Some(deadline) = self.deadlines.front() {
            next = next.min(deadline.at);
        }
        let mut fires = false;
        if self.stopped_at.is_none()
            && let Some(due) = self.orders.pace.due()
        {
            let full = self.tally.in_flight >= self.orders.max_in_flight as u64;
            let at = if full { due.saturating_add(self.timeout_ns) } else { due };
            fires = !full && at <= next;
            next = next.min(at);
        }
        (next - now, fires)
    }

    fn poll(&mut self, events: &mut Vec<epoll::Event>) {
        let now = self.now();
        let (gap, fires) = self.gap(now);
        let spins = fires && gap > 0 && gap <= SPIN_NS;
        let sleep = if gap <= 0 || spins { 0 } else { gap - if fires { SPIN_NS } else { 0 } };
        let timeout = Timespec { tv_sec: sleep / SECOND_NS, tv_nsec: sleep % SECOND_NS };
        // An interrupted wait is looked into by the next round, as one without events is.
        let _ = epoll::wait(&self.epoll, spare_capacity(events), Some(&timeout));
        // A round that only looked at the clock is no work; one that has sent or received something is.
        let round = Round { ended: self.now(), sent: self.tally.sent, quiet: events.is_empty() };
        if spins && round.quiet && self.round.quiet && round.sent == self.round.sent {
            self.spin_ns += round.ended - self.round.ended;
        }
        self.round = round;
    }

    fn handle(&mut self, event: epoll::Event) {
        let token = event.data.u64();
        if token == STOP_TOKEN {
            self.stop();
            return;
        }
        let slot = (token & u64::from(u32::MAX)) as usize;
        let Some(connection) = self.connections.get_mut(slot) else { return };
        if !connection.is_open() || u64::from(connection.generation) != token >> 32 {
            return;
        }
        if let Err(error) = connection.confirm() {
            self.fail(slot, Outcome::Connect, &format!("no connection: {error}"));
            return;
        }
        let flags = event.flags;
        if flags.contains(epoll::EventFlags::OUT) {
            self.write(slot);
        }
        let ended = flags.intersects(CLOSED);
        if ended || flags.contains(epoll::EventFlags::IN) {
            let moved = self.read(slot, ended);
            self.decide(slot, moved);
        }
        if let Some(connection) = self.connections.get_mut(slot)
            && ended
            && connection.is_idle()
        {
            connection.close();
        }
    }

    /// A signal: what was due and has no place is `not_sent`, what is out gets a grace.
    fn stop(&mut self) {
        use std::io::Read;
        let mut bytes = [0; 64];
        self.stop_asked += (&self.orders.stop).read(&mut bytes).map_or(1, |count| count.max(1) as u32);
        if self.stopped_at.is_some() {
            return;
        }
        let now = self.now();
        self.stopped_at = Some(now);
        // A closed loop has nothing left: its clients simply do not go on.
        while self.orders.pace.left() > 0
            && let Some(due) = self.orders.pace.due().filter(|due| *due <= now)
        {
            self.orders.pace.take();
            self.not_sent(due, now);
        }
    }

    fn done(mut self) -> Result<Done, Blocked> {
        let now = self.now();
        let intended = self.orders.pace.intended(self.stopped_at.unwrap_or(now));
        let second = self.tally.second(now, intended);
        let done = Done {
            last: second,
            cpu_s: health::thread_cpu_s(),
            spin_s: self.spin_ns as f64 / 1e9,
            wall_s: now as f64 / 1e9,
            run_queue_wait_s: health::run_queue_wait_s(),
            late_p50_us: self.late.quantile_us(0.5),
            late_p99_us: self.late.quantile_us(0.99),
            late_max_us: self.late.max_us(),
            sockets: self.tally.sockets,
            retries: self.tally.retries,
            cut_short: self.stopped_at.is_some(),
            never_due: if self.stopped_at.is_some() { self.orders.pace.left() } else { 0 },
            abandoned: self.tally.in_flight,
            first_error: self.tally.first_error.take(),
        };
        self.orders.outbox.finish().map(|()| done)
    }
}

/// When the last look for events ended, what had been sent by then, and whether it found none.
#[derive(Clone, Copy, Default)]
struct Round {
    ended: i64,
    sent: u64,
    quiet: bool,
}

#[derive(Clone, Copy)]
struct Ending {
    now: i64,
    outcome: Outcome,
    status: u16,
    stages: StageTimes,
}

/// Negative before the origin, so that nothing is sent early.
fn nanoseconds_since(origin: Instant) -> i64 {
    let now = Instant::now();
    let signed = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    now.checked_duration_since(origin).map_or_else(|| -signed(origin.saturating_duration_since(now)), signed)
}
