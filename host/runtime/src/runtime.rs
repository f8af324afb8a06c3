//! The runtime: one store, the installed providers, the leases.

use crate::builder::Builder;
use crate::environment::{Environment, Place};
use crate::error::Error;
use crate::installed::components::Components;
use crate::installed::installing::Brought;
use crate::ledger::Ledger;
use crate::session::Session;
use leasehold_authority::jail::Jails;
use leasehold_lease::registry::Registry;
use leasehold_lease::{Clock, LeaseId, Leases, Pins, Providers, Report, Resolving, State, Store, Unready};
use leasehold_sync::{MergeReport, Scratch};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Supplies sandboxes to a host application. Cheap to clone; all clones are one runtime. There is no global
/// state: several runtimes in one process do not know of each other.
#[derive(Clone, Debug)]
pub struct Leasehold(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    /// The directory it keeps what it knows in.
    pub(crate) state: PathBuf,
    pub(crate) store: Store,
    pub(crate) ledger: Ledger,
    pub(crate) registry: Registry<Components>,
    pub(crate) leases: Leases,
    pub(crate) jails: Arc<Jails>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Environments of the host application, and where it has them from.
    pub(crate) environments: Vec<(Environment, Place)>,
    /// Providers that the host application brings along, installed when one is asked for.
    pub(crate) brought: Vec<Brought>,
    /// Set once the registry has the embedded provider.
    pub(crate) local: OnceCell<()>,
    /// Set once the registry has what was brought along.
    pub(crate) ensured: OnceCell<()>,
}

impl Leasehold {
    /// A runtime that keeps what it knows in this directory, which is made when it is not there.
    pub fn builder(directory: impl Into<PathBuf>) -> Builder {
        Builder::new(directory.into())
    }

    /// Takes up a lease that is in use, from whichever process it was acquired: for commands, for files, or to
    /// end it. What only runs while a process holds it, such as a sandbox of the provider `local`, is started
    /// again with the files it has.
    ///
    /// # Errors
    /// When there is no such lease, it is not in use, its component cannot be loaded here, or the back end no
    /// longer knows the sandbox.
    pub async fn session(&self, id: &LeaseId) -> Result<Session, Error> {
        let lease = self.0.leases.get(id).await?;
        if lease.state != State::Active {
            return Err(Error::NotInUse { id: id.clone(), state: lease.state });
        }
        let session = Session::of(self, lease).await?;
        session.wake().await?;
        Ok(session)
    }

    /// Brings everything a sandbox holds into a folder: of a lease in use, or of one that was stopped and
    /// kept. A stopped one is taken up for it and stopped again, whatever came of it.
    ///
    /// # Errors
    /// When there is no such lease, it holds no files any more, or they cannot be brought back whole.
    pub async fn export(&self, id: &LeaseId, folder: &Path) -> Result<MergeReport, Error> {
        let lease = self.0.leases.get(id).await?;
        if lease.state != State::Retained {
            return self.session(id).await?.export(folder).await;
        }
        let taken_up = self.0.leases.take_up(id, lease.run).await?;
        let session = Session::of(self, taken_up.lease).await?;
        let exported = session.export(folder).await;
        let stopped = session.stop().await;
        let report = exported?;
        stopped?;
        Ok(report)
    }

    /// Ends what hosts that died have left: their leases, and what runs in their jails. Components that nobody
    /// needs any more are taken away.
    ///
    /// # Errors
    /// When the store or the jails cannot be read. What can be ended is ended all the same.
    pub async fn reconcile(&self) -> Result<Report, Error> {
        self.0.jails.reap().await?;
        let report = self.0.leases.reconcile().await?;
        self.collect().await?;
        self.sweep().await?;
        Ok(report)
    }

    /// Removes what transfers of hosts that died have staged.
    async fn sweep(&self) -> Result<(), Error> {
        let scratch = Scratch::new(self.0.state.join("scratch"));
        let swept = tokio::task::spawn_blocking(move || scratch.sweep()).await;
        let swept = swept.map_err(|_| Error::CutOff { doing: "sweeping" })?;
        swept.map(drop).map_err(|source| Error::Directory { path: self.0.state.clone(), source })
    }

    /// Waits until nothing begun here is under way any more; a host that is about to exit awaits it.
    pub async fn idle(&self) {
        self.0.leases.idle().await;
        self.0.ledger.flushed().await;
    }

    /// The leases of every host that shares this store.
    pub fn leases(&self) -> &Leases {
        &self.0.leases
    }
}

/// Finds components for the lease crate.
pub(crate) struct Pinned(pub(crate) Registry<Components>);

impl Providers for Pinned {
    fn resolve<'a>(&'a self, pins: &'a Pins) -> Resolving<'a> {
        Box::pin(async move {
            let pinned = self.0.pinned(&pins.plugin, &pins.digest).await;
            let provider = pinned.map_err(|refused| Unready(refused.to_string()))?;
            Ok(provider as Arc<dyn leasehold_lease::Provider>)
        })
    }
}
