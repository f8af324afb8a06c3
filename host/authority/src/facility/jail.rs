//! `leasehold:host/jail` over [`crate::jail`].

use super::pump::{Broken, from_guest, reader, to_guest, writer};
use crate::jail::{self, Isolation, Jails, Limit, LimitHit, Moved};
use bytes::Bytes;
use leasehold_engine::Facility;
use leasehold_engine::bindings::imports::jail::{
    Bounds, Command, Exit, Host, JailError, Standing, add_to_linker,
};
use leasehold_engine::bindings::imports::transfer::TransferError;
use leasehold_engine::bindings::port::{Sink, Source};
use leasehold_engine::call::CallState;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

/// Jails for guests that were granted them.
pub struct JailFacility {
    jails: Arc<Jails>,
    isolation: Isolation,
}

impl JailFacility {
    /// Jails kept by `jails`, each isolated like this.
    pub fn new(jails: Arc<Jails>, isolation: Isolation) -> Self {
        JailFacility { jails, isolation }
    }
}

impl Facility for JailFacility {
    fn interfaces(&self) -> &'static [&'static str] {
        &["leasehold:host/jail"]
    }

    fn link(&self, linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
        add_to_linker::<_, Views>(linker, |state| View { facility: state.facility(), table: state.table() })
    }
}

struct Views;

impl HasData for Views {
    type Data<'a> = View<'a>;
}

/// The facility, and the resources of the call.
struct View<'a> {
    facility: Option<Arc<JailFacility>>,
    table: &'a mut ResourceTable,
}

impl View<'_> {
    fn facility(&self) -> wasmtime::Result<Arc<JailFacility>> {
        self.facility.clone().ok_or_else(|| wasmtime::format_err!("the jail is linked and not there"))
    }
}

impl Host for View<'_> {
    async fn create(&mut self, name: String, bounds: Bounds) -> wasmtime::Result<Result<(), JailError>> {
        let facility = self.facility()?;
        let Bounds { memory_bytes, processes, cpu_millis, disk_bytes } = bounds;
        let bounds = jail::Bounds { memory_bytes, processes, cpu_millis, disk_bytes };
        let created = facility.jails.create(&name, bounds, &facility.isolation).await;
        Ok(created.map(drop).map_err(told))
    }

    async fn find(&mut self, name: String) -> wasmtime::Result<Result<Option<Standing>, JailError>> {
        let found = self.facility()?.jails.find(&name).await.map_err(told);
        Ok(found.map(|standing| {
            standing.map(|standing| match standing {
                jail::Standing::Running => Standing::Running,
                jail::Standing::Stopped => Standing::Stopped,
            })
        }))
    }

    async fn run(
        &mut self,
        name: String,
        command: Command,
        input: Resource<DynInputStream>,
        standard_output: Resource<DynOutputStream>,
        standard_error: Resource<DynOutputStream>,
    ) -> wasmtime::Result<Result<Exit, JailError>> {
        let facility = self.facility()?;
        let input = self.table.delete(input)?;
        let (output, error) = (self.table.delete(standard_output)?, self.table.delete(standard_error)?);
        let Command { argv, cwd, env, timeout_ms } = command;
        let command = jail::Command { argv, cwd, env, timeout: timeout_ms.map(Duration::from_millis) };

        let (to_command, of_input) = reader();
        let (to_output, mut of_output) = writer();
        let (to_error, mut of_error) = writer();
        let run = facility.jails.run(&name, &command, of_input, to_output, to_error);
        // The command's end ends the call; input that is still open then has nobody to read it.
        // Output nobody takes any more is a closed pipe to the command.
        let outward = async {
            tokio::join!(run, async move { to_guest(&mut of_output, output).await }, async move {
                to_guest(&mut of_error, error).await
            },)
        };
        let inward = from_guest(input, to_command);
        let (exit, output, error) = beside(outward, inward).await?;
        for moved in [output, error] {
            if let Err(Broken::Trap(error)) = moved {
                return Err(error);
            }
        }
        Ok(exit.map_err(told).map(|exit| match exit {
            jail::Exit::Exited(code) => Exit::Exited(code),
            jail::Exit::Signaled(signal) => Exit::Signaled(signal),
            jail::Exit::TimedOut => Exit::TimedOut,
        }))
    }

    async fn place_file(
        &mut self,
        name: String,
        target_path: String,
        mode: Option<u32>,
        content: Resource<Source>,
    ) -> wasmtime::Result<Result<(u64, u64), JailError>> {
        let facility = self.facility()?;
        let source = self.table.delete(content)?;
        let (to_jail, of_guest) = reader();
        placed(source, to_jail, facility.jails.place(&name, &target_path, mode, of_guest)).await
    }

    async fn place_directory(
        &mut self,
        name: String,
        target_path: String,
        content: Resource<Source>,
    ) -> wasmtime::Result<Result<(u64, u64), JailError>> {
        let facility = self.facility()?;
        let source = self.table.delete(content)?;
        let (to_jail, of_guest) = reader();
        placed(source, to_jail, facility.jails.extract(&name, &target_path, of_guest)).await
    }

    async fn fetch_file(
        &mut self,
        name: String,
        source_path: String,
        into: Resource<Sink>,
    ) -> wasmtime::Result<Result<(u64, u64), JailError>> {
        let facility = self.facility()?;
        let (to_guest, of_jail) = writer();
        let sink = self.table.delete(into)?;
        fetched(sink, of_jail, facility.jails.fetch(&name, &source_path, to_guest)).await
    }

    async fn fetch_directory(
        &mut self,
        name: String,
        source_path: String,
        exclude: Vec<String>,
        follow_symlinks: bool,
        into: Resource<Sink>,
    ) -> wasmtime::Result<Result<(u64, u64), JailError>> {
        let facility = self.facility()?;
        let (to_guest, of_jail) = writer();
        let sink = self.table.delete(into)?;
        let archive = async {
            // What a command made before a bound ended it is work like any other.
            facility.jails.revive(&name, &facility.isolation).await?;
            facility.jails.archive(&name, &source_path, &exclude, follow_symlinks, to_guest).await
        };
        fetched(sink, of_jail, archive).await
    }

    async fn stop(&mut self, name: String) -> wasmtime::Result<Result<(), JailError>> {
        Ok(self.facility()?.jails.stop(&name).await.map_err(told))
    }

    async fn destroy(&mut self, name: String) -> wasmtime::Result<Result<bool, JailError>> {
        Ok(self.facility()?.jails.destroy(&name).await.map_err(told))
    }
}

