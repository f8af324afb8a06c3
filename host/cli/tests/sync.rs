//! `leasehold sync` and `leasehold cp`, on a real lease.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Home(tempfile::tempdir().unwrap())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command
            .args(arguments)
            .env("XDG_STATE_HOME", self.0.path().join("state"))
            .env("XDG_CACHE_HOME", self.0.path().join("cache"));
        command.current_dir(self.0.path());
        command
    }

    fn output(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    }

    /// What a command says that has to succeed.
    fn said(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments, b"");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {error}");
        assert_eq!(error, "", "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What a command says that has to fail.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments, b"");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.0.path().join(path)).unwrap()
    }
}

#[test]
fn files_and_folders_move_in_and_out_of_a_lease_and_are_copied() {
    let home = Home::new();
    home.write("folder/a.txt", "one");
    home.write("folder/sub/b.log", "two");
    home.write("file", "three");
    let lease = home.said(&["lease", "acquire"]).trim().to_owned();
    let exec = |script: &str| home.said(&["lease", "exec", &lease, "--", "sh", "-c", script]);

    let dry = home.said(&["sync", "in", &lease, "folder", "/workspace/f", "--exclude", "*.log", "--dry-run"]);
    assert!(
        dry.contains("send  a.txt (3 bytes)") && dry.contains("leave sub/b.log: excluded by a pattern"),
        "{dry}"
    );
    assert_eq!(exec("ls -A"), "");
    assert_eq!(home.said(&["sync", "in", &lease, "folder", "/workspace/f", "--exclude", "*.log"]), "");
    assert_eq!(
        home.said(&["sync", "in", &lease, "file", "/workspace/g", "--mode", "600", "--json"]),
        "{\"files\":1,\"bytes\":5}\n"
    );
    assert_eq!(exec("find f g -printf '%p %m\\n' | sort"), "f 755\nf/a.txt 644\nf/sub 755\ng 600\n");
    assert_eq!(home.said(&["sync", "in", &lease, "folder", "/workspace/f", "--over-commands"]), "");
    assert_eq!(exec("cat f/sub/b.log"), "two");

    assert_eq!(home.said(&["sync", "out", &lease, "/workspace/f", "back"]), "");
    assert_eq!((home.read("back/a.txt"), home.read("back/sub/b.log")), ("one".into(), "two".into()));
    exec("rm f/a.txt; echo new > f/c");
    assert_eq!(home.said(&["sync", "out", &lease, "/workspace/f", "back", "--over-commands"]), "");
    assert_eq!((home.read("back/c"), home.0.path().join("back/a.txt").exists()), ("new\n".into(), false));

    // As `docker cp`: into a folder, to a new name, as an archive, and an archive into a folder of the lease.
    fs::create_dir(home.0.path().join("into")).unwrap();
    let at = |path: &str| format!("{lease}:{path}");
    home.said(&["cp", &at("/workspace/f"), "into"]);
    home.said(&["cp", &at("/workspace/g"), "into"]);
    home.said(&["cp", &at("/workspace/g"), "renamed"]);
    assert_eq!(
        (home.read("into/f/c"), home.read("into/g"), home.read("renamed")),
        ("new\n".into(), "three".into(), "three".into())
    );
    let refused = home.refused(&["cp", &at("/workspace/f"), "into"]);
    assert!(refused.contains("is there already"), "{refused}");
    let archive = home.output(&["cp", &at("/workspace/f"), "-"], b"").stdout;
    home.said(&["cp", "file", &at("/workspace/f")]);
    assert_eq!(exec("cat f/file"), "three");
    let unpacked = home.output(&["cp", "-", &at("/workspace")], &archive);
    assert!(unpacked.status.success(), "{}", String::from_utf8_lossy(&unpacked.stderr));
    let mut tar =
        Command::new("tar").args(["-tf", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    tar.stdin.take().unwrap().write_all(&archive).unwrap();
    let listed = String::from_utf8(tar.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(listed.lines().collect::<Vec<_>>(), ["f/", "f/c", "f/sub/", "f/sub/b.log"]);

    for (arguments, said) in [
        (vec!["sync", "in", &lease, "missing", "/workspace/x"], "missing"),
        (vec!["sync", "in", &lease, "file", "relative"], "not a confined absolute path"),
        (vec!["sync", "in", &lease, "folder", "/"], "`/` is no such target"),
        (vec!["sync", "out", &lease, "/workspace/none", "x"], "no file and no folder"),
        (vec!["cp", "file", "back"], "has to be a lease"),
    ] {
        let refused = home.refused(&arguments);
        assert!(refused.contains(said), "{arguments:?}: {refused}");
    }
    home.said(&["lease", "destroy", &lease]);
    assert_eq!(fs::metadata(home.0.path().join("renamed")).unwrap().permissions().mode() & 0o777, 0o644);
    assert!(
        !Path::new(&home.0.path().join("state/leasehold/scratch"))
            .read_dir()
            .is_ok_and(|mut notes| notes.next().is_some())
    );
}
