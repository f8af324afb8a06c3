//! Number fields of a plain header.

use tar::Header;

/// The sum of all bytes, those of the checksum itself counted as spaces.
pub(super) fn checksum_holds(header: &Header) -> bool {
    let all: u32 = header.as_bytes().iter().map(|byte| u32::from(*byte)).sum();
    let own: u32 = header.as_old().cksum.iter().map(|byte| u32::from(*byte)).sum();
    number(&header.as_old().cksum) == Some(i128::from(all - own + 8 * u32::from(b' ')))
}

/// A number field: octal digits between spaces and zero bytes, or two's complement behind a set first bit.
pub(super) fn number(field: &[u8]) -> Option<i128> {
    let first = *field.first()?;
    if first & 0x80 != 0 {
        // The bit that marks the form is not part of the number; the one after it is its sign.
        let start =
            if first & 0x40 == 0 { i128::from(first & 0x7f) } else { i128::from(first.cast_signed()) };
        return Some(field.iter().skip(1).fold(start, |value, byte| (value << 8) | i128::from(*byte)));
    }
    let padded = |byte: &u8| matches!(byte, b' ' | b'\0');
    let digits = field.iter().copied().skip_while(padded).collect::<Vec<_>>();
    let end = digits.iter().position(padded).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at_checked(end)?;
    if !rest.iter().all(padded) {
        return None;
    }
    digits.iter().try_fold(0, |value, byte| match byte {
        b'0'..=b'7' => Some(value * 8 + i128::from(byte - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn octal_and_binary_numbers_are_read_and_anything_else_is_none() {
        for (field, value) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"   644 \0", Some(0o644)),
            (b"77777777", Some(0o7777_7777)),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"\x80\0\0\0\0\0\x01\0", Some(256)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xfe", Some(-2)),
            (b"0000648\0", None),
            (b"644 0644", None),
            (b"-0000644", None),
            (b"0x000644", None),
        ] {
            assert_eq!(number(field), value, "{}", field.escape_ascii());
        }
    }
}
