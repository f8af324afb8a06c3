//! File transfer for providers that only run commands: base64 over a shell, chunk by chunk.
//!
//! What comes out is what the native way makes: the same files, contents, modes, links and empty directories.
//! Every path is quoted, nothing is retried, what is half done is removed, and a mode is set before any byte is
//! there. Needs `sh`, `base64`, `tar`, `dd`, `find` and the usual small tools, of GNU or of busybox.

mod error;
mod inward;
mod outward;
mod quote;

pub use error::FallbackError;
pub use inward::{file_in, post_upload, tree_in};
pub use outward::{file_out, tree_out};
pub use quote::quote;

use bytes::Bytes;
use std::error::Error;
use std::time::Duration;

/// Content bytes that one command moves: four MiB of base64. More saves little, and less costs commands.
pub const CHUNK: usize = 3 << 20;

/// Runs shell lines in a sandbox.
pub trait Shell: Send + Sync {
    /// Runs one line with `sh -c`, its working directory being `/` unless the line has another.
    ///
    /// # Errors
    /// When it could not be run at all; whatever it ends with is no error.
    fn run(&self, line: Line) -> impl Future<Output = Result<Ran, Box<dyn Error + Send + Sync>>> + Send;
}

/// A shell line to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The text, for `sh -c`.
    pub text: String,
    /// What it reads.
    pub input: Bytes,
    /// Working directory; none means `/`.
    pub cwd: Option<String>,
    /// Time it may run; none means the shell's own.
    pub timeout: Option<Duration>,
}

/// A shell line that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Its exit code; none when it ended otherwise.
    pub code: Option<i32>,
    /// How it ended, for people: an exit code, a signal, a timeout.
    pub ending: String,
    /// What it wrote.
    pub output: Vec<u8>,
    /// What it wrote to standard error.
    pub error: Vec<u8>,
}

/// Runs a line that has to succeed; what it wrote.
async fn run(
    shell: &impl Shell,
    doing: &'static str,
    path: &str,
    line: Line,
) -> Result<Vec<u8>, FallbackError> {
    let ran =
        shell.run(line).await.map_err(|source| FallbackError::Shell { doing, path: path.into(), source })?;
    match ran.code {
        Some(0) => Ok(ran.output),
        _ => Err(FallbackError::failed(doing, path, &ran)),
    }
}

fn line(text: String) -> Line {
    Line { text, ..Line::default() }
}

/// A name beside the target that nothing else has. Where the target's own name leaves no room, it begins with
/// the reserved prefix alone.
fn beside(target: &str, id: &str) -> String {
    let (directory, name) = target.rsplit_once('/').unwrap_or(("", target));
    let scratch = format!("{name}.paperclip-upload.{id}");
    match scratch.len() > crate::limits::NAME_BYTES {
        true => format!("{directory}/.paperclip-upload.{id}"),
        false => format!("{directory}/{scratch}"),
    }
}

fn scratch_id() -> Result<String, FallbackError> {
    crate::confine::scratch_name("").map_err(|source| FallbackError::Random { source })
}
