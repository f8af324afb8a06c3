//! The stream of a command without a terminal: pieces of output and error, each behind a header of eight bytes.

/// Length of a header.
pub(crate) const HEADER: usize = 8;

/// The longest piece. Engines send tens of kilobytes; what says more is no such stream.
const PIECE_MAX: u32 = 64 << 20;

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Whether it belongs to standard error, where an engine's own faults go as well.
    pub(crate) error: bool,
    /// Bytes of it that have not come yet.
    pub(crate) left: u64,
}

/// Reads a header; none when it is none.
pub(crate) fn piece(header: [u8; HEADER]) -> Option<Piece> {
    let [kind, 0, 0, 0, a, b, c, d] = header else { return None };
    let left = u32::from_be_bytes([a, b, c, d]);
    (kind <= 3 && left <= PIECE_MAX).then_some(Piece { error: kind >= 2, left: left.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_which_stream_and_how_much() {
        assert_eq!(piece([1, 0, 0, 0, 0, 0, 1, 2]), Some(Piece { error: false, left: 258 }));
        assert_eq!(piece([2, 0, 0, 0, 0, 0, 0, 0]), Some(Piece { error: true, left: 0 }));
        for bad in
            [[4, 0, 0, 0, 0, 0, 0, 1], [1, 1, 0, 0, 0, 0, 0, 1], [1, 0, 0, 0, 255, 0, 0, 0], *b"HTTP/1.1"]
        {
            assert_eq!(piece(bad), None, "{bad:?}");
        }
    }
}
