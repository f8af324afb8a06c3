//! What came of a start: which layers are in force, and who holds which bound.

use super::cgroup::{Cgroups, Controller};
use super::protocol::{REFUSED_CGROUP_NAMESPACE, REFUSED_PSEUDO_TERMINALS};
use super::start::unsupported;
use super::{Bounds, Demand, Enforcement, Grant, Isolation, JailError, Layer};
use std::collections::BTreeMap;
use std::io;

/// A bound on processor time has no other way to be held; and a caller may insist on all of them.
pub(super) fn check_cgroups(
    cgroups: &Cgroups,
    bounds: &Bounds,
    isolation: &Isolation,
) -> Result<(), JailError> {
    let Some(refusals) = cgroups.refusals() else { return Ok(()) };
    let required = isolation.demand(Layer::Cgroup) == Demand::Required;
    if required || (bounds.cpu_millis.is_some() && !cgroups.holds(Controller::Processor)) {
        return Err(unsupported(Layer::Cgroup, "hold the bounds", io::Error::other(refusals)));
    }
    Ok(())
}

pub(super) fn note_layers(
    layers: &mut BTreeMap<Layer, Grant>,
    isolation: &Isolation,
    refused: u32,
    cgroups: &Cgroups,
) {
    for layer in Layer::ALL {
        let grant = if isolation.waived(*layer) { Grant::Waived } else { Grant::Granted };
        layers.entry(*layer).or_insert(grant);
    }
    let mut refuse = |layer, why: String| {
        layers.insert(layer, Grant::Refused(why));
    };
    if refused & REFUSED_CGROUP_NAMESPACE != 0 {
        refuse(Layer::CgroupNamespace, "the kernel refuses to make one".into());
    }
    if refused & REFUSED_PSEUDO_TERMINALS != 0 {
        refuse(Layer::PseudoTerminals, "the kernel refuses to mount them".into());
    }
    if let Some(why) = cgroups.refusals() {
        refuse(Layer::Cgroup, why);
    }
}

pub(super) fn enforcement(
    bounds: &Bounds,
    cgroups: &Cgroups,
    isolation: &Isolation,
) -> BTreeMap<&'static str, Enforcement> {
    let pick = |set: bool, controller: Option<Controller>, otherwise| match controller {
        _ if !set => Enforcement::Unbounded,
        Some(controller) if cgroups.holds(controller) => Enforcement::Kernel,
        _ => otherwise,
    };
    let user_limit = if isolation.waived_by_name(Layer::UserNamespace) {
        Enforcement::Sampled
    } else {
        Enforcement::UserLimit
    };
    BTreeMap::from([
        ("memory-bytes", pick(bounds.memory_bytes.is_some(), Some(Controller::Memory), Enforcement::Sampled)),
        ("processes", pick(bounds.processes.is_some(), Some(Controller::Processes), user_limit)),
        ("cpu-millis", pick(bounds.cpu_millis.is_some(), Some(Controller::Processor), Enforcement::NotHeld)),
        ("disk-bytes", pick(bounds.disk_bytes.is_some(), None, Enforcement::Sampled)),
    ])
}
