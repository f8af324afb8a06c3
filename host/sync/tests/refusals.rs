//! One hostile archive for every rule, each made by hand.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod common;

use common::{Raw, everything, receive, rule, send};
use leasehold_sync::{Limits, Rule, incoming};
use std::fs;
use std::os::unix::fs::symlink;

/// The rule an archive is refused by; nothing of it may be left.
async fn refused(archive: &[u8], limits: Limits) -> Rule {
    let beside = tempfile::tempdir().unwrap();
    let rule = rule(incoming(archive, beside.path(), limits, None).await);
    assert_eq!(fs::read_dir(beside.path()).unwrap().count(), 0, "something is left after {rule:?}");
    rule
}

#[tokio::test]
async fn every_rule_refuses_an_archive_of_its_own() {
    let raw = Raw::default;
    let long = "n".repeat(256);
    let deep = vec!["d"; 257].join("/");
    let far = vec!["p".repeat(200); 21].join("/");
    let cases: Vec<(&str, Raw, Rule)> = vec![
        ("an absolute path", raw().file("/etc/passwd", "x"), Rule::Absolute),
        ("an absolute directory", raw().directory("//"), Rule::Absolute),
        ("`..` at the start", raw().file("../a", "x"), Rule::StepsOut),
        ("`..` in the middle", raw().file("a/../../b", "x"), Rule::StepsOut),
        ("`..` behind `./`", raw().directory("./../a/"), Rule::StepsOut),
        ("`..` alone", raw().directory(".."), Rule::StepsOut),
        ("an empty component", raw().file("a//b", "x"), Rule::NotPlain),
        ("a `.` in the middle", raw().file("a/./b", "x"), Rule::NotPlain),
        ("no path at all", raw().file("", "x"), Rule::NotPlain),
        ("a file named like a directory", raw().file("a/", "x"), Rule::NotPlain),
        ("a zero byte", raw().extended(b'x', &[("path", b"a\0b")]).file("a", "x"), Rule::NotPlain),
        ("a long name", raw().extended(b'x', &[("path", long.as_bytes())]).file("a", ""), Rule::NameTooLong),
        (
            "a long GNU name",
            raw().entry(b'L', "././@LongLink", "", long.as_bytes()).file("a", ""),
            Rule::NameTooLong,
        ),
        ("a long path", raw().extended(b'x', &[("path", far.as_bytes())]).file("a", ""), Rule::PathTooLong),
        ("a deep path", raw().extended(b'x', &[("path", deep.as_bytes())]).file("a", ""), Rule::TooDeep(256)),
        ("a file twice", raw().file("a", "1").file("a", "2"), Rule::Duplicate),
        ("a file twice under two spellings", raw().file("a", "1").file("./a", "2"), Rule::Duplicate),
        ("a directory twice", raw().directory("a").directory("a/"), Rule::Duplicate),
        ("a file in place of an implied directory", raw().file("a/b", "").file("a", ""), Rule::Duplicate),
        ("names that differ by case", raw().file("Make", "").file("make", ""), Rule::CaseFold("Make".into())),
        ("the same the other way", raw().file("make", "").file("Make", ""), Rule::CaseFold("make".into())),
        ("both with capitals", raw().file("mAke", "").file("Make", ""), Rule::CaseFold("mAke".into())),
        (
            "directories that differ by case",
            raw().file("D/a", "").file("d/b", ""),
            Rule::CaseFold("D".into()),
        ),
        ("a file below a file", raw().file("a", "").file("a/b", ""), Rule::ParentNotDirectory("a".into())),
        (
            "a file below a link",
            raw().directory("d").link("l", "d").file("l/b", ""),
            Rule::ParentNotDirectory("l".into()),
        ),
        (
            "a directory far below a link",
            raw().directory("d").link("l", "d").directory("l/b/c"),
            Rule::ParentNotDirectory("l".into()),
        ),
        ("a directory over a link", raw().directory("d").link("l", "d").directory("l"), Rule::Duplicate),
        ("an absolute link", raw().link("l", "/etc"), Rule::LinkLeaves("/etc".into())),
        (
            "a link that steps out",
            raw().directory("d").link("d/l", "../../x"),
            Rule::LinkLeaves("../../x".into()),
        ),
        (
            "a link that steps out through another",
            raw().link("d/up", "..").link("l", "d/up/.."),
            Rule::LinkLeaves("d/up/..".into()),
        ),
        ("a link to nothing", raw().link("l", ""), Rule::LinkLeaves("".into())),
        ("a hard link", raw().file("a", "x").entry(b'1', "b", "a", b""), Rule::HardLink),
        ("a hard link out of the folder", raw().entry(b'1', "b", "/etc/passwd", b""), Rule::HardLink),
        ("a character device", raw().entry(b'3', "null", "", b""), Rule::Device),
        ("a block device", raw().entry(b'4', "sda", "", b""), Rule::Device),
        ("a named pipe", raw().entry(b'6', "pipe", "", b""), Rule::Pipe),
        ("an old sparse file", raw().entry(b'S', "s", "", b""), Rule::Sparse),
        (
            "a new sparse file",
            raw().extended(b'x', &[("GNU.sparse.major", b"1")]).file("s", ""),
            Rule::Sparse,
        ),
        ("a volume label", raw().entry(b'V', "v", "", b""), Rule::Kind(b'V')),
        ("a directory with content", raw().entry(b'5', "d", "", b"smuggled"), Rule::Content),
        ("a link with content", raw().entry(b'2', "l", "d", b"smuggled"), Rule::Content),
        // CVE-2025-62518: the two sizes disagree, and the difference holds entries nobody checked.
        ("two sizes", raw().extended(b'x', &[("size", b"1024")]).file("a", "x"), Rule::Disagreement("size")),
        (
            "a size of zero in the extension",
            raw().extended(b'x', &[("size", b"0")]).file("a", "x"),
            Rule::Disagreement("size"),
        ),
        (
            "two paths",
            raw().extended(b'x', &[("path", b"a"), ("path", b"b")]).file("c", ""),
            Rule::Disagreement("path"),
        ),
        (
            "a GNU and a POSIX path",
            raw().entry(b'L', "l", "", b"a\0").extended(b'x', &[("path", b"b")]).file("c", ""),
            Rule::Disagreement("path"),
        ),
        (
            "two extended headers",
            raw().extended(b'x', &[]).extended(b'x', &[]).file("c", ""),
            Rule::Disagreement("extended header"),
        ),
        ("a global path", raw().extended(b'g', &[("path", b"a")]).file("c", ""), Rule::Global("path")),
        ("a global size", raw().extended(b'g', &[("size", b"9")]).file("c", ""), Rule::Global("size")),
        (
            "a record cut short",
            raw().entry(b'x', "x", "", b"99 path=a\n").file("c", ""),
            Rule::Field("extended header"),
        ),
        ("a size that is no number", raw().sized(b'0', "a", "", b"", "0000000000z\0"), Rule::Field("size")),
        ("a negative size", raw().extended(b'x', &[("size", b"-1")]).file("a", ""), Rule::Field("size")),
        (
            "a time that is no number",
            raw().extended(b'x', &[("mtime", b"now")]).file("a", ""),
            Rule::Field("time"),
        ),
        ("a huge extended header", raw().sized(b'x', "a", "", b"", "77777777777\0"), Rule::Extension),
        (
            "a huge file",
            raw().sized(b'0', "a", "", b"", "77777777777\0").sized(b'0', "b", "", b"", "77777777777\0"),
            Rule::Truncated,
        ),
    ];
    for (case, archive, expected) in cases {
        assert_eq!(refused(&archive.end(), Limits::default()).await, expected, "{case}");
    }
}

