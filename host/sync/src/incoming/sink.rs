//! A place for a tree: what is written to it arrives in a staging directory, checked on the way.

use super::entries::{self, Item, SinkEntry};
use super::extract::{self, Extraction};
use super::staging::Staging;
use super::{ReceiveError, Received, Receiving};
use crate::operation::Moved;
use crate::outgoing::SourceKind;
use crate::pipe::{self, Inlet};
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, oneshot};

/// Why a sink took no more. Whoever made the sink learns the details from [`Arriving`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// It was used before, or in the other of its two ways.
    #[error("the sink was used before, or in the other of its two ways")]
    Used,
    /// What was written is refused; the text says why.
    #[error("{0}")]
    Refused(String),
}

/// What a sink receives, once it is complete.
#[derive(Debug)]
pub struct Arriving<T>(pub(super) oneshot::Receiver<Result<T, ReceiveError>>);

impl<T> Arriving<T> {
    /// What arrived, checked.
    ///
    /// # Errors
    /// When it broke a rule or could not be written, or the sink was dropped before it was finished.
    pub async fn finish(self) -> Result<T, ReceiveError> {
        // Nobody is left to answer when the sink was never used.
        self.0.await.unwrap_or(Err(ReceiveError::Cancelled))
    }
}

/// A place for a tree, as one archive or entry by entry.
#[derive(Debug)]
pub struct TreeSink {
    state: State,
    taken: Moved,
}

#[derive(Debug)]
enum State {
    Fresh {
        root: PathBuf,
        below: PathBuf,
        receiving: Receiving,
        done: oneshot::Sender<Result<Received, ReceiveError>>,
    },
    Archive {
        end: Inlet,
        verdict: Verdict,
    },
    Entries {
        to: mpsc::Sender<Item>,
        content: Option<Inlet>,
        verdict: Verdict,
    },
    Used,
}

/// What the thread says of everything that came.
type Verdict = oneshot::Receiver<Result<Moved, String>>;

impl TreeSink {
    /// A sink that stages in a new directory inside `beside`, which has to be on the file system of the target.
    /// Wants a tokio runtime around it once it is used.
    #[must_use]
    pub fn new(beside: &Path, receiving: Receiving) -> (Self, Arriving<Received>) {
        Self::below(beside, Path::new(""), receiving)
    }

    /// The same in a directory below a root, reached without following a link and made where it is missing.
    #[must_use]
    pub fn below(root: &Path, below: &Path, receiving: Receiving) -> (Self, Arriving<Received>) {
        let (done, arriving) = oneshot::channel();
        let state = State::Fresh { root: root.into(), below: below.into(), receiving, done };
        (Self { state, taken: Moved::default() }, Arriving(arriving))
    }

    /// Takes a whole archive.
    ///
    /// # Errors
    /// When the sink was used before.
    pub fn tar(&mut self) -> Result<Inlet, SinkError> {
        let (inlet, reader) = pipe::inward();
        let end = inlet.again();
        let verdict = self.start(move |extraction| extract::archive(reader, extraction))?;
        self.state = State::Archive { end, verdict };
        Ok(inlet)
    }

    /// Announces an entry; a file's bytes go to the inlet returned. The bytes of the file before have all come
    /// by then.
    ///
    /// # Errors
    /// When the sink takes an archive, or refuses what came before.
    pub async fn put(&mut self, entry: SinkEntry) -> Result<Option<Inlet>, SinkError> {
        if matches!(self.state, State::Fresh { .. }) {
            let (to, from) = mpsc::channel(1);
            let verdict = self.start(move |extraction| entries::entries(from, extraction))?;
            self.state = State::Entries { to, content: None, verdict };
        }
        let State::Entries { to, content, .. } = &mut self.state else { return Err(SinkError::Used) };
        if let Some(ended) = content.take() {
            // Of a thread that refused, the verdict says more.
            let _ = ended.finish().await;
        }
        let (inlet, reader) = match entry.kind {
            SourceKind::File(_) => {
                let (inlet, reader) = pipe::inward();
                (Some(inlet), Some(reader))
            }
            _ => (None, None),
        };
        *content = inlet.as_ref().map(Inlet::again);
        match to.send(Some((entry, reader))).await {
            Ok(()) => Ok(inlet),
            Err(_) => Err(self.refused().await),
        }
    }

    /// Says that everything was written, and waits until all of it was checked.
    ///
    /// # Errors
    /// When it is refused. Without a call of this, all of it is thrown away.
    pub async fn finish(&mut self) -> Result<(), SinkError> {
        match std::mem::replace(&mut self.state, State::Used) {
            State::Archive { end, verdict } => {
                let _ = end.finish().await;
                self.taken = said(verdict).await?;
                Ok(())
            }
            State::Entries { to, content, verdict } => {
                if let Some(ended) = content {
                    let _ = ended.finish().await;
                }
                let _ = to.send(None).await;
                self.taken = said(verdict).await?;
                Ok(())
            }
            State::Fresh { .. } => Err(SinkError::Refused("nothing was written".into())),
            State::Used => Err(SinkError::Used),
        }
    }

    /// What it took; known once it was finished.
    #[must_use]
    pub fn totals(&self) -> Moved {
        self.taken
    }

    async fn refused(&mut self) -> SinkError {
        match std::mem::replace(&mut self.state, State::Used) {
            State::Archive { verdict, .. } | State::Entries { verdict, .. } => {
                said(verdict).await.err().unwrap_or(SinkError::Used)
            }
            _ => SinkError::Used,
        }
    }

    fn start(
        &mut self,
        work: impl FnOnce(Extraction<'_>) -> Result<crate::Manifest, ReceiveError> + Send + 'static,
    ) -> Result<Verdict, SinkError> {
        let State::Fresh { root, below, receiving, done } = std::mem::replace(&mut self.state, State::Used)
        else {
            return Err(SinkError::Used);
        };
        let (say, verdict) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let Receiving { limits, known, exclude, progress } = receiving;
            let receive = || {
                let staging = Staging::create(&root, &below)?;
                let known = known.as_ref().map(|known| &known.manifest);
                let manifest = work(Extraction::new(&staging, limits, known, &exclude, progress))?;
                Ok(Received { manifest, staging })
            };
            let received = receive();
            // Whoever waits for either may be gone.
            let _ = say.send(received.as_ref().map(taken).map_err(ReceiveError::for_sandbox));
            let _ = done.send(received);
        });
        Ok(verdict)
    }
}

fn taken(received: &Received) -> Moved {
    let (files, bytes) = received.manifest.totals();
    Moved { files, bytes }
}

pub(super) async fn said(verdict: Verdict) -> Result<Moved, SinkError> {
    let lost = |_| Err("the host's own work was cut off".into());
    verdict.await.unwrap_or_else(lost).map_err(SinkError::Refused)
}
