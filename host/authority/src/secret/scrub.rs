//! Finds secrets in whatever leaves the host, in every form they travel in.
//!
//! A value is looked for as it is, in base64 in all three alignments (a value inside a longer text is encoded
//! differently depending on where it begins), URL-encoded and JSON-escaped. What is found is masked byte by
//! byte, so that lengths stay what they were announced to be.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::{Bytes, BytesMut};
use leasehold_engine::Filter;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// What stands in the place of each byte of a secret.
const MASK: u8 = b'*';

/// The shortest text that is looked for. What is shorter is found everywhere, and masking it would destroy
/// output without hiding anything.
pub const SHORTEST: usize = 4;

/// The shortest encoded form that is looked for, for the same reason.
const SHORTEST_ENCODED: usize = 6;

/// Everything outside of what RFC 3986 leaves alone.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The bytes that tools like to leave alone in a URL's path and query.
const LENIENT: &AsciiSet = &COMPONENT
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';')
    .remove(b':')
    .remove(b'@')
    .remove(b'/')
    .remove(b'?');

/// Looks for a set of secrets. Cheap to clone.
#[derive(Clone)]
pub struct Scrubber(Arc<Patterns>);

struct Patterns {
    matcher: AhoCorasick,
    /// Kept to know what the end of a piece could be the beginning of.
    forms: Vec<Vec<u8>>,
}

impl Scrubber {
    /// A scrubber for these values; none when there is nothing to look for.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a SecretString>) -> Option<Scrubber> {
        let mut forms: Vec<Vec<u8>> =
            values.into_iter().flat_map(|value| forms(value.expose_secret())).collect();
        // Longer ones first, so that a form inside another does not leave the rest of it standing.
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        if forms.is_empty() {
            return None;
        }
        // A table for each state is fast and large; few secrets keep it small.
        let kind = (forms.len() <= 64).then_some(AhoCorasickKind::DFA);
        let matcher =
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).kind(kind).build(&forms).ok()?;
        Some(Scrubber(Arc::new(Patterns { matcher, forms })))
    }

    /// The text without secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.0.matcher.is_match(text) {
            return Cow::Borrowed(text);
        }
        let mut bytes = text.as_bytes().to_vec();
        self.mask(&mut bytes);
        // A form that begins or ends inside a character would leave half of it.
        Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The bytes without secrets; the same bytes when there is none in them.
    pub fn bytes(&self, bytes: Bytes) -> Bytes {
        if !self.0.matcher.is_match(&bytes) {
            return bytes;
        }
        let mut bytes = BytesMut::from(bytes);
        self.mask(&mut bytes);
        bytes.freeze()
    }

    /// Takes secrets out of every text of a value, names included. A number that reads like one becomes null.
    pub fn json(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(scrubbed) = self.text(text) {
                    *text = scrubbed;
                }
            }
            Value::Number(number) => {
                if self.0.matcher.is_match(&number.to_string()) {
                    *value = Value::Null;
                }
            }
            Value::Array(entries) => entries.iter_mut().for_each(|entry| self.json(entry)),
            Value::Object(object) => {
                if object.keys().any(|name| self.0.matcher.is_match(name)) {
                    let named = std::mem::take(object).into_iter();
                    *object = named.map(|(name, value)| (self.text(&name).into_owned(), value)).collect();
                }
                object.values_mut().for_each(|inner| self.json(inner));
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// A filter for a stream that comes in pieces.
    pub fn stream(&self) -> Stream {
        Stream { scrubber: self.clone(), held: BytesMut::new() }
    }

    fn mask(&self, bytes: &mut [u8]) {
        let found: Vec<_> = self.0.matcher.find_iter(&*bytes).map(|found| found.range()).collect();
        for range in found {
            bytes[range].fill(MASK);
        }
    }

    /// How many bytes at the end could be the beginning of a form.
    fn open(&self, bytes: &[u8]) -> usize {
        let longest = self.0.forms.first().map_or(0, Vec::len).saturating_sub(1);
        let tail = &bytes[bytes.len() - longest.min(bytes.len())..];
        (0..tail.len())
            .map(|start| &tail[start..])
            .find(|rest| self.0.forms.iter().any(|form| form.len() > rest.len() && form.starts_with(rest)))
            .map_or(0, <[u8]>::len)
    }
}

impl std::fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scrubber({} forms)", self.0.forms.len())
    }
}

/// Takes secrets out of a stream. The end of a piece that could be the beginning of one is held back until
/// the next piece tells, so that no cut hides anything.
#[derive(Debug)]
pub struct Stream {
    scrubber: Scrubber,
    held: BytesMut,
}

impl Filter for Stream {
    fn pass(&mut self, piece: Bytes) -> Bytes {
        let whole = if self.held.is_empty() {
            piece
        } else {
            self.held.extend_from_slice(&piece);
            self.held.split().freeze()
        };
        // Found forms are masked first: what is left open is never part of one.
        let mut clean = self.scrubber.bytes(whole);
        let open = self.scrubber.open(&clean);
        if open > 0 {
            self.held = BytesMut::from(&clean.split_off(clean.len() - open)[..]);
        }
        clean
    }

    fn end(&mut self) -> Bytes {
        self.held.split().freeze()
    }
}

