//! The only place of this crate with `unsafe`: starting processes without the standard library, and the
//! few calls of the kernel that no safe crate offers.
//!
//! Between the fork and the exec (or the end) of a child of a process with threads only system calls are
//! allowed: another thread may have held the allocator's lock when the copy was made, and nobody would
//! ever release it. So the functions that a child calls, here and in `set_up`, `init` and `protocol`,
//! allocate nothing, panic nowhere and take no lock; everything they read was made beforehand.

#![expect(unsafe_code, reason = "starting a jailed process where no crate does it well")]

mod fork;
mod launch;
mod memory;
mod mount;
mod network;
mod privileges;
mod seccomp;
mod signals;

pub(super) use fork::{Fork, Namespaces, close_all_but, ended_child, exit, fork, spawn_init, try_namespaces};
pub(super) use launch::{Launch, exec};
pub(super) use memory::HostMemory;
pub(super) use mount::{Forbids, set_mount_attributes};
pub(super) use network::loopback_up;
pub(super) use privileges::{new_cgroup_namespace, new_user_namespace};
pub(super) use seccomp::{Filter, install};
pub(super) use signals::{child_signals, default_signals, unblock_signals};

/// The error of the last failed call of libc.
fn last_error() -> rustix::io::Errno {
    // SAFETY: the location is this thread's own and always valid.
    rustix::io::Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}
