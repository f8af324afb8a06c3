//! One lease in use: files in, commands, files out, and the end.

use crate::content::{Archive, Taken};
use crate::environment::Environment;
use crate::error::Error;
use crate::provider::Installed;
use bytes::Bytes;
use leasehold_contract::Method;
use leasehold_contract::budget::{BudgetRequest, budget};
use leasehold_contract::declaration::DriverKind;
use leasehold_engine::bindings::exports::execute::{ExecuteRequest, Exit};
use leasehold_engine::bindings::port::{Sink, Source};
use leasehold_engine::bindings::sync_types::{MappingKind, OperationResult};
use leasehold_engine::bindings::types::Context as CallContext;
use leasehold_engine::call::stream::Output;
use leasehold_engine::hook::{
    Execute, Inbound, InboundOperation, Outbound, OutboundOperation, SyncIn, SyncOut,
};
use leasehold_engine::{Bill, Finished};
use leasehold_lease::{Lease, LeaseId, Leases, Released};
use leasehold_sync::{
    Baseline, HEAVY, Limits as SyncLimits, MergeReport, Tree, WalkOptions, incoming, merge, outgoing,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, duplex};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wasmtime_wasi::p2::pipe::AsyncReadStream;

/// Where the workspace is in a sandbox whose provider says nothing else.
const WORKSPACE: &str = "/workspace";

/// How much of an archive waits between a guest and the host.
const PENDING: usize = 256 << 10;

/// A lease in use. Dropping it does not end it: [`Session::release`] does, and what a host that died has
/// left is ended by [`crate::Leasehold::reconcile`].
#[derive(Debug)]
pub struct Session {
    pub(crate) environment: Environment,
    pub(crate) provider: Arc<Installed>,
    pub(crate) leases: Leases,
    pub(crate) lease: Lease,
}

/// A command to run.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Working directory inside the sandbox; none means the workspace.
    pub cwd: Option<String>,
    /// Variables to add.
    pub env: Vec<(String, String)>,
    /// How long it may run; none means until the backstop of four hours.
    pub timeout: Option<Duration>,
}

/// Where a command's streams lead.
pub struct Streams {
    /// What it reads.
    pub input: Box<dyn AsyncRead + Send + Unpin>,
    /// Takes its standard output as it comes. A full channel makes the command wait.
    pub output: mpsc::Sender<Bytes>,
    /// Takes its standard error as it comes.
    pub error: mpsc::Sender<Bytes>,
}

/// A folder that was sent in.
#[derive(Debug)]
pub struct Synced {
    folder: PathBuf,
    baseline: Arc<Baseline>,
}

/// Time of a command without one of its own: the contract's backstop for a run in a sandbox. Hit: the
/// command ends as if its own timeout had been reached.
const BACKSTOP: Duration = Duration::from_secs(4 * 60 * 60);

impl Session {
    /// The lease's id.
    pub fn id(&self) -> &LeaseId {
        &self.lease.id
    }

    /// Sends a folder to the workspace.
    ///
    /// # Errors
    /// When the folder cannot be read or sent whole, or the provider's numbers are not the host's.
    pub async fn sync_in(&self, folder: &Path, options: WalkOptions) -> Result<Synced, Error> {
        self.needs(&[Method::SyncIn, Method::SyncOut])?;
        let folder = folder.to_owned();
        let walked = folder.clone();
        let tree = tokio::task::spawn_blocking(move || Tree::walk(&walked, options)).await;
        let (archive, summary) = outgoing(tree.map_err(|_| Error::CutOff { doing: "listing the folder" })??);
        let mapping = Inbound {
            target_path: WORKSPACE.into(),
            kind: MappingKind::Directory,
            mode: None,
            source: Source(Box::new(Archive(Some(archive)))),
        };
        let operation =
            InboundOperation { operation_id: operation_id(), mappings: vec![mapping], post_upload: vec![] };
        let lease = self.provider_lease();
        let hook = SyncIn { lease, operations: vec![operation] };
        let finished = self.call(Method::SyncIn, None, hook, CancellationToken::new()).await;
        // A folder that could not be read is the reason, whatever the provider made of it.
        let baseline = summary.finish().await?;
        let results = finished.answer?.map_err(crate::convert::fault)?;
        counted(&results, baseline.manifest.totals())?;
        Ok(Synced { folder, baseline: Arc::new(baseline) })
    }

