//! Makes the toolchain that [`super::debian`] looks for.

use std::fs;
use std::os::unix;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::debian::{DONE, TARGET};
use super::{apt, cargo, flags, output, program, say};

/// Tools that Debian's compiler looks for and that only rustup's toolchain has.
const TOOLS: [&str; 3] = ["rust-lld", "gcc-ld", "wasm-component-ld"];
/// Where Debian puts all sources; nothing needs them once the standard library is built.
const SOURCES: &str = "usr/src";

/// Counts the ways in which toolchains were made. To be raised with every change here that makes an older
/// toolchain unfit.
const RECIPE: &str = ".r1";

/// The toolchain in use, as far as it is borrowed from.
pub(super) struct Tools {
    host: String,
    pub(super) directory: PathBuf,
}

pub(super) fn tools() -> Result<Tools> {
    let rustc = || Command::new(program("RUSTC", "rustc"));
    let sysroot = output(rustc().args(["--print", "sysroot"]))?;
    let host = parse_host(&output(rustc().arg("-vV"))?).context("rustc does not say its host")?;
    let directory = Path::new(sysroot.trim()).join("lib/rustlib").join(&host).join("bin");
    for tool in TOOLS {
        let path = directory.join(tool);
        if !path.exists() {
            bail!("{} is missing; use a toolchain from rustup (`rustup default stable`)", path.display());
        }
    }
    Ok(Tools { host, directory })
}

/// Makes the toolchain beside its place, so that its place never holds half of one.
pub(super) fn make(home: &Path, mut version: String, refreshed: bool, tools: &Tools) -> Result<PathBuf> {
    let making = home.join("making");
    remove(&making)?;
    let packages = making.join("packages");
    fs::create_dir_all(&packages)?;
    say(&format!("guests: fetching Debian's Rust {version}, about 140 MB (once)"));
    if let Err(first) = apt::download(&version, &packages) {
        if refreshed {
            return Err(first);
        }
        // Mirrors drop old versions, so lists that are a few weeks old name files that are gone.
        let lists = apt::refresh();
        remove(&packages)?;
        fs::create_dir_all(&packages)?;
        version = apt::version().context("apt no longer knows rustc-web after refreshing its lists")?;
        apt::download(&version, &packages).with_context(|| match lists {
            Ok(()) => format!("the first attempt failed with: {first:#}"),
            Err(error) => format!("the lists cannot be refreshed: {error:#}"),
        })?;
    }
    for entry in fs::read_dir(&packages)? {
        output(Command::new("dpkg").arg("-x").arg(entry?.path()).arg(&making))?;
    }
    remove(&packages)?;
    write_compiler_script(&making)?;
    link_tools(&making, tools)?;
    output(Command::new(making.join("bin/rustc")).arg("-V")).context(
        "Debian's compiler does not run; `apt-get install --no-install-recommends rustc-web` brings what it needs",
    )?;
    say("guests: building the standard library for WebAssembly, about a minute (once)");
    build_standard_library(&making)?;
    remove(&making.join(SOURCES))?;
    fs::write(making.join(DONE), &version)?;

    let prefix = home.join(directory_name(&version));
    remove(&prefix)?;
    fs::rename(&making, &prefix).with_context(|| format!("moving the toolchain to {}", prefix.display()))?;
    Ok(prefix)
}

/// The compiler's libraries are in the prefix too, so it starts through a script that says where.
fn write_compiler_script(prefix: &Path) -> Result<()> {
    let libraries = fs::read_dir(prefix.join("usr/lib"))?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .find(|name| name.ends_with("-linux-gnu"))
        .context("the packages hold no libraries")?;
    let script = format!(
        "#!/bin/sh\nhere=${{0%/bin/rustc}}\n\
         LD_LIBRARY_PATH=$here/usr/lib/{libraries} exec \"$here/usr/bin/rustc\" \"$@\"\n"
    );
    let path = prefix.join("bin/rustc");
    fs::create_dir_all(prefix.join("bin"))?;
    fs::write(&path, script)?;
    let mode = unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&path, mode).map_err(Into::into)
}

/// Points at the tools of the toolchain in use, which may have changed since the last time.
pub(super) fn link_tools(prefix: &Path, tools: &Tools) -> Result<()> {
    let directory = prefix.join("usr/lib/rustlib").join(&tools.host).join("bin");
    fs::create_dir_all(&directory)?;
    for tool in TOOLS {
        let (link, aim) = (directory.join(tool), tools.directory.join(tool));
        if fs::read_link(&link).ok().as_ref() != Some(&aim) {
            _ = fs::remove_file(&link);
            unix::fs::symlink(&aim, &link).with_context(|| format!("linking {}", link.display()))?;
        }
    }
    Ok(())
}

fn build_standard_library(prefix: &Path) -> Result<()> {
    let work = prefix.join("work");
    fs::create_dir_all(work.join("src"))?;
    fs::write(work.join("src/lib.rs"), "#![no_std]\n")?;
    let manifest = "[package]\nname = \"standard-library\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
                    [workspace]\n[profile.release]\npanic = \"abort\"\n";
    fs::write(work.join("Cargo.toml"), manifest)?;
    // With bitcode, guests can optimise across crates.
    let flags = flags(&["-Cembed-bitcode=yes"], prefix, "/rust");
    output(
        cargo()
            .args(["build", "--quiet", "--release", "--target", TARGET, "-Zbuild-std=std,panic_abort"])
            .current_dir(&work)
            .env("RUSTC", prefix.join("bin/rustc"))
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_ENCODED_RUSTFLAGS", flags)
            .env("CARGO_TARGET_DIR", work.join("target")),
    )?;
    let libraries = prefix.join("usr/lib/rustlib").join(TARGET).join("lib");
    fs::create_dir_all(&libraries)?;
    for entry in fs::read_dir(work.join("target").join(TARGET).join("release/deps"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".rlib") && !name.starts_with("libstandard_library") {
            fs::copy(&path, libraries.join(name))?;
        }
    }
    remove(&work)
}

fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Where a toolchain of this version goes; a colon would split a list of library directories.
fn directory_name(version: &str) -> String {
    version.replace([':', '/'], "_") + RECIPE
}

/// Whether a directory was made as [`make`] would make it now.
pub(super) fn is_by_this_recipe(directory: &Path) -> bool {
    directory.to_string_lossy().ends_with(RECIPE)
}

fn parse_host(version: &str) -> Option<String> {
    version.lines().find_map(|line| line.strip_prefix("host: ")).map(|host| host.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_from_the_compilers_version() {
        let version = "rustc 1.95.0 (abc 2026-04-14)\nbinary: rustc\nhost: aarch64-unknown-linux-gnu\nrelease: 1.95.0\n";
        assert_eq!(parse_host(version).as_deref(), Some("aarch64-unknown-linux-gnu"));
        assert_eq!(parse_host("rustc 1.95.0"), None);
    }

    #[test]
    fn a_version_becomes_a_directory_name_without_a_colon() {
        assert_eq!(directory_name("2:1.96.0+dfsg1-1~deb12u2"), "2_1.96.0+dfsg1-1~deb12u2.r1");
    }
}
