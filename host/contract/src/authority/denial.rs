//! A no, with what would turn it into a yes.

use super::Permission;

/// Something a provider asked for and may not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{import}`: {asked} is not allowed: {}", remedy(self))]
pub struct Denial {
    /// The provider.
    pub provider: String,
    /// The interface it asked through, without version.
    pub import: &'static str,
    /// The permission that would cover it.
    pub permission: Permission,
    /// What it asked for, in one harmless line.
    pub asked: String,
    /// What is missing.
    pub missing: Missing,
}

/// What stands between an ask and a yes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missing {
    /// The provider's declaration does not ask for it; this is what it would have to say.
    Declaration(String),
    /// The host does not grant it; this grant would.
    Grant(String),
    /// The name led to an address that a grant has to name; this grant would.
    Address {
        /// Where the name led, and what is there.
        found: String,
        /// The grant that would allow it.
        grant: String,
    },
    /// No grant would help; this is why.
    Never(String),
}

impl Denial {
    /// The command that would grant it, where a grant is what is missing.
    pub fn command(&self) -> Option<String> {
        match &self.missing {
            Missing::Grant(grant) | Missing::Address { grant, .. } => {
                Some(format!("leasehold provider grant {} {grant}", self.provider))
            }
            Missing::Declaration(_) | Missing::Never(_) => None,
        }
    }
}

fn remedy(denial: &Denial) -> String {
    let provider = &denial.provider;
    let command = denial.command().unwrap_or_default();
    match &denial.missing {
        Missing::Declaration(ask) => format!(
            "`{provider}` does not declare it; its author adds \"{ask}\" to `permissions` in the declaration"
        ),
        Missing::Grant(_) => format!("`{provider}` is not granted it; `{command}` does"),
        Missing::Address { found, .. } => format!("{found}; `{command}` allows it"),
        Missing::Never(reason) => reason.clone(),
    }
}
