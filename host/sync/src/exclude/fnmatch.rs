//! `fnmatch` of the GNU C library with `FNM_LEADING_DIR` alone, in the C locale: byte by byte.

/// Whether a pattern matches a text, or one of the text's beginnings that a slash follows.
///
/// Takes steps in the order of the two lengths' product at worst: only the last star is ever tried again.
pub(super) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut on) = (0, 0);
    // Where to go on when what follows the last star does not fit: behind the star, one byte further.
    let mut star = None;
    loop {
        match step(pattern, at, text, on) {
            Step::Done => return true,
            Step::Star => {
                at += 1;
                star = Some((at, on));
            }
            Step::Took(next) => (at, on) = (next, on + 1),
            Step::Failed => match star {
                Some((behind, from)) if from < text.len() => {
                    star = Some((behind, from + 1));
                    (at, on) = (behind, from + 1);
                }
                _ => return false,
            },
        }
    }
}

enum Step {
    /// All of the pattern is used up where the text may end.
    Done,
    /// A star.
    Star,
    /// One byte matched; the pattern goes on there.
    Took(usize),
    Failed,
}

fn step(pattern: &[u8], at: usize, text: &[u8], on: usize) -> Step {
    let here = text.get(on).copied();
    let Some(byte) = pattern.get(at).copied() else {
        return if matches!(here, None | Some(b'/')) { Step::Done } else { Step::Failed };
    };
    if byte == b'*' {
        return Step::Star;
    }
    let Some(here) = here else { return Step::Failed };
    let took = |yes: bool, next| if yes { Step::Took(next) } else { Step::Failed };
    match byte {
        b'?' => Step::Took(at + 1),
        b'\\' => took(pattern.get(at + 1) == Some(&here), at + 2),
        b'[' => match Bracket::new(pattern, at + 1).matches(here) {
            Bracketed::Matched(next) => Step::Took(next),
            Bracketed::Unmatched => Step::Failed,
            Bracketed::Unterminated => took(here == b'[', at + 1),
        },
        other => took(here == other, at + 1),
    }
}

/// How a bracket expression ended.
enum Bracketed {
    /// It matched; the pattern goes on there.
    Matched(usize),
    Unmatched,
    /// It is none: the bracket stands for itself.
    Unterminated,
}

/// Reads a bracket expression. What it takes for malformed, and what follows from that, is the library's: it
/// depends on whether the byte had matched before the fault was met.
struct Bracket<'a> {
    pattern: &'a [u8],
    at: usize,
}

/// The longest name of a character class, as the library has it.
const CLASS_NAME_MAX: usize = 256;

/// An element of a bracket expression that cannot be one: nothing matches.
struct Malformed;

impl<'a> Bracket<'a> {
    fn new(pattern: &'a [u8], at: usize) -> Self {
        Self { pattern, at }
    }

