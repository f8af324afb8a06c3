//! Placeholders, and what becomes of them in a request.

use super::{Secrets, Towards};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::ExposeSecret as _;
use std::borrow::Cow;

/// How every placeholder begins. Whatever begins like this in a request and is no placeholder of this call is
/// refused: it is a part of one, or one of another call.
pub const PREFIX: &str = "lhsecret_";

/// Random digits behind the prefix: 128 bits.
const DIGITS: usize = 32;

/// The length of a placeholder.
pub(crate) const LENGTH: usize = PREFIX.len() + DIGITS;

/// A placeholder that is not where it may be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misplaced {
    /// It is none of this call, or a part of one.
    #[error("what looks like a secret's placeholder is none of this call")]
    Unknown,
    /// The secret is not bound to where the request goes.
    #[error(
        "the secret of `{field}` is not bound to this destination; its schema or a grant of the host by name binds it"
    )]
    Destination {
        /// Its field.
        field: String,
    },
    /// The secret may not stand in this part of a request.
    #[error("the secret of `{field}` may not stand in a {place}; its schema allows it with \"in\"")]
    Place {
        /// Its field.
        field: String,
        /// The part.
        place: &'static str,
    },
    /// It is in a body that cannot have one.
    #[error(
        "a secret's placeholder is in the body; its schema allows it there with \"in\": [\"body\"], in bodies of up to 1 MiB"
    )]
    Body,
    /// The value cannot be written there.
    #[error("the value of the secret of `{field}` cannot stand in a {place}")]
    Value {
        /// Its field.
        field: String,
        /// The part.
        place: &'static str,
    },
}

/// How a value is written into the part of a request it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As it is, in a header.
    Header,
    /// URL-encoded, in a path or query.
    Query,
    /// As it is, in a body.
    Body,
    /// Inside a text of JSON, in a body.
    JsonBody,
    /// URL-encoded, in the body of a form.
    FormBody,
}

impl Encoding {
    const fn place(self) -> &'static str {
        match self {
            Encoding::Header => "header",
            Encoding::Query => "query",
            Encoding::Body | Encoding::JsonBody | Encoding::FormBody => "body",
        }
    }
}

/// A placeholder nobody has seen before; none when the system has no random numbers.
pub(super) fn fresh() -> Option<String> {
    let mut bytes = [0; DIGITS / 2];
    getrandom::fill(&mut bytes).ok()?;
    let mut text = String::with_capacity(LENGTH);
    text.push_str(PREFIX);
    text.extend(
        bytes
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .filter_map(|digit| char::from_digit(digit.into(), 16)),
    );
    Some(text)
}

/// Whether there is a placeholder, or what looks like one.
pub(crate) fn found(bytes: &[u8]) -> bool {
    find(bytes).is_some()
}

/// Whether there is one in a piece of a stream, or over its seam with what came before. `seam` keeps the end.
pub(crate) fn seen(seam: &mut BytesMut, piece: &[u8]) -> bool {
    let keep = PREFIX.len() - 1;
    seam.extend_from_slice(&piece[..piece.len().min(PREFIX.len())]);
    let seen = found(seam) || found(piece);
    if piece.len() >= keep {
        seam.clear();
        seam.extend_from_slice(&piece[piece.len() - keep..]);
    } else {
        let _ = seam.split_to(seam.len().saturating_sub(keep));
    }
    seen
}

/// Where the next placeholder, or what looks like one, begins.
pub(crate) fn find(bytes: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, PREFIX.as_bytes())
}

impl Secrets {
    /// The bytes with values where placeholders were.
    ///
    /// # Errors
    /// When one stands where it may not.
    pub(crate) fn filled<'b>(
        &self,
        bytes: &'b [u8],
        towards: Towards<'_>,
        encoding: Encoding,
    ) -> Result<Cow<'b, [u8]>, Misplaced> {
        let Some(mut start) = find(bytes) else { return Ok(Cow::Borrowed(bytes)) };
        let (mut out, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
        loop {
            out.extend_from_slice(&rest[..start]);
            let token = rest.get(start..start + LENGTH).ok_or(Misplaced::Unknown)?;
            out.extend_from_slice(&self.value(token, towards, encoding)?);
            rest = &rest[start + LENGTH..];
            match find(rest) {
                Some(next) => start = next,
                None => break,
            }
        }
        out.extend_from_slice(rest);
        Ok(Cow::Owned(out))
    }

    /// A header's value with values where placeholders were, inside basic authentication as well.
    ///
    /// # Errors
    /// When one stands where it may not.
    pub(crate) fn filled_header<'b>(
        &self,
        value: &'b [u8],
        towards: Towards<'_>,
    ) -> Result<Cow<'b, [u8]>, Misplaced> {
        let basic =
            value.get(..6).filter(|scheme| scheme.eq_ignore_ascii_case(b"basic ") && !self.is_empty());
        if basic.is_some()
            && let Ok(inner) = STANDARD.decode(value[6..].trim_ascii())
            && let Cow::Owned(filled) = self.filled(&inner, towards, Encoding::Header)?
        {
            return Ok(Cow::Owned(format!("Basic {}", STANDARD.encode(filled)).into_bytes()));
        }
        self.filled(value, towards, Encoding::Header)
    }

    /// The value that a placeholder stands for, as it is written there.
    pub(crate) fn value(
        &self,
        token: &[u8],
        towards: Towards<'_>,
        encoding: Encoding,
    ) -> Result<Vec<u8>, Misplaced> {
        let issued = self.issued.iter().find(|issued| issued.placeholder.as_bytes() == token);
        let issued = issued.ok_or(Misplaced::Unknown)?;
        let (field, place) = (issued.field.path.clone(), encoding.place());
        if !issued.is_bound(towards) {
            return Err(Misplaced::Destination { field });
        }
        let uses = issued.field.uses;
        let value = issued.value.expose_secret();
        let (allowed, written) = match encoding {
            // A line end would be the beginning of another header.
            Encoding::Header if value.contains(['\r', '\n', '\0']) => {
                return Err(Misplaced::Value { field, place });
            }
            Encoding::Header => (uses.header, value.to_owned()),
            Encoding::Query => (uses.query, utf8_percent_encode(value, NON_ALPHANUMERIC).to_string()),
            Encoding::Body => (uses.body, value.to_owned()),
            Encoding::FormBody => (uses.body, utf8_percent_encode(value, NON_ALPHANUMERIC).to_string()),
            Encoding::JsonBody => {
                let quoted = serde_json::Value::from(value).to_string();
                (uses.body, quoted[1..quoted.len() - 1].to_owned())
            }
        };
        if allowed { Ok(written.into_bytes()) } else { Err(Misplaced::Place { field, place }) }
    }
}
