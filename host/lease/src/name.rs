//! The name of a lease, which is also the creation name its allocation is found again by.

use crate::StoreError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// RFC 4648 base32 in lower case: every back end takes these letters in a name, a label or a host name.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// 26 letters of 5 bits are 130 bits: two hosts that share a back end account never choose the same name,
/// and nobody guesses one.
const LETTERS: usize = 26;

/// What every name begins with, so that people see at the back end whose allocation it is.
const PREFIX: &str = "lh-";

/// Names one lease: `lh-` and 26 random letters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LeaseId(String);

impl LeaseId {
    /// A new name.
    ///
    /// # Errors
    /// [`StoreError::Random`] when the system gives no random bytes.
    pub fn random() -> Result<LeaseId, StoreError> {
        let mut bytes = [0u8; LETTERS];
        getrandom::fill(&mut bytes).map_err(|source| StoreError::Random { source })?;
        let letters = bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
        Ok(LeaseId(PREFIX.chars().chain(letters).collect()))
    }

    /// Reads a name that a person or the store gives. None when no lease can be called that.
    #[must_use]
    pub fn parse(text: &str) -> Option<LeaseId> {
        let letters = text.strip_prefix(PREFIX)?.as_bytes();
        let fits = letters.len() == LETTERS && letters.iter().all(|letter| ALPHABET.contains(letter));
        fits.then(|| LeaseId(text.to_owned()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for LeaseId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        LeaseId::parse(&text).ok_or_else(|| format!("`{}` is no name of a lease", text.escape_debug()))
    }
}

impl From<LeaseId> for String {
    fn from(id: LeaseId) -> String {
        id.0
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}
