//! Streams. Splicing moves bytes on the host's side: they never come into the provider's memory.

use crate::error::{failed, Error};
pub use crate::imports::wasi::io::poll::{poll, Pollable};
pub use crate::imports::wasi::io::streams::StreamError;
use crate::{InputStream, OutputStream};

/// How much is moved at once; the host moves no more than its own piece.
const PIECE: u64 = 1 << 20;

/// Moves everything from one stream to the other; how many bytes that were.
///
/// # Errors
/// When either side breaks off, or the receiving side closes before all is there.
pub fn splice(from: &InputStream, to: &OutputStream) -> Result<u64, Error> {
    let mut moved = 0;
    while let Some(bytes) = some(from, to, PIECE)? {
        moved += bytes;
    }
    flush(to)?;
    Ok(moved)
}

/// Moves exactly so many bytes.
///
/// # Errors
/// As [`splice`], and when there are fewer.
pub fn splice_exactly(from: &InputStream, to: &OutputStream, bytes: u64) -> Result<(), Error> {
    let mut left = bytes;
    while left > 0 {
        match some(from, to, left.min(PIECE))? {
            Some(moved) => left -= moved.min(left),
            None => return Err(broken(format!("{left} of {bytes} bytes are missing"))),
        }
    }
    Ok(())
}

/// Moves what there is, at most so much, waiting for the first of it; none at the end. One call into the host for
/// each piece, which waits there for both sides.
fn some(from: &InputStream, to: &OutputStream, most: u64) -> Result<Option<u64>, Error> {
    loop {
        match to.blocking_splice(from, most) {
            Ok(0) => {}
            Ok(moved) => return Ok(Some(moved)),
            // Either side may have closed; the one that takes can be asked.
            Err(StreamError::Closed) => {
                return match to.check_write() {
                    Err(error) => Err(of_output(error)),
                    Ok(_) => Ok(None),
                };
            }
            Err(StreamError::LastOperationFailed(error)) => return Err(broken(error.to_debug_string())),
        }
    }
}

/// Writes everything.
///
/// # Errors
/// When the stream breaks off or closes.
pub fn write(to: &OutputStream, bytes: &[u8]) -> Result<(), Error> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let allowed = to.check_write().map_err(of_output)?;
        if allowed == 0 {
            to.subscribe().block();
            continue;
        }
        let (now, later) = rest.split_at(rest.len().min(usize::try_from(allowed).unwrap_or(usize::MAX)));
        to.write(now).map_err(of_output)?;
        rest = later;
    }
    Ok(())
}

/// Waits until everything that was written is on its way.
///
/// # Errors
/// When the stream breaks off or closes.
pub fn flush(to: &OutputStream) -> Result<(), Error> {
    to.blocking_flush().map_err(of_output)
}

/// Reads what there is, at most so much, waiting for the first of it; none at the end.
///
/// # Errors
/// When the stream breaks off.
pub fn read(from: &InputStream, most: u64) -> Result<Option<Vec<u8>>, Error> {
    loop {
        match from.blocking_read(most) {
            Ok(bytes) if bytes.is_empty() => {}
            Ok(bytes) => return Ok(Some(bytes)),
            Err(StreamError::Closed) => return Ok(None),
            Err(StreamError::LastOperationFailed(error)) => return Err(broken(error.to_debug_string())),
        }
    }
}

/// Reads exactly so many bytes.
///
/// # Errors
/// When the stream breaks off or ends before.
pub fn read_exactly(from: &InputStream, bytes: usize) -> Result<Vec<u8>, Error> {
    let mut all = Vec::with_capacity(bytes);
    while all.len() < bytes {
        match read(from, (bytes - all.len()) as u64)? {
            Some(piece) => all.extend_from_slice(&piece),
            None => return Err(broken(format!("{} of {bytes} bytes are missing", bytes - all.len()))),
        }
    }
    Ok(all)
}

/// Reads to the end, and keeps at most so many bytes.
///
/// # Errors
/// When the stream breaks off.
pub fn read_to_end(from: &InputStream, most: usize) -> Result<Vec<u8>, Error> {
    let mut all = Vec::new();
    while let Some(piece) = read(from, 64 << 10)? {
        let room = most - all.len();
        all.extend_from_slice(&piece[..piece.len().min(room)]);
    }
    Ok(all)
}

/// A stream that ended where it should not.
pub fn broken(reason: impl Into<String>) -> Error {
    failed("stream_broken", reason)
}

/// What an output stream says, as an error.
pub fn of_output(error: StreamError) -> Error {
    match error {
        StreamError::Closed => broken("the receiving side closed"),
        StreamError::LastOperationFailed(error) => broken(error.to_debug_string()),
    }
}
