//! The matcher against the installed GNU tar, on random patterns and paths.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use leasehold_sync::Excludes;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pairs of a pattern and a path that one run compares at least.
const PAIRS: usize = 40_000;

/// Pieces that names and patterns are put together from: few, so that they often meet.
const NAME: [&str; 16] =
    ["a", "b", "ab", ".", "-", "_", "*", "?", "[", "]", "\\", "!", "^", ":", "log", "\u{e9}"];
const PATTERN: [&str; 30] = [
    "a",
    "b",
    "ab",
    ".",
    "-",
    "*",
    "*",
    "?",
    "[",
    "]",
    "\\",
    "!",
    "^",
    "/",
    "/",
    "log",
    "[ab]",
    "[!a]",
    "[^-b]",
    "[a-b]",
    "[[:alpha:]]",
    "[[:punct:]]",
    "[]a]",
    "[[.a.]-b]",
    "[[=b=]]",
    "\\*",
    "[a",
    "[\\]]",
    "[[:bogus:]]",
    "\u{e9}",
];

fn tree(runner: &mut TestRunner) -> Vec<PathBuf> {
    let name = proptest::collection::vec(proptest::sample::select(NAME.to_vec()), 1..4)
        .prop_map(|pieces| pieces.concat())
        .prop_filter("no name of a directory has a meaning of its own", |name| {
            !matches!(name.as_str(), "." | "..")
        });
    let path = proptest::collection::vec(name, 1..4).prop_map(|names| PathBuf::from(names.join("/")));
    (0..200).map(|_| path.new_tree(runner).unwrap().current()).collect()
}

fn tar_keeps(folder: &Path, pattern: &str) -> BTreeSet<PathBuf> {
    let mut tar = Command::new("tar");
    tar.env("LC_ALL", "C").args(["-cf", "/dev/null", "-v", "--null", "--verbatim-files-from"]);
    // The pattern first: `--no-recursion` before it would change what it means.
    tar.args([&format!("--exclude={pattern}"), "--no-recursion", "--quoting-style=literal"]);
    tar.arg("-C").arg(folder).arg("-T").arg(folder.with_extension("list"));
    let output = tar.output().unwrap();
    assert!(output.status.success(), "{pattern}: {}", String::from_utf8_lossy(&output.stderr));
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| OsString::from_vec(line.strip_suffix(b"/").unwrap_or(line).to_vec()).into()).collect()
}

#[test]
fn tens_of_thousands_of_random_pairs_are_judged_as_the_installed_tar_judges_them() {
    let mut runner = TestRunner::default();
    let holder = tempfile::tempdir().unwrap();
    let folder = holder.path().join("tree");
    fs::create_dir(&folder).unwrap();
    for path in tree(&mut runner) {
        // A file may stand where a directory would have to be; then the directory is not made.
        let path = folder.join(path);
        if fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.exists() {
            fs::write(path, "").unwrap();
        }
    }
    let mut paths = BTreeSet::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(folder.join(&directory)).unwrap() {
            let entry = entry.unwrap();
            let path = directory.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                waiting.push(path.clone());
            }
            paths.insert(path);
        }
    }
    let list: Vec<u8> = paths.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
    fs::write(folder.with_extension("list"), list).unwrap();

    let pattern = proptest::collection::vec(proptest::sample::select(PATTERN.to_vec()), 1..6);
    let (mut pairs, mut out) = (0, 0);
    while pairs < PAIRS {
        let pattern = pattern.new_tree(&mut runner).unwrap().current().concat();
        let excludes = Excludes::new([&pattern]);
        let ours: BTreeSet<_> = paths.iter().filter(|path| !excludes.matches(path)).cloned().collect();
        let tars = tar_keeps(&folder, &pattern);
        let differ: Vec<_> = ours.symmetric_difference(&tars).collect();
        let kept: Vec<_> = differ.iter().map(|path| (*path, tars.contains(*path))).collect();
        assert!(
            differ.is_empty(),
            "{pattern:?} is judged differently, the second says whether tar keeps it: {kept:?}"
        );
        pairs += paths.len();
        out += paths.len() - ours.len();
    }
    // Otherwise the patterns would prove little.
    assert!(out > PAIRS / 50, "only {out} of {pairs} pairs were excluded");
}
