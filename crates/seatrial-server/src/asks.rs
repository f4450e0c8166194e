//! Who may ask the server to end: SIGTERM, SIGINT, and the parent by going away.

use std::{fmt, io, thread};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

/// A request to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Terminate,
    Interrupt,
    /// Standard input has ended. A signal on the parent's death would be tied to the thread that started us rather
    /// than to the process, and is lost when the parent dies before it is asked for.
    ParentGone,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
            Self::ParentGone => "the parent process has gone",
        })
    }
}

/// Starts listening. Must be called inside a runtime.
pub(crate) fn listen_for(parent: bool) -> io::Result<mpsc::Receiver<Ask>> {
    let (ask, asks) = mpsc::channel(4);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let of_signals = ask.clone();
    tokio::spawn(async move {
        loop {
            let which = tokio::select! {
                Some(()) = terminate.recv() => Ask::Terminate,
                Some(()) = interrupt.recv() => Ask::Interrupt,
                else => return,
            };
            if of_signals.send(which).await.is_err() {
                return;
            }
        }
    });
    if parent {
        thread::Builder::new().name("seatrial-parent".to_owned()).spawn(move || {
            // Whatever comes is of no interest; only the end is. An error is an end as well.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            let _ = ask.blocking_send(Ask::ParentGone);
        })?;
    }
    Ok(asks)
}
