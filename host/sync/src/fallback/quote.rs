//! Paths in shell lines.

/// A text as one word of a shell, whatever is in it.
#[must_use]
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::quote;
    use proptest::prelude::*;
    use std::process::Command;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
        #[test]
        fn any_text_is_one_word_of_the_shell(text in "[^\0]{0,40}") {
            let output = Command::new("sh").arg("-c").arg(format!("printf %s. {}", quote(&text))).output().unwrap();
            prop_assert_eq!(output.stdout, format!("{text}.").into_bytes());
        }
    }
}
