//! The little of the archive format that one file needs.

use leasehold_sdk::{failed, Error};

/// Bytes of a block; everything is a multiple of it.
pub(super) const BLOCK: usize = 512;

/// The end of an archive.
pub(super) const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// The largest size that fits into a header's digits.
const SIZE_MAX: u64 = (1 << 33) - 1;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The kind of entry.
    pub(super) kind: u8,
    /// Bytes behind the header.
    pub(super) size: u64,
}

/// Bytes that fill a file's last block.
pub(super) fn padding(size: u64) -> u64 {
    size.next_multiple_of(BLOCK as u64) - size
}

/// The header of a regular file.
pub(super) fn file(name: &str, mode: u32, size: u64) -> Result<[u8; BLOCK], Error> {
    header(b'0', name, mode, size)
}

/// The header of a directory.
pub(super) fn directory(name: &str, mode: u32) -> Result<[u8; BLOCK], Error> {
    header(b'5', name, mode, 0)
}

fn header(kind: u8, name: &str, mode: u32, size: u64) -> Result<[u8; BLOCK], Error> {
    if name.len() > 100 || size > SIZE_MAX {
        let message = format!("one file may have {SIZE_MAX} bytes; send it in a directory");
        return Err(failed("file_too_large", message));
    }
    let mut header = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, format!("{:07o}", mode & 0o7777).as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{size:011o}").as_bytes());
    put(136, b"00000000000");
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

/// Reads a header; none at the end of the archive.
pub(super) fn read(header: &[u8]) -> Option<Header> {
    let field = header.get(124..136)?;
    let size = match field.first()? {
        // A number in bytes, for what digits have no room for.
        0x80 => field[4..].iter().fold(0, |size, byte| size << 8 | u64::from(*byte)),
        _ => {
            let digits: String = field.iter().map(|byte| char::from(*byte)).collect();
            u64::from_str_radix(digits.trim_matches(['\0', ' ']), 8).ok()?
        }
    };
    Some(Header { kind: *header.get(156)?, size })
}

/// The size that extended records say, where they say one.
pub(super) fn extended_size(records: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(records);
    text.lines().find_map(|line| line.split_once(' ')?.1.strip_prefix("size=")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for size in [0, 1, 512, 1 << 29, SIZE_MAX] {
            let header = file("name", 0o644, size).unwrap();
            assert_eq!(read(&header), Some(Header { kind: b'0', size }));
            assert_eq!((size + padding(size)) % 512, 0);
        }
        assert!(file("name", 0o644, SIZE_MAX + 1).is_err());
        assert_eq!(read(&[0; BLOCK]), None);
        assert_eq!(extended_size(b"20 path=a\n22 size=8589934592\n"), Some(8_589_934_592));
    }
}
