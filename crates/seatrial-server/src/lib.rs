//! The serving process: the HTTP door, the pipeline that joins the lower crates, and the drain. Logic that a lower
//! crate could hold has no place here.

#![forbid(unsafe_code)]

mod asks;
pub mod config;
mod door;
mod drain;
mod events;
mod executors;
mod features;
mod metrics;
mod model;
mod pipeline;

pub use asks::Ask;
pub use config::Config;
pub use executors::{Load, LoadedModel};
pub use pipeline::{Refusal, run, run_from_file};
