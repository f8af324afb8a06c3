//! Files, over the engine's archive endpoints. Their bytes are spliced and never come here; what a directory held
//! is counted by the host, which makes its archive and takes it.

mod inward;
mod outward;
mod tar;

use leasehold_sdk::transfer::TransferError;
use leasehold_sdk::{failed, Error};

/// Directory and name of a path inside the sandbox.
fn parted(path: &str) -> Result<(&str, &str), Error> {
    let tidy = path.trim_end_matches('/');
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    match tidy.rsplit_once('/') {
        Some((above, name)) if path.starts_with('/') && tidy.split('/').skip(1).all(plain) => {
            Ok((if above.is_empty() { "/" } else { above }, name))
        }
        _ => Err(failed("path_refused", format!("{path} is no absolute path below the root"))),
    }
}

fn of_transfer(error: TransferError) -> Error {
    match error {
        TransferError::Closed => failed("transfer_closed", "the host ended the transfer"),
        TransferError::Limit(limit) => failed("transfer_limit", limit),
        TransferError::Refused(entry) => failed("transfer_refused", entry),
        TransferError::Failed(message) => failed("transfer_failed", message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_parted_and_one_that_steps_about_is_refused() {
        assert_eq!(parted("/workspace").unwrap(), ("/", "workspace"));
        assert_eq!(parted("/a/b/").unwrap(), ("/a", "b"));
        for bad in ["/", "", "a", "/a/../b", "/a//b", "/."] {
            assert!(parted(bad).is_err(), "{bad}");
        }
    }
}
