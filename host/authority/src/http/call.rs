//! What the edge keeps during one call, and what it is asked by the implementation of `wasi:http`.

use super::HttpEdge;
use super::headers::forbidden;
use super::pool::Pool;
use crate::reach::{Reach, Verdict};
use leasehold_engine::{Limit, Scope};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpHooks};

/// How much a guest may hand over at once for a body. The host holds two such pieces for each request.
const CHUNK: usize = 256 << 10;

/// What the edge keeps during one call.
pub(crate) struct Kept {
    pub(crate) hooks: Hooks,
    pub(crate) context: WasiHttpCtx,
}

/// Answers what the implementation of `wasi:http` asks.
pub(crate) struct Hooks(Arc<Call>);

/// One call, shared by the requests it has under way.
pub(super) struct Call {
    pub(super) scope: Arc<Scope>,
    pub(super) edge: Option<Arc<HttpEdge>>,
    pub(super) reach: Option<Arc<Reach>>,
    pool: OnceLock<Arc<Pool>>,
    open: AtomicU64,
    total: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

/// One request under way.
pub(super) struct Open(Arc<Call>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Kept {
    pub(crate) fn new(edge: Option<Arc<HttpEdge>>, scope: &Arc<Scope>) -> Kept {
        let mut context = WasiHttpCtx::new();
        context.set_field_size_limit(
            usize::try_from(scope.limits.get(Limit::HttpHeaders)).unwrap_or(usize::MAX),
        );
        let reach = scope.authority::<Reach>();
        let call = Call {
            scope: scope.clone(),
            edge,
            reach,
            pool: OnceLock::new(),
            open: AtomicU64::new(0),
            total: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        };
        Kept { hooks: Hooks(Arc::new(call)), context }
    }
}

impl Call {
    pub(super) fn pool(&self, edge: &HttpEdge) -> &Arc<Pool> {
        self.pool.get_or_init(|| edge.pools.of(&self.scope))
    }

    /// Takes a place among the requests of the call.
    pub(super) fn admitted(self: &Arc<Self>) -> Result<Open, Error> {
        let (open, total) = (Limit::HttpOpen, Limit::HttpRequests);
        let at = self.total.fetch_add(1, Ordering::Relaxed) + 1;
        if at > self.scope.limits.get(total) {
            return Err(self.hit(total, at));
        }
        let at = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        let place = Open(self.clone());
        if at > self.scope.limits.get(open) {
            return Err(self.hit(open, at));
        }
        self.scope.meter.request();
        Ok(place)
    }

    /// Counts bytes that are sent.
    pub(super) fn sends(&self, bytes: usize) -> Result<(), Error> {
        let at = self.sent.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        self.scope.meter.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
        if at > self.scope.limits.get(Limit::HttpSent) {
            self.hit(Limit::HttpSent, at);
            return Err(Error::HttpRequestBodySize(Some(at)));
        }
        Ok(())
    }

    /// Counts bytes that are received.
    pub(super) fn receives(&self, bytes: usize) -> Result<(), Error> {
        let at = self.received.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        self.scope.meter.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
        if at > self.scope.limits.get(Limit::HttpReceived) {
            self.hit(Limit::HttpReceived, at);
            return Err(Error::HttpResponseBodySize(Some(at)));
        }
        Ok(())
    }

    /// Notes a limit that was hit.
    pub(super) fn hit(&self, limit: Limit, at: u64) -> Error {
        let info = limit.info();
        let allowed = self.scope.limits.get(limit);
        let text = format!("limit `{limit}` hit: {at} of at most {allowed} {}", info.unit);
        if let Some(reach) = &self.reach {
            reach.note(Verdict::Limit(text));
        }
        Error::ConnectionLimitReached
    }
}

impl WasiHttpHooks for Hooks {
    fn is_forbidden_header(&mut self, name: &http::HeaderName) -> bool {
        forbidden(name)
    }

    fn set_host_header(&mut self) -> bool {
        // The sender says it, from what it connects to.
        false
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = super::send::Sent> + Send> {
        let call = self.0.clone();
        // Counted before anything is spawned, so that a flood costs nothing but its refusals.
        let place = call.admitted();
        Box::new(async move { super::send::send(call, place?, request, options.unwrap_or_default()).await })
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK
    }

    fn p2_error_from_hyper(
        &mut self,
        error: &hyper::Error,
    ) -> wasmtime_wasi_http::p2::bindings::http::types::ErrorCode {
        use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
        tracing::debug!(%error, "a request failed");
        if error.is_parse_too_large() {
            ErrorCode::HttpResponseHeaderSectionSize(None)
        } else if error.is_incomplete_message() {
            ErrorCode::HttpResponseIncomplete
        } else if error.is_closed() || error.is_canceled() {
            ErrorCode::ConnectionTerminated
        } else {
            ErrorCode::HttpProtocolError
        }
    }

    fn p2_error_from_connect(
        &mut self,
        error: &std::io::Error,
    ) -> wasmtime_wasi_http::p2::bindings::http::types::ErrorCode {
        use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
        tracing::debug!(%error, "no connection");
        ErrorCode::DestinationUnavailable
    }
}