/// Every form in which a value is looked for.
fn forms(value: &str) -> Vec<Vec<u8>> {
    if value.len() < SHORTEST {
        return Vec::new();
    }
    let mut forms = vec![value.as_bytes().to_vec()];
    let encoded = [
        utf8_percent_encode(value, COMPONENT).to_string(),
        utf8_percent_encode(value, LENIENT).to_string(),
        utf8_percent_encode(value, COMPONENT).to_string().replace("%20", "+"),
        escaped(value),
        // Tools of the web escape these as well, so that a text can stand in a page.
        escaped(value).replace('/', "\\/"),
        escaped(value).replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"),
    ];
    for text in encoded {
        forms.push(lower_hex(&text).into_bytes());
        forms.push(text.into_bytes());
    }
    for alignment in 0..3 {
        let inner = aligned(value.as_bytes(), alignment);
        forms.push(inner.replace('+', "-").replace('/', "_").into_bytes());
        forms.push(inner.into_bytes());
    }
    forms.retain(|form| form.len() >= SHORTEST_ENCODED || form == value.as_bytes());
    forms
}

/// The characters of a base64 text that depend on the value alone, when it begins at this place of a group
/// of three.
fn aligned(value: &[u8], alignment: usize) -> String {
    let mut padded = vec![0; alignment];
    padded.extend_from_slice(value);
    let encoded = STANDARD_NO_PAD.encode(&padded);
    // Of six bits each: the first ones belong to what stands before, the last ones to what comes after.
    let first = (alignment * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    encoded.get(first..last).unwrap_or_default().to_owned()
}

fn escaped(value: &str) -> String {
    let quoted = Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Percent-encoding with small hex digits, as some tools write it.
fn lower_hex(text: &str) -> String {
    let mut lower = String::with_capacity(text.len());
    let mut small = 0;
    for character in text.chars() {
        lower.push(if small > 0 { character.to_ascii_lowercase() } else { character });
        small = if character == '%' { 2 } else { small - usize::from(small > 0) };
    }
    lower
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use proptest::prelude::*;

    const SECRET: &str = "p/w+ \"d\"=k\u{e9}y";

    fn scrubber(values: &[&str]) -> Scrubber {
        let values: Vec<_> = values.iter().map(|value| SecretString::from(*value)).collect();
        Scrubber::new(&values).unwrap()
    }

    #[test]
    fn a_secret_is_found_in_every_form() {
        let scrubber = scrubber(&[SECRET]);
        let json = Value::from(SECRET).to_string();
        let mut texts = vec![
            SECRET.to_owned(),
            json[1..json.len() - 1].to_owned(),
            "p%2Fw%2B%20%22d%22%3Dk%C3%A9y".to_owned(),
            "p%2fw%2b%20%22d%22%3dk%c3%a9y".to_owned(),
            "p%2Fw%2B+%22d%22%3Dk%C3%A9y".to_owned(),
        ];
        for before in ["", "x", "xy", "xyz"] {
            for after in ["", "1", "12", "123"] {
                let text = format!("{before}{SECRET}{after}");
                texts.push(STANDARD.encode(&text));
                texts.push(URL_SAFE_NO_PAD.encode(&text));
            }
        }
        for text in texts {
            let whole = format!("before {text} after");
            let scrubbed = scrubber.text(&whole).into_owned();
            assert!(scrubbed.contains("****"), "{text}");
            assert_eq!(scrubbed.len(), whole.len());
            // Of an encoded form stays what also depends on up to three bytes on each side.
            let left = scrubbed.bytes().filter(|byte| *byte != b'*').count() - "before  after".len();
            assert!(left <= 12, "{scrubbed}");
        }
    }

    #[test]
    fn a_short_value_is_not_looked_for_and_a_form_inside_another_hides_nothing() {
        assert!(Scrubber::new(&[SecretString::from("abc")]).is_none());
        assert_eq!(scrubber(&["abcd", "abcdefgh"]).text("xabcdefghx"), "x********x");
    }

    #[test]
    fn json_stays_json() {
        let mut value = serde_json::json!({"a": ["x-12345678", 12345678], "12345678": {"b": true}});
        scrubber(&["12345678"]).json(&mut value);
        assert_eq!(value, serde_json::json!({"a": ["x-********", null], "********": {"b": true}}));
    }

    proptest! {
        #[test]
        fn no_cut_of_a_stream_hides_a_secret(
            before in "[a-c]{0,9}", after in "[a-c]{0,9}", secret in "[a-c]{4,9}", cuts in prop::collection::vec(0_usize..60, 0..6),
        ) {
            let scrubber = scrubber(&[&secret]);
            let whole = format!("{before}{secret}{after}{secret}");
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(whole.len())).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            let mut stream = scrubber.stream();
            let mut out = Vec::new();
            for pair in cuts.windows(2) {
                out.extend_from_slice(&stream.pass(Bytes::copy_from_slice(&whole.as_bytes()[pair[0]..pair[1]])));
            }
            out.extend_from_slice(&stream.end());
            let out = String::from_utf8(out).unwrap();
            prop_assert_eq!(out.len(), whole.len());
            prop_assert!(!out.contains(&secret), "{} {}", out, secret);
        }
    }
}
