//! Taking an archive apart. Nothing is trusted, and whatever could be read in two ways is refused.

use super::member::{Extended, Member};
use super::number::{checksum_holds, number};
use super::{BLOCK, padding};
use crate::limits::{EXTENSION_BYTES, PADDING_BYTES};
use crate::rule::Rule;
use std::io::{self, BufRead};
use tar::{EntryType, Header};

/// What goes wrong with an archive.
#[derive(Debug)]
pub(crate) enum ArchiveError {
    /// The entry of that raw path breaks a rule.
    Rule(Vec<u8>, Rule),
    /// The stream failed.
    Stream(io::Error),
}

pub(crate) struct Reader<R> {
    from: R,
    /// Bytes of the present content that nobody has read, and the padding behind it.
    left: u64,
    padding: u64,
}

impl<R: BufRead> Reader<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, left: 0, padding: 0 }
    }

    /// The next entry. `None` at the announced end, with nothing but zeros behind it.
    pub(crate) fn next(&mut self) -> Result<Option<Member>, ArchiveError> {
        self.skip(self.left + self.padding)?;
        (self.left, self.padding) = (0, 0);
        let mut extended = Extended::default();
        loop {
            let header = self.block()?;
            if header.iter().all(|byte| *byte == 0) {
                return self.end(&extended).map(|()| None);
            }
            let header = Header::from_byte_slice(&header);
            let raw = extended.path.clone().unwrap_or_else(|| header.path_bytes().into_owned());
            let broken = |rule| ArchiveError::Rule(raw.clone(), rule);
            if !checksum_holds(header) {
                return Err(broken(Rule::Checksum));
            }
            let size = number(&header.as_old().size).and_then(|size| u64::try_from(size).ok());
            let size = size.ok_or_else(|| broken(Rule::Field("size")))?;
            let kind = header.entry_type();
            if matches!(
                kind,
                EntryType::XHeader
                    | EntryType::XGlobalHeader
                    | EntryType::GNULongName
                    | EntryType::GNULongLink
            ) {
                if size > EXTENSION_BYTES {
                    return Err(broken(Rule::Extension));
                }
                let mut records = vec![0; usize::try_from(size).unwrap_or_default()];
                self.exact(&mut records)?;
                self.skip(padding(size))?;
                extended.take(kind, &records).map_err(broken)?;
                continue;
            }
            let member = extended.member(header, size).map_err(broken)?;
            (self.left, self.padding) = (member.size, padding(member.size));
            return Ok(Some(member));
        }
    }

    /// The next bytes of the present content; none at its end.
    pub(crate) fn content(&mut self) -> Result<&[u8], ArchiveError> {
        if self.left == 0 {
            return Ok(&[]);
        }
        let available = self.from.fill_buf().map_err(ArchiveError::Stream)?;
        if available.is_empty() {
            return Err(truncated());
        }
        let length = usize::try_from(self.left).map_or(available.len(), |left| left.min(available.len()));
        Ok(available.get(..length).unwrap_or_default())
    }

    /// Takes bytes of [`Reader::content`] as read.
    pub(crate) fn consume(&mut self, length: usize) {
        self.from.consume(length);
        self.left = self.left.saturating_sub(length as u64);
    }

    fn block(&mut self) -> Result<[u8; BLOCK], ArchiveError> {
        let mut block = [0; BLOCK];
        self.exact(&mut block)?;
        Ok(block)
    }

    fn exact(&mut self, bytes: &mut [u8]) -> Result<(), ArchiveError> {
        self.from.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => truncated(),
            _ => ArchiveError::Stream(error),
        })
    }

    fn skip(&mut self, mut length: u64) -> Result<(), ArchiveError> {
        while length > 0 {
            let available = self.from.fill_buf().map_err(ArchiveError::Stream)?.len();
            if available == 0 {
                return Err(truncated());
            }
            let taken = usize::try_from(length).map_or(available, |length| length.min(available));
            self.from.consume(taken);
            length -= taken as u64;
        }
        Ok(())
    }

    fn end(&mut self, extended: &Extended) -> Result<(), ArchiveError> {
        // An extension without its entry is an archive cut short.
        let dangling = extended.is_any();
        if dangling || self.block()?.iter().any(|byte| *byte != 0) {
            return Err(truncated());
        }
        let mut behind = 0;
        loop {
            let bytes = self.from.fill_buf().map_err(ArchiveError::Stream)?;
            if bytes.is_empty() {
                return Ok(());
            }
            behind += bytes.len() as u64;
            if behind > PADDING_BYTES || bytes.iter().any(|byte| *byte != 0) {
                return Err(ArchiveError::Rule(Vec::new(), Rule::Trailing));
            }
            let length = bytes.len();
            self.from.consume(length);
        }
    }
}

fn truncated() -> ArchiveError {
    ArchiveError::Rule(Vec::new(), Rule::Truncated)
}
