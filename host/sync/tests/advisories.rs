//! What went wrong for others, each with an archive of its own: nothing of it may be left, and nothing may have
//! been written outside.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod common;

use common::{Raw, rule};
use leasehold_sync::{FileSink, Limits, Progress, Rule, incoming};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use tokio::io::AsyncWriteExt as _;

/// Receives an archive in a folder beside which lies something to protect.
async fn refused(archive: Raw) -> Rule {
    let holder = tempfile::tempdir().unwrap();
    let (folder, outside) = (holder.path().join("folder"), holder.path().join("folder-outside"));
    fs::create_dir(&folder).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "kept").unwrap();
    let rule = rule(incoming(archive.end().as_slice(), &folder, Limits::default(), None).await);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "something is left");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "something was written outside");
    assert_eq!(fs::read(outside.join("kept")).unwrap(), b"kept");
    rule
}

fn raw() -> Raw {
    Raw::default()
}

fn leaves(target: &str) -> Rule {
    Rule::LinkLeaves(target.into())
}

/// One test for each advisory: what the archive tries, the archive, the rule it breaks.
macro_rules! refusals {
    ($($name:ident: $archive:expr => $rule:expr;)*) => {$(
        #[tokio::test]
        async fn $name() {
            assert_eq!(refused($archive).await, $rule);
        }
    )*};
}

refusals! {
    cve_2017_1002101_a_link_to_the_root_and_a_file_behind_it:
        raw().link("volume", "/").file("volume/etc/passwd", "x") => leaves("/");
    cve_2018_1002100_a_path_that_steps_out:
        raw().file("../folder-outside/kept", "x") => Rule::StepsOut;
    cve_2019_1002101_a_file_through_a_link_made_before_it:
        raw().link("l", "../folder-outside").file("l/kept", "x") => leaves("../folder-outside");
    cve_2019_11246_a_link_inside_that_another_link_makes_lead_out:
        raw().directory("a").link("a/up", "..").link("out", "a/up/../folder-outside") =>
            leaves("a/up/../folder-outside");
    cve_2019_11249_a_name_that_only_looks_as_if_it_were_inside:
        raw().directory("d").file("d/../../folder-outside/kept", "x") => Rule::StepsOut;
    cve_2019_11251_a_link_to_the_folder_itself_and_one_out_behind_it:
        raw().link("here", ".").link("here/out", "..") => Rule::ParentNotDirectory("here".into());
    cve_2021_38511_a_directory_made_outside_through_a_link:
        raw().directory("d").link("l", "d").directory("l/made/outside") => Rule::ParentNotDirectory("l".into());
    cve_2025_29787_a_link_and_an_entry_of_the_same_name_written_through_it:
        raw().link("config", "../folder-outside/kept").file("config", "x") => leaves("../folder-outside/kept");
    cve_2025_62518_a_size_of_zero_in_front_of_entries_that_an_extension_hides:
        raw().extended(b'x', &[("size", b"1024")]).sized(b'0', "inner.tar", "", b"", "00000000000\0")
            .file("smuggled", "x") => Rule::Disagreement("size");
    cve_2026_32766_an_extension_record_that_lies_about_its_length:
        raw().entry(b'x', "x", "", b"20 path=../outside\n9 a=b").file("a", "") => Rule::Field("extended header");
    ghsa_fp55_a_link_between_the_directory_and_what_it_should_hold:
        raw().directory("d").link("d/l", "../e").directory("e").file("d/l/f", "x") =>
            Rule::ParentNotDirectory("d/l".into());
    ghsa_xx64_a_long_name_without_end:
        raw().sized(b'L', "././@LongLink", "", b"", "77777777777\0") => Rule::Extension;
    ghsa_3cv2_a_hard_link_to_a_file_outside:
        raw().entry(b'1', "inside", "../folder-outside/kept", b"").file("inside", "x") => Rule::HardLink;
    ghsa_3wgq_a_second_entry_in_place_of_a_file:
        raw().file("a", "checked").link("a", "b") => Rule::Duplicate;
    cve_2026_33055_two_sizes_of_which_one_hides_an_entry:
        raw().extended(b'x', &[("size", b"0")]).sized(b'0', "a", "", &[0; 512], "00000001000\0") =>
            Rule::Disagreement("size");
    cve_2026_33056_a_mode_set_through_a_link:
        raw().directory("d").link("l", "d").entry(b'5', "l", "", b"") => Rule::Duplicate;
    cve_2026_46703_an_image_layer_with_an_absolute_link_and_a_file_behind_it:
        raw().link("lib", "/usr/lib").file("lib/evil.so", "x") => leaves("/usr/lib");
}

