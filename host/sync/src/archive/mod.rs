//! POSIX pax archives, block by block.
//!
//! The framing is our own because it must be stricter than any reader meant for archives of friends: an
//! archive that two programs could read in two ways is refused.

mod extension;
mod member;
mod number;
mod read;
mod write;

pub(crate) use member::{Member, MemberKind};
pub(crate) use read::{ArchiveError, Reader};
pub(crate) use write::{Dialect, Writer, WriterEntry};

/// The unit of an archive.
const BLOCK: usize = 512;

/// Zero bytes from the end of a content to the next block.
fn padding(size: u64) -> u64 {
    size.next_multiple_of(BLOCK as u64) - size
}
