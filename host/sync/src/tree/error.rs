use std::io;
use std::path::PathBuf;

/// Why a folder could not be listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WalkError {
    /// The folder itself cannot be opened.
    #[error("cannot open the folder {path:?}: {source}; name a directory that exists and can be read")]
    Open {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something in it cannot be read.
    #[error("cannot read {path:?}: {source}; make it readable, or keep it out with a .gitignore line")]
    Read {
        /// What cannot be read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A directory in it went away or became something else.
    #[error("{path:?} changed while it was listed; run again when nothing writes to it, or keep it out")]
    Changed {
        /// The directory.
        path: PathBuf,
    },
    /// A link leads to a directory it lies in.
    #[error(
        "the link {path:?} leads to a directory it lies in, so following it has no end; keep it out, or keep links as links"
    )]
    Loop {
        /// The link.
        path: PathBuf,
    },
    /// There is too much in it.
    #[error(
        "{path:?} holds more than {limit} files and directories; name a smaller folder, keep some of it \
         out with .gitignore lines, or raise the limit"
    )]
    TooMany {
        /// The folder.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// There are too many directories in each other.
    #[error(
        "{path:?} lies deeper than {limit} directories; move it up or keep it out with a .gitignore line"
    )]
    TooDeep {
        /// The path.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// A path is longer than any archive entry may be.
    #[error("the path {path:?} has more than {limit} bytes; rename it or keep it out with a .gitignore line")]
    TooLong {
        /// The path.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
}
