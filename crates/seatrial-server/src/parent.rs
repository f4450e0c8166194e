//! The parent as somebody to ask: it alone reads packages, so it resolves what is to be loaded. One question at a
//! time goes out as an event, its answer comes back as one line on standard input.

use std::time::Duration;

use seatrial_types::{Code, Error, Result};
use serde::Deserialize;
use tokio::{sync::mpsc, time::timeout};

use crate::{
    config::Model,
    events::{Event, tell},
};

/// Hashing the files of a large package takes its time.
const PATIENCE: Duration = Duration::from_mins(10);

/// The process that started the server.
pub(crate) struct Parent {
    lines: mpsc::Receiver<Vec<u8>>,
    asked: u64,
}

/// One line of the parent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    id: u64,
    model: Option<serde_json::Value>,
    error: Option<String>,
    /// There is no such package; any other error is the package's own.
    #[serde(default)]
    missing: bool,
}

impl Parent {
    pub(crate) const fn new(lines: mpsc::Receiver<Vec<u8>>) -> Self {
        Self { lines, asked: 0 }
    }

    /// The resolved model, or why there is none.
    pub(crate) async fn resolve(&mut self, model: &str, version: Option<&str>) -> Result<Model> {
        self.asked += 1;
        let id = self.asked;
        tell(&Event::LoadWanted { id, model, version });
        match timeout(PATIENCE, self.answer(id)).await {
            Ok(Some(answer)) => answer.into_model(),
            Ok(None) => Err(Error::new(Code::Unavailable, "the process that reads packages has gone")),
            Err(_) => Err(Error::new(Code::Unavailable, "the process that reads packages does not answer")),
        }
    }

    /// The answer to this question; lines that are no answer, or a late one to another, are passed over.
    async fn answer(&mut self, id: u64) -> Option<Answer> {
        loop {
            match serde_json::from_slice::<Answer>(&self.lines.recv().await?) {
                Ok(answer) if answer.id == id => return Some(answer),
                Ok(_) => {}
                Err(e) => eprintln!("a line of the parent is no answer: {e}"),
            }
        }
    }
}

impl Answer {
    fn into_model(self) -> Result<Model> {
        match (self.model, self.error) {
            (Some(model), None) => Model::from_parent(&model).map_err(|e| Error::invalid(e.to_string())),
            (_, error) => {
                let code = if self.missing { Code::NotFound } else { Code::InvalidArgument };
                Err(Error::new(code, error.unwrap_or_else(|| "the package cannot be read".to_owned())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn resolve(lines: &[&str]) -> Result<Model> {
        let (line, received) = mpsc::channel(8);
        for text in lines {
            line.send(text.as_bytes().to_vec()).await.unwrap();
        }
        drop(line);
        Parent::new(received).resolve("m", None).await
    }

    #[tokio::test]
    async fn answers_are_taken_by_their_number_and_errors_come_as_they_are() {
        let error = |result: Result<Model>| result.map(|model| model.name).unwrap_err();
        let found = error(
            resolve(&["", "talk", r#"{"id": 7, "error": "late"}"#, r#"{"id": 1, "error": "no"}"#]).await,
        );
        assert_eq!(found, Error::invalid("no"));
        let found = error(resolve(&[r#"{"id": 1, "error": "none", "missing": true}"#]).await);
        assert_eq!(found.code, Code::NotFound);
        let found = error(resolve(&[r#"{"id": 1, "model": {"name": "m"}}"#]).await);
        assert!(found.message.contains("missing field"), "{found}");
        assert_eq!(error(resolve(&[]).await).code, Code::Unavailable);
    }
}
