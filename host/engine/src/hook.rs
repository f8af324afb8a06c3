//! One type for each method: what it takes, what it answers, how it is called.

use crate::call::returned::Returned;
use crate::call::state::CallState;
use crate::call::stream::Output;
use leasehold_bindings::exports as guest;
use leasehold_bindings::port::{Sink, Source};
use leasehold_bindings::sync_types;
use leasehold_bindings::types::{Context, Error, Lease, Receipt};
use leasehold_contract::Method;
use std::future::Future;
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};
use wasmtime_wasi::p2::DynInputStream;

/// A method with its arguments, ready to be called.
pub trait Hook: Send {
    /// The method.
    const METHOD: Method;
    /// What the guest answers, its own errors included.
    type Answer: Returned + Send;

    /// Calls the method on an instance.
    ///
    /// # Errors
    /// Whatever the engine raises: a trap, a limit, a malformed value.
    fn call(
        self,
        guests: &Guests,
        store: &mut Store<CallState>,
        instance: &Instance,
        context: &Context,
    ) -> impl Future<Output = wasmtime::Result<Self::Answer>> + Send;
}

macro_rules! guests {
    ($($interface:ident)*) => {
        /// Where a component's interfaces are found in its instances; none for those it lacks.
        pub struct Guests {
            $($interface: Option<guest::$interface::GuestIndices>,)*
        }

        impl Guests {
            pub(crate) fn of<T: 'static>(pre: &InstancePre<T>) -> Self {
                Guests { $($interface: guest::$interface::GuestIndices::new(pre).ok(),)* }
            }

            $(fn $interface(
                &self,
                store: &mut Store<CallState>,
                instance: &Instance,
            ) -> wasmtime::Result<guest::$interface::Guest> {
                match &self.$interface {
                    Some(indices) => indices.load(store, instance),
                    None => wasmtime::bail!(concat!("no interface ", stringify!($interface))),
                }
            })*
        }
    };
}

guests! {
    validate_config probe acquire_lease resume_lease release_lease destroy_lease stop_lease find_lease
    realize_workspace execute sync_in sync_out interactive_setup capture_template delete_template login_pty
}

