//! What a call brings.

use crate::error::{invalid, Error};
use crate::Context;
use serde::de::DeserializeOwned;

/// A provider: the type that methods are implemented for.
pub trait Provider: 'static {
    /// The driver's configuration. Fields that it does not know are its own to refuse
    /// (`#[serde(deny_unknown_fields)]`); the contract's `timeoutMs` and `reuseLease` may be among them.
    type Config: DeserializeOwned;

    /// Checks what types cannot say. Called before whatever begins something: validating, probing, acquiring and
    /// preparing by hand. What exists already can be ended whatever is thought of its configuration by now.
    ///
    /// # Errors
    /// Every fault at once, see [`crate::invalid_all`].
    fn check(config: &Self::Config) -> Result<(), Error> {
        let _ = config;
        Ok(())
    }
}

/// One call: who calls, and the configuration.
#[derive(Debug)]
pub struct Call<C> {
    /// Who calls, for whom, and how long the call may take.
    pub context: Context,
    /// The configuration.
    pub config: C,
}

impl<C: DeserializeOwned> Call<C> {
    pub(crate) fn open<P: Provider<Config = C>>(context: Context) -> Result<Call<C>, Error> {
        let text = match context.config.trim() {
            "" => "{}",
            text => text,
        };
        let mut json = serde_json::Deserializer::from_str(text);
        let config = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            let path = if path == "." { String::new() } else { path };
            invalid(&path, error.into_inner().to_string())
        })?;
        Ok(Call { context, config })
    }

    pub(crate) fn checked<P: Provider<Config = C>>(context: Context) -> Result<Call<C>, Error> {
        let call = Call::open::<P>(context)?;
        P::check(&call.config)?;
        Ok(call)
    }
}
