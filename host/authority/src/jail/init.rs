//! The first process of a jail once it is set up: it starts commands, reports how they ended, takes
//! orphans away, and ends with its host.
//!
//! Runs under the rules of [`kernel`]: no heap, no locks, no panics. All it has are its stack and the
//! handles it is given.

use super::kernel::{self, Fork, Launch};
use super::protocol::{REQUEST, RUN_HANDLES, Request, Stage, WORD, Word};
use super::set_up::Equipment;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// Commands under way at one time. Each takes a few bytes of this process's stack and a handle; one more
/// is refused with the limit `commands`.
pub(super) const COMMANDS: usize = 256;

/// Looks at the whole process table when a session is ended. Each look kills all it finds, and whoever was
/// forked meanwhile is found by the next; what forks faster than this for so long stays until the jail ends.
const LOOKS: usize = 64;

struct Command {
    id: u64,
    /// Its process, which leads its session and its first process group.
    leader: Pid,
    report: OwnedFd,
    /// Whether the rest of its session ends with it.
    ending: bool,
}

struct Table([Option<Command>; COMMANDS]);

/// Serves until the host is gone.
pub(super) fn serve(equipment: &Equipment<'_>) -> ! {
    let mut table = Table([const { None }; COMMANDS]);
    loop {
        let mut handles = [
            PollFd::from_borrowed_fd(equipment.host, PollFlags::IN),
            PollFd::from_borrowed_fd(equipment.control, PollFlags::IN),
            PollFd::new(&equipment.children, PollFlags::IN),
        ];
        match rustix::event::poll(&mut handles, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => kernel::exit(1),
        }
        let [host, control, children] = handles.map(|handle| !handle.revents().is_empty());
        if host {
            // The kernel ends every process of the namespace with this one.
            kernel::exit(0);
        }
        if children {
            let mut signals = [0_u8; 1024];
            let _ = rustix::io::read(&equipment.children, &mut signals);
            table.take_away();
        }
        if control {
            table.request(equipment);
        }
    }
}

impl Table {
    /// Reports commands that ended and takes every ended child away.
    fn take_away(&mut self) {
        while let Some(child) = kernel::ended_child(true) {
            let slot = self.0.iter_mut().find(|slot| matches!(slot, Some(c) if c.leader == child.pid));
            if let Some(command) = slot.and_then(Option::take) {
                if command.ending {
                    // Before its leader is taken away: until then nobody else can get the session's number.
                    end_session(command.leader, Signal::KILL);
                }
                let word = if child.by_signal {
                    Word::Signaled { signal: child.status }
                } else {
                    Word::Exited { code: child.status }
                };
                report(&command.report, word);
            }
            // The same one again, this time for good.
            let _ = rustix::process::waitpid(Some(child.pid), rustix::process::WaitOptions::NOHANG);
        }
    }

    fn request(&mut self, equipment: &Equipment<'_>) {
        use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
        let mut bytes = [0_u8; REQUEST];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(RUN_HANDLES))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut data = [std::io::IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        match recvmsg(equipment.control, &mut data, &mut ancillary, flags) {
            Ok(message) if message.bytes == REQUEST => {}
            // The host closed its end: it gave the jail up.
            Ok(_) => kernel::exit(0),
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => kernel::exit(1),
        }
        let mut handles = [const { None }; RUN_HANDLES];
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                for (to, handle) in handles.iter_mut().zip(received) {
                    *to = Some(handle);
                }
            }
        }
        match (Request::decode(&bytes), handles) {
            (
                Some(Request::Run { id, size }),
                [Some(input), Some(output), Some(error), Some(report), Some(launch)],
            ) => {
                self.run(id, size, [input, output, error], report, &launch);
            }
            (Some(Request::End { id, signal }), _) => self.end(id, signal),
            _ => {}
        }
    }

    fn run(&mut self, id: u64, size: u64, streams: [OwnedFd; 3], to: OwnedFd, launch: &OwnedFd) {
        let Some(slot) = self.0.iter_mut().find(|slot| slot.is_none()) else {
            return report(&to, Word::Failed { at: Stage::SLOTS, errno: Errno::AGAIN.raw_os_error() });
        };
        let failed = |at, errno: Errno| report(&to, Word::Failed { at, errno: errno.raw_os_error() });
        let launch = match Launch::map(launch.as_fd(), usize::try_from(size).unwrap_or(0)) {
            Ok(launch) => launch,
            Err(errno) => return failed(Stage::LAUNCH, errno),
        };
        match kernel::fork() {
            Err(errno) => failed(Stage::FORK, errno),
            Ok(Fork::Child) => {
                let (at, errno) = become_command(&streams, &launch);
                failed(at, errno);
                kernel::exit(127)
            }
            Ok(Fork::Parent(leader)) => *slot = Some(Command { id, leader, report: to, ending: false }),
        }
    }

    fn end(&mut self, id: u64, signal: i32) {
        if let Some(command) = self.0.iter_mut().flatten().find(|command| command.id == id) {
            command.ending = true;
            let signal = if signal == Signal::TERM.as_raw() { Signal::TERM } else { Signal::KILL };
            end_session(command.leader, signal);
        }
    }
}

