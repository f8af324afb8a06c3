//! The intersection, and the reason for every denial.

use super::{Capability, Declared, IdentityFailure, Narrowing};
use crate::verification::{Verdict, Verification};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// How one capability came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resolution {
    effective: bool,
    verified: bool,
    declared: Option<bool>,
    narrowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Resolution {
    /// Whether the run has the capability.
    pub fn effective(&self) -> bool {
        self.effective
    }

    /// Whether every method it needs is verified.
    pub fn verified(&self) -> bool {
        self.verified
    }

    /// What the declaration says; none when it says nothing or is not known.
    pub fn declared(&self) -> Option<bool> {
        self.declared
    }

    /// Whether this run took it away.
    pub fn narrowed(&self) -> bool {
        self.narrowed
    }

    /// Every cause of a denial, joined by `; ` in the order verified, declared, narrowed. None exactly when
    /// the capability is effective.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }
}

/// What a run has. It cannot be changed, only made by [`resolve`] or [`deny`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    keys: [Resolution; Capability::ALL.len()],
}

impl Effective {
    /// Whether the run has the capability.
    pub fn has(&self, capability: Capability) -> bool {
        self.get(capability).effective
    }

    /// How the capability came out.
    pub fn get(&self, capability: Capability) -> &Resolution {
        &self.keys[capability as usize]
    }

    /// Every capability with how it came out, in the table's order.
    pub fn iter(&self) -> impl Iterator<Item = (Capability, &Resolution)> {
        Capability::ALL.into_iter().zip(&self.keys)
    }
}

impl Serialize for Effective {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.keys.len()))?;
        for (capability, resolution) in self.iter() {
            map.serialize_entry(capability.name(), resolution)?;
        }
        map.end()
    }
}

/// What a run has of an identified provider: `verified ∩ declared ∩ narrowing`.
pub fn resolve(verification: &Verification, declared: &Declared, narrowing: &Narrowing) -> Effective {
    Effective {
        keys: Capability::ALL.map(|capability| resolve_one(capability, verification, declared, narrowing)),
    }
}

/// What a run has of a provider whose identity is not established: nothing. Methods and declaration are not
/// even looked at, because they may be another plugin's.
pub fn deny(failure: &IdentityFailure) -> Effective {
    let reason = format!("identity: {failure}");
    Effective {
        keys: Capability::ALL.map(|_| Resolution {
            effective: false,
            verified: false,
            declared: None,
            narrowed: false,
            reason: Some(reason.clone()),
        }),
    }
}

/// Whether files move the provider's own way: in and out together or not at all, and only when this very
/// lease can do it. Otherwise both directions use the fallback.
pub fn native_sync(effective: &Effective, lease_supports_sync: bool) -> bool {
    lease_supports_sync && effective.has(Capability::NativeSyncIn) && effective.has(Capability::NativeSyncOut)
}

/// Whether a provider is offered for reusable leases at all, before any run: it must have asked for it, and
/// all methods must be verified. The guard of an acquisition is the same question.
pub fn published_reusable(verification: &Verification, declared: &Declared) -> bool {
    declared.get(Capability::ReusableLeases) == Some(true)
        && Capability::ReusableLeases.verified_by(verification)
}

fn resolve_one(
    capability: Capability,
    verification: &Verification,
    declared: &Declared,
    narrowing: &Narrowing,
) -> Resolution {
    let verified = capability.verified_by(verification);
    let narrowed = narrowing.removes(capability);
    let effective = verified && declared.allows(capability) && !narrowed;
    Resolution {
        effective,
        verified,
        declared: declared.get(capability),
        narrowed,
        reason: (!effective).then(|| causes(capability, verification, declared, narrowing)),
    }
}

fn causes(
    capability: Capability,
    verification: &Verification,
    declared: &Declared,
    narrowing: &Narrowing,
) -> String {
    // Most texts fit, so that a snapshot costs one allocation a denial.
    let mut text = String::with_capacity(128);
    for method in capability.methods() {
        let verdict = verification.verdict(*method);
        if verdict.is_verified() {
            continue;
        }
        text.push_str(if text.is_empty() { "not verified: " } else { ", " });
        text.push_str(method.name());
        text.push(' ');
        match verdict {
            Verdict::Absent => text.push_str("absent"),
            other => text.push_str(&other.to_string()),
        }
    }
    if !declared.allows(capability) {
        separate(&mut text);
        text.push_str(match declared.get(capability) {
            Some(_) => "declared false",
            None => "not declared (opt-in)",
        });
    }
    for reason in narrowing.reasons(capability) {
        separate(&mut text);
        text.push_str("narrowed: ");
        text.push_str(reason);
    }
    text
}

fn separate(text: &mut String) {
    if !text.is_empty() {
        text.push_str("; ");
    }
}
