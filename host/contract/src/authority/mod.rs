//! What a component wants to reach, what its declaration asks for, and what a host allows.
//!
//! Authority = wanted (imports) ∩ declared (asks) ∩ granted (grants). Three types, so that one cannot be
//! taken for another: an import has a [`Need`], a declaration makes [`Ask`]s, a host gives [`Grant`]s. A
//! [`Policy`] is what is left, and every decision, of every interface and version, is one of its answers.

mod ask;
mod denial;
mod grant;
mod http;
mod import;
mod permission;
mod policy;

pub use ask::Ask;
pub use denial::{Denial, Missing};
pub use grant::{Endpoint, Grant, GrantError};
pub use http::{HostPattern, HttpRule, PortPattern, Scheme};
pub use import::{IMPORTS, ImportInfo, Need, need};
pub use permission::Permission;
pub use policy::{ConnectWay, HttpTarget, HttpWay, Policy};
