//! What the first process of a jail does before it serves: everything that makes it one.
//!
//! Runs in a copy of the host, under the rules of [`kernel`]. The order and its reasons are in the
//! documentation of [`jail`](super).

use super::kernel::{self, Filter, Forbids};
use super::plan::{Access, Row, Step};
use super::protocol::{REFUSED_CGROUP_NAMESPACE, REFUSED_PSEUDO_TERMINALS, Stage, WORD, Word};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags};
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, Gid, Uid};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

/// All that is needed, made by the host. Nothing in here is changed after the start.
pub(super) struct Blueprint {
    /// Steps that fill the root.
    pub(super) rows: Vec<Row>,
    /// Where the root is put together; an empty directory.
    pub(super) root: CString,
    /// This end of the control socket.
    pub(super) control: OwnedFd,
    /// The host, readable once it is gone.
    pub(super) host: OwnedFd,
    /// /dev/null, for standard streams nobody uses.
    pub(super) null: OwnedFd,
    /// Resource limits.
    pub(super) limits: Vec<(Resource, Rlimit)>,
    /// The user this becomes, as seen in the user namespace it then is in.
    pub(super) id: u32,
    /// Whether a new user namespace is entered at the end (a root host) or was from the start.
    pub(super) late_user_namespace: bool,
    /// Whether supplementary groups can be and need to be dropped.
    pub(super) drop_groups: bool,
    pub(super) own_host_name: bool,
    pub(super) own_network: bool,
    /// None: not wanted. Some(required).
    pub(super) cgroup_namespace: Option<bool>,
    pub(super) filter: Option<Filter>,
}

/// What the first process is given.
pub(super) struct Gift<'a> {
    pub(super) blueprint: &'a Blueprint,
    /// What of the host's memory can go. It lies on the stack, or it would go with the first range.
    pub(super) memory: &'a kernel::HostMemory,
}

/// What the server loop goes on with.
pub(super) struct Equipment<'b> {
    pub(super) control: BorrowedFd<'b>,
    pub(super) host: BorrowedFd<'b>,
    pub(super) children: OwnedFd,
}

struct Fault {
    at: u32,
    errno: Errno,
}

fn at(at: u32) -> impl FnOnce(Errno) -> Fault {
    move |errno| Fault { at, errno }
}

/// The life of the first process.
pub(super) fn first_process(gift: &Gift<'_>) -> ! {
    let blueprint = gift.blueprint;
    match set_up(blueprint, gift.memory) {
        Ok(equipment) => super::init::serve(&equipment),
        Err(fault) => {
            let word = Word::Failed { at: fault.at, errno: fault.errno.raw_os_error() };
            let _ = send(blueprint.control.as_fd(), word, &[]);
            kernel::exit(1)
        }
    }
}

fn set_up<'b>(blueprint: &'b Blueprint, memory: &kernel::HostMemory) -> Result<Equipment<'b>, Fault> {
    kernel::default_signals();
    let children = kernel::child_signals().map_err(at(Stage::SESSION))?;
    // Out of the host's session, so that its terminal's signals do not arrive here.
    rustix::process::setsid().map_err(at(Stage::SESSION))?;
    handles(blueprint, &children)?;
    go_ahead(blueprint)?;
    let mut refused = 0;
    if let Some(required) = blueprint.cgroup_namespace {
        match kernel::new_cgroup_namespace() {
            Err(errno) if required => return Err(Fault { at: Stage::CGROUP_NAMESPACE, errno }),
            Err(_) => refused |= REFUSED_CGROUP_NAMESPACE,
            Ok(()) => {}
        }
    }
    if blueprint.own_host_name {
        rustix::system::sethostname(b"leasehold").map_err(at(Stage::HOSTNAME))?;
    }
    if blueprint.own_network {
        loopback().map_err(at(Stage::LOOPBACK))?;
    }
    refused |= root(blueprint)?;
    for (resource, limit) in &blueprint.limits {
        rustix::process::setrlimit(*resource, *limit).map_err(at(Stage::LIMITS))?;
    }
    privileges(blueprint)?;
    if let Some(filter) = &blueprint.filter {
        kernel::install(filter).map_err(at(Stage::SECCOMP))?;
    }
    let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = rustix::fs::open(c"/proc", directory, Mode::empty()).map_err(at(Stage::PROC))?;
    let shared = rustix::fs::open(c"/dev/shm", directory, Mode::empty()).map_err(at(Stage::PROC))?;
    send(blueprint.control.as_fd(), Word::Ready { refused }, &[proc.as_fd(), shared.as_fd()])
        .map_err(at(Stage::HOST))?;
    let equipment = Equipment { control: blueprint.control.as_fd(), host: blueprint.host.as_fd(), children };
    // The blueprint lies in memory that goes now. All that is still needed of it must have been read, and
    // the compiler does not know that the next call changes what it points to.
    let equipment = std::hint::black_box(equipment);
    memory.forget();
    Ok(equipment)
}