    /// The byte so many places on; zero behind the end, as in a C string.
    fn peek(&self, ahead: usize) -> u8 {
        self.pattern.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn take(&mut self) -> u8 {
        let byte = self.peek(0);
        self.at += 1;
        byte
    }

    fn matches(mut self, here: u8) -> Bracketed {
        let negated = matches!(self.peek(0), b'!' | b'^');
        self.at += usize::from(negated);
        let mut next = self.take();
        loop {
            if next == 0 {
                return Bracketed::Unterminated;
            }
            match self.element(next, here) {
                Err(Malformed) => return Bracketed::Unmatched,
                Ok(true) => break,
                Ok(false) => {}
            }
            next = self.take();
            if next == b']' {
                return if negated { Bracketed::Matched(self.at) } else { Bracketed::Unmatched };
            }
        }
        match self.skip() {
            Err(Malformed) => Bracketed::Unmatched,
            Ok(false) => Bracketed::Unterminated,
            Ok(true) if negated => Bracketed::Unmatched,
            Ok(true) => Bracketed::Matched(self.at),
        }
    }

    /// Reads one element that begins with this byte; whether it matches.
    fn element(&mut self, first: u8, here: u8) -> Result<bool, Malformed> {
        match (first, self.peek(0)) {
            (b'\\', 0) => Err(Malformed),
            (b'\\', _) => {
                let escaped = self.take();
                self.single_or_range(escaped, here)
            }
            (b'[', b':') => match self.class_name()? {
                Some(name) => Ok(in_class(name, here).ok_or(Malformed)?),
                None => self.single_or_range(b'[', here),
            },
            (b'[', b'=') if self.peek(1) != 0 && self.peek(2) == b'=' && self.peek(3) == b']' => {
                let member = self.peek(1);
                self.at += 4;
                Ok(member == here)
            }
            (b'[', b'.') => {
                let symbol = self.symbol()?;
                // Unlike behind a plain byte, a `-` before the end still makes this no single byte.
                let is_range = self.peek(0) == b'-' && self.peek(1) != 0;
                self.range_from(symbol, here, is_range)
            }
            (first, _) => self.single_or_range(first, here),
        }
    }

    fn single_or_range(&mut self, first: u8, here: u8) -> Result<bool, Malformed> {
        let is_range = self.peek(0) == b'-' && !matches!(self.peek(1), 0 | b']');
        self.range_from(first, here, is_range)
    }

    fn range_from(&mut self, first: u8, here: u8, is_range: bool) -> Result<bool, Malformed> {
        if !is_range && first == here {
            return Ok(true);
        }
        if self.peek(0) != b'-' || self.peek(1) == b']' {
            return Ok(false);
        }
        self.at += 1;
        let mut last = self.take();
        if last == b'[' && self.peek(0) == b'.' {
            last = self.symbol()?;
        } else {
            if last == b'\\' {
                last = self.take();
            }
            if last == 0 {
                return Err(Malformed);
            }
        }
        Ok((first..=last).contains(&here))
    }

    /// The name in `[:name:]`; none when it cannot be one, with nothing read.
    fn class_name(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        let from = self.at + 1;
        for length in 0..CLASS_NAME_MAX {
            let byte = self.pattern.get(from + length).copied().unwrap_or(0);
            if byte == b':' && self.pattern.get(from + length + 1) == Some(&b']') {
                self.at = from + length + 2;
                return Ok(self.pattern.get(from..from + length));
            }
            // Not even `z` is taken by the library.
            if !(b'a'..=b'y').contains(&byte) {
                return Ok(None);
            }
        }
        Err(Malformed)
    }

    /// The byte in `[.x.]`: outside of a locale with names, a symbol is one byte.
    fn symbol(&mut self) -> Result<u8, Malformed> {
        match self.symbol_text()? {
            [symbol] => Ok(*symbol),
            _ => Err(Malformed),
        }
    }

    fn symbol_text(&mut self) -> Result<&'a [u8], Malformed> {
        let from = self.at + 1;
        let rest = self.pattern.get(from..).ok_or(Malformed)?;
        let length = rest.windows(2).position(|pair| pair == b".]").ok_or(Malformed)?;
        self.at = from + length + 2;
        rest.get(..length).ok_or(Malformed)
    }

    /// Goes to the end of an expression that has matched; false when it has none.
    fn skip(&mut self) -> Result<bool, Malformed> {
        loop {
            match (self.take(), self.peek(0)) {
                (b']', _) => return Ok(true),
                (0, _) => return Ok(false),
                (b'\\', 0) => return Err(Malformed),
                (b'\\', _) => self.at += 1,
                (b'[', b':') => drop(self.class_name()?),
                (b'[', b'=') => {
                    if self.peek(1) == 0 || self.peek(2) != b'=' || self.peek(3) != b']' {
                        return Err(Malformed);
                    }
                    self.at += 4;
                }
                (b'[', b'.') => drop(self.symbol_text()?),
                _ => {}
            }
        }
    }
}

fn in_class(name: &[u8], byte: u8) -> Option<bool> {
    Some(match name {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        b"punct" => byte.is_ascii_punctuation(),
        b"space" => byte.is_ascii_whitespace() || byte == b'\x0b',
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => return None,
    })
}
