//! Transfer over commands: in real shells, with the tools of GNU and those of busybox.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod common;

use common::{contents, everything, file, snapshot};
use leasehold_sync::fallback::{
    CHUNK, FallbackError, Line, Ran, Shell, file_in, file_out, post_upload, tree_in, tree_out,
};
use leasehold_sync::{
    Excludes, FileSink, FileSource, Moved, PostUpload, Progress, Receiving, SendError, Tree, TreeSink,
    TreeSource,
};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

/// A shell of this machine; keeps the lines that were run.
struct Local {
    tools: Option<tempfile::TempDir>,
    lines: Mutex<Vec<Line>>,
    /// Fails the first line that contains this.
    broken: Option<&'static str>,
}

impl Local {
    fn gnu() -> Self {
        Local { tools: None, lines: Mutex::default(), broken: None }
    }

    /// Nothing but busybox; none when it is not installed.
    fn busybox() -> Option<Self> {
        let busybox =
            ["/usr/bin/busybox", "/bin/busybox"].map(Path::new).into_iter().find(|path| path.exists())?;
        let tools = tempfile::tempdir().unwrap();
        let applets = [
            "sh", "base64", "tar", "dd", "find", "mkdir", "rm", "mv", "chmod", "wc", "grep", "dirname",
            "cat", "ls",
        ];
        applets.iter().for_each(|applet| symlink(busybox, tools.path().join(applet)).unwrap());
        Some(Local { tools: Some(tools), ..Local::gnu() })
    }

    fn all() -> Vec<Self> {
        std::iter::once(Local::gnu()).chain(Local::busybox()).collect()
    }

    fn texts(&self) -> Vec<String> {
        self.lines.lock().unwrap().iter().map(|line| line.text.clone()).collect()
    }
}

impl Shell for Local {
    async fn run(&self, line: Line) -> Result<Ran, Box<dyn std::error::Error + Send + Sync>> {
        self.lines.lock().unwrap().push(line.clone());
        if self.broken.is_some_and(|broken| line.text.contains(broken)) {
            let error = b"no space left on device".to_vec();
            return Ok(Ran { code: Some(1), ending: "exit code 1".into(), output: vec![], error });
        }
        let mut command = match &self.tools {
            None => Command::new("sh"),
            Some(tools) => {
                let mut command = Command::new(tools.path().join("sh"));
                command.env_clear().env("PATH", tools.path());
                command
            }
        };
        command.arg("-c").arg(&line.text).current_dir(line.cwd.as_deref().unwrap_or("/"));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&line.input));
        let output = child.wait_with_output()?;
        let _ = writer.join();
        let code = output.status.code();
        let ending = match code {
            Some(code) => format!("exit code {code}"),
            None => format!("signal {}", output.status.signal().unwrap_or(0)),
        };
        Ok(Ran { code, ending, output: output.stdout, error: output.stderr })
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

async fn put_tree(shell: &Local, folder: &Path, target: &Path) -> Result<Moved, FallbackError> {
    let (source, summary) = TreeSource::new(Tree::walk(folder, everything()).unwrap(), Progress::default());
    let (files, bytes) = tree_in(shell, source, summary, text(target)).await?.manifest.totals();
    Ok(Moved { files, bytes })
}

async fn get_tree(
    shell: &Local,
    source: &Path,
    target: &Path,
    exclude: &[&str],
) -> Result<Moved, FallbackError> {
    let exclude: Vec<String> = exclude.iter().map(|pattern| (*pattern).to_owned()).collect();
    let receiving = Receiving { exclude: Excludes::new(&exclude), ..Receiving::default() };
    let (sink, arriving) = TreeSink::new(target.parent().unwrap(), receiving);
    let received = tree_out(shell, text(source), &exclude, false, sink, arriving).await?;
    Ok(received.place(Path::new(target.file_name().unwrap()))?)
}

/// Both ways by the native forms: an archive from a source to a sink.
async fn natively(folder: &Path, target: &Path) -> Moved {
    let (mut source, _summary) =
        TreeSource::new(Tree::walk(folder, everything()).unwrap(), Progress::default());
    let (mut sink, arriving) = TreeSink::new(target.parent().unwrap(), Receiving::default());
    let (mut outlet, mut inlet) = (source.tar().unwrap(), sink.tar().unwrap());
    loop {
        outlet.ready().await;
        let Some(chunk) = outlet.pull(usize::MAX).unwrap() else { break };
        inlet.ready().await;
        inlet.give(chunk).unwrap();
    }
    sink.finish().await.unwrap();
    arriving.finish().await.unwrap().place(Path::new(target.file_name().unwrap())).unwrap()
}

