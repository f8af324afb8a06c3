//! Leases.

use crate::shop::Shop;
use std::process::Stdio;

pub(crate) fn a_lease_is_labelled_stopped_with_its_files_and_taken_up_again(shop: &Shop<'_>) {
    let lease = shop.acquired();
    let [id] = <[String; 1]>::try_from(shop.containers()).unwrap();
    let inspected = shop.engine.ask("GET", &format!("/v1.41/containers/{id}/json"), None).json();
    let labels = &inspected["Config"]["Labels"];
    assert_eq!(labels["leasehold.environment"], shop.environment.as_str());
    assert_eq!(labels["leasehold.creation"], lease.as_str());
    assert_eq!(labels["leasehold.tenant"], "local");
    assert_eq!(shop.exec(&lease, &["sh", "-c", "echo kept > file"]).0, 0);
    let (code, _, said) = shop.tell(&["lease", "stop", &lease]);
    assert_eq!(code, 0, "{said}");
    let state = &shop.engine.ask("GET", &format!("/v1.41/containers/{id}/json"), None).json()["State"];
    assert_eq!(state["Running"], false);
    let folder = shop.place.path().join("project/out");
    let (code, _, said) = shop.tell(&["lease", "export", &lease, folder.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(std::fs::read_to_string(folder.join("file")).unwrap(), "kept\n");
    let (code, _, said) = shop.tell(&["lease", "destroy", &lease]);
    assert_eq!(code, 0, "{said}");
}

pub(crate) fn what_is_gone_is_gone_and_what_is_stopped_is_said_so(shop: &Shop<'_>) {
    let lease = shop.acquired();
    let [id] = <[String; 1]>::try_from(shop.containers()).unwrap();
    assert_eq!(shop.engine.ask("POST", &format!("/v1.41/containers/{id}/stop?t=1"), None).status, 204);
    let (code, _, error) = shop.exec(&lease, &["true"]);
    // It is either taken up again or said to be stopped, never run in something else.
    assert!(code == 0 || (code == 125 && error.contains("does not run")), "{code} {error}");
    assert_eq!(shop.engine.ask("DELETE", &format!("/v1.41/containers/{id}?force=true"), None).status, 204);
    let (code, _, error) = shop.exec(&lease, &["true"]);
    assert!(code == 125 && error.contains("no longer knows the allocation"), "{code} {error}");
    shop.tell(&["lease", "release", &lease]);
}

/// Leases at one time. Each has four processes on this machine, and a machine has room for so many.
const AT_ONCE: usize = 20;

pub(crate) fn many_leases_at_once_leave_nothing(shop: &Shop<'_>) {
    let mut left = 100;
    while left > 0 {
        let now = left.min(AT_ONCE);
        left -= now;
        let running: Vec<_> = (0..now)
            .map(|number| {
                let environment = shop.environment.clone();
                let script = format!("echo {number}; exit {}", number % 100);
                let arguments =
                    ["run", "--environment", &environment, "--no-sync", "--", "sh", "-c", &script];
                let mut command = shop.told(&arguments);
                (number, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
            })
            .collect();
        for (number, child) in running {
            let output = child.wait_with_output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), i32::try_from(number % 100).ok(), "{error}");
            assert_eq!(output.stdout, format!("{number}\n").into_bytes());
        }
    }
}
