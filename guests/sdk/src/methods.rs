//! A trait for each method of the contract.
//!
//! Each is a part of a provider: [`crate::export!`] exports those that a type has.

use crate::answers::{destroy_failed, stop_failed};
use crate::raw::*;
use crate::{
    AcceptedConfig, AcquireError, AcquireRequest, Call, CaptureRequest, Context, DestroyError, DestroyTarget,
    Error, ExecuteRequest, ExecuteResult, Finding, InboundOperation, InputStream, Lease, OpenRequest,
    OperationResult, OutboundOperation, OutputStream, ProbeReport, Provider, Receipt, ReleaseRequest,
    ResumeRequest, SessionStatus, SetupHandle, SetupRequest, SetupSession, StopError, Template, TerminalSize,
    Workspace, WorkspaceRequest,
};

/// Checks a configuration before it is stored. Contacts no back end. What does not fit the type, and what [`Provider::check`] refuses, was refused already.
pub trait ValidateConfig: Provider {
    /// Checks a configuration before it is stored.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn validate(call: &Call<Self::Config>) -> Result<AcceptedConfig, Error> {
        let _ = call;
        Ok(AcceptedConfig { normalized: None, warnings: vec![] })
    }
}

impl<P: ValidateConfig> validate_config::Guest for P {
    fn validate_config(ctx: Context) -> Result<AcceptedConfig, Error> {
        let call = Call::checked::<P>(ctx)?;
        P::validate(&call)
    }
}

/// Tries whether the back end can be used. That it cannot is a report, not an error.
pub trait Probe: Provider {
    /// Tries whether the back end can be used.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn probe(call: &Call<Self::Config>) -> Result<ProbeReport, Error>;
}

impl<P: Probe> probe::Guest for P {
    fn probe(ctx: Context) -> Result<ProbeReport, Error> {
        let call = Call::checked::<P>(ctx)?;
        P::probe(&call)
    }
}

/// Creates the allocation, or adopts the one an earlier call with this creation name made.
pub trait AcquireLease: Provider {
    /// Creates the allocation, or adopts the one an earlier call with this creation name made.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn acquire(call: &Call<Self::Config>, request: AcquireRequest) -> Result<Lease, AcquireError>;
}

impl<P: AcquireLease> acquire_lease::Guest for P {
    fn acquire_lease(ctx: Context, request: AcquireRequest) -> Result<Lease, AcquireError> {
        let call = Call::checked::<P>(ctx).map_err(|error| AcquireError {
            error,
            diagnostic: None,
            cleanup: None,
        })?;
        P::acquire(&call, request)
    }
}

/// Starts the recorded allocation if need be and proves that it is the same one. Deletes nothing.
pub trait ResumeLease: Provider {
    /// Starts the recorded allocation if need be and proves that it is the same one.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn resume(call: &Call<Self::Config>, request: ResumeRequest) -> Result<Lease, Error>;
}

impl<P: ResumeLease> resume_lease::Guest for P {
    fn resume_lease(ctx: Context, request: ResumeRequest) -> Result<Lease, Error> {
        let call = Call::open::<P>(ctx)?;
        P::resume(&call, request)
    }
}

/// Ends the use. Idempotent.
pub trait ReleaseLease: Provider {
    /// Ends the use.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn release(call: &Call<Self::Config>, request: ReleaseRequest) -> Result<Receipt, Error>;
}

impl<P: ReleaseLease> release_lease::Guest for P {
    fn release_lease(ctx: Context, request: ReleaseRequest) -> Result<Receipt, Error> {
        let call = Call::open::<P>(ctx)?;
        P::release(&call, request)
    }
}

/// Deletes the allocation. Idempotent; never claims what it could not delete.
pub trait DestroyLease: Provider {
    /// Deletes the allocation.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn destroy(call: &Call<Self::Config>, target: DestroyTarget) -> Result<Receipt, DestroyError>;
}

impl<P: DestroyLease> destroy_lease::Guest for P {
    fn destroy_lease(ctx: Context, target: DestroyTarget) -> Result<Receipt, DestroyError> {
        let call = Call::open::<P>(ctx).map_err(destroy_failed)?;
        P::destroy(&call, target)
    }
}