/// Only what is needed stays open: not the host's locks, sockets and databases.
fn handles(blueprint: &Blueprint, children: &OwnedFd) -> Result<(), Fault> {
    rustix::stdio::dup2_stdin(&blueprint.null).map_err(at(Stage::HANDLES))?;
    rustix::stdio::dup2_stdout(&blueprint.null).map_err(at(Stage::HANDLES))?;
    rustix::stdio::dup2_stderr(&blueprint.null).map_err(at(Stage::HANDLES))?;
    let mut keep = [blueprint.control.as_raw_fd(), blueprint.host.as_raw_fd(), children.as_raw_fd()];
    keep.sort_unstable();
    kernel::close_all_but(keep);
    Ok(())
}

/// Waits for the host to say that it did its part from outside. A host that is gone says nothing.
fn go_ahead(blueprint: &Blueprint) -> Result<(), Fault> {
    let mut byte = [0_u8; 1];
    loop {
        match rustix::io::read(&blueprint.control, &mut byte) {
            Ok(1..) => return Ok(()),
            Ok(0) => kernel::exit(0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Fault { at: Stage::HOST, errno }),
        }
    }
}

fn loopback() -> Result<(), Errno> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    kernel::loopback_up(socket.as_fd())
}

/// Puts the root together in a small memory file system and makes it this process's only one.
fn root(blueprint: &Blueprint) -> Result<u32, Fault> {
    use rustix::mount::{mount, mount_change, unmount};
    // Nothing that happens here is seen by the host.
    mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(at(Stage::PROPAGATION))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount(c"leasehold", &*blueprint.root, c"tmpfs", flags, c"mode=0755,size=4m,nr_inodes=4096")
        .map_err(at(Stage::ROOT))?;
    rustix::process::chdir(&*blueprint.root).map_err(at(Stage::ROOT))?;
    rustix::process::umask(Mode::empty());
    let mut refused = 0;
    for (index, row) in (0..).zip(&blueprint.rows) {
        match step(&row.step) {
            Err(_) if row.optional => refused |= REFUSED_PSEUDO_TERMINALS,
            Err(errno) => return Err(Fault { at: index, errno }),
            Ok(()) => {}
        }
    }
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    // The new root is put over the old one, which is then taken away with everything below it.
    rustix::process::pivot_root(c".", c".").map_err(at(Stage::PIVOT))?;
    unmount(c".", UnmountFlags::DETACH).map_err(at(Stage::PIVOT))?;
    rustix::process::chdir(c"/").map_err(at(Stage::PIVOT))?;
    let forbids = Forbids { writing: true, devices: true };
    kernel::set_mount_attributes(CWD, c"/", forbids, false).map_err(at(Stage::PIVOT))?;
    Ok(refused)
}

