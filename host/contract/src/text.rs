//! Text that comes from somebody else, made harmless for a line of output.

/// The text in one line, cut to `max` bytes, with everything escaped that a terminal or a reader could take
/// for something else: control characters, line and paragraph separators, and marks that change the order
/// of what is shown.
pub fn plain(text: &str, max: usize) -> String {
    let cut = text.floor_char_boundary(max.min(text.len()));
    let mut plain = String::with_capacity(cut);
    for character in text[..cut].chars() {
        match misleads(character) {
            true => plain.extend(character.escape_default()),
            false => plain.push(character),
        }
    }
    if cut < text.len() {
        plain.push('…');
    }
    plain
}

fn misleads(character: char) -> bool {
    let reorders = matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    character.is_control() || reorders
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_line_stays_one_line_and_shows_what_is_there() {
        for (text, max, expected) in [
            ("plain äß", 100, "plain äß"),
            ("two\nlines", 100, "two\\nlines"),
            ("\u{1b}[2Jgone", 100, "\\u{1b}[2Jgone"),
            ("\u{9b}31m", 100, "\\u{9b}31m"),
            ("exe.\u{202e}fdp", 100, "exe.\\u{202e}fdp"),
            ("äää", 3, "ä…"),
        ] {
            assert_eq!(plain(text, max), expected);
        }
    }
}
