//! The open-loop load generator: schedule × pace × client, and the recorder.
//!
//! The timetable is made before the run from a seed; one thread fires requests at their intended times from an event
//! loop of its own; a second thread writes every request to `requests.arrow`. Latency counts from the intended time,
//! so a server that stalls cannot hide the requests it kept from being sent.

#![forbid(unsafe_code)]

mod attack;
mod bodies;
mod config;
mod connection;
mod error;
mod health;
mod pace;
mod recorder;
mod response;
mod row;
mod run;
mod schedule;
mod tally;

pub use config::{Arrivals, Config, Schedule, Target};
pub use error::Error;
pub use response::{Response, Step, Violation};
pub use row::{Outcome, StageTimes};
pub use run::{run, run_from_file};
pub use schedule::{STREAM, timetable};
pub use tally::{Done, Second};
