//! Allocations by the name they were created under.

use crate::error::{failed, Error};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// Looks an allocation up by its creation name, and makes it when there is none. `create` gives nothing when the
/// back end says that the name was taken meanwhile; it is then looked up again, and never made twice.
///
/// # Errors
/// When looking or making fails, or a taken name cannot be found.
pub fn find_or_create<T>(
    mut find: impl FnMut() -> Result<Option<T>, Error>,
    create: impl FnOnce() -> Result<Option<T>, Error>,
) -> Result<T, Error> {
    if let Some(found) = find()? {
        return Ok(found);
    }
    if let Some(created) = create()? {
        return Ok(created);
    }
    let lost = || failed("name_taken", "the creation name is taken by something that cannot be found");
    find()?.ok_or_else(lost)
}

/// SHA-256 of a text in 64 lower-case hex digits.
pub fn fingerprint(account: &str) -> String {
    Sha256::digest(account.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_taken_meanwhile_is_adopted_and_never_made_twice() {
        let mut looks = 0;
        let found = find_or_create(
            || {
                looks += 1;
                Ok((looks > 1).then_some("made by another call"))
            },
            || Ok(None),
        );
        assert_eq!(found.ok(), Some("made by another call"));
        assert_eq!(find_or_create(|| Ok(Some(1)), || Ok(Some(2))).ok(), Some(1));
        assert_eq!(find_or_create(|| Ok(None), || Ok(Some(2))).ok(), Some(2));
        assert!(matches!(find_or_create::<u8>(|| Ok(None), || Ok(None)), Err(Error::Failed(_))));
    }

    #[test]
    fn a_fingerprint_is_sha_256() {
        assert_eq!(fingerprint("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
