//! The root of a jail as a list of steps, made in the host where memory can be allocated and carried out
//! by the jail's first process, where it cannot.

use super::{Isolation, JailError, Layer, error::io_at};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// One step; paths without a leading slash are relative to the new root.
pub(super) enum Step {
    Directory { path: CString, mode: u32 },
    Link { target: CString, path: CString },
    File { path: CString, content: Vec<u8> },
    Bind { from: CString, to: CString, access: Access },
    Filesystem { kind: &'static std::ffi::CStr, to: CString, options: CString, executable: bool },
}

/// What a bind mount allows. None allows programs with a set-user bit; only devices allow devices.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    ReadOnly,
    Writable,
    Device,
}

/// A step with the layer it belongs to.
pub(super) struct Row {
    pub(super) step: Step,
    pub(super) layer: Layer,
    /// Refused and gone on without.
    pub(super) optional: bool,
}

/// Directories of the system that a jail sees, read-only, where the host has them. Programs and
/// libraries live here; configuration, homes and data do not.
pub(super) const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// What a jail sees of the host's /etc: what the loader, certificate checks and time zones need. No
/// accounts, no keys, no host names.
const ETC: [&str; 15] = [
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "ssl/certs",
    "ssl/openssl.cnf",
    "ca-certificates",
    "pki/tls/certs",
    "pki/ca-trust/extracted",
    "crypto-policies",
    "localtime",
    "protocols",
    "services",
    "mime.types",
    "terminfo",
];

/// Device nodes that are harmless to share.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Files of /proc that tell of the whole machine and that no sandboxed program needs; covered by an
/// empty device.
const HIDDEN: [&str; 8] =
    ["kcore", "keys", "key-users", "timer_list", "sched_debug", "sysrq-trigger", "kallsyms", "kmsg"];

/// Directories of the jail's own, on disk, so that the host can reach what is in them by handle.
pub(super) const WRITABLE: [&str; 3] = ["workspace", "home", "tmp"];

/// /dev/shm without a bound on memory: enough for browsers and multiprocess Python, small against any
/// machine. Hitting it is an ordinary "no space left" inside.
const SHARED_MEMORY: u64 = 64 << 20;

/// The user inside. Not 0, so that no program believes it could be root and fails half-way.
pub(super) const INNER_ID: u32 = 1000;

/// Everything the jail's first process does to the file system before it enters its root.
pub(super) fn plan(files: &Path, isolation: &Isolation, memory: Option<u64>) -> Result<Vec<Row>, JailError> {
    let mut rows = Vec::with_capacity(96);
    let mut add = |step, layer, optional| rows.push(Row { step, layer, optional });
    let mount = Layer::MountNamespace;
    let directory = |path: &str, mode| Ok::<_, JailError>(Step::Directory { path: c(path)?, mode });
    for (path, mode) in [("etc", 0o755), ("proc", 0o555), ("dev", 0o755), ("run", 0o755), ("var", 0o755)] {
        add(directory(path, mode)?, mount, false);
    }
    for path in SYSTEM {
        let Ok(metadata) = std::fs::symlink_metadata(path) else { continue };
        let to = path.trim_start_matches('/');
        if metadata.is_symlink() {
            let target = std::fs::read_link(path).map_err(io_at("read link", path))?;
            add(Step::Link { target: c_path(&target)?, path: c(to)? }, mount, false);
        } else if metadata.is_dir() {
            add(directory(to, 0o755)?, mount, false);
            add(Step::Bind { from: c(path)?, to: c(to)?, access: Access::ReadOnly }, mount, false);
        }
    }
    add(Step::Link { target: c("/tmp")?, path: c("var/tmp")? }, mount, false);
    for name in WRITABLE {
        add(directory(name, 0o755)?, mount, false);
        let from = c_path(&files.join(name))?;
        add(Step::Bind { from, to: c(name)?, access: Access::Writable }, mount, false);
    }
    etc(&mut rows, isolation)?;
    devices(&mut rows, isolation, memory)?;
    proc(&mut rows)?;
    Ok(rows)
}

