//! What the host says of a jail, as the contract's errors.

use crate::bindings::leasehold::host::jail::JailError;
use crate::bindings::leasehold::host::transfer::TransferError;
use crate::bindings::leasehold::provider::types::{Error, PermanentFault};

/// A fault that will not pass by itself.
pub(crate) fn failed(code: &str, message: String) -> Error {
    Error::Failed(PermanentFault { code: code.into(), message })
}

pub(crate) fn of_jail(error: JailError) -> Error {
    match error {
        JailError::Missing => Error::Gone,
        JailError::Unsupported(layer) => failed("isolation_unsupported", layer),
        JailError::NotFound(program) => failed("program_not_found", program),
        JailError::NotExecutable(program) => failed("program_not_executable", program),
        JailError::Limit(limit) => failed("limit", limit),
        JailError::Failed(message) => failed("jail_failed", message),
        JailError::Transfer(error) => match error {
            TransferError::Closed => failed("transfer_closed", "the host ended the transfer".into()),
            TransferError::Limit(limit) => failed("transfer_limit", limit),
            TransferError::Refused(entry) => failed("transfer_refused", entry),
            TransferError::Failed(message) => failed("transfer_failed", message),
        },
    }
}
