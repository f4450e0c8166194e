//! The text format, judged by a line checker of its own that follows the format's description and shares no code
//! with the writer.

use std::{collections::HashMap, sync::atomic::AtomicBool, sync::atomic::Ordering, thread};

use seatrial_metrics::{Registry, register_process};

/// One sample line, taken apart.
#[derive(Debug)]
struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

impl Sample {
    fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The labels without `le`: what names one histogram.
    fn series(&self) -> String {
        format!("{:?}", self.labels.iter().filter(|(n, _)| n != "le").collect::<Vec<_>>())
    }
}

fn is_name(text: &str, colon: bool) -> bool {
    let ok = |c: char| c == '_' || (colon && c == ':') || c.is_ascii_alphanumeric();
    !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(ok)
}

fn parse_value(text: &str) -> f64 {
    match text {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        _ => {
            assert!(text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c)), "value {text:?}");
            text.parse().unwrap_or_else(|_| panic!("value {text:?}"))
        }
    }
}

/// Reads `{a="b",...}` and gives the labels and what follows.
fn parse_labels(text: &str) -> (Vec<(String, String)>, &str) {
    let mut rest = text.strip_prefix('{').unwrap();
    let mut labels = Vec::new();
    loop {
        let (name, after) = rest.split_once("=\"").unwrap();
        assert!(is_name(name, false), "label name {name:?}");
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().expect("label value ends") {
                (at, '"') => break at,
                (_, '\\') => match chars.next().unwrap().1 {
                    'n' => value.push('\n'),
                    c @ ('\\' | '"') => value.push(c),
                    c => panic!("escape \\{c}"),
                },
                (_, c) => value.push(c),
            }
        };
        labels.push((name.to_owned(), value));
        rest = &after[end + 1..];
        if let Some(done) = rest.strip_prefix('}') {
            return (labels, done);
        }
        rest = rest.strip_prefix(',').expect("comma between labels");
    }
}

fn parse_sample(line: &str) -> Sample {
    let end = line.find(['{', ' ']).unwrap();
    let (name, rest) = line.split_at(end);
    assert!(is_name(name, true), "name {name:?}");
    let (labels, rest) = if rest.starts_with('{') { parse_labels(rest) } else { (Vec::new(), rest) };
    let value = rest.strip_prefix(' ').expect("one blank before the value");
    Sample { name: name.to_owned(), labels, value: parse_value(value) }
}

/// Checks the whole text and gives its samples: every family has HELP then TYPE then its samples in one block, no
/// sample twice, histograms complete, ascending and consistent.
fn check(text: &str) -> Vec<Sample> {
    assert!(text.ends_with('\n'), "the last line ends with a line feed");
    let mut kinds: HashMap<String, String> = HashMap::new();
    let mut current = String::new();
    let mut samples: Vec<Sample> = Vec::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            help.split(' ').next().unwrap().clone_into(&mut current);
            assert!(!kinds.contains_key(&current), "family {current} twice");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, current, "TYPE follows HELP of the same family");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "type {kind}");
            kinds.insert(name.to_owned(), kind.to_owned());
        } else {
            let sample = parse_sample(line);
            let allowed: &[&str] =
                if kinds[&current] == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(
                allowed.iter().any(|suffix| sample.name == format!("{current}{suffix}")),
                "{} stands in the block of {current}",
                sample.name
            );
            assert!(kinds[&current] != "counter" || sample.value >= 0.0, "counter below zero: {line}");
            samples.push(sample);
        }
    }
    let mut seen: Vec<String> = samples.iter().map(|s| format!("{}{:?}", s.name, s.labels)).collect();
    seen.sort();
    let n = seen.len();
    seen.dedup();
    assert_eq!(seen.len(), n, "a sample stands twice");
    for (name, _) in kinds.iter().filter(|(_, kind)| *kind == "histogram") {
        check_histograms(name, &samples);
    }
    samples
}

fn check_histograms(name: &str, samples: &[Sample]) {
    let counts = samples.iter().filter(|s| s.name == format!("{name}_count"));
    for count in counts {
        let same = |s: &&Sample| s.series() == count.series();
        let buckets: Vec<_> =
            samples.iter().filter(|s| s.name == format!("{name}_bucket")).filter(same).collect();
        let edges: Vec<f64> = buckets.iter().map(|b| parse_value(b.label("le").unwrap())).collect();
        assert!(edges.is_sorted_by(|a, b| a < b), "edges {edges:?}");
        assert_eq!(edges.last(), Some(&f64::INFINITY));
        assert!(buckets.is_sorted_by(|a, b| a.value <= b.value), "buckets are cumulative");
        assert_eq!(buckets.last().unwrap().value.to_bits(), count.value.to_bits(), "+Inf equals count");
        assert_eq!(samples.iter().filter(|s| s.name == format!("{name}_sum")).filter(same).count(), 1);
    }
}

