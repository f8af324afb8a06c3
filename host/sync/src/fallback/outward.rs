//! From the sandbox to the host.

use super::{CHUNK, FallbackError, Line, Shell, line, quote, run, scratch_id};
use crate::incoming::{Arriving, FileSink, ReceiveError, Received, ReceivedFile, SinkError, TreeSink};
use crate::pipe::Inlet;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Fetches one regular file.
///
/// # Errors
/// When it is none, cannot be read, or is refused.
pub async fn file_out(
    shell: &impl Shell,
    source: &str,
    mut sink: FileSink,
    arriving: Arriving<ReceivedFile>,
) -> Result<ReceivedFile, FallbackError> {
    let at = quote(source);
    let check =
        format!("if [ -L {at} ] || [ ! -f {at} ]; then echo 'it is no regular file' >&2; exit 1; fi; ");
    let inlet = sink.bare().map_err(used)?;
    let downloaded = download(shell, source, &check, inlet).await;
    if let Err(error) = downloaded {
        return Err(given_up(sink, arriving, error).await);
    }
    // Why it may be refused is told by what arrived.
    let _ = sink.finish().await;
    Ok(arriving.finish().await?)
}

/// Fetches a tree. What the patterns match is left out in the sandbox where its `tar` can, and passed over by the
/// sink in any case.
///
/// # Errors
/// When there is no such directory, it cannot be read, or what came is refused.
pub async fn tree_out(
    shell: &impl Shell,
    source: &str,
    exclude: &[String],
    follow_symlinks: bool,
    mut sink: TreeSink,
    arriving: Arriving<Received>,
) -> Result<Received, FallbackError> {
    let name = format!(".paperclip-upload.{}", scratch_id()?);
    let excludes: String = exclude.iter().map(|pattern| format!(" --exclude={}", quote(pattern))).collect();
    let follow = if follow_symlinks { " -h" } else { "" };
    // Inside when that can be written to and this `tar` can leave it out, because a temporary directory is often
    // small.
    let pack = format!(
        "set -e; cd -- {}; umask 077; O=\"${{TMPDIR:-/tmp}}/{name}\"; \
         if tar --version 2>/dev/null | grep -q GNU; then T=./{name}; true 2>/dev/null > \"$T\" || T=$O; \
         set -- --hard-dereference --format=gnu --exclude='.paperclip-upload*'{excludes}; else T=$O; set --; fi; \
         : > \"$T\"; tar -c{follow} -f \"$T\" \"$@\" . || {{ C=$?; rm -f -- \"$T\"; exit $C; }}; \
         cd -- \"$(dirname \"$T\")\"; echo \"$(pwd -P)/{name}\"",
        quote(source)
    );
    let packed = run(shell, "packing", source, line(pack)).await?;
    let packed = String::from_utf8(packed).ok().and_then(|text| Some(text.strip_suffix('\n')?.to_owned()));
    let Some(packed) = packed.filter(|path| path.starts_with('/')) else {
        return Err(FallbackError::Garbled { path: source.into(), what: "path" });
    };
    let downloaded = match sink.tar() {
        Ok(inlet) => download(shell, &packed, "", inlet).await,
        Err(error) => Err(used(error)),
    };
    let removed = run(shell, "removing", &packed, line(format!("rm -f -- {}", quote(&packed)))).await;
    if let Err(error) = downloaded {
        return Err(given_up(sink, arriving, error).await);
    }
    // Why it may be refused is told by what arrived.
    let _ = sink.finish().await;
    let received = arriving.finish().await?;
    removed.map(|_| received)
}

/// Reads the size and then block by block.
async fn download(
    shell: &impl Shell,
    path: &str,
    check: &str,
    mut inlet: Inlet,
) -> Result<(), FallbackError> {
    let at = quote(path);
    let said = run(shell, "measuring", path, line(format!("{check}wc -c < {at}"))).await?;
    let want = std::str::from_utf8(&said).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let want = want.ok_or(FallbackError::Garbled { path: path.into(), what: "size" })?;
    let mut got = 0;
    for block in 0..want.div_ceil(CHUNK as u64) {
        let text = format!("dd if={at} bs={CHUNK} skip={block} count=1 2>/dev/null | base64");
        let mut text = run(shell, "reading", path, Line { ..line(text) }).await?;
        text.retain(|byte| !byte.is_ascii_whitespace());
        let bytes = STANDARD.decode(text);
        let bytes = bytes.map_err(|_| FallbackError::Garbled { path: path.into(), what: "base64" })?;
        got += bytes.len() as u64;
        if got > want {
            break;
        }
        inlet.ready().await;
        if inlet.give(bytes.into()).is_err() {
            // It is refused; the sink says why.
            return Ok(());
        }
    }
    if got == want { Ok(()) } else { Err(FallbackError::Short { path: path.into(), got, want }) }
}

/// Waits until what a failed download has staged is gone.
async fn given_up<S, T>(sink: S, arriving: Arriving<T>, error: FallbackError) -> FallbackError {
    drop(sink);
    let _ = arriving.finish().await;
    error
}

fn used(_: SinkError) -> FallbackError {
    FallbackError::Receive(ReceiveError::Cancelled)
}