#[tokio::test]
async fn an_archive_that_is_damaged_or_cut_is_refused_wherever_that_is() {
    let whole = Raw::default().directory("d").file("d/a", "content").end();
    for length in 0..whole.len() {
        if length % 100 != 0 && length % 512 != 0 {
            continue;
        }
        assert_eq!(refused(&whole[..length], Limits::default()).await, Rule::Truncated, "{length} bytes");
    }
    let mut damaged = whole.clone();
    damaged[700] ^= 1;
    assert_eq!(refused(&damaged, Limits::default()).await, Rule::Checksum);
    assert_eq!(refused(&[b'x'; 4096], Limits::default()).await, Rule::Checksum);
    let dangling = Raw::default().extended(b'x', &[("path", b"a")]).end();
    assert_eq!(refused(&dangling, Limits::default()).await, Rule::Truncated);
}

#[tokio::test]
async fn nothing_but_some_zeros_may_follow_the_end() {
    let mut archive = Raw::default().file("a", "x").end();
    archive.extend(Raw::default().file("b", "smuggled").end());
    assert_eq!(refused(&archive, Limits::default()).await, Rule::Trailing);
    let endless = Raw::default().end();
    let endless = tokio::io::AsyncReadExt::chain(endless.as_slice(), tokio::io::repeat(0));
    let beside = tempfile::tempdir().unwrap();
    assert_eq!(rule(incoming(endless, beside.path(), Limits::default(), None).await), Rule::Trailing);
}

