//! One call of one method: a fresh instance, its limits, its outcome and its bill.

mod limiter;
mod outcome;
pub(crate) mod returned;
pub(crate) mod run;
mod scope;
pub(crate) mod state;
pub mod stream;

pub use outcome::{Bill, CallError, Finished};
pub use run::CallOptions;
pub use scope::{Authority, Filter, Meter, Scope};
pub use state::CallState;
