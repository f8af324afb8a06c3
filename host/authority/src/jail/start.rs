//! The host's side of starting a jail: the new process, and what must be done to it from outside.

use super::account::{check_cgroups, enforcement, note_layers};
use super::cgroup::{self, Cgroups, Controller, Door};
use super::directory::Locked;
use super::end::Init;
use super::error::io_at;
use super::kernel::{self, Filter, HostMemory, Namespaces};
use super::plan::{self, INNER_ID};
use super::protocol::Word;
use super::record::{Process, Record};
use super::set_up::{Blueprint, Gift, first_process};
use super::talk::Talk;
use super::{Bounds, Demand, Enforcement, Grant, Isolation, JailError, Layer};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

/// Stack of the thread that starts a jail, and so of the jail's first process.
const STACK: usize = 512 << 10;

/// Open files of one process inside: what most distributions set. More is an ordinary "too many open
/// files" in the program.
const OPEN_FILES: u64 = 65_536;

/// Memory that a process inside may lock, the kernel's own default.
const LOCKED_MEMORY: u64 = 8 << 20;

/// Added to the readiness to be chosen when the whole machine runs out of memory: sandboxed programs
/// go first, the host last.
const OOM_SCORE: &str = "500";

/// How much the jail's processes yield to others ("nice") where no control group shares the processors out:
/// enough for the host among hundreds of them, and no difference on a machine that has time.
const YIELDS: i32 = 5;

/// A jail that is up.
pub(super) struct Started {
    pub(super) init: Init,
    pub(super) control: OwnedFd,
    pub(super) proc: OwnedFd,
    pub(super) shared: OwnedFd,
    pub(super) cgroups: Cgroups,
    pub(super) layers: BTreeMap<Layer, Grant>,
    pub(super) enforcement: BTreeMap<&'static str, Enforcement>,
}

/// Starts the first process of the jail in this directory.
pub(super) fn start(
    locked: &Locked,
    name: &str,
    mut cgroups: Cgroups,
    bounds: Bounds,
    isolation: &Isolation,
    record: &mut Record,
) -> Result<Started, JailError> {
    let (host_end, jail_end) = control_socket()?;
    let blueprint = blueprint(locked, bounds, isolation, record.host_id, jail_end)?;
    let early_user_namespace = record.host_id.is_none() && !isolation.waived(Layer::UserNamespace);
    // A thread of its own, whose stack the new process keeps and which holds nothing else.
    let door = cgroups.make(&bounds);
    let born = std::thread::scope(|scope| {
        let starting = std::thread::Builder::new().name("leasehold-jail".into()).stack_size(STACK);
        let start = || start_process(&blueprint, isolation, early_user_namespace, &door);
        let thread =
            starting.spawn_scoped(scope, start).map_err(io_at("start a thread for", &locked.path))?;
        thread
            .join()
            .map_err(|_| io_at("start", &locked.path)(io::Error::other("the starting thread failed")))?
    })?;
    let Born { pid, init, refused, in_group } = born;
    cgroups.refused(refused);
    if !in_group {
        cgroups.move_process(pid.as_raw_pid());
    }
    let rows = blueprint.rows;
    // The jail's end of the socket must be gone here, or its end would not be noticed.
    drop(blueprint.control);
    record.init = Process::find(pid.as_raw_pid());
    locked.write_record(record)?;
    check_cgroups(&cgroups, &bounds, isolation)?;
    if let Some(processes) = bounds.processes.filter(|_| !cgroups.holds(Controller::Processes)) {
        limit_processes(pid, processes).map_err(|errno| {
            unsupported(Layer::Privileges, "limit the processes of the user", errno.into())
        })?;
    }
    if !cgroups.holds(Controller::Processor) {
        // Best effort: the host must get a processor to end what fills them all.
        let _ = rustix::process::setpriority_process(Some(pid), YIELDS);
    }
    // Raising it is always allowed; a kernel that refuses leaves an ordinary process.
    let _ = std::fs::write(format!("/proc/{pid}/oom_score_adj", pid = pid.as_raw_pid()), OOM_SCORE);
    if early_user_namespace {
        write_ids(pid, None).map_err(|source| unsupported(Layer::UserNamespace, "write the ids", source))?;
    }
    let talk = Talk { control: &host_end, name, rows: &rows };
    talk.go()?;
    let (refused, proc, shared) = loop {
        match talk.hear()? {
            (Word::NeedsIds, _) => {
                write_ids(pid, record.host_id)
                    .map_err(|source| unsupported(Layer::UserNamespace, "write the ids", source))?;
                talk.go()?;
            }
            (Word::Ready { refused }, [Some(proc), Some(shared)]) => break (refused, proc, shared),
            _ => return Err(talk.silent()),
        }
    };
    let mut layers = BTreeMap::new();
    note_layers(&mut layers, isolation, refused, &cgroups);
    let enforcement = enforcement(&bounds, &cgroups, isolation);
    Ok(Started { init, control: host_end, proc, shared, cgroups, layers, enforcement })
}

