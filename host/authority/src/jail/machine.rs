//! What the host's machine has, of which a jail gets a part.

use super::{JailError, cgroup, error::io_at};
use std::path::Path;

/// What may be given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Machine {
    /// Bytes of memory, of the machine or of this process's control groups.
    pub(super) memory: u64,
    /// Processes and threads that may exist at one time.
    pub(super) processes: u32,
    /// Processors this process may use.
    pub(super) cpus: u32,
    /// Bytes free where jails are kept.
    pub(super) disk: u64,
    /// Bytes there that the jail already has.
    pub(super) used: u64,
}

impl Machine {
    /// Looks at the machine, with jails kept in `root`, for one whose files take `used` bytes.
    pub(super) fn look(root: &Path, used: u64) -> Result<Machine, JailError> {
        let space =
            rustix::fs::statvfs(root).map_err(|errno| io_at("look at the disk of", root)(errno.into()))?;
        let cpus =
            std::thread::available_parallelism().map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(1));
        let disk = space.f_bavail * space.f_frsize;
        Ok(Machine { memory: memory(), processes: processes(), cpus, disk, used })
    }
}

fn memory() -> u64 {
    let machine = rustix::system::sysinfo();
    let all = (machine.totalram as u64).saturating_mul(u64::from(machine.mem_unit.max(1)));
    cgroup::memory_allowed().map_or(all, |allowed| allowed.min(all))
}

fn processes() -> u32 {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    // A user's own bound does not count for root, whose jails are users of their own.
    let of_user = (!rustix::process::geteuid().is_root())
        .then(|| rustix::process::getrlimit(rustix::process::Resource::Nproc).current)
        .flatten();
    let bounds = [
        number("/proc/sys/kernel/pid_max"),
        number("/proc/sys/kernel/threads-max"),
        cgroup::processes_allowed(),
        of_user,
    ];
    let smallest = bounds.into_iter().flatten().min().unwrap_or(u64::from(u32::MAX));
    u32::try_from(smallest).unwrap_or(u32::MAX)
}
