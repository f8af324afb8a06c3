//! Sends one request: judged, connected, filled with its secrets, answered.

use super::HttpEdge;
use super::body::{Answer, Begun, Failed, Outgoing, Progress, Record};
use super::call::{Call, Open};
use super::dial::Unconnected;
use super::headers;
use super::pool::{Connection, Origin, Pool};
use super::target::Target;
use crate::policy::address::reachable;
use crate::reach::{Reach, Verdict};
use crate::secret::{Encoding, Misplaced, Towards};
use bytes::{Bytes, BytesMut};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full};
use leasehold_contract::authority::{Denial, HttpTarget, HttpWay, Permission};
use leasehold_engine::Limit;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

/// What sending a request gives: the answer, and what goes on beside it, which is nothing here.
pub(super) type Sent =
    Result<(Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>), Error>;

/// The interface, for denials.
const IMPORT: &str = "wasi:http/outgoing-handler";

/// The longest body that secrets may stand in: it is held whole, because its length changes. Hit: a longer
/// one is sent as it comes, and refused when a placeholder is in it.
const FILLED_MAX: usize = 1 << 20;

/// How long a kept connection may take to be ready. One that is not was left in the middle of something.
const READY: Duration = Duration::from_millis(50);

/// Sends a request of a call.
pub(super) async fn send(
    call: Arc<Call>,
    place: Open,
    request: Request<WasiBody>,
    options: RequestOptions,
) -> Sent {
    let (Some(reach), Some(edge)) = (call.reach.clone(), call.edge.clone()) else {
        return Err(Error::HttpRequestDenied);
    };
    let (parts, body) = request.into_parts();
    let target = Target::of(&parts.uri).ok_or(Error::HttpRequestUriInvalid)?;
    let judged = target.with(parts.method.as_str());
    let denied = |denial: Denial| {
        reach.denied(&call.scope, &denial);
        Error::HttpRequestDenied
    };
    if [http::Method::CONNECT, http::Method::TRACE].contains(&parts.method) {
        let reason = "the method is for proxies and tests of connections; no grant allows it".into();
        return Err(denied(reach.policy().never(IMPORT, Permission::Http, &shown(&judged), reason)));
    }
    let way = reach.policy().http(&judged).map_err(denied)?;
    let (towards, permission) = match way {
        HttpWay::Network(_) => (Towards::Network(&judged), Permission::Http),
        HttpWay::Unix { name, .. } => (Towards::Unix(name), Permission::UnixHttp),
    };
    let misplaced = |misplaced: Misplaced| {
        denied(reach.policy().never(IMPORT, permission, &shown(&judged), misplaced.to_string()))
    };

    let secrets = reach.secrets();
    let mut headers = parts.headers;
    let size = headers::size(&headers);
    if size > call.scope.limits.get(Limit::HttpHeaders) {
        call.hit(Limit::HttpHeaders, size);
        return Err(Error::HttpRequestHeaderSectionSize(u32::try_from(size).ok()));
    }
    headers::outgoing(&mut headers, secrets, towards).map_err(misplaced)?;
    let path =
        path(&parts.uri, |path| secrets.filled(path, towards, Encoding::Query)).map_err(
            |error| match error {
                Path::Invalid => Error::HttpRequestUriInvalid,
                Path::Misplaced(error) => misplaced(error),
            },
        )?;
    if !secrets.is_empty() {
        // What is packed cannot be looked through, and the answer may hold a secret.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    let host = HeaderValue::from_str(&target.host_header()).map_err(|_| Error::HttpRequestUriInvalid)?;
    headers.insert(header::HOST, host);

    let progress = Progress::default();
    let length = announced(&mut headers)?;
    let body = match secrets.may_be_in_body(towards) {
        false => Outgoing::new(body, call.clone(), length, !secrets.is_empty(), progress.clone()),
        true => {
            let encoding = encoding(&headers);
            let (body, length, whole) =
                filled(body, length, |bytes| secrets.filled(bytes, towards, encoding).map(Cow::into_owned))
                    .await
                    .map_err(|error| match error {
                        Failed::Misplaced(error) => misplaced(error),
                        Failed::Error(error) => error,
                    })?;
            Outgoing::new(body, call.clone(), length, !whole, progress.clone())
        }
    };
    let mut outgoing = Request::new(body.boxed_unsync());
    *outgoing.method_mut() = parts.method.clone();
    *outgoing.uri_mut() = path;
    *outgoing.headers_mut() = headers;

    let first_byte = call.scope.within(options.first_byte_timeout, Limit::HttpFirstByte);
    let pool = call.pool(&edge).clone();
    let connected = Connected {
        edge: &edge,
        pool: &pool,
        way,
        target: &target,
        connect: call.scope.within(options.connect_timeout, Limit::HttpConnect),
    };
    let answered = patient(connected.exchange(outgoing), first_byte, &progress).await;
    let (response, connection) = match answered {
        Some(Ok(answered)) => answered,
        Some(Err(error)) => {
            return Err(match (progress.failed(), error) {
                (Some(Failed::Misplaced(error)), _) => misplaced(error),
                (Some(Failed::Error(error)), _) => error,
                (None, Unconnected::Failed(error)) => error,
                (None, Unconnected::Address { found, network }) => {
                    denied(reach.policy().wrong_address(&judged, found, &network));
                    Error::DestinationIpProhibited
                }
            });
        }
        None => return Err(Error::ConnectionReadTimeout),
    };
    reach.note(Verdict::Allowed);
    let record = Record { permission, target: shown(&judged), progress, received: 0 };
    let idle = call.scope.within(options.between_bytes_timeout, Limit::HttpIdle);
    answer(Asked { call, reach, pool, place, record, idle }, response, connection)
}

/// A request that was sent, and what its answer belongs to.
struct Asked {
    call: Arc<Call>,
    reach: Arc<Reach>,
    pool: Arc<Pool>,
    place: Open,
    record: Record,
    idle: Duration,
}

/// The answer as the guest gets it.
fn answer(asked: Asked, response: Response<hyper::body::Incoming>, connection: Connection) -> Sent {
    let Asked { call, reach, pool, place, record, idle } = asked;
    let (mut parts, incoming) = response.into_parts();
    let size = headers::size(&parts.headers);
    if size > call.scope.limits.get(Limit::HttpHeaders) {
        call.hit(Limit::HttpHeaders, size);
        return Err(Error::HttpResponseHeaderSectionSize(u32::try_from(size).ok()));
    }
    if conflicting(&parts.headers) {
        return Err(Error::HttpProtocolError);
    }
    let secrets = reach.secrets();
    if !secrets.is_empty()
        && let Some(coding) = parts.headers.get(header::CONTENT_ENCODING)
        && !coding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        let coding = String::from_utf8_lossy(coding.as_bytes()).into_owned();
        return Err(Error::HttpResponseContentCoding(Some(leasehold_contract::text::plain(&coding, 100))));
    }
    headers::incoming(&mut parts.headers, secrets);
    let body = Answer {
        incoming,
        connection: Some(connection),
        pool,
        filter: secrets.scrubber().map(crate::secret::scrub::Scrubber::stream),
        call,
        reach,
        idle: idle.max(Duration::from_millis(1)),
        timer: None,
        waiting: false,
        after: None,
        ended: false,
        record,
        _place: place,
    };
    Ok((Response::from_parts(parts, body.boxed_unsync()), Box::new(async { Ok(()) })))
}

