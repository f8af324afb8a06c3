//! What stands behind the interfaces that a component imports.
//!
//! A facility is linked once for an engine; whether a component may use it is judged by its permission.

mod connect;
mod egress;
mod http;
mod jail;
mod pump;
mod state;

pub use connect::ConnectFacility;
pub use egress::EgressFacility;
pub use http::HttpFacility;
pub use jail::JailFacility;
pub use state::StateFacility;
