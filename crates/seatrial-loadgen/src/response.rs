//! An HTTP/1.1 answer, bytes in and verdict out; no sockets here.

use crate::row::StageTimes;

const MAX_HEAD_BYTES: usize = 65_536;
const MAX_HEADERS: usize = 100;
const EAGER_HEAD_BYTES: usize = 4096;

/// What the bytes so far amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The answer goes on.
    More,
    /// The answer is whole.
    Done,
}

/// Why the bytes are not an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation(pub &'static str);

/// Reads one answer at a time; [`Response::reset`] makes it ready for the next on the same connection.
#[derive(Debug, Default)]
pub struct Response {
    head: Vec<u8>,
    state: State,
    status: u16,
    reusable: bool,
    stages: StageTimes,
    bodyless: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    Fixed(u64),
    Chunked(Chunk),
    UntilClose,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    Size { value: u64, digits: u8 },
    Extension { value: u64 },
    SizeEnd { value: u64 },
    Data(u64),
    DataCr,
    DataLf,
    Trailer { empty: bool },
    TrailerLf { last: bool },
}

impl Response {
    /// A reader; `bodyless` for answers to HEAD, which announce a length and send nothing.
    pub fn new(bodyless: bool) -> Self {
        Self { bodyless, ..Self::default() }
    }

    /// Forgets the last answer, keeps the buffer.
    pub fn reset(&mut self) {
        self.head.clear();
        self.state = State::Head;
        self.status = 0;
        self.reusable = false;
        self.stages = StageTimes::default();
    }

    /// Status of the answer, 0 before its head is whole.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Whether the connection can carry another request.
    pub const fn reusable(&self) -> bool {
        self.reusable
    }

    /// What the stage header said.
    pub const fn stages(&self) -> StageTimes {
        self.stages
    }

    /// Takes the next bytes. Bytes after the end of the answer make the connection unfit for reuse.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Step, Violation> {
        let mut rest = bytes;
        while self.state == State::Head {
            if rest.is_empty() {
                return Ok(Step::More);
            }
            match self.feed_head(rest)? {
                Some(used) => rest = rest.get(used..).unwrap_or_default(),
                None => return Ok(Step::More),
            }
        }
        self.feed_body(rest)
    }

    /// The peer has closed; fine only for a body that ends with the connection.
    pub fn end_of_stream(&mut self) -> Result<(), Violation> {
        match self.state {
            State::UntilClose | State::Done => Ok(()),
            _ => Err(Violation("the connection ended inside the answer")),
        }
    }

    /// Returns how many of `bytes` belonged to a head that is now whole.
    fn feed_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Violation> {
        if self.head.is_empty() {
            if let Some(used) = self.parse_head(bytes)? {
                return Ok(Some(used));
            }
            return self.keep(bytes).map(|()| None);
        }
        let before = self.head.len();
        self.keep(bytes)?;
        // A head can only become whole with a line end; parsing a long one on every byte of a slow peer is quadratic.
        if self.head.len() > EAGER_HEAD_BYTES && !bytes.contains(&b'\n') {
            return Ok(None);
        }
        let head = std::mem::take(&mut self.head);
        let used = self.parse_head(&head)?;
        self.head = head;
        if used.is_some() {
            self.head.clear();
        }
        Ok(used.map(|used| used.saturating_sub(before)))
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        if self.head.len() + bytes.len() > MAX_HEAD_BYTES {
            return Err(Violation("the head is longer than 64 KiB"));
        }
        self.head.extend_from_slice(bytes);
        Ok(())
    }

    fn parse_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Violation> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut head = httparse::Response::new(&mut headers);
        let used = match head.parse(bytes) {
            Ok(httparse::Status::Complete(used)) => used,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(Violation("more than 100 header fields")),
            Err(_) => return Err(Violation("not an HTTP/1 answer")),
        };
        let status = head.code.unwrap_or(0);
        match status {
            101 => return Err(Violation("an answer 101 nobody asked for")),
            100..=199 => return Ok(Some(used)), // an interim answer: the real one follows
            0..=99 => return Err(Violation("a status below 100")),
            _ => {}
        }
        let fields = Fields::read(head.headers, head.version == Some(1))?;
        self.status = status;
        self.stages = fields.stages;
        self.reusable = fields.keep_alive;
        self.state = self.body_state(status, &fields);
        Ok(Some(used))
    }

    fn body_state(&mut self, status: u16, fields: &Fields) -> State {
        if self.bodyless || status == 204 || status == 304 {
            return State::Done;
        }
        if fields.chunked {
            return State::Chunked(Chunk::Size { value: 0, digits: 0 });
        }
        match fields.length {
            Some(0) => State::Done,
            Some(length) => State::Fixed(length),
            None => {
                self.reusable = false;
                State::UntilClose
            }
        }
    }

    fn feed_body(&mut self, bytes: &[u8]) -> Result<Step, Violation> {
        let mut rest = bytes;
        loop {
            match self.state {
                State::Head | State::UntilClose => return Ok(Step::More),
                State::Done => {
                    self.reusable &= rest.is_empty();
                    return Ok(Step::Done);
                }
                State::Fixed(left) => {
                    let taken = left.min(rest.len() as u64);
                    rest = rest.get(taken as usize..).unwrap_or_default();
                    self.state = if taken == left { State::Done } else { State::Fixed(left - taken) };
                }
                State::Chunked(chunk) => {
                    let (next, used) = chunk.feed(rest)?;
                    self.state = next.map_or(State::Done, State::Chunked);
                    rest = rest.get(used..).unwrap_or_default();
                }
            }
            if rest.is_empty() && self.state != State::Done {
                return Ok(Step::More);
            }
        }
    }
}

