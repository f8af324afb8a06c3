//! What one jail may use.

use super::JailError;
use super::machine::Machine;
use serde::{Deserialize, Serialize};

/// Bounds of one jail. What is not set gets a part of the machine: three quarters of its memory, 256
/// processes a processor, half of the free disk; processor time alone has no bound unless one is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Memory of all its processes together, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processes and threads at one time.
    pub processes: Option<u32>,
    /// Processor time, in thousandths of one processor.
    pub cpu_millis: Option<u32>,
    /// Bytes its writable directories may hold.
    pub disk_bytes: Option<u64>,
}

/// Less memory than this and the first process of the jail itself would not fit; creation is refused.
const LEAST_MEMORY: u64 = 4 << 20;
/// The kernel gives a control group at least 1 ms of each 100 ms; less is refused.
const LEAST_CPU: u64 = 10;
/// Three empty directories already take blocks; less is refused.
const LEAST_DISK: u64 = 64 << 10;

/// Processes a processor, of a jail that asks for no number: builds have fewer, and so many that all run
/// still leave the host the time to end them (with 4,096 on two processors it took minutes to get its turn). One
/// more ends the jail with the limit `processes`.
const PROCESSES_A_CPU: u32 = 256;

/// The most processes a processor that a jail may ask for where its host says nothing: four times the usual
/// number. A host that knows its load may give more.
const MOST_PROCESSES_A_CPU: u32 = 1_024;

impl Bounds {
    /// What a jail gets that asks for nothing. A quarter of the memory stays with the host, so that the
    /// jail is ended before the machine runs out; half of the disk, so that a second jail, and what is brought
    /// back from the first, still have room.
    pub(super) fn usual(machine: &Machine) -> Bounds {
        Bounds {
            memory_bytes: Some(machine.memory / 4 * 3),
            processes: Some((PROCESSES_A_CPU * machine.cpus).min(machine.processes / 2)),
            cpu_millis: None,
            disk_bytes: Some(machine.used + machine.disk / 2),
        }
    }

    /// The most a jail may ask for where its host says nothing: a sixteenth of memory and disk stay with the
    /// host, which has to end and delete it.
    pub(super) fn most(machine: &Machine) -> Bounds {
        Bounds {
            memory_bytes: Some(machine.memory / 16 * 15),
            processes: Some((MOST_PROCESSES_A_CPU * machine.cpus).min(machine.processes / 16 * 15)),
            cpu_millis: None,
            disk_bytes: Some(machine.used + machine.disk / 16 * 15),
        }
    }

    /// These bounds with the usual ones where nothing is set, none above the ceilings.
    pub(super) fn fitted(self, usual: Bounds, ceilings: Bounds) -> Result<Bounds, JailError> {
        Ok(Bounds {
            memory_bytes: fit(
                "memory-bytes",
                LEAST_MEMORY,
                self.memory_bytes,
                usual.memory_bytes,
                ceilings.memory_bytes,
            )?,
            processes: fit("processes", 1, self.processes, usual.processes, ceilings.processes)?,
            cpu_millis: fit("cpu-millis", LEAST_CPU, self.cpu_millis, usual.cpu_millis, ceilings.cpu_millis)?,
            disk_bytes: fit(
                "disk-bytes",
                LEAST_DISK,
                self.disk_bytes,
                usual.disk_bytes,
                ceilings.disk_bytes,
            )?,
        })
    }

    /// These bounds, and the others where nothing is set.
    pub(super) fn or(self, others: Bounds) -> Bounds {
        Bounds {
            memory_bytes: self.memory_bytes.or(others.memory_bytes),
            processes: self.processes.or(others.processes),
            cpu_millis: self.cpu_millis.or(others.cpu_millis),
            disk_bytes: self.disk_bytes.or(others.disk_bytes),
        }
    }
}

fn smaller<N: Ord>(one: Option<N>, other: Option<N>) -> Option<N> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn fit<N: Copy + Ord + Into<u64>>(
    bound: &'static str,
    least: u64,
    asked: Option<N>,
    usual: Option<N>,
    ceiling: Option<N>,
) -> Result<Option<N>, JailError> {
    let most = ceiling.map_or(u64::MAX, Into::into);
    match asked.or(smaller(usual, ceiling)) {
        None => Ok(None),
        Some(value) if value.into() < least && asked.is_none() => {
            Err(JailError::NothingLeft { bound, least, left: value.into() })
        }
        Some(value) if value.into() < least || value.into() > most => {
            Err(JailError::Bound { bound, least, most, value: value.into() })
        }
        value => Ok(value),
    }
}

/// Who holds a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Enforcement {
    /// The bound is not set.
    Unbounded,
    /// The kernel: it cannot be passed.
    Kernel,
    /// The host looks several times a second: it can be passed for a moment.
    Sampled,
    /// The kernel holds it, at the level of a user: passed by one at most.
    UserLimit,
    /// Set and not held, because the layer that holds it was given up.
    NotHeld,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Machine =
        Machine { memory: 16 << 30, processes: 100_000, cpus: 4, disk: 100 << 30, used: 0 };

    fn fitted(asked: Bounds, ceilings: Bounds) -> Result<Bounds, JailError> {
        asked.fitted(Bounds::usual(&MACHINE), ceilings.or(Bounds::most(&MACHINE)))
    }

    #[test]
    fn what_is_not_asked_for_is_a_part_of_the_machine() {
        let usual = fitted(Bounds::default(), Bounds::default()).unwrap();
        let expected = Bounds {
            memory_bytes: Some(12 << 30),
            processes: Some(1024),
            cpu_millis: None,
            disk_bytes: Some(50 << 30),
        };
        assert_eq!(usual, expected);
    }

    #[test]
    fn what_is_asked_for_counts_up_to_the_ceiling_of_the_host() {
        let ceilings = Bounds { processes: Some(200), cpu_millis: Some(500), ..Bounds::default() };
        let asked = Bounds { memory_bytes: Some(15 << 30), processes: Some(200), ..Bounds::default() };
        let got = fitted(asked, ceilings).unwrap();
        assert_eq!((got.memory_bytes, got.processes, got.cpu_millis), (Some(15 << 30), Some(200), Some(500)));
        for asked in [
            Bounds { memory_bytes: Some(16 << 30), ..Bounds::default() },
            Bounds { processes: Some(201), ..Bounds::default() },
            Bounds { cpu_millis: Some(501), ..Bounds::default() },
            Bounds { disk_bytes: Some(100 << 30), ..Bounds::default() },
            Bounds { memory_bytes: Some(1), ..Bounds::default() },
        ] {
            let error = fitted(asked, ceilings).unwrap_err();
            assert!(matches!(error, JailError::Bound { .. }), "{error}");
        }
    }

    #[test]
    fn a_jail_that_is_started_again_may_keep_what_it_has() {
        let nearly_full = Machine { disk: 2 << 30, used: 80 << 30, ..MACHINE };
        let usual = Bounds::default().fitted(Bounds::usual(&nearly_full), Bounds::most(&nearly_full));
        assert_eq!(usual.unwrap().disk_bytes, Some(81 << 30));
    }

    #[test]
    fn a_machine_with_nothing_left_says_what_is_missing() {
        let full = Machine { disk: 1000, ..MACHINE };
        let error = Bounds::default().fitted(Bounds::usual(&full), Bounds::most(&full)).unwrap_err();
        assert!(matches!(error, JailError::NothingLeft { bound: "disk-bytes", .. }), "{error}");
    }
}
