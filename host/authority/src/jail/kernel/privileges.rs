//! Namespaces entered after the start.

use rustix::io::Errno;
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Puts this process, which has one thread, into a new user namespace.
pub(in crate::jail) fn new_user_namespace() -> Result<(), Errno> {
    // SAFETY: only the descriptor table and the file system context could be shared with other threads,
    // and neither is asked for.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }
}

/// Makes the control group this process is in the root of what it sees.
pub(in crate::jail) fn new_cgroup_namespace() -> Result<(), Errno> {
    // SAFETY: as above.
    unsafe { unshare_unsafe(UnshareFlags::NEWCGROUP) }
}
