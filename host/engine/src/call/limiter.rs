//! Memory and tables of a store, counted together.
//!
//! The engine asks for each memory and each table on its own; a limit on each would let a component with
//! a hundred memories use a hundred times as much. So every growth goes through one sum.

use crate::limits::{CORE_INSTANCES_MAX, Limit, Limits, STRUCTURE_MAX};
use wasmtime::ResourceLimiter;

/// Host bytes behind one table element.
const ELEMENT_BYTES: usize = size_of::<usize>();

/// How often a refused guest may ask again. An allocator asks a few times and gives up; one that goes on
/// would burn its whole fuel. Hit: the call ends with the limit that was refused.
const REFUSALS_MAX: u64 = 64;

/// The limit that stopped a growth, raised inside the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("limit `{limit}` hit: {at} of at most {allowed}")]
pub(crate) struct Hit {
    pub(crate) limit: Limit,
    pub(crate) allowed: u64,
    pub(crate) at: u64,
}

#[derive(Debug)]
pub(crate) struct Limiter {
    bytes_max: usize,
    elements_max: usize,
    bytes: usize,
    elements: usize,
    pub(crate) peak: usize,
    pub(crate) refusals: u64,
    /// The latest growth, if it was refused. A guest that got what it asked for afterwards did not end for it.
    pub(crate) refused: Option<Hit>,
}

impl Limiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        Limiter {
            bytes_max: limits.size(Limit::Memory),
            elements_max: limits.size(Limit::Tables),
            bytes: 0,
            elements: 0,
            peak: 0,
            refusals: 0,
            refused: None,
        }
    }

    fn add_bytes(&mut self, more: usize) -> wasmtime::Result<bool> {
        let wanted = self.bytes.saturating_add(more);
        if wanted > self.bytes_max {
            return self.refuse(Limit::Memory, self.bytes_max, wanted);
        }
        self.bytes = wanted;
        self.peak = self.peak.max(wanted);
        self.refused = None;
        Ok(true)
    }

    fn refuse(&mut self, limit: Limit, allowed: usize, at: usize) -> wasmtime::Result<bool> {
        let hit = Hit { limit, allowed: allowed as u64, at: at as u64 };
        self.refused = Some(hit);
        self.refusals += 1;
        if self.refusals > REFUSALS_MAX { Err(hit.into()) } else { Ok(false) }
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        self.add_bytes(desired.saturating_sub(current))
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        let wanted = self.elements.saturating_add(more);
        if wanted > self.elements_max {
            return self.refuse(Limit::Tables, self.elements_max, wanted);
        }
        let granted = self.add_bytes(more.saturating_mul(ELEMENT_BYTES))?;
        if granted {
            self.elements = wanted;
        }
        Ok(granted)
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES_MAX
    }

    fn tables(&self) -> usize {
        STRUCTURE_MAX
    }

    fn memories(&self) -> usize {
        STRUCTURE_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(bytes: u64, elements: u64) -> Limiter {
        let limits = Limits::default().with(Limit::Memory, bytes).unwrap();
        Limiter::new(&limits.with(Limit::Tables, elements).unwrap())
    }

    #[test]
    fn two_memories_share_one_sum() {
        let mut limiter = limiter(100, 10);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(0, 60, None).unwrap());
        assert_eq!(limiter.refused, Some(Hit { limit: Limit::Memory, allowed: 100, at: 120 }));
        assert!(limiter.memory_growing(60, 100, None).unwrap());
        assert_eq!((limiter.refused, limiter.peak), (None, 100));
    }

    #[test]
    fn a_table_counts_as_elements_and_as_bytes() {
        let mut limiter = limiter(100, 10);
        assert!(limiter.table_growing(0, 10, None).unwrap());
        assert!(!limiter.table_growing(10, 11, None).unwrap());
        assert_eq!(limiter.refused.unwrap().limit, Limit::Tables);
        assert!(!limiter.memory_growing(0, 30, None).unwrap());
        assert_eq!(limiter.refused.unwrap().limit, Limit::Memory);
    }

    #[test]
    fn a_guest_that_asks_for_ever_is_ended() {
        let mut limiter = limiter(100, 10);
        let ended = (0..1_000).find_map(|_| limiter.memory_growing(0, 101, None).err());
        assert_eq!(ended.unwrap().downcast_ref::<Hit>().unwrap().limit, Limit::Memory);
        assert_eq!(limiter.refusals, REFUSALS_MAX + 1);
    }
}
