//! What breaks in the middle.

use crate::common::sandbox::until;
use crate::shop::Shop;
use leasehold_tests::engines::Engine;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

/// Starts a command that says `begun` first, and gives it back once it did.
fn begun(shop: &Shop<'_>, lease: &str, script: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command = shop.told(&["lease", "exec", lease, "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    (child, output)
}

fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

pub(crate) fn a_container_killed_under_a_command_is_told_and_leaves_nothing(shop: &Shop<'_>) {
    let lease = shop.acquired();
    let [id] = <[String; 1]>::try_from(shop.containers()).unwrap();
    let (child, _output) = begun(shop, &lease, "echo begun; sleep 4321");
    assert_eq!(shop.engine.ask("POST", &format!("/v1.41/containers/{id}/kill"), None).status, 204);
    let (code, error) = ended(child);
    assert_eq!(code, Some(125), "{error}");
    assert!(error.contains("stopped or killed from outside"), "{error}");
    shop.released(&lease);
}

pub(crate) fn an_engine_that_crashes_under_a_command_loses_no_exit_code(shared: &Shop<'_>) {
    // Not the one that other tests are at work with.
    let engine = Engine::start(shared.engine.kind()).unwrap();
    let shop = Shop::open(&engine);
    let lease = shop.acquired();
    let script =
        "echo begun; n=0; while [ ! -e go ] && [ $n -lt 600 ]; do n=$((n+1)); sleep 0.1; done; exit 7";
    let (child, mut output) = begun(&shop, &lease, script);
    engine.crash();
    // The stream ends with the engine, the command does not.
    engine.begin_again();
    assert_eq!(shop.exec(&lease, &["touch", "go"]).0, 0);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    let (code, error) = ended(child);
    assert_eq!(code, Some(7), "{error}");
    shop.released(&lease);
    shop.empty();
}

pub(crate) fn a_disk_that_is_full_is_said_so_and_the_target_is_as_it_was(shared: &Shop<'_>) {
    let engine = Engine::start_small(shared.engine.kind(), 64).unwrap();
    let shop = Shop::open(&engine);
    let project = shop.place.path().join("project");
    std::fs::write(project.join("large"), vec![1; 100 << 20]).unwrap();
    let lease = shop.acquired();
    assert_eq!(shop.exec(&lease, &["sh", "-c", "echo before > large"]).0, 0);
    let (code, output, error) = shop.tell(&["cp", "large", &format!("{lease}:/workspace/large")]);
    assert_eq!((code, output.as_str()), (1, ""), "{error}");
    assert!(error.contains("disk is full") && error.contains("disk_full"), "{error}");
    let after = shop.exec(&lease, &["sh", "-c", "cat large; ls -A"]);
    assert_eq!(after, (0, "before\nlarge\n".into(), String::new()));
    shop.released(&lease);
    shop.empty();
}

/// Whether a run has come to a step.
type Reached<'a> = &'a dyn Fn(&Shop<'_>) -> bool;

pub(crate) fn a_host_killed_at_any_step_leaves_nothing_after_a_reconcile(shop: &Shop<'_>) {
    // Long enough on its way that the host dies while it is.
    let file = std::fs::File::create(shop.place.path().join("project/file")).unwrap();
    file.set_len(300 << 20).unwrap();
    let environment = shop.environment.clone();
    let script = "echo begun; exec sleep 4321";
    let states = |shop: &Shop<'_>| -> Vec<String> {
        let one = |id: &String| {
            let found = shop.engine.ask("GET", &format!("/v1.41/containers/{id}/json"), None).json();
            found["State"]["Status"].as_str().unwrap_or_default().to_owned()
        };
        shop.containers().iter().map(one).collect()
    };
    let execs = |shop: &Shop<'_>| -> usize {
        let one = |id: &String| {
            let found = shop.engine.ask("GET", &format!("/v1.41/containers/{id}/json"), None).json();
            found["ExecIDs"].as_array().map_or(0, Vec::len)
        };
        shop.containers().iter().map(one).sum()
    };
    let steps: [(&str, Reached<'_>); 3] = [
        ("the container is there", &|shop| !shop.containers().is_empty()),
        ("it runs", &|shop| states(shop).iter().any(|state| state == "running")),
        ("something runs in it", &|shop| execs(shop) > 0),
    ];
    for (step, reached) in steps {
        let mut command = shop.told(&["run", "--environment", &environment, "--", "sh", "-c", script]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until(step, || reached(shop) || child.try_wait().unwrap().is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        until("a reconcile ends what is left", || {
            shop.tell(&["reconcile"]);
            shop.containers().is_empty()
        });
    }
    // And before anything was asked for, and while the command runs.
    let mut command = shop.told(&["run", "--environment", &environment, "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    child.kill().unwrap();
    child.wait().unwrap();
    until("a reconcile ends what is left", || {
        shop.tell(&["reconcile"]);
        shop.containers().is_empty()
    });
}
