//! The families of one process and their series. Registering is rare and takes a lock; recording never does.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use crate::{Counter, Gauge, Histogram, RegistryError, histogram, text};

/// Label names and values of one series, in the order they are written.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// Runs before each exposition to bring values up to date that nobody records as they change.
type Refresh = Box<dyn Fn() + Send + Sync>;

/// All families of a process.
#[derive(Default)]
pub struct Registry {
    families: RwLock<BTreeMap<String, Family>>,
    refreshes: RwLock<Vec<Refresh>>,
}

pub(crate) struct Family {
    pub(crate) help: String,
    pub(crate) kind: Kind,
    label_names: Vec<String>,
    /// By label values, which are in the order of `label_names`.
    pub(crate) series: BTreeMap<Vec<(String, String)>, Cell>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

#[derive(Clone)]
pub(crate) enum Cell {
    Counter(Arc<Counter>),
    Gauge(Arc<Gauge>),
    Histogram(Arc<Histogram>),
}

/// What identifies a series, as given by a caller.
struct Series<'a> {
    name: &'a str,
    help: &'a str,
    kind: Kind,
    labels: Labels<'a>,
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// The counter of this name and these labels; the same handle when it exists already.
    pub fn counter(&self, name: &str, help: &str, labels: Labels) -> Result<Arc<Counter>, RegistryError> {
        let series = Series { name, help, kind: Kind::Counter, labels };
        match self.series(&series, || Cell::Counter(Arc::default()))? {
            Cell::Counter(counter) => Ok(counter),
            _ => Err(RegistryError::Type(name.to_owned())),
        }
    }

    /// The gauge of this name and these labels; the same handle when it exists already.
    pub fn gauge(&self, name: &str, help: &str, labels: Labels) -> Result<Arc<Gauge>, RegistryError> {
        self.float(&Series { name, help, kind: Kind::Gauge, labels })
    }

    /// A counter with fractions, such as seconds. It is set by a refresh and is no handle for recording.
    pub(crate) fn float_counter(&self, name: &str, help: &str) -> Result<Arc<Gauge>, RegistryError> {
        self.float(&Series { name, help, kind: Kind::Counter, labels: &[] })
    }

    /// The histogram of this name and these labels; the same handle when it exists already.
    pub fn histogram(
        &self,
        name: &str,
        help: &str,
        labels: Labels,
        edges: &[f64],
    ) -> Result<Arc<Histogram>, RegistryError> {
        if !histogram::ascending(edges) {
            return Err(RegistryError::Edges(name.to_owned()));
        }
        let series = Series { name, help, kind: Kind::Histogram, labels };
        match self.series(&series, || Cell::Histogram(Arc::new(Histogram::new(edges))))? {
            Cell::Histogram(histogram) => Ok(histogram),
            _ => Err(RegistryError::Type(name.to_owned())),
        }
    }

    /// Takes the series out that have all of these labels: what they tell of is gone. Handles that somebody still has
    /// count on and are no longer shown.
    pub fn retire(&self, labels: Labels) {
        let mut families = self.families.write().unwrap_or_else(PoisonError::into_inner);
        for family in families.values_mut() {
            family.series.retain(|key, _| {
                !labels.iter().all(|(name, value)| key.iter().any(|(n, v)| n == name && v == value))
            });
        }
        families.retain(|_, family| !family.series.is_empty());
    }

    /// Runs `refresh` before each exposition.
    pub fn before_render(&self, refresh: impl Fn() + Send + Sync + 'static) {
        self.refreshes.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(refresh));
    }

    /// Everything in the Prometheus text format 0.0.4, families and series in a stable order.
    pub fn render(&self) -> String {
        for refresh in self.refreshes.read().unwrap_or_else(PoisonError::into_inner).iter() {
            refresh();
        }
        let families = self.families.read().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::new();
        for (name, family) in families.iter() {
            text::write_family(&mut out, name, family);
        }
        out
    }

    fn float(&self, series: &Series) -> Result<Arc<Gauge>, RegistryError> {
        match self.series(series, || Cell::Gauge(Arc::default()))? {
            Cell::Gauge(gauge) => Ok(gauge),
            _ => Err(RegistryError::Type(series.name.to_owned())),
        }
    }

    fn series(&self, wanted: &Series, make: impl FnOnce() -> Cell) -> Result<Cell, RegistryError> {
        wanted.check_names()?;
        let mut families = self.families.write().unwrap_or_else(PoisonError::into_inner);
        let family = families.entry(wanted.name.to_owned()).or_insert_with(|| wanted.family());
        if family.kind != wanted.kind {
            return Err(RegistryError::Type(wanted.name.to_owned()));
        }
        if !family.label_names.iter().eq(wanted.labels.iter().map(|(name, _)| name)) {
            return Err(RegistryError::Labels(wanted.name.to_owned()));
        }
        let cell = make();
        if family.series.values().next().is_some_and(|other| !other.same_edges(&cell)) {
            return Err(RegistryError::Edges(wanted.name.to_owned()));
        }
        let key = wanted.labels.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Ok(family.series.entry(key).or_insert(cell).clone())
    }
}

impl Series<'_> {
    fn check_names(&self) -> Result<(), RegistryError> {
        let reserved = |label: &str| self.kind == Kind::Histogram && label == "le";
        if !text::legal_metric_name(self.name) {
            return Err(RegistryError::Name(self.name.to_owned()));
        }
        match self.labels.iter().find(|(label, _)| !text::legal_label_name(label) || reserved(label)) {
            Some((label, _)) => Err(RegistryError::Name((*label).to_owned())),
            None => Ok(()),
        }
    }

    fn family(&self) -> Family {
        Family {
            help: self.help.to_owned(),
            kind: self.kind,
            label_names: self.labels.iter().map(|(name, _)| (*name).to_owned()).collect(),
            series: BTreeMap::new(),
        }
    }
}

impl Cell {
    fn same_edges(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Histogram(a), Self::Histogram(b)) => a.edges() == b.edges(),
            _ => true,
        }
    }
}
