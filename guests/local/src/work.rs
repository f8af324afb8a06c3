//! What is done inside a jail.

use crate::bindings::exports::leasehold::provider::{execute, realize_workspace, sync_in, sync_out};
use crate::bindings::leasehold::host::jail::{self, Command};
use crate::bindings::leasehold::provider::sync_types::{MappingKind, OperationResult, PostUploadCommand};
use crate::bindings::leasehold::provider::types::{Context, Error, Lease};
use crate::bindings::wasi::io::streams::{InputStream, OutputStream};
use crate::errors::{failed, of_jail};
use crate::{Local, WORKSPACE};

impl realize_workspace::Guest for Local {
    fn realize_workspace(
        _ctx: Context,
        request: realize_workspace::WorkspaceRequest,
    ) -> Result<realize_workspace::Workspace, Error> {
        let cwd = request.path.unwrap_or_else(|| WORKSPACE.into());
        if jail::find(&request.lease.id).map_err(of_jail)?.is_none() {
            return Err(Error::Gone);
        }
        if cwd != WORKSPACE && !cwd.starts_with("/workspace/") {
            return Err(failed(
                "workspace_outside",
                format!("a workspace lies in {WORKSPACE}, not at {cwd}"),
            ));
        }
        Ok(realize_workspace::Workspace { cwd, metadata: None })
    }
}

impl execute::Guest for Local {
    fn execute(
        _ctx: Context,
        request: execute::ExecuteRequest,
        input: InputStream,
        standard_output: OutputStream,
        standard_error: OutputStream,
    ) -> Result<execute::ExecuteResult, Error> {
        let command = Command {
            argv: request.argv,
            cwd: Some(request.cwd.unwrap_or_else(|| WORKSPACE.into())),
            env: request.env,
            timeout_ms: request.timeout_ms,
        };
        let exit = jail::run(&request.lease.id, &command, input, standard_output, standard_error);
        let exit = match exit.map_err(of_jail)? {
            jail::Exit::Exited(code) => execute::Exit::Exited(code),
            jail::Exit::Signaled(signal) => execute::Exit::Signaled(signal.to_string()),
            jail::Exit::TimedOut => execute::Exit::TimedOut,
        };
        Ok(execute::ExecuteResult { exit, metadata: None })
    }
}

impl sync_in::Guest for Local {
    fn sync_in(
        _ctx: Context,
        lease: Lease,
        operations: Vec<sync_in::InboundOperation>,
    ) -> Result<Vec<OperationResult>, Error> {
        operations.into_iter().map(|operation| inbound(&lease.id, operation)).collect()
    }
}

fn inbound(name: &str, operation: sync_in::InboundOperation) -> Result<OperationResult, Error> {
    let (mut files, mut bytes) = (0, 0);
    for mapping in operation.mappings {
        let placed = match mapping.kind {
            MappingKind::File => jail::place_file(name, &mapping.target_path, mapping.mode, mapping.source),
            MappingKind::Directory => jail::place_directory(name, &mapping.target_path, mapping.source),
        };
        let (more_files, more_bytes) = placed.map_err(of_jail)?;
        files += more_files;
        bytes += more_bytes;
    }
    if let Some(PostUploadCommand { command, .. }) = operation.post_upload.first() {
        // Refused rather than left out: the host must never take the operation for done.
        return Err(failed("post_upload_unsupported", format!("this provider cannot run `{command}` yet")));
    }
    Ok(OperationResult { operation_id: operation.operation_id, files, bytes })
}

impl sync_out::Guest for Local {
    fn sync_out(
        _ctx: Context,
        lease: Lease,
        operations: Vec<sync_out::OutboundOperation>,
    ) -> Result<Vec<OperationResult>, Error> {
        operations.into_iter().map(|operation| outbound(&lease.id, operation)).collect()
    }
}

fn outbound(name: &str, operation: sync_out::OutboundOperation) -> Result<OperationResult, Error> {
    let (mut files, mut bytes) = (0, 0);
    for mapping in operation.mappings {
        let (path, exclude) = (&mapping.source_path, &mapping.exclude);
        let fetched = match mapping.kind {
            MappingKind::File => jail::fetch_file(name, path, mapping.sink),
            MappingKind::Directory => {
                jail::fetch_directory(name, path, exclude, mapping.follow_symlinks, mapping.sink)
            }
        };
        let (more_files, more_bytes) = fetched.map_err(of_jail)?;
        files += more_files;
        bytes += more_bytes;
    }
    Ok(OperationResult { operation_id: operation.operation_id, files, bytes })
}
