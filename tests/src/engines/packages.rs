//! The packages an engine comes in.

use super::Kind;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// The program that makes the image, beside every engine's own.
const BUSYBOX: &str = "/bin/busybox";

/// Installs what is missing. Quick when nothing is.
pub(super) fn ready(kind: Kind) -> Result<(), String> {
    let (program, packages): (_, &[&str]) = match kind {
        Kind::Podman => ("podman", &["podman", "crun", "netavark", "busybox-static"]),
        Kind::Docker => ("dockerd", &["docker.io", "iptables", "busybox-static"]),
    };
    if !is_root() {
        return Err("engines are started as root".into());
    }
    if there(program) && Path::new(BUSYBOX).exists() {
        return Ok(());
    }
    // One at a time: the system's package manager has a lock and gives up at once.
    let lock = std::env::temp_dir().join("leasehold-packages.lock");
    let lock = File::create(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    lock.lock().map_err(|error| error.to_string())?;
    if there(program) && Path::new(BUSYBOX).exists() {
        return Ok(());
    }
    apt(&["update", "-q"])?;
    let install = ["install", "-y", "-q", "--no-install-recommends"];
    apt(&[&install, packages].concat())
}

fn apt(arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("apt-get: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("apt-get {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).exists())
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}
