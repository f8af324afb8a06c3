//! Requests. Needs `http` or, for `http://NAME/` over a socket of the host, `unix-http`.
//!
//! Bodies are sent and received as they come; [`Request::send_from`] and [`Body`] hand their streams over for
//! splicing.

use crate::error::{denied, failed, transient, Error, TransientCategory};
use crate::imports::wasi::http::outgoing_handler::{handle, RequestOptions};
use crate::imports::wasi::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, OutgoingBody, OutgoingRequest,
    Scheme,
};
use crate::stream::{self, broken};
use crate::{InputStream, OutputStream};
use serde::de::DeserializeOwned;
use serde::Serialize;

pub use crate::imports::wasi::http::types::Method;

/// Bytes of an answer that is read whole. Longer ones are lists nobody paged, or no answers.
const WHOLE_MAX: usize = 16 << 20;

/// Bytes of an answer that are quoted in an error.
const QUOTED_MAX: usize = 1_000;

/// A request to be sent.
#[derive(Debug)]
pub struct Request {
    method: Method,
    url: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Option<Vec<u8>>,
    first_byte_ms: Option<u64>,
}

impl Request {
    /// A request to an absolute URL.
    pub fn new(method: Method, url: &str) -> Request {
        Request { method, url: url.into(), headers: vec![], body: None, first_byte_ms: None }
    }

    /// A request that reads.
    pub fn get(url: &str) -> Request {
        Request::new(Method::Get, url)
    }

    /// A request that does something.
    pub fn post(url: &str) -> Request {
        Request::new(Method::Post, url)
    }

    /// With a header. `Host`, lengths and what belongs to the connection are the host's to say.
    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.headers.push((name.into(), value.as_bytes().to_vec()));
        self
    }

    /// With a body.
    pub fn body(mut self, kind: &str, bytes: Vec<u8>) -> Request {
        self.body = Some(bytes);
        self.header("content-type", kind)
    }

    /// With a value as a JSON body.
    pub fn body_json(self, value: &impl Serialize) -> Request {
        // A value that cannot be written is none that a back end would take.
        let bytes = serde_json::to_vec(value).unwrap_or_default();
        self.body("application/json", bytes)
    }

    /// With a time to the first byte of the answer, in milliseconds, other than the host's own.
    pub fn first_byte_within(mut self, ms: u64) -> Request {
        self.first_byte_ms = Some(ms);
        self
    }

    /// Sends it. Every status is an answer; [`Answer::ok`] makes an error of the bad ones.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn send(mut self) -> Result<Answer, Error> {
        let body = self.body.take().unwrap_or_default();
        let length = Some(body.len() as u64);
        self.send_from(length, |to| stream::write(to, &body))
    }

    /// Sends it with a body that `write` writes, of so many bytes where that is known.
    ///
    /// # Errors
    /// When there is no answer, or the body cannot be written; of the two, the answer says more.
    pub fn send_from(
        self,
        length: Option<u64>,
        write: impl FnOnce(&OutputStream) -> Result<(), Error>,
    ) -> Result<Answer, Error> {
        let fields = Fields::new();
        let refused = |what: &str| failed("request_refused", format!("{what} cannot be sent"));
        for (name, value) in &self.headers {
            fields.append(name, value).map_err(|_| refused(&format!("the header `{name}`")))?;
        }
        if let Some(length) = length {
            let value = length.to_string().into_bytes();
            fields.append("content-length", &value).map_err(|_| refused("the length"))?;
        }
        let request = self.prepared(fields).ok_or_else(|| refused(&format!("a request to {}", self.url)))?;
        let body = match length {
            Some(0) => None,
            _ => request.body().ok(),
        };
        let answer = handle(request, self.options()).map_err(of_code)?;
        let written = match body {
            None => Ok(()),
            Some(body) => sent(body, write),
        };
        match (waited(&answer), written) {
            (Ok(answer), Ok(())) => Ok(answer),
            // A server that has heard enough answers before it has heard all.
            (Ok(answer), Err(_)) if answer.status() >= 400 => Ok(answer),
            (_, Err(error @ Error::Denied(_))) => Err(error),
            (Err(error), _) | (Ok(_), Err(error)) => Err(error),
        }
    }

    fn prepared(&self, fields: Fields) -> Option<OutgoingRequest> {
        let (scheme, rest) = self.url.split_once("://")?;
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, "/"),
        };
        let scheme = match scheme {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => Scheme::Other(other.into()),
        };
        let request = OutgoingRequest::new(fields);
        request.set_method(&self.method).ok()?;
        request.set_scheme(Some(&scheme)).ok()?;
        request.set_authority(Some(authority)).ok()?;
        request.set_path_with_query(Some(path)).ok()?;
        Some(request)
    }

    fn options(&self) -> Option<RequestOptions> {
        let ns = self.first_byte_ms?.saturating_mul(1_000_000);
        let options = RequestOptions::new();
        options.set_first_byte_timeout(Some(ns)).ok()?;
        options.set_between_bytes_timeout(Some(ns)).ok()?;
        Some(options)
    }
}

