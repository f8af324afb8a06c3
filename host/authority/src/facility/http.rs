//! `wasi:http` over [`crate::http`].

use crate::http::{HttpEdge, Kept};
use leasehold_engine::Facility;
use leasehold_engine::call::CallState;
use std::sync::Arc;
use wasmtime::component::Linker;
use wasmtime_wasi_http::p2::bindings::{LinkOptions, http};
use wasmtime_wasi_http::{WasiHttp, WasiHttpCtxView};

/// Outgoing HTTP for guests that were granted it.
#[derive(Debug)]
pub struct HttpFacility(Arc<HttpEdge>);

impl HttpFacility {
    /// HTTP through this edge.
    pub fn new(edge: Arc<HttpEdge>) -> Self {
        HttpFacility(edge)
    }
}

impl Facility for HttpFacility {
    fn interfaces(&self) -> &'static [&'static str] {
        &["wasi:http/types", "wasi:http/outgoing-handler"]
    }

    fn link(&self, linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
        http::outgoing_handler::add_to_linker::<_, WasiHttp>(linker, view)?;
        http::types::add_to_linker::<_, WasiHttp>(linker, &(&LinkOptions::default()).into(), view)
    }
}

fn view(state: &mut CallState) -> WasiHttpCtxView<'_> {
    let (kept, table) = state.keeping(|scope, facilities| {
        let edge = facilities.find::<HttpFacility>().map(|facility| facility.0.clone());
        Kept::new(edge, scope)
    });
    WasiHttpCtxView { hooks: &mut kept.hooks, ctx: &mut kept.context, table }
}
