//! Reads lines of JSON without trusting them.

use serde_json::Value;
use std::io::{BufRead, Result};

/// The longest line that is read, in bytes. A manifest with its schemas has some tens of KiB; a line is
/// held in memory whole, so without an end a single one could use it all up. The rest of a longer line is
/// skipped.
const MAX_LINE_BYTES: usize = 1 << 20;

/// One line of the input.
pub(super) enum Line {
    /// Nothing but white space.
    Blank,
    /// One JSON value.
    Json(Value),
    /// Anything else; the text says what is wrong.
    Refused(String),
}

/// The lines of an input.
pub(super) struct Lines<R> {
    input: R,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Lines { input, number: 0 }
    }

    /// The number of the line read last, counted from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The next line; none at the end of the input.
    pub(super) fn next(&mut self) -> Result<Option<Line>> {
        let mut kept = Vec::new();
        let Some(length) = self.read_line(&mut kept)? else { return Ok(None) };
        self.number += 1;
        if length > MAX_LINE_BYTES as u64 {
            return Ok(Some(Line::Refused(format!(
                "the line has {length} bytes; at most {MAX_LINE_BYTES} are read"
            ))));
        }
        Ok(Some(parse(&kept)))
    }

    /// Reads to the end of the line and keeps what the limit allows. Gives the whole length without the line
    /// end.
    fn read_line(&mut self, kept: &mut Vec<u8>) -> Result<Option<u64>> {
        let mut length = 0;
        let mut started = false;
        loop {
            let available = self.input.fill_buf()?;
            if available.is_empty() {
                return Ok(started.then_some(length));
            }
            started = true;
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            kept.extend_from_slice(&part[..part.len().min(MAX_LINE_BYTES - kept.len())]);
            length += part.len() as u64;
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                return Ok(Some(length));
            }
        }
    }
}

fn parse(line: &[u8]) -> Line {
    let Ok(text) = std::str::from_utf8(line) else {
        return Line::Refused("the line is not UTF-8".to_owned());
    };
    if text.trim().is_empty() {
        return Line::Blank;
    }
    match serde_json::from_str(text) {
        Ok(value) => Line::Json(value),
        Err(error) => {
            Line::Refused(format!("not JSON (every line must hold one whole value): {}", described(&error)))
        }
    }
}

/// The parser's message with the column only: to it, every input is line 1.
fn described(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let bare = text.split(" at line ").next().unwrap_or(&text);
    format!("{bare} at column {}", error.column())
}
