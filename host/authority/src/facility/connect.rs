//! `leasehold:host/connect` over [`crate::connect`].

use crate::connect::{Failed, Open, open};
use crate::http::HttpEdge;
use leasehold_engine::bindings::imports::connect::{ConnectError, Host, HostConnection, add_to_linker};
use leasehold_engine::bindings::port::Connection;
use leasehold_engine::call::CallState;
use leasehold_engine::{Facility, Scope};
use std::sync::Arc;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

/// Plain connections for guests that were granted them.
#[derive(Debug)]
pub struct ConnectFacility(Arc<HttpEdge>);

impl ConnectFacility {
    /// Connections that find addresses as this edge does.
    pub fn new(edge: Arc<HttpEdge>) -> Self {
        ConnectFacility(edge)
    }
}

impl Facility for ConnectFacility {
    fn interfaces(&self) -> &'static [&'static str] {
        &["leasehold:host/connect"]
    }

    fn link(&self, linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
        add_to_linker::<_, Views>(linker, |state| {
            let scope = state.scope().clone();
            let (kept, table) = state.keeping(|_, facilities| Kept {
                edge: facilities.find::<ConnectFacility>().map(|facility| facility.0.clone()),
                open: Open::default(),
            });
            View { kept, table, scope }
        })
    }
}

struct Kept {
    edge: Option<Arc<HttpEdge>>,
    open: Open,
}

struct Views;

impl HasData for Views {
    type Data<'a> = View<'a>;
}

struct View<'a> {
    kept: &'a mut Kept,
    table: &'a mut ResourceTable,
    scope: Arc<Scope>,
}

impl Host for View<'_> {
    async fn open(&mut self, name: String) -> wasmtime::Result<Result<Resource<Connection>, ConnectError>> {
        let Some(edge) = self.kept.edge.clone() else {
            return Ok(Err(ConnectError::Denied("this host has no connections".into())));
        };
        match open(&edge, &self.scope, &self.kept.open, &name).await {
            Ok(connection) => Ok(Ok(self.table.push(Connection(Box::new(connection)))?)),
            Err(Failed::Denied(reason)) => Ok(Err(ConnectError::Denied(reason))),
            Err(Failed::Unreachable(reason)) => Ok(Err(ConnectError::Unreachable(reason))),
            Err(Failed::Timeout) => Ok(Err(ConnectError::Timeout)),
            Err(Failed::Limit(reason)) => Ok(Err(ConnectError::Limit(reason))),
        }
    }
}

impl HostConnection for View<'_> {
    async fn incoming(
        &mut self,
        connection: Resource<Connection>,
    ) -> wasmtime::Result<Result<Resource<DynInputStream>, ()>> {
        Ok(match self.table.get_mut(&connection)?.0.incoming() {
            Some(stream) => Ok(self.table.push(stream)?),
            None => Err(()),
        })
    }

    async fn outgoing(
        &mut self,
        connection: Resource<Connection>,
    ) -> wasmtime::Result<Result<Resource<DynOutputStream>, ()>> {
        Ok(match self.table.get_mut(&connection)?.0.outgoing() {
            Some(stream) => Ok(self.table.push(stream)?),
            None => Err(()),
        })
    }

    async fn finish(
        &mut self,
        connection: Resource<Connection>,
    ) -> wasmtime::Result<Result<(), ConnectError>> {
        Ok(self.table.get_mut(&connection)?.0.finish().await)
    }

    async fn drop(&mut self, connection: Resource<Connection>) -> wasmtime::Result<()> {
        self.table.delete(connection)?;
        Ok(())
    }
}