    /// Brings back what the sandbox changed, and puts it into the folder where the folder was not changed
    /// meanwhile.
    ///
    /// # Errors
    /// When the provider does not deliver everything, or what it delivers breaks a rule; the folder is
    /// then as it was.
    pub async fn sync_out(&self, synced: Synced) -> Result<MergeReport, Error> {
        self.needs(&[Method::SyncIn, Method::SyncOut])?;
        let Synced { folder, baseline } = synced;
        let limits = SyncLimits::default().beyond(&baseline.manifest);
        let (of_guest, into) = duplex(PENDING);
        let finished = Arc::new(AtomicBool::new(false));
        let sink = Sink(Box::new(Taken { into: Some(into), finished: finished.clone() }));
        let mapping = Outbound {
            source_path: WORKSPACE.into(),
            kind: MappingKind::Directory,
            // What they hold, not what is called like them: a file of that name was sent and must come back.
            exclude: HEAVY.iter().map(|name| format!("{name}/*")).collect(),
            follow_symlinks: false,
            sink,
        };
        let operation = OutboundOperation { operation_id: operation_id(), mappings: vec![mapping] };
        let hook = SyncOut { lease: self.provider_lease(), operations: vec![operation] };
        let call = self.call(Method::SyncOut, None, hook, CancellationToken::new());
        let receive = incoming(of_guest, &folder, limits, Some(baseline.clone()));
        let (call, received) = tokio::join!(call, receive);
        let results = call.answer?.map_err(crate::convert::fault)?;
        let received = received?;
        if !finished.load(Ordering::Acquire) {
            return Err(Error::Unfinished);
        }
        counted(&results, received.manifest().totals())?;
        Ok(merge(baseline, received, &folder).await?)
    }

    /// Runs a command to its end.
    ///
    /// `cancel` ends it, as does dropping the future.
    ///
    /// # Errors
    /// When it could not be run; a timeout and any exit code are results.
    pub async fn execute(
        &self,
        command: Command,
        streams: Streams,
        cancel: CancellationToken,
    ) -> Result<(Exit, Bill), Error> {
        self.needs(&[Method::Execute])?;
        let Command { argv, cwd, env, timeout } = command;
        if let Some((name, _)) = env.iter().find(|(name, _)| !names_a_variable(name)) {
            return Err(Error::VariableName { name: name.clone() });
        }
        let timeout = timeout.unwrap_or(BACKSTOP);
        let request = ExecuteRequest {
            lease: self.provider_lease(),
            argv,
            cwd,
            env,
            timeout_ms: Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
            bypass_session: false,
        };
        let limits = &self.provider.limits;
        let hook = Execute {
            request,
            input: Box::new(AsyncReadStream::new(streams.input)),
            standard_output: Output::new(limits).with_live(streams.output),
            standard_error: Output::new(limits).with_live(streams.error),
        };
        let finished = self.call(Method::Execute, Some(timeout), hook, cancel).await;
        let result = finished.answer?.map_err(crate::convert::fault)?;
        Ok((result.exit, finished.bill))
    }

    /// Ends the lease: what is still running in it ends, and by its retention the sandbox is kept or deleted.
    ///
    /// # Errors
    /// When the provider could not confirm it. The lease is then ended by a later reconcile.
    pub async fn release(self) -> Result<Released, Error> {
        Ok(self.leases.release(self.provider.clone(), &self.lease.id, true).await?)
    }

    fn needs(&self, methods: &[Method]) -> Result<(), Error> {
        match methods.iter().find(|method| !self.provider.has(**method)) {
            None => Ok(()),
            Some(method) => {
                Err(Error::MissingMethod { provider: self.environment.provider.clone(), method: *method })
            }
        }
    }

    fn provider_lease(&self) -> leasehold_engine::bindings::types::Lease {
        // An active lease has its allocation; the name is what it was asked for by.
        let unseen = || leasehold_lease::ProviderLease {
            id: self.lease.id.as_str().to_owned(),
            metadata: None,
            expires_at_ms: None,
        };
        crate::convert::wit_lease(self.lease.allocation.clone().unwrap_or_else(unseen))
    }

    async fn call<H: leasehold_engine::Hook>(
        &self,
        method: Method,
        requested: Option<Duration>,
        hook: H,
        cancel: CancellationToken,
    ) -> Finished<H::Answer> {
        let request = BudgetRequest {
            requested_ms: requested.map(|time| time.as_secs_f64() * 1e3),
            config: &self.environment.config,
            declared_acquire_ms: None,
            kind: DriverKind::SandboxProvider,
        };
        let time = Duration::from_millis(budget(method, &request).timeout_ms);
        let context = CallContext {
            driver_key: self.lease.driver.clone(),
            tenant: self.lease.tenant.clone(),
            environment_id: self.lease.environment.clone(),
            run_id: self.lease.run.clone(),
            invocation_id: crate::id::random("call"),
            config: self.lease.config.clone(),
            remaining_ms: 0,
            trace_parent: None,
        };
        self.provider.call(hook, context, time, cancel).await
    }
}

/// The contract's rule for names of variables; providers put them into shells.
fn names_a_variable(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(good)
}

/// An id that says nothing of what is moved.
fn operation_id() -> String {
    crate::id::random("sync-op")
}

/// What the provider says it moved has to be what passed through the host.
fn counted(results: &[OperationResult], (files, bytes): (u64, u64)) -> Result<(), Error> {
    let said = results.iter().fold((0_u64, 0_u64), |(files, bytes), result| {
        (files.saturating_add(result.files), bytes.saturating_add(result.bytes))
    });
    for (what, said, seen) in [("files", said.0, files), ("bytes", said.1, bytes)] {
        if said != seen {
            return Err(Error::Counts { what, said, seen });
        }
    }
    Ok(())
}
