//! What a declaration says of each capability.

use super::Capability;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// What a declaration says of each capability: `true`, `false`, or nothing.
///
/// Serialized it is the `sandboxCapabilities` object: only the keys that say something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    values: [Option<bool>; Capability::ALL.len()],
}

impl Declared {
    /// A declaration that says nothing of any capability.
    pub const fn nothing() -> Self {
        Declared { values: [None; Capability::ALL.len()] }
    }

    /// The same with one key set.
    #[must_use]
    pub fn with(mut self, capability: Capability, value: bool) -> Self {
        self.values[capability as usize] = Some(value);
        self
    }

    /// Folds the older driver field `supportsReusableLeases` in. It counts only where `reusableLeases` itself
    /// says nothing, so an old `true` never overrides a new `false`.
    #[must_use]
    pub fn with_legacy_reuse(mut self, legacy: Option<bool>) -> Self {
        let value = &mut self.values[Capability::ReusableLeases as usize];
        *value = value.or(legacy);
        self
    }

    /// What the declaration says of this capability; none when it says nothing.
    pub fn get(&self, capability: Capability) -> Option<bool> {
        self.values[capability as usize]
    }

    /// Whether the declaration leaves the way open for this capability: never when it says `false`, and only
    /// with an explicit `true` when the key is opt-in.
    pub fn allows(&self, capability: Capability) -> bool {
        self.get(capability).unwrap_or(!capability.opt_in())
    }

    /// Whether the declaration says nothing at all.
    pub fn is_empty(&self) -> bool {
        self.values.iter().all(Option::is_none)
    }
}

impl FromIterator<(Capability, bool)> for Declared {
    fn from_iter<I: IntoIterator<Item = (Capability, bool)>>(values: I) -> Self {
        values.into_iter().fold(Declared::nothing(), |declared, (key, value)| declared.with(key, value))
    }
}

impl Serialize for Declared {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for capability in Capability::ALL {
            if let Some(value) = self.get(capability) {
                map.serialize_entry(capability.name(), &value)?;
            }
        }
        map.end()
    }
}