/// Hooks whose arguments are plain values: each row is the type, its interface and function, its fields,
/// and how the fields are passed.
macro_rules! hooks {
    ($($(#[$doc:meta])* $hook:ident = $interface:ident . $call:ident
        { $($field:ident : $type:ty),* } ($($argument:expr),*) -> $answer:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            #[allow(missing_docs, reason = "the fields are documented in wit/")]
            pub struct $hook { $(pub $field: $type,)* }

            impl Hook for $hook {
                const METHOD: Method = Method::$hook;
                type Answer = $answer;

                async fn call(
                    self,
                    guests: &Guests,
                    store: &mut Store<CallState>,
                    instance: &Instance,
                    context: &Context,
                ) -> wasmtime::Result<Self::Answer> {
                    let guest = guests.$interface(store, instance)?;
                    let Self { $($field),* } = &self;
                    guest.$call(&mut *store, context, $($argument),*).await
                }
            }
        )*
    };
}

hooks! {
    /// Checks `context.config` before it is stored.
    ValidateConfig = validate_config.call_validate_config {} ()
        -> Result<guest::validate_config::AcceptedConfig, Error>;
    /// Tries whether the back end can be used.
    Probe = probe.call_probe {} () -> Result<guest::probe::ProbeReport, Error>;
    /// Creates an allocation.
    AcquireLease = acquire_lease.call_acquire_lease
        { request: guest::acquire_lease::AcquireRequest } (request)
        -> Result<Lease, guest::acquire_lease::AcquireError>;
    /// Takes up an allocation again.
    ResumeLease = resume_lease.call_resume_lease
        { request: guest::resume_lease::ResumeRequest } (request) -> Result<Lease, Error>;
    /// Ends the use of an allocation.
    ReleaseLease = release_lease.call_release_lease
        { request: guest::release_lease::ReleaseRequest } (request) -> Result<Receipt, Error>;
    /// Deletes an allocation.
    DestroyLease = destroy_lease.call_destroy_lease
        { target: guest::destroy_lease::DestroyTarget } (target)
        -> Result<Receipt, guest::destroy_lease::DestroyError>;
    /// Stops an allocation and keeps its files.
    StopLease = stop_lease.call_stop_lease { lease: Lease } (lease)
        -> Result<Receipt, guest::stop_lease::StopError>;
    /// Finds an allocation by the name it was created under.
    FindLease = find_lease.call_find_lease { creation_name: String } (creation_name)
        -> Result<guest::find_lease::Finding, Error>;
    /// Prepares the workspace directory.
    RealizeWorkspace = realize_workspace.call_realize_workspace
        { request: guest::realize_workspace::WorkspaceRequest } (request)
        -> Result<guest::realize_workspace::Workspace, Error>;
    /// Starts a sandbox that a person prepares.
    StartInteractiveSetup = interactive_setup.call_start
        { request: guest::interactive_setup::SetupRequest } (request)
        -> Result<guest::interactive_setup::SetupSession, Error>;
    /// Reads where a setup session stands.
    GetInteractiveSetup = interactive_setup.call_get
        { handle: guest::interactive_setup::SetupHandle, include_payload: bool } (handle, *include_payload)
        -> Result<guest::interactive_setup::SetupSession, Error>;
    /// Ends a setup session.
    CancelInteractiveSetup = interactive_setup.call_cancel
        { handle: guest::interactive_setup::SetupHandle, reason: Option<String> } (handle, reason.as_deref())
        -> Result<guest::interactive_setup::SessionStatus, Error>;
    /// Makes a template of a prepared sandbox.
    CaptureTemplate = capture_template.call_capture_template
        { request: guest::capture_template::CaptureRequest } (request)
        -> Result<guest::capture_template::Template, Error>;
    /// Deletes a template; false when it was not there.
    DeleteTemplate = delete_template.call_delete_template
        { reference: String, kind: Option<String> } (reference, kind.as_deref()) -> Result<bool, Error>;
    /// Types into a terminal.
    LoginPtyInput = login_pty.call_input { route_id: String, bytes: Vec<u8> } (route_id, bytes)
        -> Result<(), Error>;
    /// Tells a terminal its new size.
    LoginPtyResize = login_pty.call_resize
        { route_id: String, size: guest::login_pty::TerminalSize } (route_id, *size) -> Result<(), Error>;
    /// Ends a terminal.
    LoginPtyClose = login_pty.call_close { route_id: String } (route_id) -> Result<(), Error>;
}

/// Runs a command inside an allocation.
pub struct Execute {
    /// The command.
    pub request: guest::execute::ExecuteRequest,
    /// What the command reads; see [`crate::call::stream`].
    pub input: DynInputStream,
    /// Where its standard output goes.
    pub standard_output: Output,
    /// Where its standard error goes.
    pub standard_error: Output,
}

impl Hook for Execute {
    const METHOD: Method = Method::Execute;
    type Answer = Result<guest::execute::ExecuteResult, Error>;

    async fn call(
        self,
        guests: &Guests,
        store: &mut Store<CallState>,
        instance: &Instance,
        context: &Context,
    ) -> wasmtime::Result<Self::Answer> {
        let guest = guests.execute(store, instance)?;
        let state = store.data_mut();
        let input = state.push_input(self.input)?;
        let (output, error) =
            (self.standard_output.writer(state.filter()), self.standard_error.writer(state.filter()));
        let (output, error) = (state.push_output(output)?, state.push_output(error)?);
        guest.call_execute(&mut *store, context, &self.request, input, output, error).await
    }
}

/// Opens a terminal for logging in and runs it to its end.
pub struct LoginPtyOpen {
    /// What to open.
    pub request: guest::login_pty::OpenRequest,
    /// Where what it shows goes.
    pub output: Output,
}

impl Hook for LoginPtyOpen {
    const METHOD: Method = Method::LoginPtyOpen;
    type Answer = Result<Option<i32>, Error>;

    async fn call(
        self,
        guests: &Guests,
        store: &mut Store<CallState>,
        instance: &Instance,
        context: &Context,
    ) -> wasmtime::Result<Self::Answer> {
        let guest = guests.login_pty(store, instance)?;
        let state = store.data_mut();
        let output = self.output.writer(state.filter());
        let output = state.push_output(output)?;
        guest.call_open(&mut *store, context, &self.request, output).await
    }
}

/// One mapping of an inbound operation, with the content the host gives.
pub struct Inbound {
    /// Absolute path inside the sandbox.
    pub target_path: String,
    /// What the content is.
    pub kind: sync_types::MappingKind,
    /// Mode of the target.
    pub mode: Option<u32>,
    /// The content.
    pub source: Source,
}

/// An inbound operation.
pub struct InboundOperation {
    /// Opaque id.
    pub operation_id: String,
    /// Its mappings, in order.
    pub mappings: Vec<Inbound>,
    /// Commands to run after them.
    pub post_upload: Vec<sync_types::PostUploadCommand>,
}

/// Moves files into an allocation.
pub struct SyncIn {
    /// The lease.
    pub lease: Lease,
    /// The operations, in order.
    pub operations: Vec<InboundOperation>,
}

impl Hook for SyncIn {
    const METHOD: Method = Method::SyncIn;
    type Answer = Result<Vec<sync_types::OperationResult>, Error>;

    async fn call(
        self,
        guests: &Guests,
        store: &mut Store<CallState>,
        instance: &Instance,
        context: &Context,
    ) -> wasmtime::Result<Self::Answer> {
        let guest = guests.sync_in(store, instance)?;
        let table = &mut store.data_mut().table;
        let mut operations = Vec::with_capacity(self.operations.len());
        for InboundOperation { operation_id, mappings, post_upload } in self.operations {
            let mappings = mappings.into_iter().map(|Inbound { target_path, kind, mode, source }| {
                let source = table.push(source)?;
                Ok(guest::sync_in::InboundMapping { target_path, kind, mode, source })
            });
            let mappings = mappings.collect::<wasmtime::Result<_>>()?;
            operations.push(guest::sync_in::InboundOperation { operation_id, mappings, post_upload });
        }
        guest.call_sync_in(&mut *store, context, &self.lease, &operations).await
    }
}

/// One mapping of an outbound operation, with the place the host takes it.
pub struct Outbound {
    /// Absolute path inside the sandbox.
    pub source_path: String,
    /// What is expected there.
    pub kind: sync_types::MappingKind,
    /// Patterns to leave out.
    pub exclude: Vec<String>,
    /// Whether links are replaced by what they point to.
    pub follow_symlinks: bool,
    /// Where the content goes.
    pub sink: Sink,
}

/// An outbound operation.
pub struct OutboundOperation {
    /// Opaque id.
    pub operation_id: String,
    /// Its mappings, in order.
    pub mappings: Vec<Outbound>,
}

/// Moves files out of an allocation.
pub struct SyncOut {
    /// The lease.
    pub lease: Lease,
    /// The operations, in order.
    pub operations: Vec<OutboundOperation>,
}

impl Hook for SyncOut {
    const METHOD: Method = Method::SyncOut;
    type Answer = Result<Vec<sync_types::OperationResult>, Error>;

    async fn call(
        self,
        guests: &Guests,
        store: &mut Store<CallState>,
        instance: &Instance,
        context: &Context,
    ) -> wasmtime::Result<Self::Answer> {
        let guest = guests.sync_out(store, instance)?;
        let table = &mut store.data_mut().table;
        let mut operations = Vec::with_capacity(self.operations.len());
        for OutboundOperation { operation_id, mappings } in self.operations {
            let mappings = mappings.into_iter().map(|mapping| {
                let Outbound { source_path, kind, exclude, follow_symlinks, sink } = mapping;
                let sink = table.push(sink)?;
                Ok(guest::sync_out::OutboundMapping { source_path, kind, exclude, follow_symlinks, sink })
            });
            let mappings = mappings.collect::<wasmtime::Result<_>>()?;
            operations.push(guest::sync_out::OutboundOperation { operation_id, mappings });
        }
        guest.call_sync_out(&mut *store, context, &self.lease, &operations).await
    }
}
