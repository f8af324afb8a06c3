//! One cache entry: a header, a keyed hash, and compiled code.
//!
//! ```text
//! magic (8) | keyed hash (32) | digest of the component (32) | its size (8) | code
//! ```
//! The hash covers everything after itself.

use crate::provider::Digest;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use wasmtime::Engine;
use wasmtime::component::Component;

/// Marks the layout; a change of layout changes it, and older entries are compiled again.
const MAGIC: &[u8; 8] = b"LSHCODE1";

const HASH: usize = blake3::OUT_LEN;
const DIGEST: usize = blake3::OUT_LEN;
const SIZE: usize = size_of::<u64>();

/// Makes an entry.
pub(super) fn seal(key: &[u8; blake3::KEY_LEN], digest: Digest, size: u64, code: &[u8]) -> Vec<u8> {
    let mut entry = Vec::with_capacity(MAGIC.len() + HASH + DIGEST + SIZE + code.len());
    entry.extend_from_slice(MAGIC);
    entry.extend_from_slice(&[0; HASH]);
    entry.extend_from_slice(digest.0.as_bytes());
    entry.extend_from_slice(&size.to_le_bytes());
    entry.extend_from_slice(code);
    let (head, covered) = entry.split_at_mut(MAGIC.len() + HASH);
    head[MAGIC.len()..].copy_from_slice(blake3::keyed_hash(key, covered).as_bytes());
    entry
}

/// The size and the code of an entry; none when it is not one that [`seal`] made for this component.
pub(super) fn open<'a>(
    key: &[u8; blake3::KEY_LEN],
    digest: Digest,
    entry: &'a [u8],
) -> Option<(u64, &'a [u8])> {
    let rest = entry.strip_prefix(MAGIC)?;
    let (hash, covered) = rest.split_first_chunk::<HASH>()?;
    // The comparison of hashes takes the same time wherever they differ.
    if blake3::keyed_hash(key, covered) != blake3::Hash::from_bytes(*hash) {
        return None;
    }
    let (of, rest) = covered.split_first_chunk::<DIGEST>()?;
    let (size, code) = rest.split_first_chunk::<SIZE>()?;
    (digest.0 == blake3::Hash::from_bytes(*of)).then_some((u64::from_le_bytes(*size), code))
}

/// The component in authenticated code; none when the engine does not take it.
#[expect(unsafe_code, reason = "loading compiled code is one of the two reviewed places")]
pub(super) fn component(engine: &Engine, code: &[u8]) -> Option<Component> {
    // SAFETY: `code` comes out of `open`, so it carries a hash under a key that only this user can read,
    // over the exact bytes passed here: they are what `Component::serialize` gave this user's own host.
    // The engine itself checks that they were made by the same version with the same settings.
    unsafe { Component::deserialize(engine, code) }.ok()
}

/// Names the build and the settings of the engine, for an entry's file name.
pub(super) fn compatibility(engine: &Engine) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_opens_only_whole_with_its_key_and_for_its_component() {
        let (key, digest) = ([7; 32], Digest::of(b"component"));
        let entry = seal(&key, digest, 9, b"code");
        assert_eq!(open(&key, digest, &entry), Some((9, &b"code"[..])));
        assert_eq!(open(&[8; 32], digest, &entry), None);
        assert_eq!(open(&key, Digest::of(b"another"), &entry), None);
        for length in 0..entry.len() {
            assert_eq!(open(&key, digest, &entry[..length]), None, "cut at {length}");
        }
        for position in 0..entry.len() {
            let mut changed = entry.clone();
            changed[position] ^= 1;
            assert_eq!(open(&key, digest, &changed), None, "changed at {position}");
        }
    }
}
