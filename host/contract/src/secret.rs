//! Which fields of a configuration hold secrets, what may stand in them, and what must never come back.
//!
//! A secret is never in a configuration: a reference to it is. A field is a secret's when the configuration's
//! schema gives it the format `secret-ref`. Nothing here knows a value.

mod field;
mod place;
mod reference;

pub use field::{Destination, KEYWORD, SecretField, Uses, fields, paths};
pub use place::{at, put, strip, take};
pub use reference::{Reference, Stored, Version, Written, for_validation, is_uuid};
