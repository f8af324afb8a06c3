//! A command in the form the jail's first process needs it: all texts and lists ready in one piece of
//! memory, so that nothing has to be allocated there.
//!
//! ```text
//! u64  offset of the working directory
//! u64  number of paths to try      u64  number of arguments      u64  number of variables
//! u64… offsets of the paths, of the arguments, 0, of the variables, 0
//! texts, each with its final zero byte
//! ```

use super::error::io_at;
use super::{Command, JailError};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;

/// Where programs are looked for when the command says nothing.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The home of the jail's user when the command says nothing.
const HOME: &str = "/home";
/// The working directory when the command says nothing.
const DIRECTORY: &str = "/workspace";

/// Writes the launch of a command. Returns the memory and its size.
pub(super) fn write(command: &Command) -> Result<(OwnedFd, u64), JailError> {
    let bytes = encode(command)?;
    let failed = io_at("make the launch of a command in", "memory");
    let written = memfd_create(c"leasehold-launch", MemfdFlags::CLOEXEC).map_err(std::io::Error::from);
    let file = written.and_then(|handle| {
        let mut file = File::from(handle);
        file.write_all(&bytes)?;
        Ok(file)
    });
    Ok((file.map_err(failed)?.into(), bytes.len() as u64))
}

fn encode(command: &Command) -> Result<Vec<u8>, JailError> {
    let refuse = |reason: &str| Err(JailError::Command { reason: reason.into() });
    let Some(program) = command.argv.first().filter(|program| !program.is_empty()) else {
        return refuse("its argument vector is empty; the first argument is the program");
    };
    let directory = command.cwd.as_deref().unwrap_or(DIRECTORY);
    if !directory.starts_with('/') {
        return refuse("its working directory must be absolute");
    }
    let mut environment = Vec::with_capacity(command.env.len() + 2);
    let mut path = None;
    for (name, value) in &command.env {
        if name.is_empty() || name.contains('=') {
            return refuse(&format!("`{name}` cannot name an environment variable"));
        }
        path = if name == "PATH" { Some(value.as_str()) } else { path };
        environment.push(format!("{name}={value}"));
    }
    for (name, value) in [("PATH", PATH), ("HOME", HOME)] {
        if command.env.iter().all(|(given, _)| given != name) {
            environment.push(format!("{name}={value}"));
        }
    }
    let paths: Vec<String> = if program.contains('/') {
        vec![program.clone()]
    } else {
        let search = path.unwrap_or(PATH).split(':').filter(|directory| directory.starts_with('/'));
        search.map(|directory| format!("{directory}/{program}")).collect()
    };
    let texts = || paths.iter().chain(&command.argv).chain(&environment).map(String::as_str);
    if texts().chain([directory]).any(|text| text.contains('\0')) {
        return refuse("a zero byte cannot be part of an argument, a variable or a path");
    }
    let head = 8 * (4 + texts().count() + 2);
    let mut offset = head as u64;
    let mut next = |text: &str| {
        let at = offset;
        offset += text.len() as u64 + 1;
        at
    };
    let mut words = vec![0, paths.len() as u64, command.argv.len() as u64, environment.len() as u64];
    words.extend(paths.iter().map(|text| next(text)));
    words.extend(command.argv.iter().map(|text| next(text)));
    words.push(0);
    words.extend(environment.iter().map(|text| next(text)));
    words.push(0);
    let directory_at = next(directory);
    let mut bytes = Vec::with_capacity(head);
    for (index, word) in words.into_iter().enumerate() {
        bytes.extend_from_slice(&if index == 0 { directory_at } else { word }.to_ne_bytes());
    }
    for text in texts().chain([directory]) {
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    }
    Ok(bytes)
}
