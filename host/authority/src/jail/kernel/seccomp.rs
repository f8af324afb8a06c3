//! The filter on system calls: everything is allowed but what can reach outside a jail.
//!
//! A list of what is refused, not of what is allowed, because the jail runs whatever its user has: node,
//! compilers, browsers. What the namespaces and the missing capabilities already refuse is refused a
//! second time here, before the kernel's own code for it runs. Two things close the gaps of such a list:
//! calls of another processor mode end the process (they have other numbers), and calls newer than this
//! list do not exist.

use super::last_error;
use rustix::io::Errno;

/// A filter ready to install.
pub(in crate::jail) struct Filter(Vec<libc::sock_filter>);

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// The newest call that was looked at when this list was made (`mseal`, Linux 6.10). Newer ones are
/// "not implemented", which programs handle, for they also run on older kernels.
const NEWEST: u32 = libc::SYS_mseal as u32;

/// On x86-64, numbers from here on are the same calls in the x32 mode.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Refused with EPERM.
const REFUSED: &[libc::c_long] = &[
    // Mounts: the root of the jail stays as it was made.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    // Other namespaces, and handles that reach past a mount.
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // Loading code into the kernel, replacing it, stopping it.
    libc::SYS_bpf,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    // Keys are not kept apart by any namespace here.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Rich interfaces that many escapes went through and that ordinary programs do without.
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    libc::SYS_vhangup,
    // The machine's clock, log, accounting and name.
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // Memory of other nodes.
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// Refused where the processor has them.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(target_arch = "aarch64")]
const REFUSED_HERE: &[libc::c_long] = &[];

/// Every flag of `clone` and `unshare` that makes a namespace.
const NAMESPACES: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32;

/// A time namespace; a bit that `clone` reads as part of a signal, so only `unshare` is asked about it.
const TIME_NAMESPACE: u32 = 0x80;

/// Terminal requests that put input into a terminal, from where a host's shell might read it.
const TERMINAL: [u32; 2] = [libc::TIOCSTI as u32, 0x541c];

/// Kinds of sockets that are kept apart by the network namespace. Others (to a hypervisor, to the
/// kernel's cryptography, to packet devices) are not, or are of no use inside.
const FAMILIES: [libc::c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Offsets in what a filter is given.
const NUMBER: u32 = 0;
const MODE: u32 = 4;
const fn argument(index: u32) -> u32 {
    // The lower half: the kernel reads these arguments as 32 bits. Little-endian on both processors.
    16 + 8 * index
}

impl Filter {
    /// Writes the filter.
    pub(in crate::jail) fn new() -> Filter {
        let mut filter = Filter(Vec::with_capacity(256));
        filter.load(MODE);
        filter.unless(ARCHITECTURE, libc::SECCOMP_RET_KILL_PROCESS);
        filter.load(NUMBER);
        #[cfg(target_arch = "x86_64")]
        filter.from(X32, libc::SECCOMP_RET_KILL_PROCESS);
        filter.from(NEWEST + 1, errno(libc::ENOSYS));
        for call in REFUSED.iter().chain(REFUSED_HERE) {
            filter.when(*call as u32, errno(libc::EPERM));
        }
        // Its flags lie in memory, where a filter cannot look; the C library then uses `clone`.
        filter.when(libc::SYS_clone3 as u32, errno(libc::ENOSYS));
        filter.bits(libc::SYS_clone, argument(0), NAMESPACES, errno(libc::EPERM));
        filter.bits(libc::SYS_unshare, argument(0), NAMESPACES | TIME_NAMESPACE, errno(libc::EPERM));
        filter.values(libc::SYS_ioctl, argument(1), &TERMINAL, errno(libc::EPERM));
        for call in [libc::SYS_socket, libc::SYS_socketpair] {
            filter.only(
                call,
                argument(0),
                &FAMILIES.map(libc::c_int::cast_unsigned),
                errno(libc::EAFNOSUPPORT),
            );
        }
        filter.answer(libc::SECCOMP_RET_ALLOW);
        filter
    }

    fn push(&mut self, code: u32, k: u32, jt: u8, jf: u8) {
        self.0.push(libc::sock_filter { code: code as u16, jt, jf, k });
    }

    fn load(&mut self, offset: u32) {
        self.push(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0);
    }

    fn answer(&mut self, action: u32) {
        self.push(libc::BPF_RET | libc::BPF_K, action, 0, 0);
    }

    fn jump(&mut self, test: u32, value: u32, jt: u8, jf: u8) {
        self.push(libc::BPF_JMP | test | libc::BPF_K, value, jt, jf);
    }

    fn when(&mut self, value: u32, action: u32) {
        self.jump(libc::BPF_JEQ, value, 0, 1);
        self.answer(action);
    }

    fn unless(&mut self, value: u32, action: u32) {
        self.jump(libc::BPF_JEQ, value, 1, 0);
        self.answer(action);
    }

    fn from(&mut self, value: u32, action: u32) {
        self.jump(libc::BPF_JGE, value, 0, 1);
        self.answer(action);
    }

    /// Answers a call with one of these bits in an argument. The number is loaded again after it.
    fn bits(&mut self, call: libc::c_long, offset: u32, bits: u32, action: u32) {
        self.jump(libc::BPF_JEQ, call as u32, 0, 4);
        self.load(offset);
        self.jump(libc::BPF_JSET, bits, 0, 1);
        self.answer(action);
        self.load(NUMBER);
    }

    /// Answers a call with one of these values in an argument.
    fn values(&mut self, call: libc::c_long, offset: u32, values: &[u32], action: u32) {
        self.jump(libc::BPF_JEQ, call as u32, 0, values.len() as u8 * 2 + 2);
        self.load(offset);
        for value in values {
            self.when(*value, action);
        }
        self.load(NUMBER);
    }

    /// Answers a call with none of these values in an argument.
    fn only(&mut self, call: libc::c_long, offset: u32, values: &[u32], action: u32) {
        let count = values.len() as u8;
        self.jump(libc::BPF_JEQ, call as u32, 0, count + 3);
        self.load(offset);
        for (at, value) in (0..count).zip(values) {
            self.jump(libc::BPF_JEQ, *value, count - at, 0);
        }
        self.answer(action);
        self.load(NUMBER);
    }
}

const fn errno(number: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | number.cast_unsigned()
}

/// Puts the filter over this process and everything it will start. Needs "no new privileges".
pub(in crate::jail) fn install(filter: &Filter) -> Result<(), Errno> {
    let program = libc::sock_fprog { len: filter.0.len() as u16, filter: filter.0.as_ptr().cast_mut() };
    let mode = libc::c_long::from(libc::SECCOMP_SET_MODE_FILTER);
    // SAFETY: the kernel copies the program, which is only read and outlives the call.
    let answer = unsafe { libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program) };
    if answer == 0 { Ok(()) } else { Err(last_error()) }
}
