//! Headers and trailers: what is ours to say, what nobody may say, and what holds a placeholder.

use crate::secret::{Misplaced, Secrets, Towards};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::borrow::Cow;
use wasmtime_wasi_http::DEFAULT_FORBIDDEN_HEADERS;

/// Whether a header belongs to the connection or to the host. The guest may neither set nor see it.
pub(super) fn forbidden(name: &HeaderName) -> bool {
    DEFAULT_FORBIDDEN_HEADERS.contains(name)
        || [header::TE, header::TRAILER, header::EXPECT].contains(name)
        || name.as_str() == "proxy-connection"
}

/// Fields that change what a message is or who may see it; in a trailer they would come after that was
/// decided.
const NEVER_IN_TRAILERS: [HeaderName; 18] = [
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::CONTENT_RANGE,
    header::CACHE_CONTROL,
    header::MAX_FORWARDS,
    header::AUTHORIZATION,
    header::WWW_AUTHENTICATE,
    header::COOKIE,
    header::SET_COOKIE,
    header::AGE,
    header::EXPIRES,
    header::DATE,
    header::LOCATION,
    header::RETRY_AFTER,
    header::VARY,
    header::RANGE,
    header::ORIGIN,
];

/// Bytes of all names and values.
pub(super) fn size(headers: &HeaderMap) -> u64 {
    headers.iter().map(|(name, value)| (name.as_str().len() + value.len()) as u64).sum()
}

/// Takes out what may not be in a trailer.
pub(super) fn trailers(trailers: &mut HeaderMap) {
    let names: Vec<_> =
        trailers.keys().filter(|name| forbidden(name) || NEVER_IN_TRAILERS.contains(name)).cloned().collect();
    for name in names {
        trailers.remove(name);
    }
}

/// Takes out what is not the guest's to say, and fills in secrets.
pub(super) fn outgoing(
    headers: &mut HeaderMap,
    secrets: &Secrets,
    towards: Towards<'_>,
) -> Result<(), Misplaced> {
    for name in DEFAULT_FORBIDDEN_HEADERS.iter().chain(&[header::TE, header::TRAILER, header::EXPECT]) {
        headers.remove(name);
    }
    for value in headers.values_mut() {
        if let Cow::Owned(filled) = secrets.filled_header(value.as_bytes(), towards)? {
            // Values with line ends were refused before; anything else a header can hold.
            let mut filled =
                HeaderValue::from_maybe_shared(bytes::Bytes::from(filled)).map_err(|_| Misplaced::Unknown)?;
            filled.set_sensitive(true);
            *value = filled;
        }
    }
    Ok(())
}

/// Takes secrets out of what a server says. Length stays, so the value stays one.
pub(super) fn incoming(headers: &mut HeaderMap, secrets: &Secrets) {
    let Some(scrubber) = secrets.scrubber() else { return };
    for value in headers.values_mut() {
        let bytes = bytes::Bytes::copy_from_slice(value.as_bytes());
        let scrubbed = scrubber.bytes(bytes.clone());
        if scrubbed != bytes
            && let Ok(scrubbed) = HeaderValue::from_maybe_shared(scrubbed)
        {
            *value = scrubbed;
        }
    }
    let named: Vec<_> = headers
        .keys()
        .filter(|name| matches!(scrubber.text(name.as_str()), Cow::Owned(_)))
        .cloned()
        .collect();
    for name in named {
        headers.remove(name);
    }
}
