//! Bodies on their way out and in: counted, bounded, their lengths ours, secrets where they may be.

use super::call::{Call, Open};
use super::headers;
use super::pool::{Connection, Pool};
use crate::reach::Reach;
use crate::secret::{self, Misplaced};
use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use leasehold_contract::authority::Permission;
use leasehold_engine::Filter as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};
use wasmtime_wasi_http::{Error, WasiBody};

/// How a body is getting on: how much of it was sent, and why it could not be, of which the client underneath
/// only says that it could not.
#[derive(Clone, Default)]
pub(super) struct Progress(Arc<(AtomicU64, Mutex<Option<Failed>>)>);

/// What was wrong with a body.
pub(super) enum Failed {
    /// A placeholder where none may be.
    Misplaced(Misplaced),
    /// Anything else.
    Error(Error),
}

impl Progress {
    fn fail(&self, failed: Failed) {
        self.0.1.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failed);
    }

    /// Why it could not be sent.
    pub(super) fn failed(&self) -> Option<Failed> {
        self.0.1.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Bytes that were sent.
    pub(super) fn sent(&self) -> u64 {
        self.0.0.load(Ordering::Relaxed)
    }
}

/// A body on its way out.
pub(super) struct Outgoing {
    inner: WasiBody,
    call: Arc<Call>,
    /// The length that was announced, and how much of it is left.
    announced: Option<(u64, u64)>,
    /// The end of what came so far, when it could be the beginning of a placeholder; none when nobody looks.
    seam: Option<BytesMut>,
    progress: Progress,
}

impl Outgoing {
    /// `looked_at` says whether there are secrets whose placeholders must not leave.
    pub(super) fn new(
        inner: WasiBody,
        call: Arc<Call>,
        length: Option<u64>,
        looked_at: bool,
        progress: Progress,
    ) -> Self {
        let announced = length.map(|length| (length, length));
        Outgoing { inner, call, announced, seam: looked_at.then(BytesMut::new), progress }
    }

    fn taken(&mut self, bytes: &Bytes) -> Result<(), Error> {
        self.progress.0.0.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.call.sends(bytes.len())?;
        if let Some((announced, left)) = &mut self.announced {
            *left =
                left.checked_sub(bytes.len() as u64).ok_or(Error::HttpRequestBodySize(Some(*announced)))?;
        }
        let Some(seam) = &mut self.seam else { return Ok(()) };
        if secret::seen(seam, bytes) {
            self.progress.fail(Failed::Misplaced(Misplaced::Body));
            return Err(Error::HttpRequestDenied);
        }
        Ok(())
    }

