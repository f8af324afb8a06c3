//! `leasehold:host/egress-status`: why the latest request of a call was refused.

use crate::reach::{self, Reach};
use leasehold_engine::bindings::imports::egress_status::{Host, Verdict, add_to_linker};
use leasehold_engine::call::CallState;
use leasehold_engine::{Facility, Scope};
use std::sync::Arc;
use wasmtime::component::{HasData, Linker};

/// Tells guests why a request was refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct EgressFacility;

impl Facility for EgressFacility {
    fn interfaces(&self) -> &'static [&'static str] {
        &["leasehold:host/egress-status"]
    }

    fn link(&self, linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
        add_to_linker::<_, Views>(linker, |state| View(state.counted_scope()))
    }
}

struct Views;

impl HasData for Views {
    type Data<'a> = View;
}

struct View(Arc<Scope>);

impl Host for View {
    async fn latest(&mut self) -> wasmtime::Result<Option<Verdict>> {
        let latest = self.0.authority::<Reach>().and_then(|reach| reach.latest());
        Ok(latest.map(|verdict| match verdict {
            reach::Verdict::Allowed => Verdict::Allowed,
            reach::Verdict::Denied(reason) => Verdict::Denied(reason),
            reach::Verdict::Limit(reason) => Verdict::Limit(reason),
        }))
    }
}
