//! New processes by the bare system call.
//!
//! `libc::fork` would run handlers that other libraries registered, and take locks; the bare call makes
//! the copy and nothing else.

use super::last_error;
use rustix::io::Errno;
use rustix::process::Pid;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// Which namespaces a process gets, as the kernel's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::jail) struct Namespaces(i32);

impl Namespaces {
    pub(in crate::jail) const USER: Namespaces = Namespaces(libc::CLONE_NEWUSER);
    pub(in crate::jail) const MOUNT: Namespaces = Namespaces(libc::CLONE_NEWNS);
    pub(in crate::jail) const PID: Namespaces = Namespaces(libc::CLONE_NEWPID);
    pub(in crate::jail) const IPC: Namespaces = Namespaces(libc::CLONE_NEWIPC);
    pub(in crate::jail) const UTS: Namespaces = Namespaces(libc::CLONE_NEWUTS);
    pub(in crate::jail) const NETWORK: Namespaces = Namespaces(libc::CLONE_NEWNET);
    pub(in crate::jail) const NONE: Namespaces = Namespaces(0);

    pub(in crate::jail) fn with(self, other: Namespaces) -> Namespaces {
        Namespaces(self.0 | other.0)
    }
}

/// A flag of `clone3` above those that fit the C library's type.
const INTO_CGROUP: u64 = 0x2_0000_0000;

/// The two sides of a fork.
pub(in crate::jail) enum Fork {
    Child,
    Parent(Pid),
}

/// Starts the first process of a jail in new namespaces and runs `body` in it.
///
/// It is made without a signal for its end: a host that waits for "any child" never sees it, and its own
/// handler of child signals is left alone. It is waited for by its handle.
///
/// With a control group of version 2 it is born in that group. `body` follows the rules of this module: no
/// allocation, no lock, no panic.
pub(in crate::jail) fn spawn_init<A: ?Sized>(
    namespaces: Namespaces,
    group: Option<BorrowedFd<'_>>,
    body: fn(&A) -> !,
    argument: &A,
) -> Result<(Pid, OwnedFd), Errno> {
    let mut handle: libc::c_int = -1;
    let flags = libc::c_long::from(namespaces.0) | libc::c_long::from(libc::CLONE_PIDFD);
    let pid = match group {
        // SAFETY: without CLONE_VM the child has its own copy of memory and goes on on a copy of this
        // stack; the kernel writes the handle to `handle`, which outlives the call.
        None => unsafe { libc::syscall(libc::SYS_clone, flags, 0, &raw mut handle, 0, 0) },
        Some(group) => {
            // SAFETY: all bytes zero is a valid value of this plain record.
            let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
            arguments.flags = flags.cast_unsigned() | INTO_CGROUP;
            arguments.pidfd = (&raw mut handle) as u64;
            arguments.cgroup = u64::from(group.as_raw_fd().cast_unsigned());
            // SAFETY: as above; the kernel reads the record of the size given.
            unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) }
        }
    };
    match i32::try_from(pid) {
        Ok(0) => body(argument),
        Ok(pid) if pid > 0 => {
            let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
            // SAFETY: the kernel just made this descriptor for us and nobody else knows its number.
            Ok((pid, unsafe { OwnedFd::from_raw_fd(handle) }))
        }
        _ => Err(last_error()),
    }
}

/// Whether the kernel would make these namespaces; the child that shows it ends at once.
pub(in crate::jail) fn try_namespaces(namespaces: Namespaces) -> Result<(), Errno> {
    let (_, handle) = spawn_init::<()>(namespaces, None, |()| exit(0), &())?;
    let all = rustix::process::WaitIdOptions::from_bits_retain(libc::__WALL.cast_unsigned());
    let options = rustix::process::WaitIdOptions::EXITED | all;
    rustix::process::waitid(rustix::process::WaitId::PidFd(std::os::fd::AsFd::as_fd(&handle)), options)?;
    Ok(())
}

/// An ordinary fork, for the jail's first process, which has a single thread.
pub(in crate::jail) fn fork() -> Result<Fork, Errno> {
    // SAFETY: as above; the caller has one thread, and the child only prepares and executes a program.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::c_long::from(libc::SIGCHLD), 0, 0, 0, 0) };
    match i32::try_from(pid) {
        Ok(0) => Ok(Fork::Child),
        Ok(pid) if pid > 0 => Pid::from_raw(pid).map(Fork::Parent).ok_or(Errno::SRCH),
        _ => Err(last_error()),
    }
}

/// Ends this process without running anything that was registered for its end.
pub(in crate::jail) fn exit(code: i32) -> ! {
    // SAFETY: `_exit` is allowed in any state and does not return.
    unsafe { libc::_exit(code) }
}

/// A child that ended and was not yet taken away.
pub(in crate::jail) struct EndedChild {
    pub(in crate::jail) pid: Pid,
    /// The code, or the signal.
    pub(in crate::jail) status: i32,
    pub(in crate::jail) by_signal: bool,
}

/// The next child that ended, if any. With `keep` it stays, so that its number stays taken.
pub(in crate::jail) fn ended_child(keep: bool) -> Option<EndedChild> {
    let options = libc::WEXITED | libc::WNOHANG | if keep { libc::WNOWAIT } else { 0 };
    // SAFETY: all bytes zero is a valid value of this plain record.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes to `info`, which outlives the call.
    let answer = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, options) };
    if answer != 0 {
        return None;
    }
    // SAFETY: for this call the kernel filled in the fields of a child, or left zeros.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    Some(EndedChild { pid: Pid::from_raw(pid)?, status, by_signal: info.si_code != libc::CLD_EXITED })
}

/// Closes every descriptor above the standard ones but these, which must be in ascending order.
pub(in crate::jail) fn close_all_but<const N: usize>(keep: [i32; N]) {
    let close = |first: i32, last: u32| {
        let first = first.cast_unsigned();
        if first <= last {
            // SAFETY: this process is a copy that uses no other descriptor; their owners in the copied
            // memory are never dropped, because this process only ends by `exit` or an exec.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    };
    let mut next = 3;
    for kept in keep {
        if kept >= next {
            close(next, (kept - 1).cast_unsigned());
            next = kept + 1;
        }
    }
    close(next, u32::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};
    use std::os::fd::AsFd as _;

    /// Where a tree of version 2 is mounted and this user may make a group in it; elsewhere the kernel's
    /// answer is all there is to test.
    #[test]
    fn a_process_is_born_in_the_group_it_is_given() {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let top = mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (at, kind) = (fields.next()?, fields.next()?);
            (kind == "cgroup2").then(|| std::path::PathBuf::from(at))
        });
        let Some(group) = top.map(|top| top.join(format!("leasehold-test-{}", std::process::id()))) else {
            return;
        };
        if std::fs::create_dir(&group).is_err() {
            return;
        }
        let handle = rustix::fs::open(&group, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let wait: fn(&()) -> ! = |()| loop {
            // SAFETY: waits for a signal, and the only one that comes ends the process.
            unsafe { libc::pause() };
        };
        let (pid, process) = spawn_init(Namespaces::NONE, Some(handle.as_fd()), wait, &()).unwrap();
        let inside = std::fs::read_to_string(group.join("cgroup.procs")).unwrap();
        let taken = crate::jail::end::Init(process).end();
        std::fs::remove_dir(&group).unwrap();
        assert_eq!(inside.trim(), pid.as_raw_pid().to_string());
        assert!(taken.unwrap());
    }
}
