//! Interfaces that somebody other than the engine implements: jails, state, connections.

use crate::call::CallState;
use std::any::Any;
use std::sync::Arc;
use wasmtime::component::Linker;

/// Implements interfaces of the host package for every call of an engine.
///
/// Linking an interface grants nobody anything: a component gets it only when it wants it and was granted
/// the permission that covers it.
pub trait Facility: Any + Send + Sync {
    /// The interfaces, without version: `leasehold:host/jail`.
    fn interfaces(&self) -> &'static [&'static str];

    /// Adds the interfaces. The functions find the facility again with [`CallState::facility`].
    ///
    /// # Errors
    /// When the linker has one of them already.
    fn link(&self, linker: &mut Linker<CallState>) -> wasmtime::Result<()>;
}

/// The facilities of an engine. Cheap to clone.
#[derive(Clone, Default)]
pub struct Facilities(Arc<[Arc<dyn Facility>]>);

impl Facilities {
    /// Every facility.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<dyn Facility>> {
        self.0.iter()
    }

    /// Every interface that some facility implements.
    pub(crate) fn interfaces(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().flat_map(|facility| facility.interfaces().iter().copied())
    }

    /// The facility of this type.
    pub fn find<F: Facility>(&self) -> Option<Arc<F>> {
        self.0.iter().find_map(|facility| {
            let any: Arc<dyn Any + Send + Sync> = facility.clone();
            any.downcast().ok()
        })
    }
}

impl FromIterator<Arc<dyn Facility>> for Facilities {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Facility>>>(facilities: I) -> Self {
        Facilities(facilities.into_iter().collect())
    }
}

impl std::fmt::Debug for Facilities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.interfaces()).finish()
    }
}
