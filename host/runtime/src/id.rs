//! Ids that nobody can guess and that are safe in logs, labels and paths.

/// `prefix-` and 26 characters that carry 128 random bits.
pub(crate) fn random(prefix: &str) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // An id only has to be unique among calls; without random numbers the clock does that.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        bytes = now.as_nanos().to_le_bytes();
    }
    let number = u128::from_le_bytes(bytes);
    let digits = (0..26).map(|place| ALPHABET[(number >> (place * 5) & 31) as usize] as char);
    std::iter::once(format!("{prefix}-")).chain(digits.map(String::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::random;

    #[test]
    fn ids_have_one_length_and_do_not_repeat() {
        let (a, b) = (random("call"), random("call"));
        assert_eq!((a.len(), b.len()), (31, 31));
        assert_ne!(a, b);
    }
}