fn step(step: &Step) -> Result<(), Errno> {
    match step {
        Step::Directory { path, mode } => {
            rustix::fs::mkdir(&**path, Mode::from_raw_mode(*mode)).or_else(|errno| {
                // Parents are listed once for each child.
                if errno == Errno::EXIST { Ok(()) } else { Err(errno) }
            })
        }
        Step::Link { target, path } => rustix::fs::symlink(&**target, &**path),
        Step::File { path, content } => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = rustix::fs::open(&**path, flags, Mode::from_raw_mode(0o644))?;
            let mut rest = content.as_slice();
            while !rest.is_empty() {
                let written = rustix::io::write(&file, rest)?;
                rest = rest.get(written..).unwrap_or_default();
            }
            Ok(())
        }
        Step::Bind { from, to, access } => bind(from, to, *access),
        Step::Filesystem { kind, to, options, executable } => {
            let mut flags = MountFlags::NOSUID;
            // A device file system that forbids devices would be none.
            flags |= if *kind == c"devpts" { MountFlags::empty() } else { MountFlags::NODEV };
            flags |= if *executable { MountFlags::empty() } else { MountFlags::NOEXEC };
            rustix::mount::mount(*kind, &**to, *kind, flags, &**options)
        }
    }
}

/// Shows a host directory or file. It is restricted before it is put anywhere, so at no moment could it
/// be written through.
fn bind(from: &CStr, to: &CStr, access: Access) -> Result<(), Errno> {
    let recursive = OpenTreeFlags::from_bits_retain(0x8000); // AT_RECURSIVE
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | recursive;
    let tree = rustix::mount::open_tree(CWD, from, flags)?;
    let forbids = match access {
        Access::ReadOnly => Forbids { writing: true, devices: true },
        Access::Writable => Forbids { writing: false, devices: true },
        // Writing to a device is no writing to its file system, and must work.
        Access::Device => Forbids { writing: false, devices: false },
    };
    kernel::set_mount_attributes(tree.as_fd(), c"", forbids, true)?;
    rustix::mount::move_mount(&tree, c"", CWD, to, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

/// Gives up everything that is more than an ordinary user without capabilities has.
fn privileges(blueprint: &Blueprint) -> Result<(), Fault> {
    if blueprint.drop_groups {
        rustix::thread::set_thread_groups(&[]).map_err(at(Stage::IDS))?;
    }
    if blueprint.late_user_namespace {
        kernel::new_user_namespace().map_err(at(Stage::USER_NAMESPACE))?;
        send(blueprint.control.as_fd(), Word::NeedsIds, &[]).map_err(at(Stage::HOST))?;
        go_ahead(blueprint)?;
    }
    // While the right to do so is still there; numbers the kernel does not know are refused.
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        match rustix::thread::remove_capability_from_bounding_set(one) {
            Ok(()) | Err(Errno::INVAL) => {}
            Err(errno) => return Err(Fault { at: Stage::CAPABILITIES, errno }),
        }
    }
    rustix::thread::clear_ambient_capability_set().map_err(at(Stage::CAPABILITIES))?;
    let (group, user) = (Gid::from_raw(blueprint.id), Uid::from_raw(blueprint.id));
    rustix::thread::set_thread_res_gid(group, group, group).map_err(at(Stage::IDS))?;
    rustix::thread::set_thread_res_uid(user, user, user).map_err(at(Stage::IDS))?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none).map_err(at(Stage::CAPABILITIES))?;
    // This process holds handles of the jail and, until they are given back, pages of the host: none of
    // its own commands, which have the same user, may look into it.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(at(Stage::IDS))?;
    rustix::thread::set_no_new_privs(true).map_err(at(Stage::NO_NEW_PRIVILEGES))
}

/// Sends one word and up to two handles to the host.
fn send(control: BorrowedFd<'_>, word: Word, handles: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let bytes: [u8; WORD] = word.encode();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !handles.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(handles));
    }
    let data = [std::io::IoSlice::new(&bytes)];
    sendmsg(control, &data, &mut ancillary, SendFlags::NOSIGNAL).map(|_| ())
}
