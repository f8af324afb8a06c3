//! Who works on a lease: a process, told apart from a later one of the same number.

use crate::StoreError;
use serde::{Deserialize, Serialize};
use std::fs;

/// The process, and the part of it, that a lease belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The number of the process.
    pub pid: u32,
    /// When it started, in ticks since boot.
    pub started: u64,
    /// Which boot of the machine.
    pub boot: String,
    /// Which table of processes the number belongs to; a container has its own.
    pub table: String,
    /// Which part of the process, when it opened the store more than once.
    pub part: u64,
}

/// What can be said of an owner from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It runs.
    Alive,
    /// It has ended, or the machine was started anew since.
    Gone,
    /// It is of another table of processes (a container) on this very boot and cannot be seen from here.
    /// Its leases are left alone: ending those of a living container would be worse than keeping them.
    OutOfSight,
}

impl Owner {
    /// This process, as a part of its own.
    ///
    /// # Errors
    /// [`StoreError::Owner`] when `/proc` does not say who this process is.
    pub fn current() -> Result<Owner, StoreError> {
        let mut part = [0u8; 8];
        getrandom::fill(&mut part).map_err(|source| StoreError::Random { source })?;
        let unreadable = |source| StoreError::Owner { source };
        let stat = fs::read_to_string("/proc/self/stat").map_err(unreadable)?;
        let missing = || unreadable(std::io::Error::other("no start time in /proc/self/stat"));
        let started = started(&stat).ok_or_else(missing)?;
        let here = Owner::here().map_err(unreadable)?;
        Ok(Owner { pid: std::process::id(), started, part: u64::from_ne_bytes(part), ..here })
    }

    /// Boot and table of processes of this process.
    fn here() -> std::io::Result<Owner> {
        Ok(Owner {
            pid: 0,
            started: 0,
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned(),
            table: fs::read_link("/proc/self/ns/pid")?.to_string_lossy().into_owned(),
            part: 0,
        })
    }

    /// Whether it still runs. What cannot be told counts as out of sight.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let Ok(here) = Owner::here() else { return Standing::OutOfSight };
        if self.boot != here.boot {
            return Standing::Gone;
        }
        if self.table != here.table {
            return Standing::OutOfSight;
        }
        match fs::read_to_string(format!("/proc/{}/stat", self.pid)) {
            Ok(stat) if started(&stat) == Some(self.started) => Standing::Alive,
            Ok(_) => Standing::Gone,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Standing::Gone,
            // The process ends while it is read, or may not be looked at.
            Err(_) => Standing::OutOfSight,
        }
    }

    /// Whether it is a process of this boot of this machine.
    pub(crate) fn is_of_this_boot(&self) -> bool {
        Owner::here().is_ok_and(|here| here.boot == self.boot)
    }

    pub(crate) fn to_text(&self) -> String {
        let Owner { pid, started, boot, table, part } = self;
        format!("{pid}/{started}/{boot}/{table}/{part:016x}")
    }

    pub(crate) fn parse(text: &str) -> Option<Owner> {
        let mut fields = text.split('/');
        let mut next = || fields.next();
        Some(Owner {
            pid: next()?.parse().ok()?,
            started: next()?.parse().ok()?,
            boot: next()?.to_owned(),
            table: next()?.to_owned(),
            part: u64::from_str_radix(next()?, 16).ok()?,
        })
    }
}

/// When the process of this `/proc/<pid>/stat` started; none when it has ended and only waits to be
/// taken away. The name of the program stands in parentheses and may hold spaces and parentheses.
fn started(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    // State is the third field, the start time the twenty-second.
    let started = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_reads_back_as_written() {
        let me = Owner::current().unwrap();
        assert_eq!(me.standing(), Standing::Alive);
        assert_eq!(Owner::parse(&me.to_text()), Some(me));
    }

    #[test]
    fn a_number_used_again_is_not_taken_for_the_owner() {
        let me = Owner::current().unwrap();
        let earlier = Owner { started: me.started - 1, ..me.clone() };
        assert_eq!(earlier.standing(), Standing::Gone);
        let rebooted = Owner { boot: "another".into(), ..me.clone() };
        assert_eq!(rebooted.standing(), Standing::Gone);
        let contained = Owner { table: "pid:[1]".into(), ..me };
        assert_eq!(contained.standing(), Standing::OutOfSight);
    }

    #[test]
    fn the_name_of_a_program_does_not_shift_the_fields_and_a_zombie_has_ended() {
        let fields = "1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9";
        assert_eq!(started(&format!("12 (a) b (c) S {fields}")), Some(4711));
        assert_eq!(started(&format!("12 (x) Z {fields}")), None);
        assert_eq!(started("12 (x) S 1 2"), None);
    }
}
