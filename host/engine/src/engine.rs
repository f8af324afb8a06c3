//! The engine: one for a process, shared by every provider.

use crate::cache::Cache;
use crate::call::CallState;
use crate::config::{Allocation, config};
use crate::host::{self, Facilities};
use crate::limits::CONCURRENT_CALLS;
use crate::ticker::{Awake, Ticker};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::component::Linker;

/// Runs providers. Cheap to clone; all clones are one engine. Make one for a process: each reserves
/// address space and has a thread.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    wasmtime: wasmtime::Engine,
    linker: Linker<CallState>,
    allocation: Allocation,
    ticker: Ticker,
    places: Arc<Semaphore>,
    cache: Option<Cache>,
    facilities: Facilities,
}

/// How an engine is made.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// Where compiled components are kept; none compiles each time.
    pub cache: Option<Cache>,
    /// Interfaces that somebody other than the engine implements.
    pub facilities: Facilities,
    /// How instances get their memory; none takes the best the machine has.
    pub allocation: Option<Allocation>,
}

/// The engine could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The engine underneath refuses its settings on this machine.
    #[error("the engine cannot run on this machine: {reason}")]
    Unsupported {
        /// What it says.
        reason: String,
    },
    /// The system refuses the ticker's thread.
    #[error("the engine needs a thread for its clock and cannot have one: {0}")]
    Thread(#[source] std::io::Error),
}

impl Engine {
    /// Makes an engine; without a choice of allocation, pooled where the machine has the address space.
    ///
    /// # Errors
    /// When the engine underneath does not run here.
    pub fn new(options: EngineOptions) -> Result<Engine, EngineError> {
        if let Some(allocation) = options.allocation {
            return Engine::with_allocation(allocation, &options);
        }
        match Engine::with_allocation(Allocation::Pooled, &options) {
            Err(EngineError::Unsupported { reason }) => {
                tracing::warn!(reason, "no pool of instances; calls start more slowly");
                Engine::with_allocation(Allocation::OnDemand, &options)
            }
            made => made,
        }
    }

    fn with_allocation(allocation: Allocation, options: &EngineOptions) -> Result<Engine, EngineError> {
        let EngineOptions { cache, facilities, .. } = options.clone();
        let unsupported = |error| EngineError::Unsupported { reason: format!("{error:#}") };
        let wasmtime = wasmtime::Engine::new(&config(allocation)).map_err(unsupported)?;
        let linker = host::linker(&wasmtime, &facilities).map_err(unsupported)?;
        let ticker = Ticker::start(&wasmtime).map_err(EngineError::Thread)?;
        let places = Arc::new(Semaphore::new(CONCURRENT_CALLS));
        Ok(Engine(Arc::new(Inner { wasmtime, linker, allocation, ticker, places, cache, facilities })))
    }

    /// How instances get their memory.
    pub fn allocation(&self) -> Allocation {
        self.0.allocation
    }

    /// Calls that could start now without waiting.
    pub fn free_places(&self) -> usize {
        self.0.places.available_permits()
    }

    pub(crate) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.0.wasmtime
    }

    pub(crate) fn linker(&self) -> &Linker<CallState> {
        &self.0.linker
    }

    pub(crate) fn cache(&self) -> Option<&Cache> {
        self.0.cache.as_ref()
    }

    pub(crate) fn facilities(&self) -> &Facilities {
        &self.0.facilities
    }

    /// Waits for places among the calls that run at one time; none only when the engine is gone.
    pub(crate) async fn places(&self, count: u32) -> Option<OwnedSemaphorePermit> {
        self.0.places.clone().acquire_many_owned(count).await.ok()
    }

    pub(crate) fn awake(&self) -> Awake {
        self.0.ticker.wake()
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("allocation", &self.0.allocation).finish_non_exhaustive()
    }
}