pub(super) fn unsupported(layer: Layer, doing: &str, source: io::Error) -> JailError {
    JailError::Unsupported { layer, doing: doing.into(), source }
}

fn control_socket() -> Result<(OwnedFd, OwnedFd), JailError> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(|errno| io_at("make", "a control socket")(errno.into()))
}

fn blueprint(
    locked: &Locked,
    bounds: Bounds,
    isolation: &Isolation,
    host_id: Option<u32>,
    control: OwnedFd,
) -> Result<Blueprint, JailError> {
    let null = rustix::fs::open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| io_at("open", "/dev/null")(errno.into()))?;
    // The host as a handle, not as a pipe that only it holds: a copy of a pipe's end in some other child
    // of the host would keep the jail alive. And not as a signal at the parent's death: that follows the
    // thread that started the jail, and threads of a runtime come and go.
    let host = rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty())
        .map_err(|errno| unsupported(Layer::PidNamespace, "watch the host", errno.into()))?;
    let user_namespace = !isolation.waived(Layer::UserNamespace);
    Ok(Blueprint {
        rows: plan::plan(&locked.files(), isolation, bounds.memory_bytes)?,
        root: plan::c_path(&locked.path.join("root"))?,
        control,
        host,
        null,
        limits: limits(&bounds),
        id: match host_id {
            Some(id) if !user_namespace => id,
            _ => INNER_ID,
        },
        late_user_namespace: host_id.is_some() && user_namespace,
        drop_groups: host_id.is_some(),
        own_host_name: !isolation.waived(Layer::UtsNamespace),
        own_network: !isolation.waived(Layer::NetworkNamespace),
        cgroup_namespace: match isolation.demand(Layer::CgroupNamespace) {
            Demand::Waived => None,
            demand => Some(demand == Demand::Required),
        },
        filter: (!isolation.waived(Layer::Seccomp)).then(Filter::new),
    })
}

/// Resource limits of the jail's processes, never above what the host itself has.
fn limits(bounds: &Bounds) -> Vec<(Resource, Rlimit)> {
    let capped = |resource, most: u64| {
        let now = rustix::process::getrlimit(resource).maximum;
        (
            resource,
            Rlimit {
                current: Some(now.map_or(most, |now| now.min(most))),
                maximum: Some(now.map_or(most, |now| now.min(most))),
            },
        )
    };
    let mut limits = vec![
        // A dump of memory would go to a path that the host's kernel chose.
        capped(Resource::Core, 0),
        capped(Resource::Nofile, OPEN_FILES),
        capped(Resource::Memlock, LOCKED_MEMORY),
        capped(Resource::Rtprio, 0),
    ];
    if let Some(disk) = bounds.disk_bytes {
        // No single file can be larger than all together may be; many files are counted by the host.
        limits.push(capped(Resource::Fsize, disk));
    }
    limits
}

