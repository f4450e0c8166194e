//! How well the generator itself kept up: lateness, CPU time, time spent waiting for a core.

use rustix::time::{ClockId, clock_gettime};

/// Lateness in buckets whose edges are at most 1.6 % apart, from 1 ns to 2^40 ns.
#[derive(Debug)]
pub struct Lateness {
    buckets: Vec<u64>,
    count: u64,
    max: u64,
}

const SUB_BITS: u32 = 6;
const BUCKETS: usize = (41 << SUB_BITS) as usize;

impl Default for Lateness {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0, max: 0 }
    }
}

impl Lateness {
    /// Counts one request; negative lateness cannot be and counts as none.
    pub fn add(&mut self, ns: i64) {
        let ns = u64::try_from(ns).unwrap_or(0);
        if let Some(bucket) = self.buckets.get_mut(bucket(ns).min(BUCKETS - 1)) {
            *bucket += 1;
        }
        self.count += 1;
        self.max = self.max.max(ns);
    }

    /// The `ceil(q n)`-th smallest in microseconds, rounded up to the edge of its bucket; `None` without requests.
    pub fn quantile_us(&self, q: f64) -> Option<f64> {
        let rank = ((q * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let index = self.buckets.iter().position(|n| {
            seen += n;
            seen >= rank
        })?;
        Some(upper_edge(index).min(self.max) as f64 / 1e3)
    }

    /// The largest, exactly.
    pub fn max_us(&self) -> Option<f64> {
        (self.count > 0).then(|| self.max as f64 / 1e3)
    }
}

fn bucket(ns: u64) -> usize {
    let shift = (64 - ns.leading_zeros()).saturating_sub(SUB_BITS + 1);
    ((u64::from(shift) << SUB_BITS) + (ns >> shift)) as usize
}

fn upper_edge(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 << SUB_BITS {
        return index;
    }
    let shift = (index >> SUB_BITS) - 1;
    ((index - (shift << SUB_BITS) + 1) << shift) - 1
}

/// CPU time of the calling thread in seconds.
pub fn thread_cpu_s() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of the process in seconds.
pub fn process_cpu_s() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Time the calling thread has waited for a core, in seconds; `None` where the kernel does not say.
pub fn run_queue_wait_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let ns: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_the_edges_are_close() {
        for shift in 0..40 {
            for ns in [1_u64 << shift, (1 << shift) + 1, (1 << shift) * 3 / 2, (2 << shift) - 1] {
                let edge = upper_edge(bucket(ns));
                assert!(edge >= ns && edge as f64 <= ns as f64 * 1.0157, "{ns}: {edge}");
                assert!(bucket(ns) == 0 || upper_edge(bucket(ns) - 1) < ns, "{ns}");
            }
        }
    }

    #[test]
    fn quantiles_are_order_statistics() {
        let mut late = Lateness::default();
        assert_eq!(late.quantile_us(0.5), None);
        (1..=100).for_each(|i| late.add(i));
        assert_eq!(late.quantile_us(0.5), Some(0.05));
        assert_eq!(late.quantile_us(0.99), Some(0.099));
        assert_eq!(late.quantile_us(1.0), Some(0.1));
        assert_eq!(late.max_us(), Some(0.1));
    }
}
