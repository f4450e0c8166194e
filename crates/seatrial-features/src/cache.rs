//! The tokens of texts seen lately. The whole text is compared, never a hash alone, so that no text gets another's.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use lru::LruCache;

/// Longer texts are seldom seen twice, and would let a few clients fill the memory.
const LONGEST_TEXT: usize = 4096;

/// What a tokenizer makes of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) ids: Box<[u32]>,
    pub(crate) type_ids: Box<[u32]>,
}

/// A bounded cache from text to tokens.
pub(crate) struct TokenCache {
    /// None when nothing is to be kept.
    kept: Option<Mutex<LruCache<Box<str>, Arc<Tokens>>>>,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl TokenCache {
    pub(crate) fn new(entries: usize) -> Self {
        let kept = NonZeroUsize::new(entries).map(|entries| Mutex::new(LruCache::new(entries)));
        Self { kept, hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }

    /// The tokens of `text`, made by `make` if they are not here.
    pub(crate) fn get<E>(
        &self,
        text: &str,
        make: impl FnOnce() -> Result<Tokens, E>,
    ) -> Result<Arc<Tokens>, E> {
        let Some(kept) = self.kept.as_ref().filter(|_| text.len() <= LONGEST_TEXT) else {
            self.misses.fetch_add(1, Relaxed);
            return make().map(Arc::new);
        };
        let found = kept.lock().unwrap_or_else(PoisonError::into_inner).get(text).cloned();
        if let Some(tokens) = found {
            self.hits.fetch_add(1, Relaxed);
            return Ok(tokens);
        }
        self.misses.fetch_add(1, Relaxed);
        let tokens = Arc::new(make()?);
        kept.lock().unwrap_or_else(PoisonError::into_inner).put(text.into(), tokens.clone());
        Ok(tokens)
    }

    /// Texts that were here, and texts that were not.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.hits.load(Relaxed), self.misses.load(Relaxed))
    }
}