/// A first process that waits.
struct Born {
    pid: Pid,
    init: Init,
    /// Groups that the starting thread could not enter.
    refused: Vec<(Controller, io::Error)>,
    /// Whether it is in its group of version 2, if it has one.
    in_group: bool,
}

/// Starts the process, or finds out which namespace the kernel refused. Leaves this thread in the jail's
/// groups.
fn start_process(
    blueprint: &Blueprint,
    isolation: &Isolation,
    early_user_namespace: bool,
    door: &Door,
) -> Result<Born, JailError> {
    let not_entered = door.move_this_thread();
    let memory = HostMemory::find();
    let gift = Gift { blueprint, memory: &memory };
    let table = [
        (Layer::MountNamespace, Namespaces::MOUNT),
        (Layer::PidNamespace, Namespaces::PID),
        (Layer::IpcNamespace, Namespaces::IPC),
        (Layer::UtsNamespace, Namespaces::UTS),
        (Layer::NetworkNamespace, Namespaces::NETWORK),
    ];
    // An ordinary user gets the right to make the others only together with this one.
    let base = if early_user_namespace { Namespaces::USER } else { Namespaces::NONE };
    let wanted = || table.into_iter().filter(|(layer, _)| !isolation.waived(*layer));
    let all = wanted().fold(base, |all, (_, one)| all.with(one));
    let born = |(pid, init), in_group| Born { pid, init: Init(init), refused: not_entered, in_group };
    if let Some(group) = door.unified()
        && let Ok(started) = kernel::spawn_init(all, Some(group), first_process, &gift)
    {
        return Ok(born(started, true));
    }
    let refused = match kernel::spawn_init(all, None, first_process, &gift) {
        Ok(started) => return Ok(born(started, door.unified().is_none())),
        Err(errno) => errno,
    };
    // Each is tried by itself. All granted one by one: then it was something else.
    let refusal = |layer, errno: Errno| unsupported(layer, "start a process in a new one", errno.into());
    if early_user_namespace {
        kernel::try_namespaces(base).map_err(|errno| refusal(Layer::UserNamespace, errno))?;
    }
    for (layer, one) in wanted() {
        kernel::try_namespaces(base.with(one)).map_err(|errno| refusal(layer, errno))?;
    }
    Err(refusal(Layer::PidNamespace, refused))
}

/// The fallback for the bound on processes. It counts those of this user in this user namespace, so of this
/// jail alone. Not beside a control group: it would refuse the fork first, and leave no trace of that.
fn limit_processes(init: Pid, processes: u32) -> Result<(), Errno> {
    let most = u64::from(processes) + cgroup::SPARE_PROCESSES;
    let now = rustix::process::getrlimit(Resource::Nproc).maximum;
    let most = Some(now.map_or(most, |now| now.min(most)));
    rustix::process::prlimit(Some(init), Resource::Nproc, Rlimit { current: most, maximum: most }).map(|_| ())
}

/// Maps the jail's only user. As root this is done once the process is in its namespace and still is
/// root outside; the mapped user is the one the jail's files belong to.
fn write_ids(pid: Pid, host_id: Option<u32>) -> io::Result<()> {
    let base = format!("/proc/{}", pid.as_raw_pid());
    let user = host_id.unwrap_or_else(|| rustix::process::geteuid().as_raw());
    let group = host_id.unwrap_or_else(|| rustix::process::getegid().as_raw());
    if host_id.is_none() {
        // Without this the kernel would let a group be dropped that only denies something.
        std::fs::write(format!("{base}/setgroups"), "deny")?;
    }
    std::fs::write(format!("{base}/uid_map"), format!("{INNER_ID} {user} 1\n"))?;
    std::fs::write(format!("{base}/gid_map"), format!("{INNER_ID} {group} 1\n"))
}
