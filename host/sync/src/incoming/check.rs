//! What a path and a link target of an archive may be.

use crate::limits::{Limits, NAME_BYTES, PATH_BYTES};
use crate::rule::Rule;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use unicode_normalization::UnicodeNormalization as _;

/// The path of an entry. The empty path is the folder itself, which archives name `./`.
pub(super) fn path(raw: &[u8], is_directory: bool, limits: &Limits) -> Result<PathBuf, Rule> {
    let mut text = raw;
    if text.first() == Some(&b'/') {
        return Err(Rule::Absolute);
    }
    while let Some(rest) = text.strip_prefix(b"./") {
        text = rest;
    }
    if is_directory {
        while let Some(rest) = text.strip_suffix(b"/") {
            text = rest;
        }
        if matches!(text, b"" | b".") && !raw.is_empty() {
            return Ok(PathBuf::new());
        }
    }
    if text.len() > PATH_BYTES {
        return Err(Rule::PathTooLong);
    }
    if text.contains(&0) {
        return Err(Rule::NotPlain);
    }
    let mut depth = 0;
    for name in text.split(|byte| *byte == b'/') {
        depth += 1;
        match name {
            b".." => return Err(Rule::StepsOut),
            b"" | b"." => return Err(Rule::NotPlain),
            _ if name.len() > NAME_BYTES => return Err(Rule::NameTooLong),
            _ => {}
        }
    }
    if depth > limits.depth {
        return Err(Rule::TooDeep(limits.depth));
    }
    Ok(PathBuf::from(OsString::from_vec(text.to_vec())))
}

/// Whether a link at `path` can only lead to a place inside the tree.
///
/// The directory of the link is a real one, so `..` at the start of the target can be counted. Behind any
/// other component a `..` cannot: that component may itself be a link.
pub(super) fn stays_inside(path: &Path, target: &[u8]) -> bool {
    let depth = path.components().count().saturating_sub(1);
    if target.is_empty() || target.len() >= PATH_BYTES || target.contains(&0) || target.starts_with(b"/") {
        return false;
    }
    let names = || target.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    let up = names().take_while(|name| *name == b"..").count();
    up <= depth && !names().skip(up).any(|name| name == b"..")
}

/// A path with all differences of case and of composed letters taken out.
pub(super) fn fold(path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_bytes();
    match std::str::from_utf8(bytes) {
        // Up first: some letters have one capital for several small forms.
        Ok(text) if text.is_ascii() => text.to_ascii_lowercase().into(),
        Ok(text) => {
            let folded = text.nfd().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
            folded.nfc().collect::<String>().into()
        }
        Err(_) => OsString::from_vec(bytes.to_ascii_lowercase()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_dots_and_the_slash_of_a_directory_are_tidied() {
        let limits = Limits::default();
        for (raw, is_directory, tidy) in [
            ("./", true, ""),
            (".", true, ""),
            ("./a/b/", true, "a/b"),
            ("././a", false, "a"),
            ("a", true, "a"),
        ] {
            assert_eq!(path(raw.as_bytes(), is_directory, &limits), Ok(PathBuf::from(tidy)), "{raw}");
        }
    }

    #[test]
    fn a_link_stays_inside_only_if_nothing_can_lead_it_out() {
        for (at, target, inside) in [
            ("l", "a/b", true),
            ("d/l", "../a", true),
            ("d/l", "./..//a/", true),
            ("d/l", "..", true),
            ("l", "..", false),
            ("d/l", "../../a", false),
            ("l", "/etc", false),
            ("l", "", false),
            // `a` may be a link to a deeper directory.
            ("l", "a/../b", false),
            ("d/l", "../a/..", false),
        ] {
            assert_eq!(stays_inside(Path::new(at), target.as_bytes()), inside, "{at} -> {target}");
        }
    }

    #[test]
    fn folding_takes_case_out_of_every_alphabet() {
        for (one, other) in [
            ("README", "readme"),
            ("Å/É", "å/é"),
            ("straße", "STRASSE"),
            ("Σς", "σσ"),
            ("\u{e9}", "E\u{301}"),
            ("\u{212b}", "a\u{30a}"),
        ] {
            assert_eq!(fold(Path::new(one)), fold(Path::new(other)), "{one} {other}");
        }
        assert_ne!(fold(Path::new("a")), fold(Path::new("b")));
    }
}
