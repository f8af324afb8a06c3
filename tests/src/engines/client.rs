//! The engine's own interface, to look at it past everything that is tested.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// What an engine answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// One request over a connection of its own.
///
/// # Errors
/// When nobody answers.
pub fn call(socket: &Path, method: &str, path: &str, kind: &str, body: &[u8]) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: engine\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut from = BufReader::new(stream);
    let status = line(&mut from)?.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| io::Error::other("no answer"))?;
    let (mut length, mut chunked) = (None, false);
    loop {
        let header = line(&mut from)?.to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse::<usize>().ok();
        }
        chunked |= header.starts_with("transfer-encoding:") && header.contains("chunked");
    }
    let mut body = Vec::new();
    match (length, chunked) {
        _ if matches!(status, 204 | 304) => {}
        (_, true) => loop {
            let size = usize::from_str_radix(&line(&mut from)?, 16).map_err(io::Error::other)?;
            let begin = body.len();
            body.resize(begin + size, 0);
            from.read_exact(&mut body[begin..])?;
            line(&mut from)?;
            if size == 0 {
                break;
            }
        },
        (Some(length), false) => {
            body.resize(length, 0);
            from.read_exact(&mut body)?;
        }
        (None, false) => {
            from.read_to_end(&mut body)?;
        }
    }
    Ok(Answer { status, body })
}

fn line(from: &mut BufReader<UnixStream>) -> io::Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}
