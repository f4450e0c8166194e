//! Figures of this process under the names that every Prometheus client library uses. Read from `/proc/self` at each
//! exposition; a figure that cannot be read keeps its last value.

use std::{fs, sync::Arc};

use crate::{Gauge, Registry, RegistryError};

/// `USER_HZ`: the unit of times in `/proc`, fixed at 100 by the kernel's interface on every Linux we build for.
const TICKS_PER_SECOND: f64 = 100.0;

struct ProcessGauges {
    resident_memory_bytes: Arc<Gauge>,
    cpu_seconds: Arc<Gauge>,
    open_fds: Arc<Gauge>,
    threads: Arc<Gauge>,
    start_time_seconds: Arc<Gauge>,
}

/// Adds memory, CPU time, descriptors, threads and start time of this process to `registry`.
pub fn register_process(registry: &Registry) -> Result<(), RegistryError> {
    let gauges = ProcessGauges {
        resident_memory_bytes: registry.gauge(
            "process_resident_memory_bytes",
            "Resident memory size in bytes.",
            &[],
        )?,
        cpu_seconds: registry
            .float_counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.")?,
        open_fds: registry.gauge("process_open_fds", "Number of open file descriptors.", &[])?,
        threads: registry.gauge("process_threads", "Number of OS threads.", &[])?,
        start_time_seconds: registry.gauge(
            "process_start_time_seconds",
            "Start time of the process since the Unix epoch in seconds.",
            &[],
        )?,
    };
    registry.before_render(move || gauges.refresh());
    Ok(())
}

impl ProcessGauges {
    fn refresh(&self) {
        if let Ok(status) = fs::read_to_string("/proc/self/status") {
            set(&self.resident_memory_bytes, status_field(&status, "VmRSS:").map(|kib| kib * 1024.0));
            set(&self.threads, status_field(&status, "Threads:"));
        }
        if let Ok(stat) = fs::read_to_string("/proc/self/stat") {
            let cpu = stat_field(&stat, 14).zip(stat_field(&stat, 15)).map(|(user, system)| user + system);
            set(&self.cpu_seconds, cpu.map(|ticks| ticks / TICKS_PER_SECOND));
            let since_boot = stat_field(&stat, 22).map(|ticks| ticks / TICKS_PER_SECOND);
            set(&self.start_time_seconds, since_boot.zip(boot_time()).map(|(since, boot)| boot + since));
        }
        // Reading the folder holds one descriptor of its own.
        set(
            &self.open_fds,
            fs::read_dir("/proc/self/fd").ok().map(|fds| fds.count().saturating_sub(1) as f64),
        );
    }
}

fn set(gauge: &Gauge, value: Option<f64>) {
    if let Some(value) = value {
        gauge.set(value);
    }
}

fn boot_time() -> Option<f64> {
    status_field(&fs::read_to_string("/proc/stat").ok()?, "btime")
}

fn status_field(text: &str, key: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(key))?.split_whitespace().next()?.parse().ok()
}

/// A field of `/proc/self/stat` by its number in proc(5). The second one is the command in brackets and may itself
/// hold blanks and brackets, so counting starts after the last closing one.
fn stat_field(stat: &str, number: usize) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}
