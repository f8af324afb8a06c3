//! The host's side of the conversation with a jail's first process while it is set up.

use super::error::io_at;
use super::plan::{self, Row};
use super::protocol::{Stage, WORD, Word};
use super::start::unsupported;
use super::{JailError, Layer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// How long the first process may take for one step. It takes milliseconds; only a machine that hangs
/// takes longer, and then creation fails instead of hanging too.
const PATIENCE: Duration = Duration::from_secs(20);

/// The conversation during set-up.
pub(super) struct Talk<'a> {
    pub(super) control: &'a OwnedFd,
    pub(super) name: &'a str,
    pub(super) rows: &'a [Row],
}

impl Talk<'_> {
    pub(super) fn go(&self) -> Result<(), JailError> {
        let flags = rustix::net::SendFlags::NOSIGNAL;
        rustix::net::send(self.control, &[1], flags).map(|_| ()).or_else(|_| self.hear().map(|_| ()))
    }

    pub(super) fn hear(&self) -> Result<(Word, [Option<OwnedFd>; 2]), JailError> {
        use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
        let failed =
            |errno: Errno| io_at("hear from the first process of", Path::new(self.name))(errno.into());
        let mut ready = [PollFd::new(self.control, PollFlags::IN)];
        let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
        if poll(&mut ready, Some(&patience)).map_err(failed)? == 0 {
            return Err(JailError::TooSlow {
                name: self.name.into(),
                doing: "start",
                seconds: PATIENCE.as_secs(),
            });
        }
        let mut bytes = [0; WORD];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut data = [io::IoSliceMut::new(&mut bytes)];
        recvmsg(self.control, &mut data, &mut ancillary, RecvFlags::CMSG_CLOEXEC).map_err(failed)?;
        let mut handles = [None, None];
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                for (to, handle) in handles.iter_mut().zip(received) {
                    *to = Some(handle);
                }
            }
        }
        match Word::decode(bytes) {
            Some(Word::Failed { at, errno }) => Err(self.failure(at, errno)),
            Some(word) => Ok((word, handles)),
            None => Err(self.silent()),
        }
    }

    pub(super) fn silent(&self) -> JailError {
        let source = io::Error::other("it ended during set-up; the kernel may have run out of memory");
        io_at("start the first process of", Path::new(self.name))(source)
    }

    fn failure(&self, at: u32, errno: i32) -> JailError {
        let source = io::Error::from_raw_os_error(errno);
        if let Some(row) = usize::try_from(at).ok().and_then(|at| self.rows.get(at)) {
            return unsupported(row.layer, &plan::describe(&row.step), source);
        }
        let (layer, doing) = match at {
            Stage::SESSION => (Layer::PidNamespace, "start a session"),
            Stage::HANDLES => (Layer::Privileges, "close the host's handles"),
            Stage::PROPAGATION => (Layer::MountNamespace, "keep mounts from the host"),
            Stage::ROOT => (Layer::MountNamespace, "make a root"),
            Stage::PIVOT => (Layer::MountNamespace, "enter the root"),
            Stage::CGROUP_NAMESPACE => (Layer::CgroupNamespace, "enter a new one"),
            Stage::HOSTNAME => (Layer::UtsNamespace, "set the host name"),
            Stage::LOOPBACK => (Layer::NetworkNamespace, "switch the loopback on"),
            Stage::LIMITS => (Layer::Privileges, "set resource limits"),
            Stage::USER_NAMESPACE => (Layer::UserNamespace, "enter a new one"),
            Stage::IDS => (Layer::Privileges, "become the jail's user"),
            Stage::CAPABILITIES => (Layer::Privileges, "drop capabilities"),
            Stage::NO_NEW_PRIVILEGES => (Layer::Privileges, "forbid new privileges"),
            Stage::SECCOMP => (Layer::Seccomp, "install the filter"),
            Stage::PROC => (Layer::PidNamespace, "open /proc"),
            _ => (Layer::PidNamespace, "talk to the host"),
        };
        unsupported(layer, doing, source)
    }
}