#[tokio::test]
async fn each_limit_is_named_when_one_more_is_too_much() {
    let limits = |entries, content_bytes, text_bytes| {
        let mut limits = Limits::default();
        (limits.entries, limits.content_bytes, limits.text_bytes) = (entries, content_bytes, text_bytes);
        limits
    };
    let archive = Raw::default().directory("d").file("d/a", "12345").link("l", "d").end();
    let beside = tempfile::tempdir().unwrap();
    let sent = incoming(archive.as_slice(), beside.path(), limits(3, 5, 6), None).await.unwrap();
    assert_eq!(refused(&archive, limits(2, 5, 6)).await, Rule::TooManyEntries(2));
    assert_eq!(refused(&archive, limits(3, 4, 6)).await, Rule::TooManyBytes(4));
    assert_eq!(refused(&archive, limits(3, 5, 5)).await, Rule::TooMuchText(5));
    // What was sent on purpose counts on top.
    incoming(archive.as_slice(), beside.path(), limits(0, 0, 0).beyond(sent.manifest()), None).await.unwrap();
    let implied = Raw::default().file("a/b/c/d", "").end();
    assert_eq!(refused(&implied, limits(3, 5, 60)).await, Rule::TooManyEntries(3));
}

#[tokio::test]
async fn what_the_host_sent_may_come_back_and_nothing_like_it_may() {
    let folder = tempfile::tempdir().unwrap();
    symlink("/usr/bin/env", folder.path().join("env")).unwrap();
    common::file(folder.path().join("README"), "a", 0o644);
    common::file(folder.path().join("readme"), "b", 0o644);
    let (archive, baseline) = send(folder.path(), everything()).await;
    let beside = tempfile::tempdir().unwrap();
    let refused = rule(receive(&archive, beside.path(), None).await);
    assert_eq!(refused, Rule::LinkLeaves("/usr/bin/env".into()));
    receive(&archive, beside.path(), Some(baseline.clone())).await.unwrap();

    let other = Raw::default().link("env", "/usr/bin/python").end();
    let refused = rule(receive(&other, beside.path(), Some(baseline.clone())).await);
    assert_eq!(refused, Rule::LinkLeaves("/usr/bin/python".into()));
    let moved = Raw::default().link("moved", "/usr/bin/env").end();
    let refused = rule(receive(&moved, beside.path(), Some(baseline.clone())).await);
    assert_eq!(refused, Rule::LinkLeaves("/usr/bin/env".into()));
    let third = Raw::default().file("README", "").file("ReadMe", "").end();
    let refused = rule(receive(&third, beside.path(), Some(baseline)).await);
    assert_eq!(refused, Rule::CaseFold("README".into()));
}

#[tokio::test]
async fn a_refusal_names_the_entry_without_letting_it_write_to_the_terminal() {
    let beside = tempfile::tempdir().unwrap();
    let archive = Raw::default().file("a/../\x1b[2J\n", "").end();
    let error = receive(&archive, beside.path(), None).await.unwrap_err().to_string();
    assert_eq!(error, r#"the archive is refused at "a/../\u{1b}[2J\n": its path has a `..` component"#);
}
