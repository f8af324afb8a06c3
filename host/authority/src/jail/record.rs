//! What is written down about a jail, so that another process can end and clean up what this one left.

use super::error::io_at;
use super::{Bounds, JailError};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The record of one jail. Fields that are not known are ignored, so that versions can follow each other.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Record {
    /// The user its processes are on the host; none when that is the user who runs the host.
    pub(super) host_id: Option<u32>,
    /// Bounds it was last started with.
    pub(super) bounds: Bounds,
    /// The process that runs it.
    pub(super) owner: Option<Process>,
    /// Its first process.
    pub(super) init: Option<Process>,
    /// Control groups made for it. Written before they are made.
    pub(super) cgroups: Vec<PathBuf>,
}

/// A process, so that a number used again is not taken for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) pid: i32,
    /// When it started, in ticks since boot.
    started: u64,
    /// Which boot.
    boot: String,
    /// Which table of processes the number belongs to.
    table: String,
}

const FILE: &str = "record";

impl Process {
    /// Reads what tells this process from others.
    pub(super) fn find(pid: i32) -> Option<Process> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().into();
        let table = std::fs::read_link("/proc/self/ns/pid").ok()?.to_string_lossy().into_owned();
        Some(Process { pid, started: started(pid)?, boot, table })
    }

    /// This process.
    pub(super) fn own() -> Option<Process> {
        Process::find(rustix::process::getpid().as_raw_pid())
    }

    /// Whether it still runs. One of another table of processes cannot be seen from here and counts as
    /// ended: its jail ends with it, by the jail's own doing.
    pub(super) fn alive(&self) -> bool {
        Process::find(self.pid).as_ref() == Some(self)
    }
}

/// When a process started; none when it ended, taken away or not.
fn started(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold any others. Then: state, and 18 fields up to the start.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

/// The record; none when there is none yet.
pub(super) fn read(jail: &Path) -> Result<Option<Record>, JailError> {
    let path = jail.join(FILE);
    match std::fs::read(&path) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).map(Some).map_err(|error| io_at("read", path)(error.into()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_at("read", path)(error)),
    }
}

/// Puts the record in place whole or not at all; only the holder of the lock does.
pub(super) fn write(jail: &Path, record: &Record) -> Result<(), JailError> {
    let (path, draft) = (jail.join(FILE), jail.join("record.draft"));
    let bytes = serde_json::to_vec(record).map_err(|error| io_at("write", &path)(error.into()))?;
    std::fs::write(&draft, bytes).and_then(|()| std::fs::rename(&draft, &path)).map_err(io_at("write", path))
}
