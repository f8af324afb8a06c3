//! How the engine underneath is set up.

use crate::limits::{CONCURRENT_CALLS, CORE_INSTANCES_MAX, LIMITS, Limit, STRUCTURE_MAX};
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig};

/// Stack a guest may use. A guest that recurses further traps; the host's own stack is separate.
const WASM_STACK: usize = 512 << 10;

/// Stack of a call, the guest's and the host functions' above it. The engine wants room beyond
/// [`WASM_STACK`] for host code that runs on it.
const CALL_STACK: usize = 2 << 20;

/// Memory of a used slot that is cleared instead of given back, in each memory and each table. Clearing a
/// little is cheaper than a page fault for each call; keeping much would add up over all slots.
const KEEP_RESIDENT: usize = 256 << 10;

/// Memory slots of the pool. Each reserves gigabytes of address space, so there are not as many as there
/// could be: a component with more than [`MEMORIES_A_PLACE`] takes several places (see [`places`]).
const MEMORIES: u32 = (CONCURRENT_CALLS * MEMORIES_A_PLACE as usize) as u32;

/// Memories that one place among the concurrent calls stands for. Most components have one.
const MEMORIES_A_PLACE: u32 = 2;

/// Core instances of the pool: enough for every call to have as many as a component may have.
const INSTANCES: u32 = (CONCURRENT_CALLS * CORE_INSTANCES_MAX) as u32;

/// Tables of the pool, likewise.
const TABLES: u32 = (CONCURRENT_CALLS * STRUCTURE_MAX) as u32;

/// How instances get their memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// From slots reserved once. Fast; reserves address space.
    Pooled,
    /// From the system, each time. For machines that limit address space.
    OnDemand,
}

/// The settings of the engine underneath.
pub(crate) fn config(allocation: Allocation) -> Config {
    let mut config = Config::new();
    config.consume_fuel(true);
    config.epoch_interruption(true);
    config.max_wasm_stack(WASM_STACK);
    config.async_stack_size(CALL_STACK);
    // What no guest tool needs is code nobody has to trust.
    config.wasm_relaxed_simd(false);
    config.wasm_tail_call(false);
    config.wasm_memory64(false);
    config.wasm_custom_page_sizes(false);
    config.wasm_wide_arithmetic(false);
    config.wasm_backtrace_max_frames(None);
    if allocation == Allocation::Pooled {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
    }
    config
}

/// Places that a call of a component takes, by its memories; those of an unknown structure take the most.
pub(crate) fn places(memories: Option<u32>) -> u32 {
    memories.unwrap_or(STRUCTURE_MAX as u32).div_ceil(MEMORIES_A_PLACE).max(1)
}

fn pool() -> PoolingAllocationConfig {
    let ceiling = |limit: Limit| LIMITS[limit as usize].ceiling;
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(CONCURRENT_CALLS as u32);
    pool.total_stacks(CONCURRENT_CALLS as u32);
    pool.total_core_instances(INSTANCES);
    pool.total_tables(TABLES);
    pool.total_memories(MEMORIES);
    pool.max_core_instances_per_component(CORE_INSTANCES_MAX as u32);
    pool.max_memories_per_component(STRUCTURE_MAX as u32);
    pool.max_tables_per_component(STRUCTURE_MAX as u32);
    pool.max_memory_size(ceiling(Limit::Memory) as usize);
    pool.table_elements(ceiling(Limit::Tables) as usize);
    // Interpreters keep much state in globals and function tables; these bound it, they reserve nothing.
    pool.max_core_instance_size(4 << 20);
    pool.max_component_instance_size(4 << 20);
    pool.linear_memory_keep_resident(KEEP_RESIDENT);
    pool.table_keep_resident(KEEP_RESIDENT);
    // Where the kernel tells which pages were written, only those are cleared.
    pool.pagemap_scan(Enabled::Auto);
    pool
}
