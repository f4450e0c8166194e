//! Puts the parts together: configuration, threads, signals, events on stdout, exit code.

use std::{
    io::Write,
    num::NonZero,
    os::unix::net::UnixStream,
    path::Path,
    sync::mpsc::{Receiver, sync_channel},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::process::{Resource, Rlimit, Signal};
use serde_json::json;
use signal_hook::{
    consts::signal::{SIGINT, SIGTERM},
    low_level::pipe,
};

use crate::{
    Config, Error,
    attack::{Attack, Orders},
    bodies,
    config::Schedule,
    health,
    pace::{Closed, Open, Pace},
    recorder::{Blocked, Label, Outbox, Recorder},
    schedule::timetable,
    tally::{Done, Second},
};

/// Descriptors kept for everything but connections.
const SPARE_DESCRIPTORS: u64 = 64;
/// Of the thread that sends; it works for microseconds at a time and has to be on time.
const PRIORITY: i32 = -10;
/// Time for the threads to start before the first request is due.
const LEAD: Duration = Duration::from_millis(2);

/// Runs the load of a `load.json`, events on stdout, talk on stderr, and returns the exit code of the process.
/// SIGTERM and SIGINT end the run early and keep what was measured; the death of the parent counts as SIGTERM.
pub fn run_from_file(path: &Path) -> i32 {
    let outcome = Config::read(path).and_then(|config| {
        let stop = stop_on_signals()?;
        run(&config, stop, &mut std::io::stdout())
    });
    match outcome {
        Ok(_) => 0,
        Err(error) => {
            let refused = json!({"event": "refused", "error": error.to_string(), "hint": error.hint()});
            // With stdout or stderr gone there is nobody left to tell; the exit code remains.
            let _ = writeln!(std::io::stdout(), "{refused}");
            let _ = writeln!(std::io::stderr(), "seatrial load generator: {error}");
            error.exit_code()
        }
    }
}

/// Runs a load. `stop` ends it early as soon as it is readable or closed; events go to `talk`, one JSON object a line.
pub fn run(config: &Config, stop: UnixStream, talk: &mut impl Write) -> Result<Done, Error> {
    config.check()?;
    let target = config.address()?;
    let requests = bodies::render(config)?;
    let pace = pace(&config.schedule)?;
    let max_in_flight = room_for(config.max_in_flight)?;
    let origin = Instant::now() + LEAD;
    let origin_unix_ns = unix_ns(LEAD);
    let label = Label { seed: config.schedule.seed(), mode: config.schedule.mode(), origin_unix_ns };
    let recorder = Recorder::create(&config.output, label)?;
    let (rows, rows_in) = sync_channel(1024);
    let (seconds, progress) = sync_channel(64);
    let orders = Orders {
        pace,
        target,
        requests,
        bodyless: config.target.method == "HEAD",
        max_in_flight,
        timeout: Duration::from_millis(config.timeout_ms),
        stop,
        outbox: Outbox::new(rows),
        seconds,
    };
    let attack = Attack::new(orders, origin)?;
    let done = thread::scope(|scope| {
        let attack = scope.spawn(|| attack_thread(attack));
        let recorder = scope.spawn(move || recorder.run(&rows_in));
        speak(talk, &progress);
        let attack = attack.join().map_err(|_| crashed())?;
        recorder.join().map_err(|_| crashed())??;
        attack.map_err(|blocked| match blocked {
            Blocked::Slow => Error::missing(
                format!("`{}` is on a disk that does not keep up", config.output.display()),
                "choose a faster disk or a lower rate; what was written stays readable",
            ),
            Blocked::Ended => crashed(),
        })
    })?;
    say_done(talk, &done, origin_unix_ns, max_in_flight);
    Ok(done)
}

fn attack_thread(attack: Attack) -> Result<Done, Blocked> {
    // Both are wishes: without the first a sleeper wakes up to 50 µs late to save power, without the second (which
    // takes a privilege) neighbours on the core delay it by their time slices. `late` tells how it went.
    let _ = rustix::thread::set_current_timer_slack(NonZero::new(1));
    let _ = rustix::process::setpriority_process(None, PRIORITY);
    attack.run()
}

fn crashed() -> Error {
    Error::Other("a thread of the load generator died".to_owned())
}

fn pace(schedule: &Schedule) -> Result<Box<dyn Pace>, Error> {
    Ok(match *schedule {
        Schedule::Open { arrivals, rate_per_s, duration_s, seed } => {
            Box::new(Open::new(timetable(arrivals, rate_per_s, duration_s, seed)?))
        }
        Schedule::Closed { connections, duration_s } => {
            Box::new(Closed::new(connections, (duration_s * 1e9) as i64))
        }
    })
}

fn speak(talk: &mut impl Write, seconds: &Receiver<Second>) {
    for second in seconds {
        let Ok(mut event) = serde_json::to_value(second) else { continue };
        if let Some(fields) = event.as_object_mut() {
            fields.insert("event".to_owned(), "second".into());
        }
        say(talk, &event);
    }
}

fn say_done(talk: &mut impl Write, done: &Done, origin_unix_ns: i64, max_in_flight: usize) {
    let Ok(mut event) = serde_json::to_value(done) else { return };
    if let Some(fields) = event.as_object_mut() {
        fields.insert("event".to_owned(), "done".into());
        fields.insert("origin_unix_ns".to_owned(), origin_unix_ns.into());
        fields.insert("max_in_flight".to_owned(), max_in_flight.into());
        fields.insert("process_cpu_s".to_owned(), health::process_cpu_s().into());
    }
    say(talk, &event);
}

/// A listener that has gone does not end the run: the record is what counts.
fn say(talk: &mut impl Write, event: &serde_json::Value) {
    let _ = writeln!(talk, "{event}").and_then(|()| talk.flush());
}

fn unix_ns(lead: Duration) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + lead;
    i64::try_from(now.as_nanos()).unwrap_or(0)
}

/// Raises the limit of open files as far as it goes, and refuses a cap that would not fit.
fn room_for(max_in_flight: usize) -> Result<usize, Error> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let most = match rustix::process::setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let most = most.map_or(usize::MAX, |most| most.saturating_sub(SPARE_DESCRIPTORS) as usize);
    if max_in_flight > most {
        return Err(Error::missing(
            format!("`max_in_flight` is {max_in_flight}, but this process may open {most} connections"),
            "raise the limit of open files (ulimit -n) or lower max_in_flight",
        ));
    }
    Ok(max_in_flight)
}

fn stop_on_signals() -> Result<UnixStream, Error> {
    let failed = |error: std::io::Error| Error::Other(format!("signals cannot be caught: {error}"));
    let (stop, raise) = UnixStream::pair().map_err(failed)?;
    stop.set_nonblocking(true).map_err(failed)?;
    pipe::register(SIGTERM, raise.try_clone().map_err(failed)?).map_err(failed)?;
    pipe::register(SIGINT, raise).map_err(failed)?;
    // Where the kernel lacks it a dead parent is not noticed, and the timetable still ends.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
    Ok(stop)
}
