//! The feature plan of a model while it is served, with what is counted of it.

use std::sync::{Arc, Mutex, PoisonError};

use seatrial_features::{CacheCounts, FieldCounts, Plan};
use seatrial_metrics::{Counter, Registry, RegistryError};

use crate::{config, pipeline::Refusal};

/// A plan and its counters. The plan counts on its own; the counters take over what is new when somebody reads them.
pub(crate) struct Features {
    pub(crate) plan: Arc<Plan>,
    fields: Vec<(Arc<Counter>, Arc<Counter>)>,
    cache: Option<(Arc<Counter>, Arc<Counter>)>,
    /// One reader at a time, so that nothing is taken over twice.
    reading: Mutex<()>,
}

impl Features {
    /// Compiles the spec of a model that has one: reads its vocabularies and tokenizers.
    pub(crate) fn load(registry: &Registry, model: &config::Model) -> Result<Option<Self>, Refusal> {
        let Some(config::Features { folder, spec }) = &model.features else { return Ok(None) };
        let inputs = &model.signature.inputs;
        let same = spec
            .tensors
            .iter()
            .map(|t| (&t.name, t.datatype))
            .eq(inputs.iter().map(|t| (&t.name, t.datatype)));
        if !same {
            return Err(Refusal::wrong(format!(
                "model `{}`: the tensors of its features are not the inputs of its signature",
                model.name
            )));
        }
        let plan = Plan::compile(spec, folder)
            .map_err(|e| Refusal::wrong(format!("model `{}`: features.yaml: {e}", model.name)))?;
        Ok(Some(Self::register(registry, model, plan)?))
    }

    fn register(registry: &Registry, model: &config::Model, plan: Plan) -> Result<Self, RegistryError> {
        let labels = [("model", model.name.as_str()), ("version", model.version.as_str())];
        let counter = |name: &str, help: &str, more: (&str, &str)| {
            registry.counter(name, help, &[labels.as_slice(), &[more]].concat())
        };
        let missing = "Instances without a value, by field.";
        let unknown = "Values outside the vocabulary, by field.";
        let of_field = |field: &str| {
            let of = ("field", field);
            Ok((
                counter("seatrial_features_missing_total", missing, of)?,
                counter("seatrial_features_unknown_total", unknown, of)?,
            ))
        };
        let fields =
            plan.counts().iter().map(|c| of_field(&c.field)).collect::<Result<_, RegistryError>>()?;
        let of_cache = |outcome| {
            let help = "Texts whose tokens were kept from before, or were not, by outcome.";
            counter("seatrial_features_token_cache_total", help, ("outcome", outcome))
        };
        let cache = plan.tokenizes().then(|| Ok((of_cache("hit")?, of_cache("miss")?))).transpose()?;
        Ok(Self { plan: Arc::new(plan), fields, cache, reading: Mutex::new(()) })
    }

    /// Brings the counters up to date.
    pub(crate) fn count(&self) {
        let _one = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        for ((missing, unknown), counts) in self.fields.iter().zip(self.plan.counts()) {
            let FieldCounts { missing: n_missing, unknown: n_unknown, .. } = counts;
            raise(missing, n_missing);
            raise(unknown, n_unknown);
        }
        if let (Some((hits, misses)), Some(counts)) = (&self.cache, self.plan.cache_counts()) {
            let CacheCounts { hits: n_hits, misses: n_misses } = counts;
            raise(hits, n_hits);
            raise(misses, n_misses);
        }
    }
}

fn raise(counter: &Counter, to: u64) {
    counter.add(to.saturating_sub(counter.get()));
}
