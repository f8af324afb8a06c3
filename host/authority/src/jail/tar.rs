//! Directories in and out of a jail, by the `tar` inside it.
//!
//! A thin way: what the jail's own `tar` makes of names, links and modes is what comes out. It runs as
//! any command of the jail, so a hostile archive can do there what any command can, and no more.

use super::command::{Command, Exit};
use super::{JailError, Jails};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};

/// What went across.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Regular files.
    pub files: u64,
    /// Bytes of their content.
    pub bytes: u64,
}

/// Bytes kept of what `tar` has to say about a fault; the first of it names the file.
const KEPT: usize = 4 << 10;

/// Makes the directory, takes away all it held but transfers under way, and unpacks into it. Lists what it unpacks
/// to standard output.
const EXTRACT: &str = r#"mkdir -p -- "$1" && cd -- "$1" &&
find . -mindepth 1 -maxdepth 1 ! -name '.paperclip-upload*' ! -name '.leasehold-*' -exec rm -rf -- {} + &&
exec tar -xpvvf - --no-same-owner --quoting-style=escape"#;

/// Unpacks a tar stream into a directory of the jail.
pub(super) async fn extract(
    jails: &Jails,
    name: &str,
    path: &str,
    from: impl AsyncRead + Send + Unpin,
) -> Result<Moved, JailError> {
    let command = Command { cwd: Some("/".into()), ..Command::new(["sh", "-c", EXTRACT, "sh", path]) };
    let (mut listing, mut faults) = (Listing::default(), Listing::default());
    let exit = jails.run(name, &command, from, &mut listing, &mut faults).await?;
    finish(path, exit, listing.moved, &faults)
}

/// Packs a directory of the jail into a tar stream, its names relative to that directory.
pub(super) async fn archive(
    jails: &Jails,
    name: &str,
    path: &str,
    excludes: &[String],
    follow: bool,
    into: impl AsyncWrite + Send + Unpin,
) -> Result<Moved, JailError> {
    let mut argv = vec!["tar".to_owned(), "-cvvf".into(), "-".into(), "--format=pax".into()];
    argv.push("--quoting-style=escape".into());
    // Two names of one file are two files, and so are a link that is followed and what it leads to:
    // whoever receives takes no hard links.
    argv.push("--hard-dereference".into());
    argv.extend(excludes.iter().map(|pattern| format!("--exclude={pattern}")));
    argv.extend(["--dereference"].iter().filter(|_| follow).map(|flag| (*flag).to_owned()));
    argv.extend(["-C".into(), path.to_owned(), ".".into()]);
    let command = Command { cwd: Some("/".into()), ..Command::new(argv) };
    let mut listing = Listing::default();
    let exit = jails.run(name, &command, tokio::io::empty(), into, &mut listing).await?;
    finish(path, exit, listing.moved, &listing)
}

fn finish(path: &str, exit: Exit, moved: Moved, faults: &Listing) -> Result<Moved, JailError> {
    match exit {
        Exit::Exited(0) => Ok(moved),
        exit => Err(JailError::Tar {
            path: path.into(),
            exit: exit.to_string(),
            text: String::from_utf8_lossy(&faults.text).trim().into(),
        }),
    }
}

/// Counts the long listing of `tar`, keeping the lines that are not part of it.
#[derive(Default)]
struct Listing {
    line: Vec<u8>,
    moved: Moved,
    text: Vec<u8>,
}

impl Listing {
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        // `-rw-r--r-- user/group  1234 2026-01-01 00:00 ./name`, with a newline in a name escaped.
        let text = String::from_utf8_lossy(&line);
        let mut fields = text.split_ascii_whitespace();
        let (mode, size) =
            (fields.next().unwrap_or_default(), fields.nth(1).and_then(|size| size.parse().ok()));
        match (mode.as_bytes().first(), size) {
            (Some(b'-'), Some(size)) => {
                let size: u64 = size;
                self.moved.files += 1;
                self.moved.bytes += size;
            }
            (Some(b'd' | b'l' | b'h' | b'p' | b'c' | b'b'), Some(_)) => {}
            _ if self.text.len() < KEPT => {
                self.text.extend_from_slice(&line);
                self.text.push(b'\n');
            }
            _ => {}
        }
    }
}

impl AsyncWrite for Listing {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        for byte in bytes {
            if *byte == b'\n' {
                self.end_line();
            } else if self.line.len() < KEPT {
                self.line.push(*byte);
            }
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