/// Where a request is sent.
struct Connected<'a> {
    edge: &'a HttpEdge,
    pool: &'a Pool,
    way: HttpWay<'a>,
    target: &'a Target,
    connect: Duration,
}

impl Connected<'_> {
    /// Sends the request over a kept connection or a new one. A kept one that turns out to be closed before
    /// anything was sent is no fault of the request.
    async fn exchange(
        &self,
        mut request: Request<WasiBody>,
    ) -> Result<(Response<hyper::body::Incoming>, Connection), Unconnected> {
        let origin = match self.way {
            HttpWay::Network(_) => Origin::Network(self.target.clone()),
            HttpWay::Unix { socket, .. } => Origin::Unix(socket.to_owned()),
        };
        while let Some(mut connection) =
            self.pool.take(&origin).filter(|connection| self.still_allowed(connection))
        {
            if !matches!(tokio::time::timeout(READY, connection.sender.ready()).await, Ok(Ok(()))) {
                continue;
            }
            match connection.sender.try_send_request(request).await {
                Ok(response) => return Ok((response, connection)),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(Unconnected::Failed(Error::Hyper(error.into_error()))),
                },
            }
        }
        let dial = async {
            match self.way {
                HttpWay::Network(rule) => self.edge.network(origin, &rule.host, &rule.networks).await,
                HttpWay::Unix { .. } => self.edge.unix(origin).await,
            }
        };
        let mut connection = tokio::time::timeout(self.connect, dial)
            .await
            .map_err(|_| Unconnected::Failed(Error::ConnectionTimeout))??;
        let response = connection.sender.send_request(request).await;
        Ok((response.map_err(|error| Unconnected::Failed(Error::Hyper(error)))?, connection))
    }

    /// Whether the address of a kept connection is one that this request's own rule allows.
    fn still_allowed(&self, connection: &Connection) -> bool {
        match (self.way, connection.peer) {
            (HttpWay::Network(rule), Some(peer)) => reachable(&rule.host, &rule.networks, peer),
            (HttpWay::Unix { .. }, None) => true,
            _ => false,
        }
    }
}

