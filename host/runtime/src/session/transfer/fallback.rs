//! Over commands, for providers without a transfer of their own.

use super::native::{file_sink, file_source, left_out, moved, tree_sink, tree_source};
use super::{Transfer, sandbox_path};
use crate::error::Error;
use crate::session::{Command, Session, Streams};
use leasehold_engine::Bill;
use leasehold_engine::bindings::exports::execute::Exit;
use leasehold_sync::fallback::{self, Line, Ran, Shell};
use leasehold_sync::{MappingKind, Moved, Operation, PlaceError};
use std::io::Cursor;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Bytes kept of each stream of a command: a block of base64 and room beside it. What is more is dropped, and then
/// the block is not what it has to be.
const KEPT: usize = 8 << 20;

/// Pieces of output that wait to be taken.
const WAITING: usize = 16;

impl Session {
    pub(super) async fn fallback_in(
        &self,
        operation: &Operation,
        transfer: &Transfer,
    ) -> Result<Moved, Error> {
        let mut all = Moved::default();
        for mapping in &operation.mappings {
            let target = sandbox_path(&mapping.target)?;
            all += match mapping.kind {
                MappingKind::Directory => {
                    let (source, summary) =
                        tree_source(mapping, &transfer.sources, &transfer.progress).await?;
                    let (files, bytes) =
                        Box::pin(fallback::tree_in(self, source, summary, &target)).await?.manifest.totals();
                    Moved { files, bytes }
                }
                MappingKind::File => {
                    let (source, summary) =
                        file_source(mapping, &transfer.sources, &transfer.progress).await?;
                    Box::pin(fallback::file_in(self, source, summary, &target)).await?
                }
            };
        }
        for command in &operation.post_upload {
            Box::pin(fallback::post_upload(self, command)).await?;
        }
        self.went_in(all, &Bill::default()).await;
        Ok(all)
    }

    pub(super) async fn fallback_out(
        &self,
        operation: &Operation,
        transfer: &Transfer,
    ) -> Result<Moved, Error> {
        let mut all = Moved::default();
        for mapping in &operation.mappings {
            let source = sandbox_path(&mapping.source)?;
            match mapping.kind {
                MappingKind::Directory => {
                    let (sink, arriving, name) = tree_sink(mapping, &transfer.targets, &transfer.progress)?;
                    let (exclude, follow) = (left_out(&mapping.exclude), mapping.follow_symlinks);
                    let received =
                        Box::pin(fallback::tree_out(self, &source, &exclude, follow, sink, arriving)).await?;
                    all += moved(&received);
                    place(move || received.place(&name)).await?;
                }
                MappingKind::File => {
                    let (sink, arriving) = file_sink(mapping, &transfer.targets, &transfer.progress)?;
                    let received = Box::pin(fallback::file_out(self, &source, sink, arriving)).await?;
                    all += received.moved();
                    place(move || received.place()).await?;
                }
            }
        }
        self.came_back(all, &Bill::default()).await;
        Ok(all)
    }
}

async fn place(work: impl FnOnce() -> Result<Moved, PlaceError> + Send + 'static) -> Result<(), Error> {
    super::blocking("putting files in place", move || work().map(drop).map_err(Error::from)).await
}

impl Shell for Session {
    async fn run(&self, line: Line) -> Result<Ran, Box<dyn std::error::Error + Send + Sync>> {
        let Line { text, input, cwd, timeout } = line;
        let argv = ["sh", "-c", &text].map(str::to_owned).to_vec();
        let cwd = Some(cwd.unwrap_or_else(|| "/".into()));
        let command = Command { argv, cwd, timeout, ..Command::default() };
        let (output, mut of_output) = mpsc::channel(WAITING);
        let (error, mut of_error) = mpsc::channel(WAITING);
        let streams = Streams { input: Box::new(Cursor::new(input)), output, error };
        // Boxed: what embeds this would else reach the depth that the compiler allows.
        let executed = Box::pin(self.run_command(command, streams, CancellationToken::new()));
        let (ended, output, error) = tokio::join!(executed, collect(&mut of_output), collect(&mut of_error));
        let (exit, _) = ended?;
        let (code, ending) = match exit {
            Exit::Exited(code) => (Some(code), format!("exit code {code}")),
            Exit::Signaled(signal) => (None, format!("signal {signal}")),
            Exit::TimedOut => (None, "a timeout".to_owned()),
        };
        Ok(Ran { code, ending, output, error })
    }
}

async fn collect(pieces: &mut mpsc::Receiver<bytes::Bytes>) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(piece) = pieces.recv().await {
        let room = KEPT.saturating_sub(all.len()).min(piece.len());
        all.extend_from_slice(&piece[..room]);
    }
    all
}
