//! What stands behind the interfaces of the host package: the jail, for now.
//!
//! A facility is linked once for an engine; whether a component may use it is judged by its permission.

mod jail;
mod pump;

pub use jail::JailFacility;