/// Stops exactly this allocation and keeps its files.
pub trait StopLease: Provider {
    /// Stops exactly this allocation and keeps its files.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn stop(call: &Call<Self::Config>, lease: Lease) -> Result<Receipt, StopError>;
}

impl<P: StopLease> stop_lease::Guest for P {
    fn stop_lease(ctx: Context, lease: Lease) -> Result<Receipt, StopError> {
        let call = Call::open::<P>(ctx).map_err(stop_failed)?;
        P::stop(&call, lease)
    }
}

/// Looks once by creation name; creates, starts and deletes nothing.
pub trait FindLease: Provider {
    /// Looks once by creation name; creates, starts and deletes nothing.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn find(call: &Call<Self::Config>, creation_name: String) -> Result<Finding, Error>;
}

impl<P: FindLease> find_lease::Guest for P {
    fn find_lease(ctx: Context, creation_name: String) -> Result<Finding, Error> {
        let call = Call::open::<P>(ctx)?;
        P::find(&call, creation_name)
    }
}

/// Makes the workspace directory exist and be writable. Idempotent.
pub trait RealizeWorkspace: Provider {
    /// Makes the workspace directory exist and be writable.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn realize(call: &Call<Self::Config>, request: WorkspaceRequest) -> Result<Workspace, Error>;
}

impl<P: RealizeWorkspace> realize_workspace::Guest for P {
    fn realize_workspace(ctx: Context, request: WorkspaceRequest) -> Result<Workspace, Error> {
        let call = Call::open::<P>(ctx)?;
        P::realize(&call, request)
    }
}

/// Applies the operations strictly in order, each completely or with an error.
pub trait SyncIn: Provider {
    /// Applies the operations strictly in order, each completely or with an error.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn sync_in(
        call: &Call<Self::Config>,
        lease: Lease,
        operations: Vec<InboundOperation>,
    ) -> Result<Vec<OperationResult>, Error>;
}

impl<P: SyncIn> sync_in::Guest for P {
    fn sync_in(
        ctx: Context,
        lease: Lease,
        operations: Vec<InboundOperation>,
    ) -> Result<Vec<OperationResult>, Error> {
        let call = Call::open::<P>(ctx)?;
        P::sync_in(&call, lease, operations)
    }
}

/// Applies the operations strictly in order, each completely or with an error.
pub trait SyncOut: Provider {
    /// Applies the operations strictly in order, each completely or with an error.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn sync_out(
        call: &Call<Self::Config>,
        lease: Lease,
        operations: Vec<OutboundOperation>,
    ) -> Result<Vec<OperationResult>, Error>;
}

impl<P: SyncOut> sync_out::Guest for P {
    fn sync_out(
        ctx: Context,
        lease: Lease,
        operations: Vec<OutboundOperation>,
    ) -> Result<Vec<OperationResult>, Error> {
        let call = Call::open::<P>(ctx)?;
        P::sync_out(&call, lease, operations)
    }
}

/// Captures the sandbox's files as a template.
pub trait CaptureTemplate: Provider {
    /// Captures the sandbox's files as a template.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn capture(call: &Call<Self::Config>, request: CaptureRequest) -> Result<Template, Error>;
}

impl<P: CaptureTemplate> capture_template::Guest for P {
    fn capture_template(ctx: Context, request: CaptureRequest) -> Result<Template, Error> {
        let call = Call::open::<P>(ctx)?;
        P::capture(&call, request)
    }
}

/// Deletes a template; false when it was not there.
pub trait DeleteTemplate: Provider {
    /// Deletes a template; false when it was not there.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn delete(call: &Call<Self::Config>, reference: String, kind: Option<String>) -> Result<bool, Error>;
}

impl<P: DeleteTemplate> delete_template::Guest for P {
    fn delete_template(ctx: Context, reference: String, kind: Option<String>) -> Result<bool, Error> {
        let call = Call::open::<P>(ctx)?;
        P::delete(&call, reference, kind)
    }
}

