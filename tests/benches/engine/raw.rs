//! The engine underneath, used as its documentation shows, with no limit but its own: the baseline.

use leasehold_engine::bindings::exports::acquire_lease::GuestIndices;
use wasmtime::component::{Component, InstancePre, Linker, ResourceTable};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

pub(crate) struct Raw {
    engine: Engine,
    pre: InstancePre<State>,
    indices: GuestIndices,
}

struct State {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Pooled, without fuel and without epochs.
pub(crate) fn config() -> Config {
    let mut config = Config::new();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
    config
}

fn pool() -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::default();
    pool.max_memory_size(256 << 20).table_elements(200_000);
    pool
}

impl Raw {
    /// With the engine's default pool.
    pub(crate) fn new(component: &[u8]) -> Raw {
        Raw::with(component, &config())
    }

    /// With a pool that keeps pages as ours does, so that only what our side does differs.
    pub(crate) fn tuned(component: &[u8]) -> Raw {
        let mut config = config();
        let mut tuned = pool();
        tuned.linear_memory_keep_resident(256 << 10).table_keep_resident(256 << 10);
        tuned.pagemap_scan(Enabled::Auto);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(tuned));
        Raw::with(component, &config)
    }

    fn with(component: &[u8], config: &Config) -> Raw {
        let engine = Engine::new(config).unwrap();
        let mut linker = Linker::<State>::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).unwrap();
        let component = Component::new(&engine, component).unwrap();
        let pre = linker.instantiate_pre(&component).unwrap();
        let indices = GuestIndices::new(&pre).unwrap();
        Raw { engine, pre, indices }
    }

    /// Store, WASI context, instance, call, drop.
    pub(crate) async fn fresh(&self) {
        let state = State { wasi: WasiCtx::builder().build(), table: ResourceTable::new() };
        let mut store = Store::new(&self.engine, state);
        let instance = self.pre.instantiate_async(&mut store).await.unwrap();
        let guest = self.indices.load(&mut store, &instance).unwrap();
        let context = leasehold_tests::context("{}");
        let request = leasehold_tests::act::acquire("name-1");
        guest.call_acquire_lease(&mut store, &context, &request).await.unwrap().unwrap();
    }
}