fn etc(rows: &mut Vec<Row>, isolation: &Isolation) -> Result<(), JailError> {
    let mut add = |step| rows.push(Row { step, layer: Layer::MountNamespace, optional: false });
    let mut made = std::collections::BTreeSet::new();
    for name in ETC {
        let from = Path::new("/etc").join(name);
        // Followed: what is there may itself be a link, and the bind shows what it leads to.
        let Ok(metadata) = std::fs::metadata(&from) else { continue };
        let to = Path::new("etc").join(name);
        for parent in to.ancestors().skip(1).filter(|parent| parent.components().count() > 1) {
            made.insert(parent.to_path_buf());
        }
        for parent in std::mem::take(&mut made) {
            add(Step::Directory { path: c_path(&parent)?, mode: 0o755 });
        }
        if metadata.is_dir() {
            add(Step::Directory { path: c_path(&to)?, mode: 0o755 });
        } else {
            add(Step::File { path: c_path(&to)?, content: Vec::new() });
        }
        add(Step::Bind { from: c_path(&from)?, to: c_path(&to)?, access: Access::ReadOnly });
    }
    let mut files = vec![
        ("etc/passwd", format!("sandbox:x:{INNER_ID}:{INNER_ID}:sandbox:/home:/bin/sh\nroot:x:0:0:root:/:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n").into_bytes()),
        ("etc/group", format!("sandbox:x:{INNER_ID}:\nroot:x:0:\nnogroup:x:65534:\n").into_bytes()),
        ("etc/hosts", b"127.0.0.1 localhost leasehold\n::1 localhost\n".to_vec()),
        ("etc/hostname", b"leasehold\n".to_vec()),
        ("etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n".to_vec()),
    ];
    if isolation.waived(Layer::NetworkNamespace) {
        // Names can be resolved only where there is a network to ask.
        files.push(("etc/resolv.conf", std::fs::read("/etc/resolv.conf").unwrap_or_default()));
    }
    for (path, content) in files {
        add(Step::File { path: c(path)?, content });
    }
    add(Step::Link { target: c("/proc/self/mounts")?, path: c("etc/mtab")? });
    Ok(())
}

fn devices(rows: &mut Vec<Row>, isolation: &Isolation, memory: Option<u64>) -> Result<(), JailError> {
    let mut add = |step, layer, optional| rows.push(Row { step, layer, optional });
    let mount = Layer::MountNamespace;
    for name in DEVICES {
        let (from, to) = (format!("/dev/{name}"), format!("dev/{name}"));
        add(Step::File { path: c(&to)?, content: Vec::new() }, mount, false);
        add(Step::Bind { from: c(&from)?, to: c(&to)?, access: Access::Device }, mount, false);
    }
    for (target, path) in [
        ("/proc/self/fd", "dev/fd"),
        ("/proc/self/fd/0", "dev/stdin"),
        ("/proc/self/fd/1", "dev/stdout"),
        ("/proc/self/fd/2", "dev/stderr"),
        ("pts/ptmx", "dev/ptmx"),
    ] {
        add(Step::Link { target: c(target)?, path: c(path)? }, mount, false);
    }
    add(Step::Directory { path: c("dev/pts")?, mode: 0o755 }, mount, false);
    if !isolation.waived(Layer::PseudoTerminals) {
        let options = c("newinstance,ptmxmode=0666,mode=0620")?;
        let required = isolation.demand(Layer::PseudoTerminals) == super::Demand::Required;
        let step = Step::Filesystem { kind: c"devpts", to: c("dev/pts")?, options, executable: false };
        add(step, Layer::PseudoTerminals, !required);
    }
    add(Step::Directory { path: c("dev/shm")?, mode: 0o1777 }, mount, false);
    let size = memory.map_or(SHARED_MEMORY, |bytes| bytes.min(SHARED_MEMORY));
    let options = c(&format!("mode=1777,size={size}"))?;
    let step = Step::Filesystem { kind: c"tmpfs", to: c("dev/shm")?, options, executable: false };
    add(step, mount, false);
    Ok(())
}

fn proc(rows: &mut Vec<Row>) -> Result<(), JailError> {
    let mut add = |step, layer, optional| rows.push(Row { step, layer, optional });
    let step = Step::Filesystem { kind: c"proc", to: c("proc")?, options: c("")?, executable: false };
    add(step, Layer::PidNamespace, false);
    for name in HIDDEN {
        if Path::new("/proc").join(name).exists() {
            let to = c(&format!("proc/{name}"))?;
            add(
                Step::Bind { from: c("/dev/null")?, to, access: Access::Device },
                Layer::MountNamespace,
                false,
            );
        }
    }
    Ok(())
}

/// What a step does, for the message about its failure.
pub(super) fn describe(step: &Step) -> String {
    let text = |path: &CString| path.to_string_lossy().into_owned();
    match step {
        Step::Directory { path, .. } => format!("make the directory /{}", text(path)),
        Step::Link { path, .. } => format!("make the link /{}", text(path)),
        Step::File { path, .. } => format!("write /{}", text(path)),
        Step::Bind { from, to, .. } => format!("show {} as /{}", text(from), text(to)),
        Step::Filesystem { kind, to, .. } => {
            format!("mount a fresh {} at /{}", kind.to_string_lossy(), text(to))
        }
    }
}

fn c(text: &str) -> Result<CString, JailError> {
    c_path(Path::new(text))
}

/// A path for the kernel. None of ours has a zero byte; the state directory's might.
pub(super) fn c_path(path: &Path) -> Result<CString, JailError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|error| JailError::Io {
        doing: "use",
        path: PathBuf::from(path),
        source: std::io::Error::other(error),
    })
}