impl Chunk {
    /// One step over `bytes`: the next state (`None` at the end of the body) and the bytes used.
    fn feed(self, bytes: &[u8]) -> Result<(Option<Self>, usize), Violation> {
        let Some(first) = bytes.first().copied() else { return Ok((Some(self), 0)) };
        let next = match (self, first) {
            (Self::Data(left), _) => {
                let taken = left.min(bytes.len() as u64);
                let next = if taken == left { Self::DataCr } else { Self::Data(left - taken) };
                return Ok((Some(next), taken as usize));
            }
            (Self::Size { value, digits }, byte) if byte.is_ascii_hexdigit() => {
                if digits == 16 {
                    return Err(Violation("a chunk size above 64 bits"));
                }
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                Self::Size { value: value << 4 | u64::from(digit), digits: digits + 1 }
            }
            (Self::Size { digits: 0, .. }, _) => return Err(Violation("a chunk without a size")),
            (Self::Size { value, .. } | Self::Extension { value }, b'\r') => Self::SizeEnd { value },
            (Self::Size { value, .. }, b';' | b' ' | b'\t') => Self::Extension { value },
            (Self::Extension { value }, byte) if byte != b'\n' => Self::Extension { value },
            (Self::SizeEnd { value: 0 } | Self::TrailerLf { last: false }, b'\n') => {
                Self::Trailer { empty: true }
            }
            (Self::SizeEnd { value }, b'\n') => Self::Data(value),
            (Self::DataCr, b'\r') => Self::DataLf,
            (Self::DataLf, b'\n') => Self::Size { value: 0, digits: 0 },
            (Self::Trailer { empty }, b'\r') => Self::TrailerLf { last: empty },
            (Self::Trailer { .. }, byte) if byte != b'\n' => Self::Trailer { empty: false },
            (Self::TrailerLf { last: true }, b'\n') => return Ok((None, 1)),
            _ => return Err(Violation("a malformed chunk")),
        };
        Ok((Some(next), 1))
    }
}

struct Fields {
    length: Option<u64>,
    chunked: bool,
    keep_alive: bool,
    stages: StageTimes,
}

impl Fields {
    fn read(headers: &[httparse::Header<'_>], http_1_1: bool) -> Result<Self, Violation> {
        let mut fields =
            Self { length: None, chunked: false, keep_alive: http_1_1, stages: StageTimes::default() };
        for header in headers {
            if header.name.eq_ignore_ascii_case("content-length") {
                let length = length(header.value)?;
                if fields.length.is_some_and(|known| known != length) {
                    return Err(Violation("two different lengths"));
                }
                fields.length = Some(length);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                fields.chunked = last_token(header.value).eq_ignore_ascii_case(b"chunked");
            } else if header.name.eq_ignore_ascii_case("connection") {
                fields.keep_alive = keep_alive(header.value, fields.keep_alive);
            } else if header.name.eq_ignore_ascii_case("seatrial-stages") {
                fields.stages = StageTimes::parse(header.value);
            }
        }
        Ok(fields)
    }
}

fn length(value: &[u8]) -> Result<u64, Violation> {
    let text = value.trim_ascii();
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.filter(|_| digits).ok_or(Violation("a content length that is no number"))
}

fn last_token(value: &[u8]) -> &[u8] {
    value.rsplit(|b| *b == b',').next().unwrap_or_default().trim_ascii()
}

fn keep_alive(value: &[u8], before: bool) -> bool {
    value.split(|b| *b == b',').map(<[u8]>::trim_ascii).fold(before, |keep, token| {
        if token.eq_ignore_ascii_case(b"close") {
            false
        } else {
            keep || token.eq_ignore_ascii_case(b"keep-alive")
        }
    })
}
