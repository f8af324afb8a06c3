//! The two ways against each other.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use super::{beneath, open_root, stepwise};
use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn inode(handle: &OwnedFd) -> u64 {
    rustix::fs::fstat(handle).unwrap().st_ino
}

#[test]
fn both_ways_open_the_same_and_refuse_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    fs::create_dir_all(at("root/a/b/c")).unwrap();
    fs::create_dir(at("outside")).unwrap();
    fs::write(at("root/file"), "").unwrap();
    for (link, target) in [
        ("root/inside", "a/b"),
        ("root/a/up", ".."),
        ("root/out", "../outside"),
        ("root/absolute", "/"),
        ("root/self", "self"),
        ("root/magic", "/proc/self/cwd"),
    ] {
        symlink(target, at(link)).unwrap();
    }
    let root = open_root(&at("root")).unwrap();
    let mut opened = Vec::new();
    for path in [
        "",
        ".",
        "a",
        "a/",
        "a//b",
        "./a/./b/c",
        "a/b/c",
        "missing",
        "a/missing/b",
        "file",
        "file/a",
        "..",
        "../outside",
        "a/../../outside",
        "/",
        "/etc",
        "inside",
        "inside/",
        "inside/c",
        "a/up",
        "a/up/a",
        "out",
        "out/",
        "absolute",
        "self",
        "magic",
        "magic/",
    ] {
        let kernel = beneath::open_directory(root.as_fd(), Path::new(path));
        let portable =
            stepwise::open_directory(root.as_fd(), Path::new(path)).map(|handle| inode(&handle)).ok();
        if portable.is_some() {
            opened.push(path);
        }
        // Where the kernel has no way of its own there is nothing to compare.
        if let Some(kernel) = kernel {
            assert_eq!(kernel.map(|handle| inode(&handle)).ok(), portable, "{path:?}");
        }
    }
    assert_eq!(opened, ["", ".", "a", "a/", "a//b", "./a/./b/c", "a/b/c"]);
}

#[test]
fn a_directory_swapped_for_a_link_a_thousand_times_never_lets_either_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    fs::create_dir_all(at("root/a/b")).unwrap();
    fs::create_dir_all(at("outside/b")).unwrap();
    symlink("../outside", at("root/link")).unwrap();
    let root = open_root(&at("root")).unwrap();
    let inside = inode(&stepwise::open_directory(root.as_fd(), Path::new("a/b")).unwrap());
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..1000 {
                fs::rename(at("root/a"), at("root/kept")).unwrap();
                fs::rename(at("root/link"), at("root/a")).unwrap();
                fs::rename(at("root/a"), at("root/link")).unwrap();
                fs::rename(at("root/kept"), at("root/a")).unwrap();
            }
            ended.store(true, Ordering::Relaxed);
        });
        while !ended.load(Ordering::Relaxed) {
            let path = Path::new("a/b");
            let kernel = beneath::open_directory(root.as_fd(), path).and_then(Result::ok);
            let portable = stepwise::open_directory(root.as_fd(), path).ok();
            for handle in kernel.into_iter().chain(portable) {
                assert_eq!(inode(&handle), inside);
            }
        }
    });
}
