//! Bytes in and out of a jail, whatever a program inside does to the paths.

#![allow(clippy::unwrap_used, clippy::panic, reason = "only tests use the helpers")]

mod common;

use common::{one, run, said, sh, state};
use leasehold_authority::jail::{Bounds, Exit, Isolation, JailError, Jails, Limit, LimitHit, Moved};

#[test]
fn all_of_this_holds_for_an_ordinary_user() {
    common::again_as_ordinary_user();
}

async fn fetched(jails: &Jails, path: &str) -> Result<Vec<u8>, JailError> {
    let mut bytes = Vec::new();
    let moved = jails.fetch("one", path, &mut bytes).await?;
    assert_eq!(moved, Moved { files: 1, bytes: bytes.len() as u64 });
    Ok(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_comes_in_with_its_mode_and_goes_out_again() {
    let state = state();
    let jails = one(&state).await;
    let content = vec![b'x'; 1_000_000];
    let moved = jails.place("one", "/workspace/new/dir/file", Some(0o750), content.as_slice()).await.unwrap();
    assert_eq!(moved, Moved { files: 1, bytes: 1_000_000 });
    assert_eq!(
        said(&jails, "stat -c '%a %u %s' new/dir/file; ls -A new/dir").await,
        "750 1000 1000000\nfile\n"
    );
    assert_eq!(
        said(
            &jails,
            "echo more >> new/dir/file && echo y > new/dir/beside && tail -n1 new/dir/file | tail -c 5"
        )
        .await,
        "more\n"
    );
    assert_eq!(fetched(&jails, "/workspace/new/dir/file").await.unwrap().len(), 1_000_005);
    for (path, mode) in [("/tmp/a", None), ("/home/b", Some(0o6777))] {
        jails.place("one", path, mode, &b"z"[..]).await.unwrap();
        assert_eq!(fetched(&jails, path).await.unwrap(), b"z");
    }
    assert_eq!(said(&jails, "stat -c %a /tmp/a /home/b").await, "644\n777\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_move_while_the_jail_is_stopped() {
    let state = state();
    let jails = one(&state).await;
    said(&jails, "echo old > f").await;
    jails.stop("one").await.unwrap();
    assert_eq!(fetched(&jails, "/workspace/f").await.unwrap(), b"old\n");
    jails.place("one", "/workspace/f", None, &b"new\n"[..]).await.unwrap();
    jails.create("one", Bounds::default(), &Isolation::default()).await.unwrap();
    assert_eq!(said(&jails, "cat f; echo mine > f").await, "new\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_link_and_no_path_leads_out_of_the_jail() {
    let state = state();
    let jails = one(&state).await;
    let outside = state.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "secret").unwrap();
    let outside = outside.to_str().unwrap();
    let script = format!(
        "ln -s {outside} abs; ln -s ../../../../../../../../..{outside} up; ln -s {outside}/secret file; ln -s /proc/self/root magic; ln -s / top"
    );
    said(&jails, &script).await;
    for path in
        ["abs/secret", "up/secret", "file", "magic/etc/hostname", &format!("../../../..{outside}/secret")]
    {
        let error = fetched(&jails, &format!("/workspace/{path}")).await.unwrap_err();
        assert!(matches!(error, JailError::Transfer { .. }), "{path}: {error}");
    }
    for path in ["abs/x", "up/x", "magic/tmp/x"] {
        // Made where the link leads inside the jail, or refused; never outside.
        let _ = jails.place("one", &format!("/workspace/{path}"), None, &b"x"[..]).await;
    }
    assert_eq!(std::fs::read_dir(outside).unwrap().count(), 1);
    // A link is replaced, not written through.
    jails.place("one", "/workspace/file", None, &b"own"[..]).await.unwrap();
    assert_eq!(std::fs::read(format!("{outside}/secret")).unwrap(), b"secret");
    assert_eq!(fetched(&jails, "/workspace/file").await.unwrap(), b"own");
    // An inner link is followed.
    said(&jails, "mkdir d; echo in > d/f; ln -s d e; ln -s /workspace/d/f g").await;
    assert_eq!(fetched(&jails, "/workspace/e/f").await.unwrap(), b"in\n");
    assert_eq!(fetched(&jails, "/workspace/g").await.unwrap(), b"in\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_jails_own_directories_can_be_written() {
    let state = state();
    let jails = one(&state).await;
    said(&jails, "ln -s / top").await;
    for path in [
        "/x",
        "/usr/bin/x",
        "/etc/passwd",
        "/new/dir/x",
        "/workspace/top/x",
        "/workspace/top/new/x",
        "/workspace/../x",
    ] {
        let error = jails.place("one", path, None, &b"x"[..]).await.unwrap_err();
        assert!(matches!(error, JailError::Path { .. }), "{path}: {error}");
    }
    for path in ["", "x", "workspace/x", "/workspace/", "/workspace/.", "/workspace/..", "/"] {
        let error = jails.place("one", path, None, &b"x"[..]).await.unwrap_err();
        assert!(matches!(error, JailError::Path { .. }), "{path}: {error}");
    }
    let mut names: Vec<_> = std::fs::read_dir(state.path().join("one/files"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["home", "tmp", "workspace"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_regular_file_is_not_fetched() {
    let state = state();
    let jails = one(&state).await;
    said(&jails, "mkfifo pipe; mkdir dir; perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Listen=>1,Local=>q(socket))'").await;
    for path in ["pipe", "dir", "socket"] {
        let error = fetched(&jails, &format!("/workspace/{path}")).await.unwrap_err();
        assert!(matches!(error, JailError::Path { .. }), "{path}: {error}");
    }
    assert!(matches!(fetched(&jails, "/workspace/none").await, Err(JailError::Transfer { .. })));
    let error = jails.fetch("none", "/workspace/x", tokio::io::sink()).await.unwrap_err();
    assert!(matches!(error, JailError::Missing { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_that_fails_leaves_the_old_content_and_no_part() {
    use tokio::io::AsyncReadExt as _;
    let state = state();
    let jails = one(&state).await;
    said(&jails, "echo old > f; mkdir d; echo x > d/x").await;
    let broken = tokio_test_reader();
    let error = jails.place("one", "/workspace/f", None, (&b"new"[..]).chain(broken)).await.unwrap_err();
    assert!(matches!(error, JailError::Transfer { .. }), "{error}");
    let error = jails.place("one", "/workspace/d", None, &b"file"[..]).await.unwrap_err();
    assert!(matches!(error, JailError::Transfer { .. }), "{error}");
    assert_eq!(said(&jails, "cat f d/x; ls -A").await, "old\nx\nd\nf\n");
}

/// A reader that fails at once.
fn tokio_test_reader() -> impl tokio::io::AsyncRead + Unpin + Send {
    struct Broken;
    impl tokio::io::AsyncRead for Broken {
        fn poll_read(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            _: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::task::Poll::Ready(Err(std::io::Error::other("broken")))
        }
    }
    Broken
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_in_counts_against_the_disk() {
    let state = state();
    let jails = Jails::open(state.path()).unwrap();
    let bounds = Bounds { disk_bytes: Some(1 << 20), ..Bounds::default() };
    jails.create("one", bounds, &Isolation::default()).await.unwrap();
    let error = jails.place("one", "/workspace/f", None, tokio::io::repeat(1)).await.unwrap_err();
    assert!(matches!(error, JailError::Limit(LimitHit { which: Limit::Disk, .. })), "{error}");
    assert_eq!(said(&jails, "ls -A").await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_change_while_they_are_resolved_never_lead_out() {
    let state = state();
    let jails = one(&state).await;
    let outside = state.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let swap = format!(
        "mkdir a; ln -s {} l; echo up; while :; do mv a b; mv l a; mv a l; mv b a; done",
        outside.display()
    );
    let command = sh(&swap);
    let (output, mut up) = tokio::io::duplex(8);
    let swapping = jails.run("one", &command, tokio::io::empty(), output, tokio::io::sink());
    let placing = async {
        tokio::io::AsyncReadExt::read_exact(&mut up, &mut [0; 3]).await.unwrap();
        for _ in 0..500 {
            let _ = jails.place("one", "/workspace/a/x", None, &b"x"[..]).await;
        }
    };
    tokio::select! {
        _ = swapping => unreachable!("it has no end"),
        () = placing => {}
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_go_in_and_out_as_tar() {
    let state = state();
    let jails = one(&state).await;
    said(&jails, "mkdir -p src/sub; echo one > src/a; printf 12345 > 'src/sub/odd\nname'; ln -s a src/link; echo skip > src/b.log").await;
    let mut tar = Vec::new();
    let excludes = ["*.log".to_owned()];
    let moved = jails.archive("one", "/workspace/src", &excludes, false, &mut tar).await.unwrap();
    assert_eq!(moved, Moved { files: 2, bytes: 9 });
    let moved = jails.extract("one", "/workspace/new/copy", tar.as_slice()).await.unwrap();
    assert_eq!(moved, Moved { files: 2, bytes: 9 });
    assert_eq!(
        said(&jails, "cd new/copy; cat a sub/*; readlink link; ls").await,
        "one\n12345a\na\nlink\nsub\n"
    );
    let mut followed = Vec::new();
    let moved = jails.archive("one", "/workspace/src", &excludes, true, &mut followed).await.unwrap();
    assert_eq!(moved, Moved { files: 3, bytes: 13 });
    let error = jails.archive("one", "/workspace/none", &[], false, tokio::io::sink()).await.unwrap_err();
    assert!(matches!(&error, JailError::Tar { text, .. } if text.contains("none")), "{error}");
    let error = jails.extract("one", "/workspace/bad", &b"no archive at all"[..]).await.unwrap_err();
    assert!(matches!(error, JailError::Tar { .. }), "{error}");
    assert_eq!(run(&jails, sh("exit 0")).await.unwrap().exit, Exit::Exited(0));
}
