//! A list of words, one a line: the text as one piece, the words as a table of line numbers beside it.

use std::{fs, hash::BuildHasher as _, path::Path};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::{
    error::{SpecError, quote},
    hash::Hash,
    spec::{Unknown, VocabularyStep},
};

/// Words by their place, and places by their word.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    text: String,
    /// End of each word in `text`; one byte, the line feed, lies between two.
    ends: Vec<u32>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    offset: i64,
    unknown: OfUnknown,
}

#[derive(Debug)]
enum OfUnknown {
    Index(i64),
    Error,
    Hash(Hash),
    Skip,
}

/// Where a word leads.
pub(crate) enum Place {
    Known(i64),
    Unknown(i64),
    Skipped,
    Refused,
}

impl Vocabulary {
    pub(crate) fn compile(step: &VocabularyStep, folder: &Path) -> Result<Self, SpecError> {
        let (text, source) = match (&step.file, &step.words) {
            (Some(file), None) => (read(folder, file)?, format!("`{file}`")),
            (None, Some(words)) => {
                if let Some(word) = words.iter().find(|w| w.contains('\n')) {
                    return Err(SpecError::new(format!("the word {} holds a line feed", quote(word))));
                }
                (words.join("\n") + if words.is_empty() { "" } else { "\n" }, "`words`".to_owned())
            }
            _ => return Err(SpecError::new("a vocabulary needs either `file` or `words`")),
        };
        let unknown = match &step.unknown {
            Unknown::Index { index } => OfUnknown::Index(*index),
            Unknown::Error => OfUnknown::Error,
            Unknown::Hash(hash) => OfUnknown::Hash(Hash::compile(hash)?),
            Unknown::Skip => OfUnknown::Skip,
        };
        let mut vocabulary = Self {
            text,
            ends: Vec::new(),
            table: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            offset: step.offset,
            unknown,
        };
        vocabulary.index(&source)?;
        Ok(vocabulary)
    }

    fn index(&mut self, source: &str) -> Result<(), SpecError> {
        if u32::try_from(self.text.len()).is_err() {
            return Err(SpecError::new(format!("{source} is larger than 4 GiB")));
        }
        let body = self.text.strip_suffix('\n').unwrap_or(&self.text);
        if body.is_empty() {
            return Err(SpecError::new(format!("{source} holds no word")));
        }
        self.ends.extend(body.match_indices('\n').map(|(at, _)| at as u32));
        self.ends.push(body.len() as u32);
        let mut table = HashTable::with_capacity(self.ends.len());
        for line in 0..self.ends.len() as u32 {
            let word = self.word(line);
            if word.ends_with('\r') {
                return Err(SpecError::new(format!(
                    "{source} line {}: ends with a carriage return",
                    line + 1
                )));
            }
            let hash = self.hasher.hash_one(word);
            if let Some(first) = table.find(hash, |other| self.word(*other) == word) {
                return Err(SpecError::new(format!(
                    "{source} line {}: the word {} stands in line {} already",
                    line + 1,
                    quote(word),
                    first + 1
                )));
            }
            table.insert_unique(hash, line, |other| self.hasher.hash_one(self.word(*other)));
        }
        self.table = table;
        Ok(())
    }

    fn word(&self, line: u32) -> &str {
        let line = line as usize;
        let start =
            line.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize + 1);
        self.ends.get(line).and_then(|end| self.text.get(start..*end as usize)).unwrap_or_default()
    }

    /// Whether entries of a list may vanish.
    pub(crate) const fn skips(&self) -> bool {
        matches!(self.unknown, OfUnknown::Skip)
    }

    pub(crate) fn find(&self, word: &str) -> Place {
        let found = self.table.find(self.hasher.hash_one(word), |line| self.word(*line) == word);
        match (found, &self.unknown) {
            (Some(line), _) => Place::Known(i64::from(*line) + self.offset),
            (None, OfUnknown::Index(index)) => Place::Unknown(*index),
            (None, OfUnknown::Hash(hash)) => Place::Unknown(hash.index(word)),
            (None, OfUnknown::Skip) => Place::Skipped,
            (None, OfUnknown::Error) => Place::Refused,
        }
    }
}

fn read(folder: &Path, file: &str) -> Result<String, SpecError> {
    let bytes = read_bytes(folder, file)?;
    String::from_utf8(bytes).map_err(|e| {
        SpecError::new(format!("`{file}` is not UTF-8 at byte {}", e.utf8_error().valid_up_to()))
    })
}

/// A file inside the package folder. A path that leads out of it is refused.
pub(crate) fn read_bytes(folder: &Path, file: &str) -> Result<Vec<u8>, SpecError> {
    let inside = Path::new(file).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if !inside || file.is_empty() {
        return Err(SpecError::new(format!("`{file}`: expected the path of a file inside the package")));
    }
    fs::read(folder.join(file)).map_err(|e| SpecError::new(format!("`{file}` cannot be read: {e}")))
}
