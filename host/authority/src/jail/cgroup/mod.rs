//! Control groups, version 1 and 2, where the machine lets this user make one.
//!
//! Memory, processes and processor time are looked at one by one: a machine may have some in version 1
//! and some in version 2, and may refuse any.

mod door;
mod locate;

pub(super) use door::Door;
pub(super) use locate::{memory_allowed, processes_allowed};

use super::Bounds;
use locate::Trees;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A controller that holds a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Controller {
    Memory,
    Processes,
    Processor,
}

impl Controller {
    const fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Processes => "pids",
            Controller::Processor => "cpu",
        }
    }
}

/// One group that holds one bound or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Groups of one jail.
#[derive(Debug, Default)]
pub(super) struct Cgroups {
    held: BTreeMap<Controller, (PathBuf, Version)>,
    refused: BTreeMap<Controller, String>,
}

/// Microseconds of one accounting period, the kernel's own default; processor time is given out per period.
const PERIOD: u64 = 100_000;

/// Processes that a group allows above the bound: the jail's first process, and one more, by which the
/// host sees that the bound was passed.
pub(super) const SPARE_PROCESSES: u64 = 2;

/// Where groups of these bounds would be, so that they can be written down before they are made.
pub(super) fn planned(bounds: &Bounds, name: &str) -> Cgroups {
    let wanted: Vec<_> = [
        (Controller::Memory, bounds.memory_bytes.is_some()),
        (Controller::Processes, bounds.processes.is_some()),
        // Without a bound, too: a whole jail then gets as much of a processor as one process of the host.
        (Controller::Processor, true),
    ]
    .into_iter()
    .filter_map(|(controller, wanted)| wanted.then_some(controller))
    .collect();
    let mut parents = Trees::look().parents(&wanted);
    let mut groups = Cgroups::default();
    for controller in wanted {
        match parents.remove(&controller) {
            Some((parent, version)) => {
                groups.held.insert(controller, (parent.join(name), version));
            }
            None => {
                groups.refused.insert(controller, "no group of this machine hands it on".into());
            }
        }
    }
    groups
}

impl Cgroups {
    /// Every directory that is or would be made.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<_> = self.held.values().map(|(path, _)| path.clone()).collect();
        paths.dedup();
        paths
    }

    /// Why a controller is not in force.
    pub(super) fn refusals(&self) -> Option<String> {
        let texts: Vec<_> =
            self.refused.iter().map(|(controller, why)| format!("{}: {why}", controller.name())).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    pub(super) fn holds(&self, controller: Controller) -> bool {
        self.held.contains_key(&controller)
    }

    /// Makes the groups and sets the bounds. What is refused is noted.
    pub(super) fn make(&mut self, bounds: &Bounds) -> Door {
        let mut door = Door::default();
        for (controller, (path, version)) in std::mem::take(&mut self.held) {
            let opened = make(controller, &path, version)
                .and_then(|()| set(controller, &path, version, bounds))
                .and_then(|()| open(&path, version));
            match opened {
                Ok(handle) => {
                    match version {
                        Version::One => door.tasks.push((controller, handle)),
                        Version::Two => door.unified = Some(handle),
                    }
                    self.held.insert(controller, (path, version));
                }
                Err(error) => self.refuse(controller, &path, &error),
            }
        }
        door
    }

    /// Notes what could not be entered after all.
    pub(super) fn refused(&mut self, refused: Vec<(Controller, io::Error)>) {
        for (controller, error) in refused {
            if let Some((path, _)) = self.held.remove(&controller) {
                self.refuse(controller, &path, &error);
            }
        }
    }

    /// Moves a process into the group of version 2: the slow way, for a kernel that refuses to start it there.
    pub(super) fn move_process(&mut self, pid: i32) {
        let two = |(controller, (path, version)): (&Controller, &(PathBuf, Version))| {
            (*version == Version::Two).then(|| (*controller, path.join("cgroup.procs")))
        };
        let entered: Vec<_> = self.held.iter().filter_map(two).collect();
        let entered = entered.into_iter().map(|(one, file)| (one, std::fs::write(file, pid.to_string())));
        self.refused(entered.filter_map(|(one, done)| Some((one, done.err()?))).collect());
    }

    fn refuse(&mut self, controller: Controller, path: &Path, error: &io::Error) {
        // Empty, or not ours to begin with.
        let _ = std::fs::remove_dir(path);
        self.refused.insert(controller, format!("{}: {error}", path.display()));
    }

    /// How often the kernel ended a process because the memory bound was reached.
    pub(super) fn memory_kills(&self) -> u64 {
        let Some((path, version)) = self.held.get(&Controller::Memory) else { return 0 };
        let file = if *version == Version::One { "memory.oom_control" } else { "memory.events" };
        let text = std::fs::read_to_string(path.join(file)).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
    }

    /// How often the kernel refused a fork because of the bound on processes.
    pub(super) fn refused_forks(&self) -> u64 {
        let Some((path, _)) = self.held.get(&Controller::Processes) else { return 0 };
        let text = std::fs::read_to_string(path.join("pids.events")).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("max ")?.trim().parse().ok()).unwrap_or(0)
    }

    /// Processes and threads there are, the jail's first process among them.
    pub(super) fn processes(&self) -> Option<u64> {
        let (path, _) = self.held.get(&Controller::Processes)?;
        std::fs::read_to_string(path.join("pids.current")).ok()?.trim().parse().ok()
    }
}

