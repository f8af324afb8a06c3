//! The most this crate takes from a provider, whoever checked it before.

/// Bytes of an allocation's id: the longest names back ends give are resource paths of a few hundred. A
/// longer one is refused, and what it names is looked up by its creation name.
pub(crate) const ALLOCATION_ID: usize = 512;

/// Bytes of a lease's metadata, as in the contract. It is written with the lease and sent with every call,
/// so a longer one is refused and its allocation ended.
pub(crate) const METADATA: usize = 64 << 10;

/// Labels of a cleanup record, as in the contract. A record with more is refused.
pub(crate) const LABELS: usize = 16;

/// Bytes of a label's key or value: what back ends allow in a name.
pub(crate) const LABEL: usize = 200;

/// The longest text kept of one fault. Longer ones are a provider's whole log and would swell the store;
/// the beginning is kept.
pub(crate) const ERROR: usize = 4 << 10;

/// Refuses a text that is too long, saying which and by how much.
pub(crate) fn text(what: &str, text: &str, most: usize) -> Result<(), String> {
    match text.len() {
        length if length > most => Err(format!("{what} has {length} bytes, and at most {most} are taken")),
        _ => Ok(()),
    }
}

/// The beginning of a text, no longer than what is kept, cut between letters.
pub(crate) fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(ERROR)]
}
