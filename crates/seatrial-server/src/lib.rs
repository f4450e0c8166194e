//! The serving process: the HTTP door, the pipeline that joins the lower crates, and the drain. Logic that a lower
//! crate could hold has no place here.

#![forbid(unsafe_code)]

mod asks;
mod catalog;
pub mod config;
mod door;
mod drain;
mod events;
mod executors;
mod features;
mod golden;
mod health;
mod memory;
mod metrics;
mod model;
mod parent;
mod pipeline;
mod pulse;
mod repository;

pub use asks::Ask;
pub use config::Config;
pub use executors::{Load, LoadedModel};
pub use pipeline::{Refusal, run, run_from_file};
