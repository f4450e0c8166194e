//! The Prometheus text format 0.0.4: names, escaping, numbers and the lines of a family.

use std::fmt::Write;

use crate::{
    Snapshot,
    registry::{Cell, Family, Kind},
};

type LabelPairs = [(String, String)];

/// Appends HELP, TYPE and all samples of one family.
pub(crate) fn write_family(out: &mut String, name: &str, family: &Family) {
    let kind = match family.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let help = family.help.replace('\\', "\\\\").replace('\n', "\\n");
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, cell) in &family.series {
        match cell {
            Cell::Counter(counter) => write_sample(out, name, labels, &counter.get().to_string()),
            Cell::Gauge(gauge) => write_sample(out, name, labels, &number(gauge.get())),
            Cell::Histogram(histogram) => write_histogram(out, name, labels, &histogram.snapshot()),
        }
    }
}

fn write_histogram(out: &mut String, name: &str, labels: &LabelPairs, snapshot: &Snapshot) {
    let bucket = format!("{name}_bucket");
    let mut with_edge = labels.to_vec();
    for (edge, count) in snapshot.cumulative() {
        with_edge.truncate(labels.len());
        with_edge.push(("le".to_owned(), number(edge)));
        write_sample(out, &bucket, &with_edge, &count.to_string());
    }
    write_sample(out, &format!("{name}_sum"), labels, &number(snapshot.sum));
    write_sample(out, &format!("{name}_count"), labels, &snapshot.count().to_string());
}

fn write_sample(out: &mut String, name: &str, labels: &LabelPairs, value: &str) {
    out.push_str(name);
    for (at, (label, text)) in labels.iter().enumerate() {
        let open = if at == 0 { '{' } else { ',' };
        let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(out, "{open}{label}=\"{text}\"");
    }
    let close = if labels.is_empty() { "" } else { "}" };
    let _ = writeln!(out, "{close} {value}");
}

fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() }
    } else {
        value.to_string()
    }
}

pub(crate) fn legal_metric_name(name: &str) -> bool {
    legal(name, |c| c == ':')
}

/// Names with two leading underscores belong to Prometheus itself.
pub(crate) fn legal_label_name(name: &str) -> bool {
    legal(name, |_| false) && !name.starts_with("__")
}

fn legal(name: &str, also: impl Fn(char) -> bool) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || also(c))
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || also(c))
}
