//! Calls that go on: inference over a stream, watching health, and reflection.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use prost::Message as _;
use seatrial_protocol::{message::Envelope, proto::reflection::ServerReflectionRequest, reflection::reflect};
use seatrial_types::{Code, Error, Result, Stages};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::{
    super::{Door, InHand},
    frames::{Coding, Messages, Packed},
    infer::{Terms, infer},
    reply::{Next, Pending},
    service::{SMALL, frame_of, health},
};
use crate::drain::Stage;

/// Messages of one stream that may wait for their answers at the same time.
const WINDOW: usize = 256;

/// How often a watched state is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Answers inference messages in the order in which they come, all of them at work at the same time.
pub(super) fn inference(door: &Arc<Door>, messages: Messages, terms: Terms) -> mpsc::Receiver<Next> {
    let (send, queue) = mpsc::channel(WINDOW);
    let door = door.clone();
    tokio::spawn(async move {
        let make = |packed| {
            let (door, terms) = (door.clone(), terms.clone());
            Ok(Next::Later(Pending(tokio::spawn(async move { one(&door, &terms, packed).await }))))
        };
        listen(&door, messages, &send, make).await;
    });
    queue
}

async fn one(door: &Arc<Door>, terms: &Terms, packed: Packed) -> (Bytes, crate::metrics::Finish) {
    let mut hand = InHand::new(door);
    let stages = Stages::start(Instant::now());
    let outcome = infer(&mut hand, terms, (packed, Envelope::Stream), stages).await;
    hand.answered = true;
    let finish = outcome.finish(&hand);
    if door.drain.is_draining() {
        door.drain.note(finish.status);
    }
    let frame = outcome.into_frame();
    door.metrics.bytes_out.add(frame.len() as u64);
    (frame, finish)
}

/// Tells what the services look like.
pub(super) fn reflection(door: &Arc<Door>, messages: Messages) -> mpsc::Receiver<Next> {
    let (send, queue) = mpsc::channel(WINDOW);
    let door = door.clone();
    tokio::spawn(async move {
        let make = |packed: Packed| {
            let request = ServerReflectionRequest::decode(packed.unpack(SMALL)?)
                .map_err(|e| Error::invalid(format!("this is no reflection request: {e}")))?;
            Ok(Next::Now(frame_of(&reflect(request), Coding::Identity)?))
        };
        listen(&door, messages, &send, make).await;
    });
    queue
}

/// Hands on what `make` makes of each message until the client or the server ends the call.
async fn listen(
    door: &Door,
    mut messages: Messages,
    send: &mpsc::Sender<Next>,
    make: impl Fn(Packed) -> Result<Next>,
) {
    loop {
        let next = tokio::select! {
            message = message(door, &mut messages) => match message {
                Ok(None) => return,
                Ok(Some(packed)) => make(packed),
                Err(error) => Err(error),
            },
            () = door.drain.reached(Stage::Closing) => Err(leaving()),
            () = send.closed() => return,
        };
        let over = next.is_err();
        if send.send(next.unwrap_or_else(Next::End)).await.is_err() || over {
            return;
        }
    }
}

fn leaving() -> Error {
    Error::new(Code::Unavailable, "the server is draining").retry_after(Duration::from_secs(1))
}

/// The next message. Between messages there is no hurry; one that has begun must go on.
async fn message(door: &Door, messages: &mut Messages) -> Result<Option<Packed>> {
    loop {
        match timeout(door.limits.body_timeout(), messages.next()).await {
            Ok(message) => return message,
            Err(_) if messages.is_amid() => {
                let ms = door.limits.body_timeout_ms;
                let text = format!("the message was not complete after {ms} ms");
                return Err(Error::new(Code::RequestTimeout, text));
            }
            Err(_) => {}
        }
    }
}

/// Tells the health of a service now and whenever it changes.
pub(super) fn watch(door: &Arc<Door>, service: String, coding: Coding) -> mpsc::Receiver<Next> {
    let (send, queue) = mpsc::channel(1);
    let door = door.clone();
    tokio::spawn(async move {
        let mut told = None;
        loop {
            let now = health(&door, &service);
            if told != Some(now.status) {
                told = Some(now.status);
                let next = frame_of(&now, coding).map_or_else(Next::End, Next::Now);
                if send.send(next).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                () = door.drain.reached(Stage::Closing) => {
                    let _ = send.send(Next::End(leaving())).await;
                    return;
                }
                () = sleep(LOOK) => {}
                () = send.closed() => return,
            }
        }
    });
    queue
}
