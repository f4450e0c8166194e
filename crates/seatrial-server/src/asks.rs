//! Who may ask the server to end: SIGTERM, SIGINT, and the parent by going away. The parent's answers come the same
//! way as the news of its end: on standard input.

use std::{
    fmt,
    io::{self, BufRead},
    thread,
};

use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};

/// A request to end. The first one drains; a second one ends the server at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
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

/// Lines of the parent that wait to be read.
const LINES: usize = 4;

/// Starts listening for all that may ask this process to end; for the parent only where `parent` says so. The parent's
/// lines come with it.
pub(crate) fn listen(parent: bool) -> io::Result<(mpsc::Receiver<Ask>, mpsc::Receiver<Vec<u8>>)> {
    let (ask, asks) = mpsc::channel(4);
    let (line, lines) = mpsc::channel(LINES);
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    // Before anything is announced: from here on a signal no longer kills.
    let signals = {
        let _context = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let of_signals = ask.clone();
    thread::Builder::new()
        .name("seatrial-signals".to_owned())
        .spawn(move || runtime.block_on(pass_on(signals, of_signals)))?;
    if parent {
        thread::Builder::new().name("seatrial-parent".to_owned()).spawn(move || {
            // An error is an end as well. Where nobody wants the lines, only the end is of interest.
            for read in io::stdin().lock().split(b'\n').map_while(Result::ok) {
                let _ = line.blocking_send(read);
            }
            let _ = ask.blocking_send(Ask::ParentGone);
        })?;
    }
    Ok((asks, lines))
}

async fn pass_on((mut terminate, mut interrupt): (Signal, Signal), ask: mpsc::Sender<Ask>) {
    loop {
        let which = tokio::select! {
            Some(()) = terminate.recv() => Ask::Terminate,
            Some(()) = interrupt.recv() => Ask::Interrupt,
            else => return,
        };
        if ask.send(which).await.is_err() {
            return;
        }
    }
}
