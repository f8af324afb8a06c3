//! Files in and out of real sandboxes, through the provider's hooks and over its commands.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use leasehold::{
    Command, Environment, Error, Exit, For, Leasehold, Mapping, MappingKind, Operation, PostUpload, Progress,
    Roots, Session, Streams, Terms, Transfer, WalkOptions,
};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

async fn session(directory: &TempDir, native: bool) -> (Leasehold, Session) {
    let runtime = Leasehold::builder(directory.path().join("state")).build().await.unwrap();
    let session = Environment::of("local").acquire(&runtime, For::default()).await.unwrap();
    (runtime, if native { session } else { session.without_native_transfer() })
}

/// Runs a script in the workspace; what it wrote.
async fn run(session: &Session, script: &str) -> String {
    let (output, mut lines) = mpsc::channel(16);
    let (error, _) = mpsc::channel(16);
    let streams = Streams { input: Box::new(tokio::io::empty()), output, error };
    let reading = async {
        let mut text = Vec::new();
        while let Some(piece) = lines.recv().await {
            text.extend_from_slice(&piece);
        }
        String::from_utf8(text).unwrap()
    };
    let command = Command { argv: ["sh", "-c", script].map(String::from).to_vec(), ..Command::default() };
    let (ended, text) = tokio::join!(session.execute(command, streams, CancellationToken::new()), reading);
    let (exit, _) = ended.unwrap();
    assert!(matches!(exit, Exit::Exited(0)), "{script}: {exit:?}: {text}");
    text
}

/// Everything below a folder, by a walker that knows nothing of the project.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let mode = metadata.permissions().mode() & 0o7777;
            let text = if metadata.is_dir() {
                waiting.push(path.clone());
                format!("directory {mode:o}")
            } else if metadata.is_symlink() {
                format!("link {:?}", fs::read_link(&path).unwrap())
            } else {
                format!("file {mode:o} {:?}", fs::read(&path).unwrap())
            };
            found.insert(path.strip_prefix(folder).unwrap().to_owned(), text);
        }
    }
    found
}

