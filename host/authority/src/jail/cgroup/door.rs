//! The way into groups for a process that is about to be started.
//!
//! Moving a process that already runs makes the kernel wait until no processor can be in the middle of a
//! fork, for some ten milliseconds. Two ways do not wait: in version 1 a thread may move itself, and what
//! it starts is born where the thread is; in version 2 a process can be started straight into a group.

use super::Controller;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// Open handles of the groups of one jail.
#[derive(Debug, Default)]
pub(in crate::jail) struct Door {
    /// `tasks` of each group of version 1.
    pub(super) tasks: Vec<(Controller, OwnedFd)>,
    /// The group of version 2.
    pub(super) unified: Option<OwnedFd>,
}

impl Door {
    /// Moves this thread, and so all it will start, into the groups of version 1. Gives what was refused.
    pub(in crate::jail) fn move_this_thread(&self) -> Vec<(Controller, io::Error)> {
        let refused = |(controller, tasks): &(Controller, OwnedFd)| match rustix::io::write(tasks, b"0") {
            Ok(_) => None,
            Err(errno) => Some((*controller, errno.into())),
        };
        self.tasks.iter().filter_map(refused).collect()
    }

    /// The group of version 2 to start a process in.
    pub(in crate::jail) fn unified(&self) -> Option<BorrowedFd<'_>> {
        self.unified.as_ref().map(|group| group.as_fd())
    }
}