    fn ended(&self) -> Result<(), Error> {
        match self.announced {
            Some((announced, left)) if left > 0 => Err(Error::HttpRequestBodySize(Some(announced - left))),
            _ => Ok(()),
        }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => return Poll::Ready(self.ended().err().map(Err)),
        };
        let checked = match frame.into_data() {
            Ok(bytes) => self.taken(&bytes).map(|()| Frame::data(bytes)),
            Err(frame) => self.ended().and_then(|()| match frame.into_trailers() {
                Ok(mut trailers) => {
                    headers::trailers(&mut trailers);
                    let placed = trailers.values().any(|value| secret::found(value.as_bytes()));
                    if placed {
                        self.progress.fail(Failed::Misplaced(Misplaced::Body));
                        return Err(Error::HttpRequestDenied);
                    }
                    Ok(Frame::trailers(trailers))
                }
                Err(frame) => Ok(frame),
            }),
        };
        Poll::Ready(Some(checked.inspect_err(|error| {
            if let Error::HttpRequestBodySize(at) = error {
                self.progress.fail(Failed::Error(Error::HttpRequestBodySize(*at)));
            }
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream() && self.announced.is_none_or(|(_, left)| left == 0)
    }

    fn size_hint(&self) -> SizeHint {
        self.announced.map_or_else(|| self.inner.size_hint(), |(_, left)| SizeHint::with_exact(left))
    }
}

/// A body of which the beginning was read already.
pub(super) struct Begun {
    pub(super) beginning: Option<Bytes>,
    pub(super) rest: WasiBody,
}

impl Body for Begun {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match self.beginning.take() {
            Some(beginning) => Poll::Ready(Some(Ok(Frame::data(beginning)))),
            None => Pin::new(&mut self.rest).poll_frame(context),
        }
    }
}

/// A body on its way in. Dropping it before its end closes the connection; at its end the connection is kept
/// for the next request.
pub(super) struct Answer {
    pub(super) incoming: Incoming,
    pub(super) connection: Option<Connection>,
    pub(super) pool: Arc<Pool>,
    pub(super) call: Arc<Call>,
    pub(super) reach: Arc<Reach>,
    pub(super) idle: Duration,
    pub(super) timer: Option<Pin<Box<Sleep>>>,
    pub(super) waiting: bool,
    pub(super) filter: Option<secret::scrub::Stream>,
    /// What came after bytes that a filter held back.
    pub(super) after: Option<Frame<Bytes>>,
    pub(super) ended: bool,
    pub(super) record: Record,
    pub(super) _place: Open,
}

/// What is written down when a request has ended.
pub(super) struct Record {
    pub(super) permission: Permission,
    pub(super) target: String,
    pub(super) progress: Progress,
    pub(super) received: u64,
}

impl Answer {
    fn passed(&mut self, bytes: Bytes) -> Result<Bytes, Error> {
        self.call.receives(bytes.len())?;
        self.record.received += bytes.len() as u64;
        Ok(match &mut self.filter {
            Some(filter) => filter.pass(bytes),
            None => bytes,
        })
    }

    /// What a filter held back, at the end.
    fn rest(&mut self) -> Option<Bytes> {
        self.filter.take().map(|mut filter| filter.end()).filter(|rest| !rest.is_empty())
    }

    fn finished(&mut self) {
        self.ended = true;
        if let Some(connection) = self.connection.take() {
            self.pool.put(connection);
        }
    }

    /// Waits for the next piece no longer than it may take.
    fn waited(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let due = Instant::now() + self.idle;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if !self.waiting {
            timer.as_mut().reset(due);
            self.waiting = true;
        }
        ready!(timer.as_mut().poll(context));
        self.ended = true;
        self.connection = None;
        Poll::Ready(Some(Err(Error::ConnectionReadTimeout)))
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        loop {
            if let Some(frame) = self.after.take() {
                return Poll::Ready(Some(Ok(frame)));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            let polled = Pin::new(&mut self.incoming).poll_frame(context);
            let frame = match polled {
                Poll::Pending => return self.waited(context),
                Poll::Ready(frame) => frame,
            };
            self.waiting = false;
            let frame = match frame {
                None => {
                    let rest = self.rest();
                    self.finished();
                    return Poll::Ready(rest.map(|rest| Ok(Frame::data(rest))));
                }
                Some(Err(error)) => {
                    self.ended = true;
                    self.connection = None;
                    return Poll::Ready(Some(Err(Error::Hyper(error))));
                }
                Some(Ok(frame)) => frame,
            };
            match frame.into_data() {
                Ok(bytes) => match self.passed(bytes) {
                    // All of it was held back; the next piece tells what it is.
                    Ok(bytes) if bytes.is_empty() => {}
                    Ok(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                    Err(error) => {
                        self.ended = true;
                        self.connection = None;
                        return Poll::Ready(Some(Err(error)));
                    }
                },
                Err(frame) => {
                    let Ok(mut trailers) = frame.into_trailers() else { continue };
                    headers::trailers(&mut trailers);
                    headers::incoming(&mut trailers, self.reach.secrets());
                    let trailers = Frame::trailers(trailers);
                    let Some(rest) = self.rest() else { return Poll::Ready(Some(Ok(trailers))) };
                    self.after = Some(trailers);
                    return Poll::Ready(Some(Ok(Frame::data(rest))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended && self.after.is_none()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // A guest that read every byte and did not wait to be told that there are no more.
        if !self.ended && self.incoming.is_end_stream() {
            self.finished();
        }
        let Record { permission, target, progress, received } = &mut self.record;
        let bytes = (progress.sent(), *received);
        self.reach.used(&self.call.scope, *permission, std::mem::take(target), bytes);
    }
}
