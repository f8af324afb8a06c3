//! What a jail uses, as far as the host can see it.

use super::error::{Limit, LimitHit};
use super::running::Running;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering;

/// How deep directories are followed. Real trees stay below a few dozen; without an end a program could
/// take every handle of the host. Deeper ones cannot be measured, so they end the jail.
const DEEPEST: u64 = 128;

/// The jail's first process is one of ours and not counted.
const OURS: u64 = 1;

/// Processes of the jail, by name of their directory in its /proc.
fn processes_of(running: &Running) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // Opened again: a shared handle has one position for all who read.
    let listing = rustix::fs::openat(&running.proc, c".", flags, Mode::empty()).and_then(Dir::new);
    let names = listing.into_iter().flatten().flatten();
    names
        .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && name != "1")
        .collect()
}

fn read(at: BorrowedFd<'_>, path: &str) -> Option<String> {
    let file = rustix::fs::openat(at, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut bytes = Vec::new();
    std::fs::File::from(file).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether nothing runs in it and nothing is about to.
pub(super) fn idle(running: &Running) -> bool {
    running.commands.load(Ordering::Acquire) == 0 && processes_of(running).is_empty()
}

/// Processes and threads. When the processes alone are more than the bound, their threads are not looked up.
pub(super) fn processes(running: &Running, bound: u64) -> u64 {
    if let Some(counted) = running.cgroups.processes() {
        return counted.saturating_sub(OURS);
    }
    let names = processes_of(running);
    if names.len() as u64 > bound {
        return names.len() as u64;
    }
    let threads = |name: &String| {
        let stat = read(running.proc.as_fd(), &format!("{name}/stat"))?;
        stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(17)?.parse::<u64>().ok()
    };
    names.iter().filter_map(threads).sum()
}

/// Memory of all processes and of the shared memory file system.
///
/// First the quick sum, which counts memory that processes share after a fork once for each; only where
/// that passes the bound the kernel is asked for proportional figures, which cost much more. What no
/// process has mapped (a memory file nobody looks at) is not seen; a control group sees it.
pub(super) fn memory(running: &Running, bound: u64) -> Option<u64> {
    let page = rustix::param::page_size() as u64;
    let names = processes_of(running);
    let shared = rustix::fs::fstatvfs(&running.shared)
        .map_or(0, |space| (space.f_blocks - space.f_bfree) * space.f_frsize);
    let quick = |name: &String| {
        let text = read(running.proc.as_fd(), &format!("{name}/statm"))?;
        let mut fields = text.split_ascii_whitespace().skip(1).map(|field| field.parse::<u64>().ok());
        let (resident, of_files) = (fields.next()??, fields.next()??);
        Some(resident.saturating_sub(of_files) * page)
    };
    let sum = shared + names.iter().filter_map(quick).sum::<u64>();
    if sum <= bound {
        return Some(sum);
    }
    let proportional = |name: &String| {
        let text = read(running.proc.as_fd(), &format!("{name}/smaps_rollup"))?;
        let field = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        };
        Some((field("Pss_Anon:")? + field("Pss_Shmem:")?) << 10)
    };
    // A process that may not be asked counts as it did before.
    Some(shared + names.iter().filter_map(|name| proportional(name).or_else(|| quick(name))).sum::<u64>())
}

/// Bytes that the jail's directories take on the disk.
pub(super) fn disk(files: &Path) -> Result<u64, LimitHit> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(files, flags, Mode::empty()) {
        Ok(files) => blocks(files, 1),
        Err(_) => Ok(0),
    }
}

fn blocks(directory: OwnedFd, depth: u64) -> Result<u64, LimitHit> {
    /// The kernel counts in these, whatever the file system's own block is.
    const BLOCK: u64 = 512;
    if depth > DEEPEST {
        return Err(LimitHit { which: Limit::Depth, allowed: DEEPEST, at: depth });
    }
    let mut sum = rustix::fs::fstat(&directory).map_or(0, |stat| stat.st_blocks.cast_unsigned() * BLOCK);
    // What vanishes while it is counted takes no space.
    let Ok(entries) = Dir::read_from(&directory) else { return Ok(sum) };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let Ok(stat) = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            if let Ok(below) = rustix::fs::openat(&directory, name, flags, Mode::empty()) {
                sum += blocks(below, depth + 1)?;
            }
        } else {
            sum += stat.st_blocks.cast_unsigned() * BLOCK;
        }
    }
    Ok(sum)
}
