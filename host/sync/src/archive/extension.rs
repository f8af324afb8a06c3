//! Extension records: `length key=value`, each ended by a newline.

use crate::manifest::Timestamp;

/// Adds one record. Its length counts itself.
pub(super) fn push(records: &mut Vec<u8>, key: &str, value: &[u8]) {
    // The space, the equals sign and the newline.
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    records.extend_from_slice(format!("{length} {key}=").as_bytes());
    records.extend_from_slice(value);
    records.push(b'\n');
}

/// Takes the first record off. `None` when there is none that keeps to the form.
pub(super) fn pop<'a>(records: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let space = records.iter().position(|byte| *byte == b' ')?;
    let length: usize = decimal(records.get(..space)?)?.try_into().ok()?;
    let record = records.get(space + 1..length)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    *records = records.get(length..)?;
    Some((record.get(..equals)?, record.get(equals + 1..)?))
}

/// A number in decimal digits and nothing else.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// Seconds with a fraction, such as `-1.5`, which is half a second after -2.
pub(super) fn show_time(time: Timestamp) -> String {
    let Timestamp { seconds, nanoseconds } = time;
    if nanoseconds == 0 {
        seconds.to_string()
    } else if seconds >= 0 {
        format!("{seconds}.{nanoseconds:09}")
    } else {
        format!("-{}.{:09}", -(seconds + 1), 1_000_000_000 - nanoseconds)
    }
}

/// Reads seconds with a fraction. Digits beyond nanoseconds are dropped.
pub(super) fn read_time(text: &[u8]) -> Option<Timestamp> {
    let (negative, text) = text.strip_prefix(b"-").map_or((false, text), |rest| (true, rest));
    let point = text.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match point {
        Some(point) => (text.get(..point)?, text.get(point + 1..)?),
        None => (text, &[][..]),
    };
    let seconds = i64::try_from(decimal(whole)?).ok()?;
    let mut nanoseconds = 0;
    for place in 0..9 {
        let digit = fraction.get(place).copied().unwrap_or(b'0');
        nanoseconds = nanoseconds * 10 + u32::from(digit.is_ascii_digit().then(|| digit - b'0')?);
    }
    Some(match (negative, nanoseconds) {
        (false, _) => Timestamp { seconds, nanoseconds },
        (true, 0) => Timestamp { seconds: -seconds, nanoseconds: 0 },
        (true, _) => Timestamp { seconds: -seconds - 1, nanoseconds: 1_000_000_000 - nanoseconds },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_its_own_length_digits() {
        for length in [1, 90, 91, 92, 93, 94, 985, 986, 987, 988, 989] {
            let mut records = Vec::new();
            push(&mut records, "path", &vec![b'\n'; length]);
            let mut rest = records.as_slice();
            assert_eq!(pop(&mut rest), Some((&b"path"[..], &vec![b'\n'; length][..])));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn a_record_that_lies_about_its_length_is_none() {
        for record in ["8 path=a\n", "11 path=a\n", " path=a\n", "x path=a\n", "+10 path=a\n", "9 path a\n"] {
            assert_eq!(pop(&mut record.as_bytes()), None, "{record:?}");
        }
    }

    #[test]
    fn times_before_1970_and_fractions_come_back() {
        for (seconds, nanoseconds) in [(0, 0), (5, 7), (-1, 500_000_000), (-2, 0), (1 << 40, 999_999_999)] {
            let time = Timestamp { seconds, nanoseconds };
            assert_eq!(read_time(show_time(time).as_bytes()), Some(time));
        }
        assert_eq!(show_time(Timestamp { seconds: -1, nanoseconds: 500_000_000 }), "-0.500000000");
        assert_eq!(read_time(b"1.x"), None);
        assert_eq!(read_time(b""), None);
    }
}
