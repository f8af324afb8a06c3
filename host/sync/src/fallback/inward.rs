//! From the host into the sandbox.

use super::{CHUNK, FallbackError, Line, Shell, beside, line, quote, run, scratch_id};
use crate::manifest::{Baseline, Manifest};
use crate::operation::{Moved, PostUpload};
use crate::outgoing::{FileSource, SendError, SentFile, Summary, TreeSource};
use crate::pipe::Outlet;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write as _;
use tokio::io::AsyncReadExt as _;

/// Puts one file at a path of the sandbox, replacing what is there at once. Takes three commands and one for
/// each chunk.
///
/// # Errors
/// When it cannot be read or written; the target is then as it was.
pub async fn file_in(
    shell: &impl Shell,
    mut source: FileSource,
    summary: Summary<SentFile>,
    target: &str,
) -> Result<Moved, FallbackError> {
    let staged = beside(target, &scratch_id()?);
    let (directory, _) = target.rsplit_once('/').unwrap_or(("/", target));
    let (to, at) = (quote(&staged), quote(target));
    let made = format!(
        "mkdir -p -- {} && umask 077 && : > {to} && chmod {:o} {to}",
        quote(if directory.is_empty() { "/" } else { directory }),
        source.mode(),
    );
    // What a link leads to is not the target, and a directory is not replaced by a file.
    let keep = format!(
        "if [ -L {at} ]; then rm -f -- {at}; elif [ -d {at} ]; then echo 'it is a directory' >&2; exit 1; fi; \
         mv -f -- {to} {at}"
    );
    let placing = async {
        run(shell, "making", &staged, line(made)).await?;
        let sent = match source.bare() {
            Some(outlet) => upload(shell, outlet, &staged, summary).await?,
            None => return Err(SendError::Dropped { path: target.into() }.into()),
        };
        run(shell, "placing", target, line(keep)).await?;
        Ok(Moved { files: 1, bytes: sent.bytes })
    };
    cleaned(shell, &staged, placing.await).await
}

/// Puts a tree at a path of the sandbox, in place of all that is there. Not atomic, as the contract has it.
///
/// # Errors
/// When it cannot be read or unpacked. Unpacking begins once all of it has arrived.
pub async fn tree_in(
    shell: &impl Shell,
    mut source: TreeSource,
    summary: Summary,
    target: &str,
) -> Result<Baseline, FallbackError> {
    // Inside, because it may be the only place the sandbox may write to.
    let name = format!(".paperclip-upload.{}", scratch_id()?);
    let (staged, at) = (format!("{}/{name}", target.trim_end_matches('/')), quote(target));
    let made = format!(
        "if [ -L {at} ] || {{ [ -e {at} ] && [ ! -d {at} ]; }}; then rm -f -- {at}; fi; mkdir -p -- {at} && \
         umask 077 && : > {}",
        quote(&staged)
    );
    let placing = async {
        run(shell, "making", &staged, line(made)).await?;
        let sent = match source.tar_for_small_userlands() {
            Some(outlet) => upload(shell, outlet, &staged, summary).await?,
            None => return Err(SendError::Dropped { path: target.into() }.into()),
        };
        let unpack = format!(
            "cd -- {at} && clear() {{ find . -mindepth 1 -maxdepth 1 ! -name '.paperclip-upload*' \
             -exec rm -rf -- {{}} +; }}; {{ clear 2>/dev/null || {{ chmod -R u+rwx .; clear; }}; }} && \
             umask 022 && tar -xpof {name} && rm -f -- {name}"
        );
        run(shell, "unpacking into", target, line(unpack)).await?;
        let closed = closed_directories(&sent.manifest);
        if !closed.is_empty() {
            let input = closed.into_bytes().into();
            run(shell, "setting modes in", target, Line { input, ..line(format!("cd -- {at} && sh -e")) })
                .await?;
        }
        Ok(sent)
    };
    cleaned(shell, &staged, placing.await).await
}

/// Directories are unpacked open to their owner, so that they can be filled whatever unpacks them. Those that
/// are not so on the host get their modes last, the inner ones first.
fn closed_directories(manifest: &Manifest) -> String {
    let closed =
        manifest.iter().rev().filter(|(_, entry)| entry.is_directory() && entry.mode & 0o700 != 0o700);
    let mut script = String::new();
    for (path, entry) in closed {
        // A name that is no text cannot be in a script; it keeps the owner's bits.
        if let Some(path) = path.to_str() {
            let _ = writeln!(script, "chmod {:o} {}", entry.mode, quote(&format!("./{path}")));
        }
    }
    script
}

/// Runs a post-upload command, byte for byte as it is.
///
/// # Errors
/// When it fails or takes too long.
pub async fn post_upload(shell: &impl Shell, command: &PostUpload) -> Result<(), FallbackError> {
    let PostUpload { command: text, cwd, timeout } = command.clone();
    let line = Line { text, cwd, timeout, ..Line::default() };
    run(shell, "running", &command.command, line).await.map(drop)
}

/// Appends everything to a staged file, chunk by chunk. What the host's side says comes before what became of it.
async fn upload<T>(
    shell: &impl Shell,
    mut outlet: Outlet,
    staged: &str,
    summary: Summary<T>,
) -> Result<T, FallbackError> {
    let appending = async {
        let mut chunk = Vec::with_capacity(CHUNK);
        loop {
            chunk.clear();
            // A fault of the stream is told by the summary, with the path.
            let read = (&mut outlet).take(CHUNK as u64).read_to_end(&mut chunk).await;
            if read.is_err() || chunk.is_empty() {
                return Ok(());
            }
            let input = STANDARD.encode(&chunk).into();
            let append = format!("base64 -d >> {}", quote(staged));
            run(shell, "writing", staged, Line { input, ..line(append) }).await?;
        }
    };
    let appended: Result<(), FallbackError> = appending.await;
    drop(outlet);
    match (summary.finish().await, appended) {
        (Err(SendError::Dropped { .. }), Err(error)) => Err(error),
        (Err(error), _) => Err(error.into()),
        (Ok(sent), appended) => appended.map(|()| sent),
    }
}

/// Removes what was staged, whatever became of it; that it went wrong is told first.
async fn cleaned<T>(
    shell: &impl Shell,
    staged: &str,
    done: Result<T, FallbackError>,
) -> Result<T, FallbackError> {
    let removed = run(shell, "removing", staged, line(format!("rm -f -- {}", quote(staged)))).await;
    let done = done?;
    removed.map(|_| done)
}