/// Turns the forked copy into the command. Returns only when that fails.
fn become_command(streams: &[OwnedFd; 3], launch: &Launch) -> (u32, Errno) {
    let [input, output, error] = streams;
    let streams = rustix::stdio::dup2_stdin(input)
        .and_then(|()| rustix::stdio::dup2_stdout(output))
        .and_then(|()| rustix::stdio::dup2_stderr(error));
    if let Err(errno) = streams {
        return (Stage::STREAMS, errno);
    }
    // A session of its own, so that all it starts can be found and ended together.
    if let Err(errno) = rustix::process::setsid() {
        return (Stage::SESSION, errno);
    }
    if let Err(errno) = rustix::process::chdir(launch.directory()) {
        return (Stage::DIRECTORY, errno);
    }
    kernel::unblock_signals();
    // Every other handle closes itself with the exec.
    (Stage::EXEC, kernel::exec(launch))
}

/// Signals every process of a session.
fn end_session(leader: Pid, signal: Signal) {
    // The first process group in one step: the kernel lets none of it fork away from this.
    let _ = rustix::process::kill_process_group(leader, signal);
    for _ in 0..LOOKS {
        let found = signal_members(leader, signal);
        if signal != Signal::KILL || !found {
            break;
        }
    }
    if signal != Signal::KILL {
        // A stopped process would keep the signal for later.
        signal_members(leader, Signal::CONT);
    }
}

/// Signals the members of a session that are still alive; whether there were any.
fn signal_members(leader: Pid, signal: Signal) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(proc) = rustix::fs::open(c"/proc", flags, Mode::empty()) else { return false };
    let mut buffer = [MaybeUninit::uninit(); 8192];
    let mut entries = RawDir::new(&proc, &mut buffer);
    let mut found = false;
    while let Some(Ok(entry)) = entries.next() {
        let Some(pid) = number(entry.file_name().to_bytes()) else { continue };
        if rustix::process::getsid(Some(pid)) != Ok(leader) || ended(proc.as_fd(), entry.file_name()) {
            continue;
        }
        found |= rustix::process::kill_process(pid, signal).is_ok();
    }
    found
}

/// Whether a process already ended and only waits to be taken away.
fn ended(proc: BorrowedFd<'_>, name: &std::ffi::CStr) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(process) = rustix::fs::openat(proc, name, flags, Mode::empty()) else { return true };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(stat) = rustix::fs::openat(&process, c"stat", flags, Mode::empty()) else { return true };
    let mut text = [0_u8; 512];
    let length = rustix::io::read(&stat, &mut text).unwrap_or(0);
    let text = text.get(..length).unwrap_or_default();
    // The state follows the name, which is in parentheses and may hold any others.
    let state = text.iter().rposition(|byte| *byte == b')').and_then(|end| text.get(end + 2));
    matches!(state, None | Some(b'Z' | b'X'))
}

fn number(name: &[u8]) -> Option<Pid> {
    let mut value: i32 = 0;
    for byte in name {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(i32::from(byte - b'0'))?;
    }
    Pid::from_raw(value)
}

fn report(to: &OwnedFd, word: Word) {
    let bytes: [u8; WORD] = word.encode();
    let _ = rustix::io::write(to, &bytes);
}