/// One of sixty trees, each with something else in it.
fn tree(number: usize, folder: &Path) {
    let names = [
        "plain",
        "with space",
        "it's",
        "new\nline",
        "$(touch x)",
        "`x`",
        "-rf",
        "--help",
        "a\\b",
        "*",
        "é",
        "\"q\"",
        "#",
        "~",
        "!",
    ];
    let modes = [0o644, 0o600, 0o755, 0o400, 0o000, 0o777];
    fs::create_dir_all(folder).unwrap();
    for step in 0..number % 7 + 1 {
        let name = names[(number * 5 + step * 3) % names.len()];
        let directory = folder.join(["", "sub", "sub/deep er", "-d"][(number + step) % 4]);
        let size = [0, 1, 511, 512, 513, 70_000][(number + step) % 6];
        file(
            directory.join(format!("{name}{step}")),
            vec![b'a' + u8::try_from(step).unwrap(); size],
            modes[(number + step) % 6],
        );
    }
    if number.is_multiple_of(3) {
        fs::create_dir_all(folder.join("empty/inner")).unwrap();
        symlink("../plain0", folder.join("empty/link")).unwrap();
        symlink("nowhere", folder.join("dangling")).unwrap();
    }
    if number.is_multiple_of(5) {
        file(folder.join("n".repeat(255)), "long name", 0o644);
        file(folder.join(vec!["d".repeat(100); 4].join("/")).join("f"), "long path", 0o640);
        symlink("t".repeat(120), folder.join("long-target")).unwrap();
    }
    if number.is_multiple_of(4) {
        fs::create_dir_all(folder.join("closed")).unwrap();
        file(folder.join("closed/f"), "in a closed directory", 0o644);
        fs::hard_link(folder.join("closed/f"), folder.join("second-name")).unwrap();
        fs::set_permissions(folder.join("closed"), fs::Permissions::from_mode(0o500)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_trees_come_out_the_same_natively_and_over_commands_with_both_userlands() {
    let holder = tempfile::tempdir().unwrap();
    for number in 0..60 {
        let at = |name: &str| holder.path().join(format!("{number}-{name}"));
        tree(number, &at("host"));
        let expected = snapshot(&at("host"));
        let native = natively(&at("host"), &at("native")).await;
        assert_eq!(snapshot(&at("native")), expected, "tree {number}, natively");
        for (which, shell) in Local::all().into_iter().enumerate() {
            let (sandbox, back) = (at(&format!("sandbox{which}")), at(&format!("back{which}")));
            file(sandbox.join("old/f"), "goes", 0o644);
            assert_eq!(put_tree(&shell, &at("host"), &sandbox).await.unwrap(), native, "tree {number}");
            assert_eq!(snapshot(&sandbox), expected, "tree {number} in, shell {which}");
            // A second name is not sent as one, so that the way back has none to refuse.
            assert_eq!(get_tree(&shell, &sandbox, &back, &[]).await.unwrap(), native, "tree {number}");
            assert_eq!(snapshot(&back), expected, "tree {number} out, shell {which}");
        }
    }
}

#[tokio::test]
async fn names_that_are_no_text_survive_in_a_tree() {
    use std::os::unix::ffi::OsStrExt as _;
    for shell in Local::all() {
        let holder = tempfile::tempdir().unwrap();
        let at = |name: &str| holder.path().join(name);
        let name = Path::new(std::ffi::OsStr::from_bytes(b"\xff\xfe")).to_owned();
        file(at("host").join(&name).join("f"), "x", 0o644);
        put_tree(&shell, &at("host"), &at("sandbox")).await.unwrap();
        get_tree(&shell, &at("sandbox"), &at("back"), &[]).await.unwrap();
        assert_eq!(snapshot(&at("back")), snapshot(&at("host")));
    }
}

async fn put_file(
    shell: &Local,
    from: &Path,
    target: &str,
    mode: Option<u32>,
) -> Result<Moved, FallbackError> {
    let (folder, name) = (from.parent().unwrap(), Path::new(from.file_name().unwrap()));
    let (source, summary) = FileSource::open(folder, name, mode, false, Progress::default()).unwrap();
    file_in(shell, source, summary, target).await
}

async fn get_file(shell: &Local, source: &str, folder: &Path, name: &str) -> Result<Moved, FallbackError> {
    let (sink, arriving) = FileSink::new(folder, Path::new(name), None, 1 << 30, Progress::default());
    Ok(file_out(shell, source, sink, arriving).await?.place()?)
}

#[tokio::test]
async fn files_of_every_size_and_name_go_both_ways_in_the_number_of_commands_the_contract_has() {
    for shell in Local::all() {
        let holder = tempfile::tempdir().unwrap();
        let odd = ["plain", "it's \"$(x)\" `y`\n;", "-rf", &"n".repeat(255), "*"];
        for (number, size) in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1].into_iter().enumerate() {
            let content: Vec<u8> = (0..size).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect();
            file(holder.path().join("host"), &content, 0o640);
            let target = holder.path().join("sandbox/new").join(odd[number]);
            shell.lines.lock().unwrap().clear();
            let moved = put_file(&shell, &holder.path().join("host"), text(&target), None).await.unwrap();
            assert_eq!(moved, Moved { files: 1, bytes: size as u64 });
            assert_eq!(shell.texts().len(), 3 + size.div_ceil(CHUNK), "{:?}", shell.texts());
            assert!(shell.lines.lock().unwrap().iter().all(|line| line.input.len() <= 4 << 20));
            assert_eq!(fs::metadata(&target).unwrap().mode() & 0o7777, 0o640);
            shell.lines.lock().unwrap().clear();
            get_file(&shell, text(&target), holder.path(), "back").await.unwrap();
            assert_eq!(shell.texts().len(), 1 + size.div_ceil(CHUNK));
            assert!(fs::read(holder.path().join("back")).unwrap() == content, "{size}");
            fs::remove_file(target).unwrap();
        }
        assert_eq!(fs::read_dir(holder.path().join("sandbox/new")).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn the_mode_is_there_before_any_byte_and_staged_names_are_reserved() {
    let shell = Local::gnu();
    let holder = tempfile::tempdir().unwrap();
    file(holder.path().join("host"), "secret", 0o644);
    let target = holder.path().join("credential");
    put_file(&shell, &holder.path().join("host"), text(&target), Some(0o600)).await.unwrap();
    let texts = shell.texts();
    let at = |part: &str| texts.iter().position(|text| text.contains(part)).unwrap();
    assert!(at("chmod 600") < at("base64 -d"));
    assert!(texts[at("base64 -d")].contains("credential.paperclip-upload."));
    assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_failure_at_any_command_leaves_the_old_target_whole_and_nothing_staged() {
    for (broken, doing) in [("umask", "making"), ("base64 -d", "writing"), ("mv -f", "placing")] {
        let shell = Local { broken: Some(broken), ..Local::gnu() };
        let holder = tempfile::tempdir().unwrap();
        file(holder.path().join("host"), "new", 0o600);
        file(holder.path().join("sandbox/target"), "old", 0o644);
        let target = holder.path().join("sandbox/target");
        let error = put_file(&shell, &holder.path().join("host"), text(&target), None).await.unwrap_err();
        let FallbackError::Command { doing: what, text, .. } = &error else { panic!("{error}") };
        assert_eq!((*what, text.as_str()), (doing, "no space left on device"));
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(fs::read_dir(holder.path().join("sandbox")).unwrap().count(), 1, "{broken}");
    }
    for (broken, doing) in [("base64 -d", "writing"), ("tar -x", "unpacking into")] {
        let shell = Local { broken: Some(broken), ..Local::gnu() };
        let holder = tempfile::tempdir().unwrap();
        file(holder.path().join("host/f"), "new", 0o600);
        file(holder.path().join("sandbox/f"), "old", 0o644);
        let error =
            put_tree(&shell, &holder.path().join("host"), &holder.path().join("sandbox")).await.unwrap_err();
        assert!(matches!(&error, FallbackError::Command { doing: what, .. } if *what == doing), "{error}");
        assert_eq!(fs::read(holder.path().join("sandbox/f")).unwrap(), b"old");
        assert_eq!(fs::read_dir(holder.path().join("sandbox")).unwrap().count(), 1, "{broken}");
    }
}

#[tokio::test]
async fn what_the_host_cannot_read_is_told_and_not_what_became_of_it() {
    let shell = Local::gnu();
    let holder = tempfile::tempdir().unwrap();
    file(holder.path().join("host/f"), "x", 0o600);
    let tree = Tree::walk(&holder.path().join("host"), everything()).unwrap();
    fs::remove_file(holder.path().join("host/f")).unwrap();
    let (source, summary) = TreeSource::new(tree, Progress::default());
    let error = tree_in(&shell, source, summary, text(&holder.path().join("sandbox"))).await.unwrap_err();
    assert!(matches!(error, FallbackError::Send(SendError::Changed { .. })), "{error}");
}

/// A shell that says a wrong size.
struct Lies(Local, &'static str);

impl Shell for Lies {
    async fn run(&self, line: Line) -> Result<Ran, Box<dyn std::error::Error + Send + Sync>> {
        match line.text.contains("wc -c") {
            true => Ok(Ran { code: Some(0), ending: String::new(), output: self.1.into(), error: vec![] }),
            false => self.0.run(line).await,
        }
    }
}

#[tokio::test]
async fn a_sandbox_that_gives_other_bytes_than_it_reported_is_an_error_with_both_numbers() {
    let holder = tempfile::tempdir().unwrap();
    file(holder.path().join("f"), "seven b", 0o644);
    for (said, error) in [("9", "7 bytes of the 9"), ("3", "7 bytes of the 3"), ("many", "gave no size")] {
        let shell = Lies(Local::gnu(), said);
        let (sink, arriving) =
            FileSink::new(holder.path(), Path::new("back"), None, 100, Progress::default());
        let told =
            file_out(&shell, text(&holder.path().join("f")), sink, arriving).await.unwrap_err().to_string();
        assert!(told.contains(error), "{told}");
        assert_eq!(fs::read_dir(holder.path()).unwrap().count(), 1);
    }
}

#[tokio::test]
async fn what_is_no_regular_file_or_no_directory_is_not_fetched() {
    let shell = Local::gnu();
    let holder = tempfile::tempdir().unwrap();
    file(holder.path().join("f"), "x", 0o644);
    fs::create_dir(holder.path().join("d")).unwrap();
    symlink("f", holder.path().join("l")).unwrap();
    for name in ["d", "l", "missing"] {
        let error =
            get_file(&shell, text(&holder.path().join(name)), holder.path(), "back").await.unwrap_err();
        assert!(error.to_string().contains("no regular file"), "{error}");
    }
    get_tree(&shell, &holder.path().join("f"), &holder.path().join("back"), &[]).await.unwrap_err();
    // A file does not take the place of a directory, nor of what a link leads to.
    put_file(&shell, &holder.path().join("f"), text(&holder.path().join("d")), None).await.unwrap_err();
    symlink("d", holder.path().join("ld")).unwrap();
    put_file(&shell, &holder.path().join("f"), text(&holder.path().join("ld")), None).await.unwrap();
    assert!(fs::symlink_metadata(holder.path().join("ld")).unwrap().is_file());
}

#[tokio::test]
async fn patterns_leave_out_on_the_way_back_whatever_tar_the_sandbox_has() {
    for shell in Local::all() {
        let holder = tempfile::tempdir().unwrap();
        for path in ["keep.txt", "skip.log", "sub/skip.log", "sub/data", "a/deep/b", "node_modules/x"] {
            file(holder.path().join("sandbox").join(path), "x", 0o644);
        }
        let back = holder.path().join("back");
        get_tree(&shell, &holder.path().join("sandbox"), &back, &["*.log", "node_modules", "a*b"])
            .await
            .unwrap();
        let paths: Vec<PathBuf> = contents(&back).into_keys().collect();
        assert_eq!(paths, ["a", "a/deep", "keep.txt", "sub", "sub/data"].map(PathBuf::from));
        assert_eq!(fs::read_dir(holder.path().join("sandbox")).unwrap().count(), 5, "something was left");
    }
}

#[tokio::test]
async fn commands_after_an_upload_run_byte_for_byte_in_order_until_one_fails() {
    let shell = Local::gnu();
    let holder = tempfile::tempdir().unwrap();
    let command = |text: &str| PostUpload {
        command: text.into(),
        cwd: Some(text_of(holder.path())),
        timeout: Some(Duration::from_millis(7_000)),
    };
    post_upload(&shell, &command("printf %s 'quoted value' > out && echo $HOME >> out")).await.unwrap();
    assert!(fs::read_to_string(holder.path().join("out")).unwrap().starts_with("quoted value"));
    let line = shell.lines.lock().unwrap()[0].clone();
    assert_eq!(
        (line.text.as_str(), line.timeout),
        ("printf %s 'quoted value' > out && echo $HOME >> out", Some(Duration::from_secs(7)))
    );
    let error = post_upload(&shell, &command("echo only this; exit 3")).await.unwrap_err().to_string();
    assert!(error.contains("exit code 3") && error.contains("only this"), "{error}");
    let long =
        post_upload(&shell, &command("yes | head -c 100000 >&2; false")).await.unwrap_err().to_string();
    assert!(long.len() < 4_500, "{}", long.len());
}

fn text_of(path: &Path) -> String {
    text(path).to_owned()
}
