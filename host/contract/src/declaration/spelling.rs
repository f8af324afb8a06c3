//! Guesses which known key a mis-spelt one was meant to be.

/// How many single-letter changes still count as a slip. With more, short keys would match anything.
const MAX_SLIPS: usize = 2;

/// The known key that differs from `written` only by case, else the nearest within two slips.
pub(super) fn meant(written: &str, known: &[&'static str]) -> Option<&'static str> {
    if let Some(key) = known.iter().find(|key| key.eq_ignore_ascii_case(written)) {
        return Some(key);
    }
    known
        .iter()
        .map(|key| (distance(written, key), *key))
        .filter(|(slips, _)| *slips <= MAX_SLIPS)
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, key)| key)
}

/// Letters to insert, remove or replace to turn one text into the other; anything above the limit when the
/// lengths alone differ by more.
fn distance(a: &str, b: &str) -> usize {
    // A key may be as long as a hostile author likes; the known ones are short. A letter has up to 4 bytes.
    if a.len().abs_diff(b.len()) > 4 * MAX_SLIPS {
        return MAX_SLIPS + 1;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = ["driverKey", "kind", "supportsLoginPty"];
        let cases = [
            ("supportsLoginPTY", Some("supportsLoginPty")),
            ("driverkey", Some("driverKey")),
            ("driveKey", Some("driverKey")),
            ("drviverKeyy", Some("driverKey")),
            ("knd", Some("kind")),
            ("colour", None),
            ("", None),
        ];
        for (written, expected) in cases {
            assert_eq!(meant(written, &known), expected, "{written}");
        }
        assert_eq!(meant(&"k".repeat(1 << 20), &known), None);
    }
}
