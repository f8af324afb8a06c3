//! What a store holds during one call.

use crate::call::limiter::Limiter;
use crate::call::scope::{Filter, Scope};
use crate::call::stream::Said;
use crate::host::{Facilities, Facility};
use crate::limits::Limit;
use bytes::Bytes;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, InputStream, OutputStream, Pollable, StreamResult};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView, async_trait};

/// What a store holds during one call. Made for the call and dropped with it.
pub struct CallState {
    wasi: WasiCtx,
    pub(crate) table: ResourceTable,
    pub(crate) limiter: Limiter,
    pub(crate) log: LogBudget,
    pub(crate) said: Said,
    pub(crate) host_calls: u64,
    scope: Arc<Scope>,
    facilities: Facilities,
    /// What facilities keep for this call alone, each under a type of its own.
    kept: Vec<Box<dyn Any + Send>>,
}

/// How much a call may still log.
#[derive(Debug)]
pub(crate) struct LogBudget {
    pub(crate) lines: u64,
    pub(crate) lines_left: u64,
    pub(crate) bytes_left: u64,
    /// When the current second began, and how many lines it has had.
    pub(crate) second: Instant,
    pub(crate) lines_this_second: u64,
    /// The longest message; longer ones are cut.
    pub(crate) message_bytes: usize,
}

impl LogBudget {
    /// Whether one more line fits into the current second.
    pub(crate) fn in_time(&mut self, per_second: u64) -> bool {
        let now = Instant::now();
        if now.duration_since(self.second) >= Duration::from_secs(1) {
            (self.second, self.lines_this_second) = (now, 0);
        }
        self.lines_this_second += 1;
        self.lines_this_second <= per_second
    }
}

impl CallState {
    pub(crate) fn new(scope: Arc<Scope>, facilities: Facilities) -> Self {
        let limits = &scope.limits;
        let said = Said::new(limits);
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.size(Limit::Handles));
        // Environment, arguments, directories, addresses and names are all denied by leaving them out.
        let mut wasi = WasiCtx::builder();
        wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
        wasi.max_random_size(limits.get(Limit::Random));
        wasi.stdout(said.clone()).stderr(said.clone());
        CallState {
            wasi: wasi.build(),
            table,
            limiter: Limiter::new(limits),
            log: LogBudget {
                lines: 0,
                lines_left: limits.get(Limit::LogLines),
                bytes_left: limits.get(Limit::LogBytes),
                message_bytes: limits.size(Limit::Message),
                second: Instant::now(),
                lines_this_second: 0,
            },
            said,
            host_calls: 0,
            scope,
            facilities,
            kept: Vec::new(),
        }
    }

    /// Who the call is for and what it may reach.
    pub fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    /// The same, for the functions of a facility. Counts as a call into the host.
    pub fn counted_scope(&mut self) -> Arc<Scope> {
        self.host_calls += 1;
        self.scope.clone()
    }

    /// What a facility keeps for this call, made when it is first asked for, beside the call's resources.
    /// Counts as a call into the host.
    pub fn keeping<S: Any + Send>(
        &mut self,
        make: impl FnOnce(&Arc<Scope>, &Facilities) -> S,
    ) -> (&mut S, &mut ResourceTable) {
        self.host_calls += 1;
        let found = self.kept.iter().position(|kept| kept.is::<S>());
        let place = found.unwrap_or_else(|| {
            self.kept.push(Box::new(make(&self.scope, &self.facilities)));
            self.kept.len() - 1
        });
        match self.kept[place].downcast_mut() {
            Some(kept) => (kept, &mut self.table),
            None => unreachable!("it was looked up by this type"),
        }
    }

    /// The facility of this type, for its own interface functions. Counts as a call into the host.
    pub fn facility<F: Facility>(&mut self) -> Option<Arc<F>> {
        self.host_calls += 1;
        self.facilities.find()
    }

    /// Takes secrets out of a stream that leaves the guest.
    pub(crate) fn filter(&self) -> Option<Box<dyn Filter>> {
        self.scope.authority.as_ref().and_then(|authority| authority.filter())
    }

    /// The resources of the call, for the functions of a facility.
    pub fn table(&mut self) -> &mut ResourceTable {
        &mut self.table
    }

    /// Puts an input stream into the table, so that what is read from it is counted.
    pub(crate) fn push_input(&mut self, inner: DynInputStream) -> wasmtime::Result<Resource<DynInputStream>> {
        let read = self.scope.meter.bytes_in.clone();
        Ok(self.table.push(Box::new(CountedIn { inner, read }) as DynInputStream)?)
    }

    /// Puts an output stream into the table, so that what is written to it is counted.
    pub(crate) fn push_output(
        &mut self,
        inner: DynOutputStream,
    ) -> wasmtime::Result<Resource<DynOutputStream>> {
        let written = self.scope.meter.bytes_out.clone();
        Ok(self.table.push(Box::new(CountedOut { inner, written }) as DynOutputStream)?)
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        // Every WASI function asks for its context exactly once, so this counts the calls.
        self.host_calls += 1;
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

struct CountedIn {
    inner: DynInputStream,
    read: Arc<AtomicU64>,
}

#[async_trait]
impl Pollable for CountedIn {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[async_trait]
impl InputStream for CountedIn {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let bytes = self.inner.read(size)?;
        self.read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes)
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

struct CountedOut {
    inner: DynOutputStream,
    written: Arc<AtomicU64>,
}

#[async_trait]
impl Pollable for CountedOut {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[async_trait]
impl OutputStream for CountedOut {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.inner.check_write()
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}