fn sent(body: OutgoingBody, write: impl FnOnce(&OutputStream) -> Result<(), Error>) -> Result<(), Error> {
    let to = body.write().map_err(|()| broken("the request has no body"))?;
    write(&to)?;
    drop(to);
    OutgoingBody::finish(body, None).map_err(of_code)
}

fn waited(answer: &FutureIncomingResponse) -> Result<Answer, Error> {
    loop {
        match answer.get() {
            Some(Ok(answer)) => return answer.map(Answer).map_err(of_code),
            Some(Err(())) => return Err(broken("the answer was taken before")),
            None => answer.subscribe().block(),
        }
    }
}

/// An answer whose body was not read yet.
#[derive(Debug)]
pub struct Answer(IncomingResponse);

impl Answer {
    /// The status.
    pub fn status(&self) -> u16 {
        self.0.status()
    }

    /// A header's value, as text.
    pub fn header(&self, name: &str) -> Option<String> {
        let values = self.0.headers().get(name);
        values.into_iter().next().map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    /// This answer, unless its status says that something went wrong.
    ///
    /// # Errors
    /// By status: 401 and 403 are refusals, 429 and 5xx may pass, everything else from 400 on will not.
    pub fn ok(self) -> Result<Answer, Error> {
        match self.status() {
            0..=399 => Ok(self),
            _ => Err(self.into_error()),
        }
    }

    /// The error that its status and its body make.
    pub fn into_error(self) -> Error {
        let status = self.status();
        let retry_after = self.header("retry-after").and_then(|text| text.trim().parse::<u64>().ok());
        let body = self.text(QUOTED_MAX).unwrap_or_default();
        let message = format!("{status}: {}", body.trim());
        match status {
            401 | 403 => denied(message),
            429 => match transient(TransientCategory::RateLimited, message) {
                Error::Transient(mut fault) => {
                    fault.retry_after_ms = retry_after.map(|seconds| seconds.saturating_mul(1_000));
                    Error::Transient(fault)
                }
                other => other,
            },
            408 | 504 => transient(TransientCategory::Timeout, message),
            502 | 503 => transient(TransientCategory::Unavailable, message),
            _ => failed("http_status", message),
        }
    }

    /// The body as a stream.
    ///
    /// # Errors
    /// When the host gives none.
    pub fn stream(self) -> Result<Body, Error> {
        let body = self.0.consume().map_err(|()| broken("the answer has no body"))?;
        let stream = body.stream().map_err(|()| broken("the answer has no body"))?;
        Ok(Body { stream, _body: body })
    }

    /// The whole body, of which at most so many bytes are kept.
    ///
    /// # Errors
    /// When it breaks off.
    pub fn bytes(self, most: usize) -> Result<Vec<u8>, Error> {
        stream::read_to_end(self.stream()?.stream(), most)
    }

    /// The body as text.
    ///
    /// # Errors
    /// As [`Answer::bytes`].
    pub fn text(self, most: usize) -> Result<String, Error> {
        Ok(String::from_utf8_lossy(&self.bytes(most)?).into_owned())
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// As [`Answer::bytes`], and when it is something else.
    pub fn json<T: DeserializeOwned>(self) -> Result<T, Error> {
        let bytes = self.bytes(WHOLE_MAX)?;
        let other =
            |error| failed("answer_unexpected", format!("the answer is not what it should be: {error}"));
        serde_json::from_slice(&bytes).map_err(other)
    }
}

/// A body that is read as it comes. Dropping it before its end closes the connection.
#[derive(Debug)]
pub struct Body {
    // The stream goes before what it belongs to.
    stream: InputStream,
    _body: IncomingBody,
}

impl Body {
    /// The stream.
    pub fn stream(&self) -> &InputStream {
        &self.stream
    }
}

/// A text as one part of a path or one value of a query.
pub fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
        encoded
    })
}

/// Why there is no answer, as an error.
pub fn of_code(code: ErrorCode) -> Error {
    let text = format!("{code:?}");
    match code {
        ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited => {
            use crate::imports::leasehold::host::egress_status::{latest, Verdict};
            denied(match latest() {
                Some(Verdict::Denied(reason) | Verdict::Limit(reason)) => reason,
                _ => text,
            })
        }
        ErrorCode::ConnectionTimeout
        | ErrorCode::ConnectionReadTimeout
        | ErrorCode::ConnectionWriteTimeout
        | ErrorCode::HttpResponseTimeout
        | ErrorCode::DnsTimeout => transient(TransientCategory::Timeout, text),
        // The request may have arrived.
        ErrorCode::ConnectionTerminated | ErrorCode::HttpResponseIncomplete => {
            transient(TransientCategory::Unavailable, text)
        }
        // It has not.
        ErrorCode::ConnectionRefused
        | ErrorCode::DestinationNotFound
        | ErrorCode::DestinationUnavailable
        | ErrorCode::DestinationIpUnroutable
        | ErrorCode::DnsError(_) => transient(TransientCategory::Network, text),
        ErrorCode::ConnectionLimitReached => failed("connection_limit", text),
        _ => failed("request_failed", text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_special_in_a_url_is_encoded() {
        assert_eq!(encoded("a-b_c.d~9"), "a-b_c.d~9");
        assert_eq!(encoded("a/b?c=d&e é"), "a%2Fb%3Fc%3Dd%26e%20%C3%A9");
    }
}
