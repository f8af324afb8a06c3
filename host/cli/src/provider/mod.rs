//! `leasehold provider`: which providers are installed.

mod change;
mod grant;
mod list;

use crate::host::{Format, Host};
use clap::{Args, Subcommand};
use leasehold::Grant;
use std::path::PathBuf;
use std::process::ExitCode;

/// Installs, lists and removes providers
///
/// Says nothing on success, unless there is something to know. Exit code 1 when nothing was changed.
#[derive(Args)]
pub(crate) struct Provider {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    host: Host,
}

#[derive(Subcommand)]
enum Verb {
    /// Installs a provider
    ///
    /// PATH is a folder with one component and its declaration, provider.json, or the file of a component.
    /// A component without a declaration is named by its file and may have what it imports, as far as it is
    /// granted.
    Install(Source),
    /// Gives an installed provider another component
    ///
    /// Leases go on with the component they have, which stays until the last of them has ended. What was
    /// granted before stays granted.
    Upgrade(Source),
    /// Lists the installed providers in the order they are asked in
    Ls(Format),
    /// Removes a provider; its leases still end
    Rm(Named),
    /// Takes a provider out of use; its leases still end
    Disable(Named),
    /// Takes a provider back into use
    Enable(Named),
    /// Grants a provider more
    Grant(grant::Granting),
    /// Takes back what a provider was granted
    Revoke(grant::Revoking),
    /// Lists what a provider is granted, and what of it is of no use
    Grants(Named),
}

#[derive(Args)]
struct Source {
    /// Folder or component.
    path: PathBuf,
    /// The declaration, when it lies elsewhere.
    #[arg(long, value_name = "FILE")]
    declaration: Option<PathBuf>,
    /// The name of a component without a declaration [default: that of its file].
    #[arg(long)]
    name: Option<String>,
    /// Something it may have, for example `time` or `http=https://api.example.com`; may be given several times.
    #[arg(long = "grant", value_name = "GRANT")]
    grants: Vec<Grant>,
    #[command(flatten)]
    format: Format,
}

#[derive(Args)]
struct Named {
    /// The provider's key.
    key: String,
    #[command(flatten)]
    format: Format,
}

impl Provider {
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = self.host.open().await?;
        match self.verb {
            Verb::Install(source) => change::install(&runtime, source).await,
            Verb::Upgrade(source) => change::upgrade(&runtime, source).await,
            Verb::Ls(format) => list::list(&runtime, &format).await,
            Verb::Rm(named) => change::remove(&runtime, named).await,
            Verb::Disable(named) => change::set_ready(&runtime, named, false).await,
            Verb::Enable(named) => change::set_ready(&runtime, named, true).await,
            Verb::Grant(granting) => grant::grant(&runtime, granting).await,
            Verb::Revoke(revoking) => grant::revoke(&runtime, revoking).await,
            Verb::Grants(named) => grant::grants(&runtime, &named.key, &named.format).await,
        }
    }
}
