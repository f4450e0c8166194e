//! What the server tells its parent: one JSON object a line on standard output. Talk for people goes to standard
//! error.

use std::io::Write;

use seatrial_session::WarmUpRun;
use serde::Serialize;

/// An event, in the order in which they come.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event<'a> {
    /// The ports are bound.
    Listening {
        host: &'a str,
        port: u16,
        #[serde(skip_serializing_if = "Option::is_none")]
        grpc_port: Option<u16>,
    },
    /// Every model is loaded and warmed up.
    Ready { seconds: f64, models: Vec<Loaded> },
    /// The parent is to resolve a model and to answer with one line on standard input.
    LoadWanted { id: u64, model: &'a str, version: Option<&'a str> },
    /// A version is active that was not before.
    Activated { model: &'a str, version: &'a str, digest: &'a str, load_s: f64, warmup_s: f64 },
    /// A load has changed nothing.
    LoadFailed { model: &'a str, error: &'a str },
    /// A version's executors have ended and its memory was given back.
    Unloaded { model: &'a str, version: &'a str, digest: &'a str },
    /// The end that was asked for.
    Drained { answered: u64, failed: u64 },
    /// The server did not start.
    Refused { error: &'a str, hint: Option<&'a str> },
}

/// How long one model took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Loaded {
    pub(crate) name: String,
    pub(crate) load_s: f64,
    pub(crate) warmup_s: f64,
    /// What runs cost at warm-up.
    pub(crate) costs: Vec<Cost>,
}

/// The least time of a run of this size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Cost {
    rows: usize,
    /// The padded length, or the elements of a row.
    length: usize,
    ms: f64,
}

impl Cost {
    pub(crate) const fn of(run: &WarmUpRun) -> Self {
        Self { rows: run.rows, length: run.length, ms: run.time.as_secs_f64() * 1e3 }
    }
}

/// Writes the event. A parent that has gone hears nothing, and that is no reason to stop.
pub(crate) fn tell(event: &Event<'_>) {
    let Ok(mut line) = serde_json::to_vec(event) else { return };
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(&line).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_documented_form() {
        let text = |event: &Event<'_>| serde_json::to_string(event).unwrap();
        assert_eq!(
            text(&Event::Listening { host: "127.0.0.1", port: 8, grpc_port: None }),
            r#"{"event":"listening","host":"127.0.0.1","port":8}"#
        );
        assert_eq!(
            text(&Event::Listening { host: "127.0.0.1", port: 8, grpc_port: Some(9) }),
            r#"{"event":"listening","host":"127.0.0.1","port":8,"grpc_port":9}"#
        );
        let costs = vec![Cost { rows: 2, length: 16, ms: 1.5 }];
        let models = vec![Loaded { name: "m".to_owned(), load_s: 0.5, warmup_s: 0.25, costs }];
        assert_eq!(
            text(&Event::Ready { seconds: 1.5, models }),
            r#"{"event":"ready","seconds":1.5,"models":[{"name":"m","load_s":0.5,"warmup_s":0.25,"costs":[{"rows":2,"length":16,"ms":1.5}]}]}"#
        );
        assert_eq!(
            text(&Event::Drained { answered: 1, failed: 0 }),
            r#"{"event":"drained","answered":1,"failed":0}"#
        );
        assert_eq!(
            text(&Event::Refused { error: "no", hint: None }),
            r#"{"event":"refused","error":"no","hint":null}"#
        );
    }
}
