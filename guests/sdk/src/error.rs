//! Errors, by what the host may do about them.

pub use crate::imports::leasehold::provider::types::{
    Error, FieldError, PermanentFault, TransientCategory, TransientFault,
};

/// The longest message the host takes, in bytes; a longer one is cut.
pub const MESSAGE_MAX: usize = 4 << 10;

/// The allocation no longer exists.
pub fn gone() -> Error {
    Error::Gone
}

/// The back end refused by policy or credentials.
pub fn denied(message: impl Into<String>) -> Error {
    Error::Denied(cut(message.into()))
}

/// A fault that will not pass by itself. `code` is stable: lower case, digits, `_`.
pub fn failed(code: &str, message: impl Into<String>) -> Error {
    Error::Failed(PermanentFault { code: code.into(), message: cut(message.into()) })
}

/// A fault that may pass by itself; the host decides whether to try again.
pub fn transient(category: TransientCategory, message: impl Into<String>) -> Error {
    Error::Transient(TransientFault { category, retry_after_ms: None, message: cut(message.into()) })
}

/// One fault of the configuration, at a JSON path such as `auth.region`; empty for the whole object.
pub fn invalid(path: &str, message: impl Into<String>) -> Error {
    invalid_all([(path, message.into())])
}

/// Several faults of the configuration.
pub fn invalid_all<'a>(faults: impl IntoIterator<Item = (&'a str, String)>) -> Error {
    let faults = faults.into_iter();
    Error::InvalidConfig(
        faults.map(|(path, message)| FieldError { path: path.into(), message: cut(message) }).collect(),
    )
}

/// A text of at most [`MESSAGE_MAX`] bytes.
pub fn cut(mut text: String) -> String {
    if text.len() > MESSAGE_MAX {
        let mut end = MESSAGE_MAX - '…'.len_utf8();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        assert_eq!(cut("short".into()), "short");
        let long = cut("é".repeat(MESSAGE_MAX));
        assert!(long.len() <= MESSAGE_MAX && long.ends_with("é…"));
    }
}