/// The streams of a command.
#[derive(Debug)]
pub struct Streams {
    /// What it reads.
    pub input: InputStream,
    /// Takes its standard output as it comes.
    pub output: OutputStream,
    /// Takes its standard error as it comes.
    pub error: OutputStream,
}

/// Runs commands inside an allocation.
pub trait Execute: Provider {
    /// Runs a command to its end. What it writes goes to the streams as it is produced.
    ///
    /// # Errors
    /// When it could not be run; any exit code and a timeout are results.
    fn execute(
        call: &Call<Self::Config>,
        request: ExecuteRequest,
        streams: Streams,
    ) -> Result<ExecuteResult, Error>;
}

impl<P: Execute> execute::Guest for P {
    fn execute(
        ctx: Context,
        request: ExecuteRequest,
        input: InputStream,
        standard_output: OutputStream,
        standard_error: OutputStream,
    ) -> Result<ExecuteResult, Error> {
        let call = Call::open::<P>(ctx)?;
        P::execute(&call, request, Streams { input, output: standard_output, error: standard_error })
    }
}

/// A sandbox that a person prepares by hand.
pub trait InteractiveSetup: Provider {
    /// Starts a session.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn start(call: &Call<Self::Config>, request: SetupRequest) -> Result<SetupSession, Error>;

    /// Reads where a session stands; one-time connection details only when `include_payload` is set.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn get(
        call: &Call<Self::Config>,
        handle: SetupHandle,
        include_payload: bool,
    ) -> Result<SetupSession, Error>;

    /// Ends a session.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn cancel(
        call: &Call<Self::Config>,
        handle: SetupHandle,
        reason: Option<String>,
    ) -> Result<SessionStatus, Error>;
}

impl<P: InteractiveSetup> interactive_setup::Guest for P {
    fn start(ctx: Context, request: SetupRequest) -> Result<SetupSession, Error> {
        P::start(&Call::checked::<P>(ctx)?, request)
    }

    fn get(ctx: Context, handle: SetupHandle, include_payload: bool) -> Result<SetupSession, Error> {
        P::get(&Call::open::<P>(ctx)?, handle, include_payload)
    }

    fn cancel(ctx: Context, handle: SetupHandle, reason: Option<String>) -> Result<SessionStatus, Error> {
        P::cancel(&Call::open::<P>(ctx)?, handle, reason)
    }
}

/// A terminal for logging in to a service from inside a sandbox.
pub trait LoginPty: Provider {
    /// Opens the terminal and runs it to its end; what it shows goes to `output`. The exit code.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn open(
        call: &Call<Self::Config>,
        request: OpenRequest,
        output: OutputStream,
    ) -> Result<Option<i32>, Error>;

    /// Types into the terminal.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn input(call: &Call<Self::Config>, route_id: String, bytes: Vec<u8>) -> Result<(), Error>;

    /// Tells the terminal its new size.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn resize(call: &Call<Self::Config>, route_id: String, size: TerminalSize) -> Result<(), Error>;

    /// Ends the terminal and everything in it. Idempotent.
    ///
    /// # Errors
    /// What the host may do about it, see [`crate::error`].
    fn close(call: &Call<Self::Config>, route_id: String) -> Result<(), Error>;
}

impl<P: LoginPty> login_pty::Guest for P {
    fn open(ctx: Context, request: OpenRequest, output: OutputStream) -> Result<Option<i32>, Error> {
        P::open(&Call::open::<P>(ctx)?, request, output)
    }

    fn input(ctx: Context, route_id: String, bytes: Vec<u8>) -> Result<(), Error> {
        P::input(&Call::open::<P>(ctx)?, route_id, bytes)
    }

    fn resize(ctx: Context, route_id: String, size: TerminalSize) -> Result<(), Error> {
        P::resize(&Call::open::<P>(ctx)?, route_id, size)
    }

    fn close(ctx: Context, route_id: String) -> Result<(), Error> {
        P::close(&Call::open::<P>(ctx)?, route_id)
    }
}
