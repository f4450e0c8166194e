//! Writes `requests.arrow` on a thread of its own: an Arrow IPC stream, a batch at least every second, each flushed,
//! so that whatever happens all but the last second can be read.

use std::{
    collections::HashMap,
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError},
    },
    time::{Duration, Instant},
};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt8Array, UInt16Array, UInt32Array};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use seatrial_types::Stage;

use crate::{
    Error,
    row::{Row, STAGES},
};

/// The name of the file in the output folder.
pub const FILE_NAME: &str = "requests.arrow";

const BATCH_EVERY: Duration = Duration::from_millis(500);
const BATCH_ROWS: usize = 65_536;
const CHUNK_ROWS: usize = 1024;
/// Rows that may wait for the disk, about 120 bytes each.
const MOST_WAITING_CHUNKS: usize = 2048;

/// What a reader of the file must know beside its columns.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// Seed of the timetable, if there was one.
    pub seed: Option<u64>,
    /// `open` or `closed`.
    pub mode: &'static str,
    /// Wall-clock time of the zero of all times.
    pub origin_unix_ns: i64,
}

/// The sending side: collects rows and hands them over in chunks; never waits.
pub struct Outbox {
    rows: Vec<Row>,
    waiting: std::collections::VecDeque<Vec<Row>>,
    channel: SyncSender<Vec<Row>>,
}

/// Why rows cannot be handed over any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The recorder has ended; it knows why.
    Ended,
    /// The disk does not keep up.
    Slow,
}

impl Outbox {
    /// An outbox in front of a recorder's channel.
    pub fn new(channel: SyncSender<Vec<Row>>) -> Self {
        Self { rows: Vec::with_capacity(CHUNK_ROWS), waiting: std::collections::VecDeque::new(), channel }
    }

    /// Keeps one row.
    pub fn push(&mut self, row: Row) -> Result<(), Blocked> {
        self.rows.push(row);
        if self.rows.len() < CHUNK_ROWS { Ok(()) } else { self.flush() }
    }

    /// Hands over what is there.
    pub fn flush(&mut self) -> Result<(), Blocked> {
        if !self.rows.is_empty() {
            self.waiting.push_back(std::mem::replace(&mut self.rows, Vec::with_capacity(CHUNK_ROWS)));
        }
        while let Some(chunk) = self.waiting.pop_front() {
            match self.channel.try_send(chunk) {
                Ok(()) => {}
                Err(TrySendError::Disconnected(_)) => return Err(Blocked::Ended),
                Err(TrySendError::Full(chunk)) => {
                    self.waiting.push_front(chunk);
                    let slow = self.waiting.len() > MOST_WAITING_CHUNKS;
                    return if slow { Err(Blocked::Slow) } else { Ok(()) };
                }
            }
        }
        Ok(())
    }

    /// Hands over the rest; waits for the recorder, so only after the run.
    pub fn finish(mut self) -> Result<(), Blocked> {
        self.waiting.push_back(std::mem::take(&mut self.rows));
        self.waiting.drain(..).try_for_each(|chunk| self.channel.send(chunk).map_err(|_| Blocked::Ended))
    }
}

/// The writing side.
pub struct Recorder {
    file: File,
    path: PathBuf,
    stream: StreamWriter<Vec<u8>>,
    schema: Arc<Schema>,
    good_bytes: u64,
}

impl Recorder {
    /// Makes the folder and the file and writes the head of the stream.
    pub fn create(folder: &Path, label: Label) -> Result<Self, Error> {
        let path = folder.join(FILE_NAME);
        let refused = |error: std::io::Error| no_room(&path, &error);
        std::fs::create_dir_all(folder).map_err(refused)?;
        let file = File::create(&path).map_err(refused)?;
        let schema = Arc::new(schema(label));
        let stream = StreamWriter::try_new(Vec::new(), &schema)
            .map_err(|error| Error::Other(format!("the record cannot be begun: {error}")))?;
        let mut recorder = Self { file, path, stream, schema, good_bytes: 0 };
        recorder.put()?;
        Ok(recorder)
    }

