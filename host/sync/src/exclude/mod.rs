//! What GNU tar's `--exclude` means, with its default options: unanchored, `*` matches `/`, case counts,
//! and whatever lies below an excluded directory is excluded with it.
//!
//! One matcher for the walk, for the native transfer and for the fallback; a property test holds it against
//! the installed tar.

mod fnmatch;

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

/// Patterns that leave paths out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excludes(Vec<Pattern>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    /// Without wildcards: these segments, wherever they follow each other.
    Plain(Vec<u8>),
    /// With wildcards.
    Wild(Vec<u8>),
}

impl Excludes {
    /// Patterns as `--exclude` takes them. Every text is a pattern: what is no wildcard stands for itself.
    pub fn new<P: AsRef<[u8]>>(patterns: impl IntoIterator<Item = P>) -> Self {
        Self(patterns.into_iter().map(|pattern| Pattern::new(pattern.as_ref())).collect())
    }

    /// Whether there is no pattern.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a path, relative to the tree, is left out.
    #[must_use]
    pub fn matches(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_bytes();
        self.0.iter().any(|pattern| starts(path).any(|tail| pattern.matches(tail)))
    }
}

impl Pattern {
    fn new(pattern: &[u8]) -> Self {
        if has_wildcards(pattern) { Self::Wild(pattern.to_vec()) } else { Self::Plain(unescaped(pattern)) }
    }

    fn matches(&self, tail: &[u8]) -> bool {
        match self {
            Self::Plain(plain) => tail
                .strip_prefix(plain.as_slice())
                .is_some_and(|rest| matches!(rest.first(), None | Some(b'/'))),
            Self::Wild(pattern) => fnmatch::matches(pattern, tail),
        }
    }
}

/// The path itself and what follows each of its slashes: an unanchored pattern may begin at any.
fn starts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let behind_slash = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let behind_slash = behind_slash.filter_map(|(at, _)| path.get(at + 1..));
    std::iter::once(path).chain(behind_slash.filter(|tail| !matches!(tail.first(), None | Some(b'/'))))
}

fn has_wildcards(pattern: &[u8]) -> bool {
    let mut bytes = pattern.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'*' | b'?' | b'[' => return true,
            _ => {}
        }
    }
    false
}

/// Without the backslashes that take the meaning of what follows them; one at the end stands for itself.
fn unescaped(pattern: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(pattern.len());
    let mut bytes = pattern.iter().copied();
    while let Some(byte) = bytes.next() {
        plain.push(if byte == b'\\' { bytes.next().unwrap_or(byte) } else { byte });
    }
    plain
}

/// A pattern that matches exactly this text and what lies below it.
#[must_use]
pub fn literal(text: &Path) -> OsString {
    let mut pattern = Vec::new();
    for byte in text.as_os_str().as_bytes() {
        if matches!(byte, b'\\' | b'*' | b'?' | b'[') {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    OsString::from_vec(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excluded(pattern: &str, path: &str) -> bool {
        Excludes::new([pattern]).matches(Path::new(path))
    }

    #[test]
    fn patterns_mean_what_tar_means_by_them() {
        for (pattern, path, out) in [
            ("*.log", "skip.log", true),
            ("*.log", "sub/skip.log", true),
            ("*.log", "a.log/inside", true),
            ("*.log", "keep.txt", false),
            ("node_modules", "node_modules", true),
            ("node_modules", "a/node_modules/x", true),
            ("node_modules", "node_modules2", false),
            ("dist/*", "dist", false),
            ("dist/*", "dist/x", true),
            ("dist/*", "a/dist/x/y", true),
            ("._*", "a/._b", true),
            ("a/b", "x/a/b/c", true),
            ("a/b", "xa/b", false),
            // A star crosses slashes.
            ("a*d", "a/b/c/d", true),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
            ("", "a", false),
            ("[!a]", "b/a", true),
            ("[]a]", "a/_]", true),
            ("a/", "a", false),
        ] {
            assert_eq!(excluded(pattern, path), out, "{pattern} {path}");
        }
    }

    #[test]
    fn a_literal_pattern_matches_its_text_and_nothing_else() {
        for text in [r"a\b", "a*", "[a]", "a?", "a[", r"\"] {
            assert!(Excludes::new([literal(Path::new(text)).as_bytes()]).matches(Path::new(text)), "{text}");
        }
        assert!(!Excludes::new([literal(Path::new("a*")).as_bytes()]).matches(Path::new("ab")));
    }
}
