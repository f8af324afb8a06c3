//! Jails: places on the host's own machine where foreign commands run and cannot reach the host.
//!
//! A jail has a name, files that survive a stop, and any number of commands over time, several at once.
//! Everything is done by the kernel's own means; no installed program is used and no service runs.
//!
//! # What is isolated
//!
//! * **Files.** The root is a small read-only memory file system. In it are the system directories of the
//!   host (`/usr`, `/bin`, `/sbin`, `/lib*`), read-only and without set-user programs; a few files of `/etc`
//!   that the loader and certificate checks need, and made-up accounts; six harmless devices; a fresh
//!   `/proc`. `/workspace`, `/home` and `/tmp` are the jail's own, on disk. Nothing else of the host's files
//!   exists inside.
//! * **Processes.** A jail sees only its own. All of them end with its first one, which ends with its host,
//!   however that ends.
//! * **Network.** None but an own loopback, unless [`Isolation::with_host_network`] grants the host's.
//! * **Privileges.** Commands run as user 1000 of a user namespace with one user, without capabilities and
//!   without any way to new privileges. On the host that user is the one who runs the host or, when that
//!   is root, an otherwise unused number of the jail's own.
//! * **The kernel.** A filter refuses calls that reach outside or are known for escapes, kinds of sockets
//!   that no namespace separates, calls of other processor modes and calls newer than the filter.
//! * **Use.** [`Bounds`] on memory, processes and disk, always, and on processor time where one is set;
//!   [`Jail::enforcement`] says who holds each. A bound that is passed ends the jail's processes, with
//!   [`Limit`] as the reason; the files stay.
//!
//! # What is not
//!
//! * The kernel is the host's: a fault in it is a way out. For code that is believed to attack it, run the
//!   host in a virtual machine.
//! * `/proc` tells of the machine (processors, memory, load), and where on the host the jail's files lie.
//! * As an ordinary user the host cannot drop its own supplementary groups from the jail.
//! * Without control groups: processor time has no bound, memory that no process has mapped is not seen,
//!   the bound on memory may be passed for some hundredths of a second, and a burst of processes that the
//!   kernel held back and that is over before the host looks does not end the jail. The bound on disk is always
//!   held by counting (one file can never be larger than the bound): files deleted while they are open
//!   are not seen, and a fast program passes it for a tenth of a second or so.
//! * `/tmp` lies on the disk like the rest and has no bound of its own, so that the host reaches files in it
//!   by handle whether the jail runs or not. `/dev/shm` is a memory file system of at most 64 MiB.
//! * A host that runs as root needs nothing from the directories above its state directory; one that runs
//!   as an ordinary user must be able to pass them.
//!
//! # Layers
//!
//! The kernel may refuse any [`Layer`]. A refused layer stops the creation with
//! [`JailError::Unsupported`], which names it, unless the caller waived it by name in [`Isolation`]. Best
//! effort by default are only `cgroup-namespace` and `pseudo-terminals`, which protect nothing, and
//! `cgroup`, for which there is a fallback. [`Jail::layers`] says what became of each.
//!
//! # The order of steps, and why
//!
//! In the host:
//!
//! 1. The jail's directory is locked, so that one process at a time makes, stops or deletes it. What a dead
//!    host left is ended and removed first.
//! 2. All texts and lists are made; nothing can be allocated later.
//! 3. The control groups are written down, then made. The thread that starts the jail enters them first, so
//!    that the first process is born in them, with all it will start.
//! 4. The first process is started in new mount, process, IPC, host name and network namespaces, and, as
//!    an ordinary user, in a new user namespace, which gives the right to make the others. It waits until
//!    it, too, is written down.
//!
//! In the first process:
//!
//! 5. Signals to default, a session of its own, every handle of the host closed.
//! 6. The control group namespace, now that it is in its group; the host name; the loopback.
//! 7. The root is put together while host paths can still be seen, then entered; the old root is taken
//!    away with all below it. Each mount is restricted before it is put anywhere.
//! 8. Resource limits. Then the user: as root only here a new user namespace is entered, so that all mounts
//!    belong to the host's and nobody inside can change them, whatever rights he might gain. Capabilities
//!    are dropped from the bounding set while that is allowed, then the ids change, then all capabilities
//!    go.
//! 9. The process is closed to inspection, for its commands are the same user. No new privileges; the
//!    filter, which needs that.
//! 10. The host's memory, of which this process is a copy, is given back. It serves.
//!
//! # How a jail ends with its host
//!
//! The first process holds a handle of the host process (a pidfd) and waits for it together with its
//! requests; when the host is gone, it ends, and the kernel ends all others of its namespace. A pipe that
//! only the host holds would not do: other children of the host may hold copies of its end. Nor would the
//! signal at the parent's death: it follows the *thread* that started the process, and threads of an async
//! runtime come and go. The next process that opens the state directory waits for whatever is still on its
//! way out before it touches the jail.
//!
//! # Commands
//!
//! The first process starts every command itself, on request, rather than the host entering its namespaces:
//! so all are its descendants, it takes them away when they end, and no process with the host's memory or
//! rights is ever inside. Programs are looked for inside, with the command's own `PATH`. A command leads a
//! session of its own; a timeout or a dropped future ends that whole session. What a *finished* command left
//! behind, and what moved to another session, lives on until the jail is stopped.

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!(
    "the jail is made of Linux namespaces and a system-call filter for x86-64 and arm64; \
     on another system run the host in a Linux virtual machine"
);

mod account;
mod beneath;
mod bounds;
mod cgroup;
mod command;
mod directory;
mod end;
mod error;
mod fetch;
mod init;
mod jails;
mod kernel;
mod launch;
mod layer;
mod machine;
mod place;
mod plan;
mod protocol;
mod record;
mod remove;
mod run;
mod running;
mod set_up;
mod start;
mod streams;
mod talk;
mod tar;
mod usage;
mod watch;

pub use bounds::{Bounds, Enforcement};
pub use command::{Command, Exit};
pub use error::{JailError, Limit, LimitHit};
pub use jails::{Jail, Jails, Standing};
pub use layer::{Demand, Grant, Isolation, Layer};
pub use tar::Moved;

/// Does work that waits on a thread where that is allowed. It goes on when the future is dropped.
async fn blocking<T: Send + 'static>(
    jail: &std::path::Path,
    work: impl FnOnce() -> Result<T, JailError> + Send + 'static,
) -> Result<T, JailError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(failed) => Err(error::io_at("work on", jail)(std::io::Error::other(failed))),
    }
}
