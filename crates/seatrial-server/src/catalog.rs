//! Which versions of which models there are. Doors read one immutable picture without a lock; whoever changes it makes
//! a new picture and swaps one pointer.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;
use seatrial_protocol::{IndexEntry, ModelId, ModelState};
use seatrial_types::{Code, Error, Result};

use crate::model::Model;

/// Lines about versions that are not served, kept for one model.
const NOTES: usize = 16;

/// What the index says of a resident version that answers only those who name it.
const NOT_ACTIVE: &str = "not the active version; loading it by its version makes it so at once";

/// All models, by name.
pub(crate) struct Catalog {
    picture: ArcSwap<Picture>,
    /// Held while a new picture is made from the old one.
    changing: Mutex<()>,
}

type Picture = BTreeMap<String, Lineage>;

/// The versions of one name.
#[derive(Clone, Default)]
struct Lineage {
    /// Resident versions; the last one is the active one, the one before it was active before.
    versions: Vec<Arc<Model>>,
    /// What the index says about versions that are not resident.
    notes: Vec<IndexEntry>,
}

impl Lineage {
    /// The version that a request without one gets. The weights of a split between two resident versions belong here,
    /// and so does the choice of the version that gets a copy of the request.
    fn choose(&self) -> Option<&Arc<Model>> {
        self.versions.last()
    }

    fn find(&self, version: &str) -> Option<&Arc<Model>> {
        let only = self.versions.len() == 1;
        self.versions.iter().rev().find(|model| model.is_version(version, only))
    }

    fn forget(&mut self, version: &str) {
        self.notes.retain(|note| note.id.version != version);
    }
}

impl Catalog {
    /// The versions of a name are in the order of the configuration; the last one is the active one.
    pub(crate) fn new(models: Vec<Arc<Model>>) -> Self {
        let mut picture = Picture::new();
        for model in models {
            picture.entry(model.config.name.clone()).or_default().versions.push(model);
        }
        Self { picture: ArcSwap::from_pointee(picture), changing: Mutex::new(()) }
    }

    /// Every resident version of every model, sorted by name.
    pub(crate) fn all(&self) -> Vec<Arc<Model>> {
        self.picture.load().values().flat_map(|lineage| &lineage.versions).cloned().collect()
    }

    /// The active version of every model.
    pub(crate) fn active(&self) -> Vec<Arc<Model>> {
        self.picture.load().values().filter_map(Lineage::choose).cloned().collect()
    }

    /// Whether there is something to serve and all of it works.
    pub(crate) fn is_ready(&self) -> bool {
        let picture = self.picture.load();
        let mut versions = picture.values().flat_map(|lineage| &lineage.versions);
        versions.all(|model| model.is_ready())
            && picture.values().any(|lineage| !lineage.versions.is_empty())
            && picture.values().filter_map(Lineage::choose).all(|model| !model.pulse.is_faulty())
    }

    /// The resident versions of a name; the last one is active.
    pub(crate) fn versions(&self, name: &str) -> Result<Vec<Arc<Model>>> {
        let picture = self.picture.load();
        let Some(lineage) = picture.get(name) else { return Err(unknown(name)) };
        if lineage.versions.is_empty() {
            return Err(Error::new(Code::NotFound, format!("the model `{name}` is not loaded")));
        }
        Ok(lineage.versions.clone())
    }

    /// The version that is meant: by semantic version, by digest or its first twelve digits or more, or by `1` where
    /// there is only one.
    pub(crate) fn find(&self, name: &str, version: Option<&str>) -> Result<Arc<Model>> {
        let picture = self.picture.load();
        let found = picture.get(name).and_then(|lineage| match version {
            None => lineage.choose(),
            Some(version) => lineage.find(version),
        });
        if let Some(found) = found {
            return Ok(found.clone());
        }
        let versions = self.versions(name)?;
        let there: Vec<_> = versions.iter().map(|m| format!("`{}`", m.config.version)).collect();
        let text = format!(
            "model `{name}` has no version `{}`: expected {} or the digest",
            version.unwrap_or_default(),
            there.join(", ")
        );
        Err(Error::new(Code::NotFound, text))
    }

    /// The lines of the repository index, sorted by name.
    pub(crate) fn index(&self) -> Vec<IndexEntry> {
        let of = |lineage: &Lineage| {
            let served = lineage.versions.iter().map(|model| {
                let mut entry = model.index_entry();
                if entry.reason.is_empty()
                    && lineage.choose().is_some_and(|active| !Arc::ptr_eq(active, model))
                {
                    NOT_ACTIVE.clone_into(&mut entry.reason);
                }
                entry
            });
            served.chain(lineage.notes.iter().cloned()).collect::<Vec<_>>()
        };
        self.picture.load().values().flat_map(of).collect()
    }

    /// Whether the index has a line of this name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.picture.load().contains_key(name)
    }

    /// Makes a resident version the active one.
    pub(crate) fn activate(&self, model: &Arc<Model>) {
        self.change(&model.config.name, |lineage| {
            lineage.versions.retain(|other| !Arc::ptr_eq(other, model));
            lineage.forget(&model.config.version);
            // The line of a package that could not be resolved: it has been now.
            lineage.forget("");
            lineage.versions.push(model.clone());
        });
    }

    /// Takes out the versions that have been inactive for longest, until no more than `keep` are left.
    pub(crate) fn shorten(&self, name: &str, keep: usize) -> Vec<Arc<Model>> {
        self.change(name, |lineage| {
            let many = lineage.versions.len().saturating_sub(keep.max(1));
            lineage.versions.drain(..many).collect()
        })
    }

    /// Takes out one version, or all of them.
    pub(crate) fn remove(&self, name: &str, version: Option<&str>) -> Result<Vec<Arc<Model>>> {
        let gone = match version {
            None => self.versions(name)?,
            Some(version) => vec![self.find(name, Some(version))?],
        };
        self.change(name, |lineage| {
            lineage.versions.retain(|model| !gone.iter().any(|g| Arc::ptr_eq(g, model)));
        });
        Ok(gone)
    }

    /// Writes a line about a version that is not resident, in place of what stood there.
    pub(crate) fn note(&self, id: &ModelId, state: ModelState, reason: &str) {
        self.change(&id.name, |lineage| {
            lineage.forget(&id.version);
            lineage.notes.push(IndexEntry { id: id.clone(), state, reason: reason.to_owned() });
            let many = lineage.notes.len().saturating_sub(NOTES);
            lineage.notes.drain(..many);
        });
    }

    /// Takes the line of a version that is not resident away.
    pub(crate) fn forget(&self, id: &ModelId) {
        self.change(&id.name, |lineage| lineage.forget(&id.version));
    }

    fn change<T>(&self, name: &str, work: impl FnOnce(&mut Lineage) -> T) -> T {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut picture = Picture::clone(&self.picture.load());
        let lineage = picture.entry(name.to_owned()).or_default();
        let given = work(lineage);
        if lineage.versions.is_empty() && lineage.notes.is_empty() {
            picture.remove(name);
        }
        self.picture.store(Arc::new(picture));
        given
    }
}

fn unknown(name: &str) -> Error {
    Error::new(Code::NotFound, format!("there is no model `{name}` on this server"))
}