enum Path {
    Invalid,
    Misplaced(Misplaced),
}

/// The path and query alone: whatever else a URL could say was judged and is not repeated.
fn path<'u>(
    uri: &'u Uri,
    fill: impl FnOnce(&'u [u8]) -> Result<Cow<'u, [u8]>, Misplaced>,
) -> Result<Uri, Path> {
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    if !path.starts_with('/') {
        return Err(Path::Invalid);
    }
    match fill(path.as_bytes()).map_err(Path::Misplaced)? {
        Cow::Borrowed(_) => {
            Ok(uri.path_and_query().map_or_else(|| Uri::from_static("/"), |path| Uri::from(path.clone())))
        }
        Cow::Owned(filled) => Uri::from_maybe_shared(Bytes::from(filled)).map_err(|_| Path::Invalid),
    }
}

/// Takes the announced length out; the client writes it again, from what the body really is.
fn announced(headers: &mut HeaderMap) -> Result<Option<u64>, Error> {
    let Some(value) = headers.remove(header::CONTENT_LENGTH) else { return Ok(None) };
    let digits =
        value.to_str().ok().filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
    let length = digits.and_then(|text| text.parse().ok()).ok_or(Error::HttpProtocolError)?;
    Ok(Some(length))
}

/// Whether an answer says its length in more than one way.
fn conflicting(headers: &HeaderMap) -> bool {
    let lengths = headers.get_all(header::CONTENT_LENGTH).iter().count();
    lengths > 1 || (lengths == 1 && headers.contains_key(header::TRANSFER_ENCODING))
}

fn encoding(headers: &HeaderMap) -> Encoding {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "application/x-www-form-urlencoded" => Encoding::FormBody,
        kind if kind.ends_with("json") => Encoding::JsonBody,
        _ => Encoding::Body,
    }
}

/// Waits for an answer for this long, as long as nothing moves: an upload takes the time it takes.
async fn patient<T>(answer: impl Future<Output = T>, patience: Duration, progress: &Progress) -> Option<T> {
    tokio::pin!(answer);
    let mut sent = progress.sent();
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => return Some(answer),
            () = tokio::time::sleep(patience) => match progress.sent() {
                same if same == sent => return None,
                more => sent = more,
            },
        }
    }
}

/// A body with secrets in it, its length, and whether it is all there; one that is too long stays a stream.
async fn filled(
    mut body: WasiBody,
    length: Option<u64>,
    fill: impl Fn(&[u8]) -> Result<Vec<u8>, Misplaced>,
) -> Result<(WasiBody, Option<u64>, bool), Failed> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        match frame.map_err(Failed::Error)?.into_data() {
            Ok(bytes) => whole.extend_from_slice(&bytes),
            // Trailers of a body that is sent in one piece have no place.
            Err(_) => continue,
        }
        if whole.len() > FILLED_MAX {
            let begun = Begun { beginning: Some(whole.freeze()), rest: body };
            return Ok((begun.boxed_unsync(), length, false));
        }
    }
    if length.is_some_and(|length| length != whole.len() as u64) {
        return Err(Failed::Error(Error::HttpRequestBodySize(Some(whole.len() as u64))));
    }
    let filled = fill(&whole).map_err(Failed::Misplaced)?;
    let length = filled.len() as u64;
    Ok((Full::new(Bytes::from(filled)).map_err(|never| match never {}).boxed_unsync(), Some(length), true))
}

/// For people: the request without what a path may hold.
fn shown(target: &HttpTarget<'_>) -> String {
    let HttpTarget { scheme, host, port, method } = *target;
    let host = Target { scheme, host: host.to_owned(), port };
    format!("{method} {host}")
}
