//! Text in columns, and numbers as people read them.

use anyhow::Context;
use leasehold_contract::text::plain;
use std::io::{ErrorKind, Write};

/// Characters of a cell that are shown. Names of a component may have a hundred thousand.
const CELL_MAX: usize = 1_200;

/// Rows under a heading; every column but the last is as wide as its widest cell.
pub(crate) fn section(heading: &str, rows: &[Vec<String>]) -> String {
    let mut text = format!("{heading}\n");
    lines(&mut text, "  ", rows);
    text
}

/// Rows under their columns' headings, where there are headings; nothing without rows.
pub(crate) fn columns(headings: Vec<String>, mut rows: Vec<Vec<String>>) -> String {
    let mut text = String::new();
    if !rows.is_empty() {
        if !headings.is_empty() {
            rows.insert(0, headings);
        }
        lines(&mut text, "", &rows);
    }
    text
}

/// What a cell holds may come from a component or a provider, so it is made harmless here.
fn lines(text: &mut String, indent: &str, rows: &[Vec<String>]) {
    let plain_row = |row: &Vec<String>| row.iter().map(|cell| plain(cell, CELL_MAX)).collect::<Vec<_>>();
    let rows: Vec<_> = rows.iter().map(plain_row).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    for row in &rows {
        let mut line = String::from(indent);
        for (cell, width) in row.iter().zip(&widths) {
            let gap = width - cell.chars().count() + 2;
            line.extend([cell.as_str(), &" ".repeat(gap)]);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// A size in the largest unit that keeps a digit before the point.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, size)| count >= *size) {
        Some((unit, size)) if count.is_multiple_of(*size) => format!("{} {unit}", count / size),
        Some((unit, size)) => format!("{:.1} {unit}", count as f64 / *size as f64),
        None => format!("{count} bytes"),
    }
}

/// A number with its thousands set apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes to standard output; a reader that has gone away is no fault.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write the output"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_numbers_read_as_people_write_them() {
        for (count, expected) in
            [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1 KiB"), (1536, "1.5 KiB"), (64 << 20, "64 MiB")]
        {
            assert_eq!(bytes(count), expected);
        }
        for (number, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(grouped(number), expected);
        }
    }

    #[test]
    fn columns_line_up_and_lines_end_with_their_text() {
        let rows = [vec!["a".into(), "bb".into(), "c".into()], vec!["aaa".into(), "b".into()]];
        assert_eq!(section("head", &rows), "head\n  a    bb  c\n  aaa  b\n");
        let headings = vec!["A".into(), "B".into()];
        assert_eq!(columns(headings.clone(), rows.to_vec()), "A    B\na    bb  c\naaa  b\n");
        assert_eq!(columns(headings, Vec::new()), "");
    }
}
