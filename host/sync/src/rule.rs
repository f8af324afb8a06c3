//! The rules an untrusted archive has to keep to. One broken rule refuses the whole archive.

use crate::limits::{EXTENSION_BYTES, NAME_BYTES, PADDING_BYTES, PATH_BYTES};
use std::path::PathBuf;

/// A rule that an archive broke.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rule {
    /// The path starts at the root.
    #[error("its path is absolute; paths must be relative to the folder")]
    Absolute,
    /// The path has a `..` in it.
    #[error("its path has a `..` component")]
    StepsOut,
    /// The path has an empty or `.` component, a zero byte, or a slash after the name of a file.
    #[error("its path is not made of plain names")]
    NotPlain,
    /// One name is too long.
    #[error("its path has a name of more than {NAME_BYTES} bytes")]
    NameTooLong,
    /// The path is too long.
    #[error("its path has more than {PATH_BYTES} bytes")]
    PathTooLong,
    /// There are too many components.
    #[error("it lies deeper than {0} directories")]
    TooDeep(usize),
    /// There are too many entries.
    #[error("it is one entry more than the limit of {0}")]
    TooManyEntries(usize),
    /// There is too much content.
    #[error("with it the content is more than the limit of {0} bytes")]
    TooManyBytes(u64),
    /// The paths and link targets together are too long.
    #[error("with it all paths together are more than the limit of {0} bytes")]
    TooMuchText(usize),
    /// The path was there before.
    #[error("its path occurs twice")]
    Duplicate,
    /// Another path differs from it only by case or by how its letters are composed.
    #[error(
        "its path differs from {0:?} only by case or accents' form, and some file systems hold just one of them"
    )]
    CaseFold(PathBuf),
    /// Something that is no directory would have to hold it.
    #[error("{0:?}, which would have to hold it, is no directory")]
    ParentNotDirectory(PathBuf),
    /// A symbolic link that leads out of the tree, or might.
    #[error(
        "it is a link to {0:?}, which leads out of the folder or cannot be shown not to; targets must be \
         relative, with `..` only at their start"
    )]
    LinkLeaves(PathBuf),
    /// A hard link.
    #[error("it is a hard link; make the archive with hard links sent as files (tar --hard-dereference)")]
    HardLink,
    /// A device node.
    #[error("it is a device")]
    Device,
    /// A named pipe.
    #[error("it is a named pipe")]
    Pipe,
    /// A sparse file, whose content is not what it looks like.
    #[error("it is stored as a sparse file; make the archive without that option")]
    Sparse,
    /// A kind of entry that has no place in a tree.
    #[error("it is of the unknown kind {:?}", char::from(*.0))]
    Kind(u8),
    /// Content where there can be none.
    #[error("it has content, which only files have")]
    Content,
    /// Content of another size than was announced.
    #[error("its content is not of the {0} bytes that were announced")]
    Size(u64),
    /// Two places of the archive say different things about one entry.
    #[error("two parts of its header disagree about its {0}")]
    Disagreement(&'static str),
    /// A global record that would change entries after it.
    #[error("a global header sets the {0} of later entries")]
    Global(&'static str),
    /// A field that cannot be read.
    #[error("the {0} in its header cannot be read")]
    Field(&'static str),
    /// A header that was damaged, or is none.
    #[error("its header has a wrong checksum; this is no tar archive, or a damaged one")]
    Checksum,
    /// Too large an extension.
    #[error("its extended header is larger than {EXTENSION_BYTES} bytes")]
    Extension,
    /// The stream ended before the archive.
    #[error("the archive ends in the middle")]
    Truncated,
    /// Something follows the end of the archive.
    #[error("something other than up to {PADDING_BYTES} zero bytes follows the end of the archive")]
    Trailing,
}
