//! Times as people and programs read them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A time on the wall, in UTC.
pub(crate) fn at(ms: u64) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms)).to_string()
}

/// How long ago that was, in the largest unit.
pub(crate) fn ago(ms: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    span(now.saturating_sub(Duration::from_millis(ms)))
}

/// A time span in its largest unit.
pub(crate) fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc_and_spans_in_their_largest_unit() {
        assert_eq!(at(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        for (ms, expected) in [
            (5, "5 ms"),
            (1_000, "1 s"),
            (119_999, "119 s"),
            (120_000, "2 min"),
            (7_200_000, "2 h"),
            (172_800_000, "2 days"),
        ] {
            assert_eq!(span(Duration::from_millis(ms)), expected);
        }
    }
}
