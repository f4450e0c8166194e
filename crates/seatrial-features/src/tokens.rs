//! Texts to tokens with the `tokenizer.json` of the package: truncated as the spec says, never padded.

use std::{fmt, path::Path, sync::Arc};

use tokenizers::{Tokenizer, TruncationDirection, TruncationParams, TruncationStrategy};

use crate::{
    cache::{TokenCache, Tokens},
    error::{Fault, SpecError},
    spec::{Side, TokenizerStep},
    vocabulary::read_bytes,
};

/// A loaded tokenizer with its cache.
pub(crate) struct TextTokens {
    tokenizer: Tokenizer,
    cache: TokenCache,
}

impl fmt::Debug for TextTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextTokens").finish_non_exhaustive()
    }
}

impl TextTokens {
    pub(crate) fn compile(step: &TokenizerStep, folder: &Path) -> Result<Self, SpecError> {
        let file = &step.file;
        let mut tokenizer = Tokenizer::from_bytes(read_bytes(folder, file)?)
            .map_err(|e| SpecError::new(format!("`{file}` is no tokenizer.json: {e}")))?;
        tokenizer.with_padding(None);
        let specials = tokenizer.encode_fast("", true).map_or(0, |encoding| encoding.get_ids().len());
        if step.max_length <= specials {
            return Err(SpecError::new(format!(
                "`max_length` is {}: expected more than the {specials} special tokens of `{file}`",
                step.max_length
            )));
        }
        let truncation = TruncationParams {
            direction: match step.truncate_side {
                Side::Left => TruncationDirection::Left,
                Side::Right => TruncationDirection::Right,
            },
            max_length: step.max_length,
            strategy: TruncationStrategy::LongestFirst,
            stride: 0,
        };
        tokenizer
            .with_truncation(Some(truncation))
            .map_err(|e| SpecError::new(format!("`max_length` is {}: {e}", step.max_length)))?;
        Ok(Self { tokenizer, cache: TokenCache::new(step.cache_entries) })
    }

    pub(crate) fn encode(&self, text: &str) -> Result<Arc<Tokens>, Fault> {
        self.cache.get(text, || {
            let encoding = self
                .tokenizer
                .encode_fast(text, true)
                .map_err(|e| Fault::new(format!("a text that the tokenizer takes; it says: {e}")))?;
            Ok(Tokens { ids: encoding.get_ids().into(), type_ids: encoding.get_type_ids().into() })
        })
    }

    pub(crate) fn cache_counts(&self) -> (u64, u64) {
        self.cache.counts()
    }
}