#[tokio::test]
async fn cve_2018_15664_a_directory_swapped_for_a_link_while_the_archive_arrives() {
    let holder = tempfile::tempdir().unwrap();
    let outside = holder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let folder = holder.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let first = raw().directory("d").file("d/a", "x").file("e", "x");
    let whole = first.clone().file("d/b", "escaped").end();
    let (mut to, from) = tokio::io::duplex(512);
    let receiving = tokio::spawn({
        let folder = folder.clone();
        async move { incoming(from, &folder, Limits::default(), None).await }
    });
    to.write_all(&whole[..first.0.len()]).await.unwrap();
    let staging = loop {
        match fs::read_dir(&folder).unwrap().next() {
            Some(staging) if staging.as_ref().unwrap().path().join("e").exists() => {
                break staging.unwrap().path();
            }
            _ => tokio::task::yield_now().await,
        }
    };
    fs::rename(staging.join("d"), staging.join("aside")).unwrap();
    symlink(&outside, staging.join("d")).unwrap();
    let _ = to.write_all(&whole[first.0.len()..]).await;
    drop(to);
    receiving.await.unwrap().unwrap_err();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[tokio::test]
async fn cve_2019_14271_libraries_in_the_tree_are_bytes_and_are_never_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let archive = raw()
        .directory("etc")
        .file("etc/nsswitch.conf", "passwd: evil")
        .file("lib/libnss_evil.so.2", "\x7fELF");
    let received = incoming(archive.end().as_slice(), folder.path(), Limits::default(), None).await.unwrap();
    // Receiving asks the system for no name and starts no program: what is mapped here is what was before.
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    assert!(!maps.contains("libnss_evil") && received.path().join("lib/libnss_evil.so.2").exists());
}

#[tokio::test]
async fn cve_2026_42306_the_target_is_exchanged_for_another_mount_while_a_file_arrives() {
    let holder = tempfile::tempdir().unwrap();
    let at = |path: &str| holder.path().join(path);
    fs::create_dir_all(at("folder/sub")).unwrap();
    fs::create_dir(at("outside")).unwrap();
    let (mut sink, arriving) =
        FileSink::new(&at("folder"), Path::new("sub/f"), None, 100, Progress::default());
    let mut inlet = sink.bare().unwrap();
    inlet.ready().await;
    inlet.give("content".into()).unwrap();
    sink.finish().await.unwrap();
    let received = arriving.finish().await.unwrap();
    fs::rename(at("folder/sub"), at("folder/kept")).unwrap();
    symlink(at("outside"), at("folder/sub")).unwrap();
    received.place().unwrap();
    assert_eq!(fs::read_dir(at("outside")).unwrap().count(), 0);
    assert_eq!(fs::read(at("folder/kept/f")).unwrap(), b"content");

    // And a link that is there before: nothing is made behind it.
    let (mut sink, arriving) =
        FileSink::new(&at("folder"), Path::new("sub/deep/f"), None, 100, Progress::default());
    drop(sink.bare().unwrap());
    drop(sink);
    arriving.finish().await.unwrap_err();
    assert_eq!(fs::read_dir(at("outside")).unwrap().count(), 0);
}

#[tokio::test]
async fn podman_27534_owners_in_an_archive_mean_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let archive = raw().extended(b'x', &[("uid", b"4242"), ("gid", b"4242")]).file("f", "x").end();
    let received = incoming(archive.as_slice(), folder.path(), Limits::default(), None).await.unwrap();
    let (ours, theirs) =
        (fs::metadata(folder.path()).unwrap(), fs::metadata(received.path().join("f")).unwrap());
    assert_eq!((theirs.uid(), theirs.gid()), (ours.uid(), ours.gid()));
}