fn value(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> f64 {
    let fits = |s: &&Sample| s.name == name && labels.iter().all(|(n, v)| s.label(n) == Some(v));
    samples.iter().find(fits).unwrap_or_else(|| panic!("no sample {name}{labels:?}")).value
}

#[test]
fn families_are_written_as_the_format_says() {
    let registry = Registry::new();
    registry.counter("b_total", "Counts.", &[("model", "m"), ("reason", "full")]).unwrap().add(3);
    registry.gauge("a_bytes", "Size.", &[]).unwrap().set(1.5);
    let histogram = registry.histogram("c_seconds", "Time.", &[("model", "m")], &[0.001, 2.5]).unwrap();
    histogram.observe(0.000_5);
    histogram.observe(4.0);
    let text = registry.render();
    check(&text);
    assert_eq!(
        text,
        "# HELP a_bytes Size.\n# TYPE a_bytes gauge\na_bytes 1.5\n\
         # HELP b_total Counts.\n# TYPE b_total counter\nb_total{model=\"m\",reason=\"full\"} 3\n\
         # HELP c_seconds Time.\n# TYPE c_seconds histogram\n\
         c_seconds_bucket{model=\"m\",le=\"0.001\"} 1\nc_seconds_bucket{model=\"m\",le=\"2.5\"} 1\n\
         c_seconds_bucket{model=\"m\",le=\"+Inf\"} 2\nc_seconds_sum{model=\"m\"} 4.0005\n\
         c_seconds_count{model=\"m\"} 2\n"
    );
}

#[test]
fn any_text_survives_escaping() {
    let registry = Registry::new();
    let odd = "a\\b\"c\nd,e=\"}{ é\u{1f600}";
    registry.gauge("g", "first\nsecond \\ \"quoted\"", &[("k", odd)]).unwrap().set(f64::NEG_INFINITY);
    let text = registry.render();
    assert!(text.starts_with("# HELP g first\\nsecond \\\\ \"quoted\"\n"), "{text}");
    let samples = check(&text);
    assert_eq!(samples[0].label("k"), Some(odd));
    assert!(samples[0].value.is_infinite());
}

#[test]
fn a_scrape_under_load_sees_each_histogram_agree_with_itself() {
    let registry = Registry::new();
    let histogram = registry.histogram("h", "h", &[], &[1.0, 2.0, 3.0]).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for start in 0..2 {
            let (histogram, stop) = (&histogram, &stop);
            scope.spawn(move || {
                let mut i = start;
                while !stop.load(Ordering::Relaxed) {
                    histogram.observe(f64::from(i % 5));
                    i += 1;
                }
            });
        }
        for _ in 0..200 {
            check(&registry.render());
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_process_figures_are_those_of_this_process() {
    let registry = Registry::new();
    register_process(&registry).unwrap();
    let before = check(&registry.render());
    let ballast = vec![1u8; 64 << 20];
    let file = std::fs::File::open("/proc/self/stat").unwrap();
    let after = check(&registry.render());
    let grown = value(&after, "process_resident_memory_bytes", &[])
        - value(&before, "process_resident_memory_bytes", &[]);
    assert!(grown > 48e6, "64 MiB of ballast moved the resident size by {grown} bytes");
    assert!(value(&after, "process_open_fds", &[]) >= 4.0);
    assert!(value(&after, "process_threads", &[]) >= 1.0);
    assert!(value(&after, "process_cpu_seconds_total", &[]) >= 0.0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    let age = now - value(&after, "process_start_time_seconds", &[]);
    assert!((-2.0..3600.0).contains(&age), "started {age} s ago");
    drop((ballast, file));
}

#[test]
fn retired_series_are_gone_and_others_stay() {
    let registry = Registry::new();
    let of = |version: &str| {
        registry.counter("runs_total", "Runs.", &[("model", "m"), ("version", version)]).unwrap()
    };
    let (old, new) = (of("1"), of("2"));
    registry.gauge("rows", "Rows.", &[("model", "m"), ("version", "1")]).unwrap().set(3.0);
    registry.counter("all_total", "All.", &[]).unwrap().inc();
    registry.retire(&[("model", "m"), ("version", "1")]);
    old.inc();
    new.inc();
    let text = registry.render();
    assert!(!text.contains("version=\"1\"") && !text.contains("rows"), "{text}");
    assert!(
        text.contains("runs_total{model=\"m\",version=\"2\"} 1\n") && text.contains("all_total 1\n"),
        "{text}"
    );
    assert_eq!(of("1").get(), 0, "it begins anew");
}