fn file(path: PathBuf, content: &str, mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn odd_tree(folder: &Path) {
    file(folder.join("plain"), "content", 0o644);
    file(folder.join("bin/run"), "#!/bin/sh\n", 0o755);
    file(folder.join("secret"), "password", 0o600);
    file(folder.join("it's \"odd\" $(x)\n"), "", 0o640);
    file(folder.join("-rf"), &"x".repeat(100_000), 0o644);
    fs::create_dir_all(folder.join("empty/inner")).unwrap();
    symlink("plain", folder.join("link")).unwrap();
    symlink("nowhere", folder.join("dangling")).unwrap();
}

fn operation(mappings: Vec<Mapping>, commands: &[(&str, Option<&str>)]) -> Operation {
    let command = |(command, cwd): &(&str, Option<&str>)| PostUpload {
        command: (*command).into(),
        cwd: cwd.map(str::to_owned),
        timeout: None,
    };
    Operation { id: "sync-op-1".into(), mappings, post_upload: commands.iter().map(command).collect() }
}

fn transfer(operations: Vec<Operation>, sources: &Path, targets: &Path) -> Transfer {
    let roots = |path: &Path| Roots::new("roots", [path]).unwrap();
    Transfer { operations, sources: roots(sources), targets: roots(targets), ..Transfer::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_directories_go_in_and_come_out_the_same_both_ways() {
    for native in [true, false] {
        let directory = TempDir::new().unwrap();
        let at = |path: &str| directory.path().join(path);
        odd_tree(&at("host/tree"));
        file(at("host/f"), "one file", 0o640);
        fs::create_dir(at("back")).unwrap();
        let (_runtime, session) = session(&directory, native).await;
        run(&session, "mkdir -p /workspace/tree && touch /workspace/tree/old").await;
        let sandbox = Path::new("/workspace");
        let inward = vec![
            Mapping::new(MappingKind::Directory, at("host/tree"), "/workspace/tree"),
            Mapping {
                mode: Some(0o600),
                ..Mapping::new(MappingKind::File, at("host/f"), "/workspace/new/it's")
            },
        ];
        let inward = transfer(vec![operation(inward, &[])], &at("host"), sandbox);
        let moved = session.transfer_in(&inward).await.unwrap();
        assert_eq!((moved[0].files, moved[0].bytes), (6, 100_000 + 7 + 10 + 8 + 8), "native: {native}");
        assert_eq!(inward.progress.moved().files, 6);
        assert_eq!(
            run(&session, "stat -c %a new/it\\'s; ls -A; ls tree/old 2>&1 || :").await.lines().next(),
            Some("600")
        );
        let outward = vec![
            Mapping::new(MappingKind::Directory, "/workspace/tree", at("back/tree")),
            Mapping::new(MappingKind::File, "/workspace/new/it's", at("back/deep/f")),
        ];
        file(at("back/tree/old"), "goes", 0o644);
        let outward = transfer(vec![operation(outward, &[])], sandbox, &at("back"));
        assert_eq!(session.transfer_out(&outward).await.unwrap(), moved);
        assert_eq!(snapshot(&at("back/tree")), snapshot(&at("host/tree")), "native: {native}");
        assert_eq!(fs::read_to_string(at("back/deep/f")).unwrap(), "one file");
        assert_eq!(fs::read_dir(at("back")).unwrap().count(), 2, "something is left");
        session.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_outside_or_a_second_bad_mapping_sends_nothing() {
    let directory = TempDir::new().unwrap();
    let at = |path: &str| directory.path().join(path);
    file(at("host/f"), "x", 0o644);
    file(at("outside"), "secret", 0o644);
    symlink("../outside", at("host/link")).unwrap();
    symlink("..", at("host/up")).unwrap();
    let (_runtime, session) = session(&directory, true).await;
    let good = Mapping::new(MappingKind::File, at("host/f"), "/workspace/f");
    let to = |source: &str, target: &str| Mapping::new(MappingKind::File, at(source), target);
    for bad in [
        to("outside", "/workspace/g"),
        to("host/f", "/etc/passwd"),
        to("host/../outside", "/workspace/g"),
        to("host/link", "/workspace/g"),
        to("host/up/outside", "/workspace/g"),
    ] {
        let transfer = transfer(
            vec![operation(vec![good.clone(), bad.clone()], &[])],
            &at("host"),
            Path::new("/workspace"),
        );
        session.transfer_in(&transfer).await.unwrap_err();
        assert_eq!(run(&session, "ls -A").await, "", "{bad:?}");
    }
    let root = Mapping::new(MappingKind::Directory, at("host"), "/");
    let root = transfer(vec![operation(vec![root], &[])], &at("host"), Path::new("/"));
    assert!(matches!(session.transfer_in(&root).await, Err(Error::WholeRoot)));
    session.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_fails_is_the_last_and_those_before_it_stay() {
    let directory = TempDir::new().unwrap();
    let at = |path: &str| directory.path().join(path);
    file(at("host/f"), "x", 0o644);
    let (_runtime, session) = session(&directory, false).await;
    let to = |target: &str| vec![Mapping::new(MappingKind::File, at("host/f"), target)];
    let folder = |target: &str| vec![Mapping::new(MappingKind::Directory, at("host"), target)];
    let operations = vec![
        operation(folder("/workspace/a"), &[("pwd > where && echo 'a  b' > said", Some("/workspace/a"))]),
        operation(to("/workspace/b"), &[("exit 7", None), ("touch /workspace/never", None)]),
        operation(to("/workspace/c"), &[]),
    ];
    let transfer = transfer(operations, &at("host"), Path::new("/workspace"));
    let error = session.transfer_in(&transfer).await.unwrap_err().to_string();
    assert!(error.contains("exit 7") && error.contains("exit code 7"), "{error}");
    assert_eq!(run(&session, "ls; cat a/where a/said").await, "a\nb\n/workspace/a\na  b\n");
    session.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sandbox_plants_does_not_lead_out_on_the_way_back() {
    for native in [true, false] {
        let directory = TempDir::new().unwrap();
        let at = |path: &str| directory.path().join(path);
        file(at("back/kept"), "old", 0o644);
        let (_runtime, session) = session(&directory, native).await;
        run(&session, "mkdir t; ln -s /etc/passwd t/l; ln -s / out").await;
        for (kind, source) in
            [(MappingKind::Directory, "/workspace/t"), (MappingKind::File, "/workspace/t/l")]
        {
            let mapping = Mapping::new(kind, source, at("back/kept"));
            let transfer =
                transfer(vec![operation(vec![mapping], &[])], Path::new("/workspace"), &at("back"));
            session.transfer_out(&transfer).await.unwrap_err();
            assert_eq!(
                snapshot(&at("back")).into_keys().collect::<Vec<_>>(),
                [PathBuf::from("kept")],
                "{source}"
            );
            assert_eq!(fs::read(at("back/kept")).unwrap(), b"old");
        }
        session.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_goes_over_commands_alone_and_comes_back_merged() {
    let directory = TempDir::new().unwrap();
    let at = |path: &str| directory.path().join(path);
    odd_tree(&at("host"));
    file(at("host/node_modules/x"), "heavy", 0o644);
    let before = snapshot(&at("host"));
    let (_runtime, session) = session(&directory, false).await;
    let synced = session.sync_in(&at("host"), WalkOptions::default()).await.unwrap();
    assert_eq!(
        run(&session, "find . -mindepth 1 -maxdepth 1 -printf x | wc -c").await.trim(),
        (fs::read_dir(at("host")).unwrap().count() - 1).to_string()
    );
    run(&session, "echo new > plain; rm secret; mkdir -p node_modules && echo y > node_modules/y").await;
    let report = session.sync_out(synced).await.unwrap();
    assert_eq!((report.changed.len(), report.deleted.len(), report.added.len()), (1, 1, 0), "{report:?}");
    let mut after = snapshot(&at("host"));
    assert_eq!(
        after.insert("plain".into(), before[Path::new("plain")].clone()).unwrap(),
        "file 644 [110, 101, 119, 10]"
    );
    after.insert("secret".into(), before[Path::new("secret")].clone());
    assert_eq!(after, before);
    session.release().await.unwrap();
}

/// Everything a workspace holds, down to times and bytes, as its own tools see it.
async fn held(session: &Session) -> String {
    let all =
        "find . -mindepth 1 -printf '%P %y %m %T@ %l\\n' | sort; find . -type f -exec sha256sum {} + | sort";
    run(session, all).await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_changed_on_either_side_is_sent_again_and_the_result_is_that_of_sending_all() {
    let directory = TempDir::new().unwrap();
    let at = |path: &str| directory.path().join(path);
    odd_tree(&at("host"));
    for number in 0..40 {
        file(at("host").join(format!("many/{number}")), &number.to_string(), 0o644);
    }
    let runtime = Leasehold::builder(at("state")).build().await.unwrap();
    let terms = || Terms { held: true, ..Terms::default() };
    let local = Environment::of("local");
    let session = local.acquire_as(&runtime, For::default(), terms()).await.unwrap();
    let fresh = local.acquire_as(&runtime, For::default(), terms()).await.unwrap();
    // Older than a tick of the clock, as folders of people are.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let sync = async || {
        let progress = Progress::default();
        session.sync_in_watched(&at("host"), WalkOptions::default(), &progress).await.unwrap();
        progress.moved().files
    };
    assert_eq!(sync().await, 45);
    assert_eq!(sync().await, 0, "nothing had changed");

    let change_host = || {
        file(at("host/plain"), "changed", 0o600);
        file(at("host/new/deep/f"), "new", 0o644);
        fs::remove_file(at("host/many/7")).unwrap();
        fs::set_permissions(at("host/bin"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::remove_dir_all(at("host/empty")).unwrap();
        file(at("host/empty"), "a file now", 0o644);
        fs::remove_file(at("host/link")).unwrap();
        symlink("bin", at("host/link")).unwrap();
    };
    change_host();
    let sandbox = "echo mine > many/1; touch -d @0 many/1; rm many/2; mkdir many/2; touch many/2/x extra; chmod 777 many/3; \
        ln -sf /etc/passwd dangling; rm -r bin; touch bin";
    run(&session, sandbox).await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let sent = sync().await;
    assert!((6..=12).contains(&sent), "{sent} files were sent");
    fresh.sync_in(&at("host"), WalkOptions::default()).await.unwrap();
    assert_eq!(held(&session).await, held(&fresh).await);
    assert_eq!(sync().await, 0);

    // A record that is damaged, or of another folder or other rules, is none.
    let record = fs::read_dir(at("state/synced")).unwrap().next().unwrap().unwrap().path();
    let other = fs::read_dir(at("state/synced")).unwrap().nth(1).unwrap().unwrap().path();
    for record in [record, other] {
        let bytes = fs::read(&record).unwrap();
        fs::write(&record, &bytes[..bytes.len() / 2]).unwrap();
    }
    assert_eq!(sync().await, 46);
    // What the sandbox wrote just before is found, also with its times set back.
    run(&session, "s=$(stat -c %y many/5); echo 6 > many/5; touch -d \"$s\" many/5").await;
    assert_eq!(sync().await, 1);
    assert_eq!(held(&session).await, held(&fresh).await);
    session.release().await.unwrap();
    fresh.release().await.unwrap();
}
