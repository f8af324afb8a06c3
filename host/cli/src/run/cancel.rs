//! The end of a run from outside: Ctrl-C, a closed terminal, SIGTERM.

use super::ending::Ending;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Set once this process was asked to end.
#[derive(Clone, Default)]
pub(crate) struct Cancel {
    pub(crate) token: CancellationToken,
    signal: Arc<AtomicI32>,
}

impl Cancel {
    /// Listens from now on. The first signal ends the command and lets the sandbox go; the second ends this
    /// process there and then, for who types Ctrl-C twice does not want to wait.
    pub(crate) fn on_signals() -> std::io::Result<Cancel> {
        let cancel = Cancel::default();
        let mut signals = Signals::listen()?;
        let ours = cancel.clone();
        tokio::spawn(async move {
            ours.signal.store(signals.next().await, Ordering::Release);
            ours.token.cancel();
            let again = signals.next().await;
            let _ = writeln!(
                std::io::stderr().lock(),
                "leasehold: ended at once; `leasehold reconcile` clears away what is left"
            );
            std::process::exit(128 + again);
        });
        Ok(cancel)
    }

    /// How a run that was cancelled ends.
    pub(crate) fn ending(&self) -> Ending {
        Ending::Cancelled(self.signal.load(Ordering::Acquire))
    }
}

/// The signals that ask a process to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> i32 {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hangup.recv() => SignalKind::hangup(),
        };
        kind.as_raw_value()
    }
}