    /// Writes until the channel closes. On a write error the file is cut back to its last whole batch.
    pub fn run(mut self, channel: &Receiver<Vec<Row>>) -> Result<(), Error> {
        let mut rows = Vec::new();
        let mut written = Instant::now();
        loop {
            let open = match channel.recv_timeout(BATCH_EVERY.saturating_sub(written.elapsed())) {
                Ok(chunk) => {
                    rows.extend(chunk);
                    true
                }
                Err(RecvTimeoutError::Timeout) => true,
                Err(RecvTimeoutError::Disconnected) => false,
            };
            if !open || rows.len() >= BATCH_ROWS || written.elapsed() >= BATCH_EVERY {
                self.write(&rows)?;
                rows.clear();
                written = Instant::now();
            }
            if !open {
                return self.finish();
            }
        }
    }

    fn write(&mut self, rows: &[Row]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        batch(&self.schema, rows)
            .and_then(|batch| self.stream.write(&batch))
            .map_err(|error| Error::Other(format!("a batch cannot be encoded: {error}")))?;
        self.put()
    }

    fn finish(mut self) -> Result<(), Error> {
        self.stream.finish().map_err(|error| Error::Other(format!("the record cannot be ended: {error}")))?;
        self.put()
    }

    /// Moves the encoded bytes to the file, whole or not at all.
    fn put(&mut self) -> Result<(), Error> {
        let bytes = std::mem::take(self.stream.get_mut());
        if let Err(error) = self.file.write_all(&bytes) {
            // Best effort: a reader also copes with a tail that is cut off.
            let _ = self.file.set_len(self.good_bytes);
            return Err(no_room(&self.path, &error));
        }
        self.good_bytes += bytes.len() as u64;
        Ok(())
    }
}

fn no_room(path: &Path, error: &std::io::Error) -> Error {
    Error::missing(
        format!("`{}` cannot be written: {error}", path.display()),
        "make room or choose another output folder; what was written before stays readable",
    )
}

fn schema(label: Label) -> Schema {
    let time = |name: &str, nullable| Field::new(name, DataType::Int64, nullable);
    let count = |name: &str| Field::new(name, DataType::UInt32, false);
    let mut fields = vec![
        time("intended_ns", false),
        time("sent_ns", true),
        time("first_byte_ns", true),
        time("end_ns", true),
        Field::new("status", DataType::UInt16, false),
        Field::new("outcome", DataType::UInt8, false),
        count("bytes_out"),
        count("bytes_in"),
        count("body"),
    ];
    fields.extend(
        Stage::ALL
            .iter()
            .take(STAGES)
            .map(|stage| Field::new(format!("{}_ns", stage.name()), DataType::UInt32, true)),
    );
    let seed = label.seed.map_or_else(|| "none".to_owned(), |seed| seed.to_string());
    let metadata = [
        ("seed", seed),
        ("mode", label.mode.to_owned()),
        ("origin_unix_ns", label.origin_unix_ns.to_string()),
    ];
    Schema::new_with_metadata(
        fields,
        metadata.map(|(key, value)| (key.to_owned(), value)).into_iter().collect::<HashMap<_, _>>(),
    )
}

fn batch(schema: &Arc<Schema>, rows: &[Row]) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let count =
        |of: fn(&Row) -> u32| -> ArrayRef { Arc::new(UInt32Array::from_iter_values(rows.iter().map(of))) };
    let maybe =
        |of: fn(&Row) -> Option<i64>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<Int64Array>()) };
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.intended))),
        maybe(|row| row.sent),
        maybe(|row| row.first_byte),
        maybe(|row| Some(row.end)),
        Arc::new(UInt16Array::from_iter_values(rows.iter().map(|row| row.status))),
        Arc::new(UInt8Array::from_iter_values(rows.iter().map(|row| row.outcome as u8))),
        count(|row| row.bytes_out),
        count(|row| row.bytes_in),
        count(|row| row.body),
    ];
    columns.extend((0..STAGES).map(|stage| -> ArrayRef {
        Arc::new(rows.iter().map(|row| row.stages.get(stage)).collect::<UInt32Array>())
    }));
    RecordBatch::try_new(Arc::clone(schema), columns)
}
