"""A provider whose sandboxes are small trees in the host's store. One class for each interface."""

from typing import Optional

import commands
import sandbox
import transfer as files
from componentize_py_types import Err
from sandbox import WORKSPACE, PathError, Sandbox, normal
from streams import BrokenPipe
from wit_world import exports
from wit_world.exports.acquire_lease import AcquireError, AcquireRequest, AcquisitionDiagnostic, AcquisitionPhase
from wit_world.exports.destroy_lease import DestroyError, DestroyTarget, DestroyTarget_Lease
from wit_world.exports.execute import ExecuteRequest, ExecuteResult
from wit_world.exports.realize_workspace import Workspace, WorkspaceRequest
from wit_world.exports.release_lease import ReleaseRequest
from wit_world.exports.resume_lease import ResumeRequest
from wit_world.exports.sync_in import InboundOperation
from wit_world.exports.sync_out import OutboundOperation
from wit_world.exports.validate_config import AcceptedConfig
from wit_world.imports import monotonic_clock, state, transfer
from wit_world.imports.streams import InputStream, OutputStream
from wit_world.imports.sync_types import OperationResult
from wit_world.imports.types import (
    CleanupRecord,
    Context,
    Disposition,
    Error_InvalidConfig,
    FieldError,
    Lease,
    Receipt,
    Retention,
)

# Time that one write to the store may take.
ACQUIRE_BUDGET_MS = 1000
# There is no account at a back end; this is the digest of an empty one.
NO_ACCOUNT = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def lease(lease_id: str) -> Lease:
    return Lease(lease_id, '{"sandbox":"memory"}', None)


def lease_id(creation_name: str) -> str:
    """The id follows from the creation name, so a second call finds what the first one made."""
    return f"memory-{creation_name}"


class ValidateConfig(exports.ValidateConfig):
    def validate_config(self, ctx: Context) -> AcceptedConfig:
        if "".join(ctx.config.split()) != "{}":
            fault = FieldError("", "this provider takes no settings; write {}")
            raise Err(Error_InvalidConfig([fault]))
        return AcceptedConfig(None, [])


class AcquireLease(exports.AcquireLease):
    def acquire_lease(self, ctx: Context, request: AcquireRequest) -> Lease:
        started = monotonic_clock.now()
        box = Sandbox(normal(request.requested_cwd or WORKSPACE))
        try:
            box.make_directory(box.cwd)
        except PathError as error:
            raise Err(AcquireError(error.as_error().value, None, None))
        id = lease_id(request.creation_name)
        try:
            state.set(id, sandbox.encode(box), 0, None)
        except Err as error:
            # Made by an earlier call of the same name: that one is adopted.
            if not isinstance(error.value, state.StateError_Conflict):
                elapsed = (monotonic_clock.now() - started) // 1_000_000
                diagnostic = AcquisitionDiagnostic(AcquisitionPhase.CREATE, elapsed, ACQUIRE_BUDGET_MS, False)
                cleanup = CleanupRecord(request.creation_name, None, NO_ACCOUNT, [("provider", "memory")])
                raise Err(AcquireError(sandbox.of_state(error.value).value, diagnostic, cleanup))
        return lease(id)


class ResumeLease(exports.ResumeLease):
    def resume_lease(self, ctx: Context, request: ResumeRequest) -> Lease:
        box = sandbox.load(request.lease.id)
        if request.requested_cwd is not None:
            enter(request.lease.id, box, request.requested_cwd)
        return lease(request.lease.id)


class ReleaseLease(exports.ReleaseLease):
    def release_lease(self, ctx: Context, request: ReleaseRequest) -> Receipt:
        if request.retention == Retention.EPHEMERAL:
            return remove(request.lease.id)
        try:
            there = state.get(request.lease.id) is not None
        except Err as error:
            raise sandbox.of_state(error.value)
        return Receipt(request.lease.id, Disposition.RETAINED if there else Disposition.ALREADY_GONE)


class DestroyLease(exports.DestroyLease):
    def destroy_lease(self, ctx: Context, target: DestroyTarget) -> Receipt:
        leased = isinstance(target, DestroyTarget_Lease)
        try:
            return remove(target.value.id if leased else lease_id(target.value.creation_name))
        except Err as error:
            raise Err(DestroyError(error.value, None if leased else target.value))


class RealizeWorkspace(exports.RealizeWorkspace):
    def realize_workspace(self, ctx: Context, request: WorkspaceRequest) -> Workspace:
        box = sandbox.load(request.lease.id)
        return Workspace(enter(request.lease.id, box, request.path or box.cwd), None)


class Execute(exports.Execute):
    def execute(
        self,
        ctx: Context,
        request: ExecuteRequest,
        input: InputStream,
        standard_output: OutputStream,
        standard_error: OutputStream,
    ) -> ExecuteResult:
        if not request.argv:
            raise sandbox.failed("no_command", "argv is empty")
        box = sandbox.load(request.lease.id)
        box.cwd = normal(request.cwd or box.cwd)
        command = commands.Run(request, box, input, standard_output, standard_error)
        return ExecuteResult(commands.run(command), None)


class SyncIn(exports.SyncIn):
    def sync_in(self, ctx: Context, lease: Lease, operations: list[InboundOperation]) -> list[OperationResult]:
        results = []
        for operation in operations:
            for command in operation.post_upload:
                raise sandbox.failed("post_upload_unsupported", f"there is no shell here to run `{command.command}`")
            box, moved = sandbox.load(lease.id), OperationResult(operation.operation_id, 0, 0)
            for mapping in operation.mappings:
                guarded(files.take, box, mapping, moved)
            # Only now is anything kept: an operation is done completely or not at all.
            sandbox.save(lease.id, box)
            results.append(moved)
        return results


class SyncOut(exports.SyncOut):
    def sync_out(self, ctx: Context, lease: Lease, operations: list[OutboundOperation]) -> list[OperationResult]:
        results = []
        for operation in operations:
            box, moved = sandbox.load(lease.id), OperationResult(operation.operation_id, 0, 0)
            for mapping in operation.mappings:
                guarded(files.give, box, mapping, moved)
            results.append(moved)
        return results


def guarded(move, box: Sandbox, mapping, moved: OperationResult) -> None:
    """Moves a mapping, and gives every fault the form the contract knows."""
    try:
        move(box, mapping, moved)
    except PathError as error:
        raise error.as_error()
    except BrokenPipe:
        raise sandbox.failed("transfer_closed", "the host ended the transfer")
    except Err as error:
        if isinstance(error.value, transfer.TransferError):
            raise files.of_transfer(error.value)
        raise


def enter(id: str, box: Sandbox, path: str) -> str:
    """Makes a directory and the working directory of it."""
    box.cwd = normal(path)
    try:
        box.make_directory(box.cwd)
    except PathError as error:
        raise error.as_error()
    sandbox.save(id, box)
    return box.cwd


def remove(id: str) -> Receipt:
    try:
        there = state.remove(id, None)
    except Err as error:
        raise sandbox.of_state(error.value)
    return Receipt(id, Disposition.DESTROYED if there else Disposition.ALREADY_GONE)
