//! What apt knows and fetches. Needs no root, except for refreshing the lists.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{output, say};

/// The compiler's package. Debian builds it beside its ordinary `rustc` and keeps it much newer.
const COMPILER: &str = "rustc-web";
/// The sources of the standard library that belong to it.
const SOURCES: &str = "rust-web-src";
/// The package that names the current standard library of the host.
const STANDARD_LIBRARY: &str = "libstd-rust-web-dev";

/// Whether this is a system with apt and dpkg.
pub(super) fn is_here() -> bool {
    ["apt-get", "apt-cache", "dpkg"].iter().all(|name| Command::new(name).arg("--version").output().is_ok())
}

/// The version that apt would fetch; none when its lists have none.
pub(super) fn version() -> Option<String> {
    parse_candidate(&output(Command::new("apt-cache").args(["policy", COMPILER])).ok()?)
}

/// Refreshes the package lists, which are often missing in a container and stale in an image.
pub(super) fn refresh() -> Result<()> {
    say("guests: refreshing the package lists");
    output(get().args(["-qq", "update"])).map(drop)
}

/// Fetches the packages of this version and what they need that the system does not have.
pub(super) fn download(version: &str, into: &Path) -> Result<()> {
    let library = depends(STANDARD_LIBRARY, "libstd-rust-web-")?;
    let llvm = depends(&library, "libllvm")?;
    let z3 = depends(&llvm, "libz3-")?;
    let mut packages: Vec<String> = [COMPILER, SOURCES, STANDARD_LIBRARY, &library]
        .iter()
        .map(|name| format!("{name}={version}"))
        .collect();
    packages.extend([llvm, z3]);
    // A small system may lack more libraries. A simulation that fails tells us nothing, which is fine.
    let simulated =
        output(get().args(["-s", "--no-install-recommends", "install", COMPILER])).unwrap_or_default();
    packages.extend(parse_missing_libraries(&simulated));
    packages.sort();
    packages.dedup();
    output(get().args(["-qq", "download"]).args(&packages).current_dir(into)).map(drop)
}

/// `apt-get` with bounded patience, and without its warning that its own user cannot see our directory.
fn get() -> Command {
    let mut command = Command::new("apt-get");
    for option in ["APT::Sandbox::User=root", "Acquire::Retries=2", "Acquire::http::Timeout=60"] {
        command.args(["-o", option]);
    }
    command
}

fn depends(package: &str, prefix: &str) -> Result<String> {
    parse_dependency(&output(Command::new("apt-cache").args(["depends", package]))?, prefix)
        .with_context(|| format!("{package} does not depend on any {prefix}…"))
}

fn parse_candidate(policy: &str) -> Option<String> {
    let version = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate:"))?.trim();
    (version != "(none)").then(|| version.to_string())
}

fn parse_dependency(depends: &str, prefix: &str) -> Option<String> {
    let names = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends:"));
    names.map(str::trim).find(|name| name.starts_with(prefix)).map(str::to_string)
}

/// Libraries that a simulated installation would add, apart from those named by [`download`] itself.
fn parse_missing_libraries(simulated: &str) -> Vec<String> {
    let names = simulated.lines().filter_map(|line| line.strip_prefix("Inst ")?.split_whitespace().next());
    names
        .filter(|name| name.starts_with("lib") && !name.starts_with("libstd-rust") && !name.ends_with("-dev"))
        .map(str::to_string)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_candidate_is_read_from_the_policy() {
        let policy =
            "rustc-web:\n  Installed: (none)\n  Candidate: 1.96.0+dfsg1-1~deb12u2\n  Version table:\n";
        assert_eq!(parse_candidate(policy).as_deref(), Some("1.96.0+dfsg1-1~deb12u2"));
        assert_eq!(parse_candidate("rustc-web:\n  Installed: (none)\n  Candidate: (none)\n"), None);
        assert_eq!(parse_candidate(""), None);
    }

    #[test]
    fn only_real_dependencies_count() {
        let text =
            "libstd-rust-web-dev\n  Conflicts: libstd-rust-web-1.85\n  Depends: libstd-rust-web-1.96\n";
        assert_eq!(parse_dependency(text, "libstd-rust-web-").as_deref(), Some("libstd-rust-web-1.96"));
        assert_eq!(parse_dependency(text, "libllvm"), None);
    }

    #[test]
    fn missing_libraries_are_those_that_would_be_installed() {
        let text = "Inst libllvm19 (1:19.1.7-3 Debian:12.14 [amd64])\nInst libstd-rust-web-1.85 (1 [amd64])\n\
                    Inst libxml2 (2.9 [amd64])\nInst libstd-rust-web-dev (1 [amd64])\nInst rustc-web (1 [amd64])\n\
                    Conf libedit2 (3 [amd64])\n";
        assert_eq!(parse_missing_libraries(text), ["libllvm19", "libxml2"]);
    }
}