/// Runs `work` to its end, and `helper` beside it for as long as that takes. A helper that is ended by a
/// limit ends both.
async fn beside<T>(
    work: impl Future<Output = T>,
    helper: impl Future<Output = Result<(), Broken>>,
) -> wasmtime::Result<T> {
    let helper = async {
        match helper.await {
            Err(Broken::Trap(error)) => error,
            Ok(()) | Err(Broken::Io(_)) => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        done = work => Ok(done),
        error = helper => Err(error),
    }
}

async fn placed(
    mut source: Source,
    to_jail: mpsc::Sender<io::Result<Bytes>>,
    place: impl Future<Output = Result<Moved, jail::JailError>>,
) -> wasmtime::Result<Result<(u64, u64), JailError>> {
    let content = match source.0.tar().await {
        Ok(content) => content,
        Err(error) => return Ok(Err(JailError::Transfer(error))),
    };
    let (moved, sent) = tokio::join!(place, from_guest(content, to_jail));
    match sent {
        Err(Broken::Trap(error)) => return Err(error),
        Err(Broken::Io(error)) => {
            return Ok(Err(JailError::Transfer(TransferError::Failed(error.to_string()))));
        }
        Ok(()) => {}
    }
    Ok(moved.map(|moved| (moved.files, moved.bytes)).map_err(told))
}

async fn fetched(
    mut sink: Sink,
    mut of_jail: mpsc::Receiver<Bytes>,
    fetch: impl Future<Output = Result<Moved, jail::JailError>>,
) -> wasmtime::Result<Result<(u64, u64), JailError>> {
    let stream = match sink.0.tar().await {
        Ok(stream) => stream,
        Err(error) => return Ok(Err(JailError::Transfer(error))),
    };
    let taking = async {
        let taken = to_guest(&mut of_jail, stream).await;
        // Whoever closed it early has a reason of his own; the transfer must not fail before that is told.
        while of_jail.recv().await.is_some() {}
        taken
    };
    let (moved, taken) = tokio::join!(fetch, taking);
    match taken {
        Err(Broken::Trap(error)) => return Err(error),
        Err(Broken::Io(error)) => {
            return Ok(Err(JailError::Transfer(TransferError::Failed(error.to_string()))));
        }
        Ok(()) => {}
    }
    let moved = match moved {
        Ok(moved) => moved,
        Err(error) => return Ok(Err(told(error))),
    };
    Ok(sink.0.finish().await.map(|()| (moved.files, moved.bytes)).map_err(JailError::Transfer))
}

/// What a guest is told. The text is for people; the case is what a provider decides by.
fn told(error: jail::JailError) -> JailError {
    match error {
        jail::JailError::Missing { .. } => JailError::Missing,
        jail::JailError::Unsupported { .. } => JailError::Unsupported(error.to_string()),
        jail::JailError::NotFound { .. } => JailError::NotFound(error.to_string()),
        jail::JailError::NotExecutable { .. } => JailError::NotExecutable(error.to_string()),
        // The command was never started, for it is too large or one too many.
        jail::JailError::Limit(LimitHit { which: Limit::Arguments | Limit::Commands, .. }) => {
            JailError::NotExecutable(error.to_string())
        }
        jail::JailError::Limit(_) => JailError::Limit(error.to_string()),
        _ => JailError::Failed(error.to_string()),
    }
}