fn make(controller: Controller, path: &Path, version: Version) -> io::Result<()> {
    if let (Version::Two, Some(parent)) = (version, path.parent()) {
        // Refused when the parent holds processes of its own; then so is the rest, and the caller falls back.
        let _ = std::fs::write(parent.join("cgroup.subtree_control"), format!("+{}", controller.name()));
    }
    match std::fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn open(path: &Path, version: Version) -> io::Result<OwnedFd> {
    Ok(match version {
        Version::One => {
            rustix::fs::open(path.join("tasks"), OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?
        }
        Version::Two => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open(path, flags, Mode::empty())?
        }
    })
}

fn set(controller: Controller, path: &Path, version: Version, bounds: &Bounds) -> io::Result<()> {
    let write = |file: &str, value: String| std::fs::write(path.join(file), value);
    match (controller, version) {
        (Controller::Memory, Version::One) => {
            let bytes = bounds.memory_bytes.unwrap_or(u64::MAX).to_string();
            write("memory.limit_in_bytes", bytes.clone())?;
            // Memory and swap together; absent where swap is not accounted.
            let _ = write("memory.memsw.limit_in_bytes", bytes);
            Ok(())
        }
        (Controller::Memory, Version::Two) => {
            write("memory.max", bounds.memory_bytes.unwrap_or(u64::MAX).to_string())?;
            let _ = write("memory.swap.max", "0".into());
            Ok(())
        }
        (Controller::Processes, _) => {
            write("pids.max", (u64::from(bounds.processes.unwrap_or(u32::MAX)) + SPARE_PROCESSES).to_string())
        }
        (Controller::Processor, version) => {
            let Some(millis) = bounds.cpu_millis else { return Ok(()) };
            let quota = u64::from(millis) * PERIOD / 1000;
            match version {
                Version::One => {
                    write("cpu.cfs_period_us", PERIOD.to_string())?;
                    write("cpu.cfs_quota_us", quota.to_string())
                }
                Version::Two => write("cpu.max", format!("{quota} {PERIOD}")),
            }
        }
    }
}

/// Tries, 2 ms apart, to remove a group whose last process was just taken away: the kernel lets go a moment
/// later, on a busy machine a long one. After two seconds the empty group stays.
const REMOVALS: u32 = 1000;

/// Removes groups. Returns those that will not go, for the jail's next clean-up.
pub(super) fn remove(paths: &[PathBuf]) -> Vec<PathBuf> {
    let stays = |path: &&PathBuf| {
        for _ in 0..REMOVALS {
            match std::fs::remove_dir(path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                _ => return false,
            }
        }
        true
    };
    paths.iter().filter(stays).cloned().collect()
}
