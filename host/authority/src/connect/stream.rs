//! The two halves of a connection as a guest's streams.

use super::Place;
use crate::http::Io;
use crate::reach::Reach;
use crate::secret::{self, scrub};
use bytes::{Bytes, BytesMut};
use leasehold_contract::authority::Permission;
use leasehold_engine::bindings::imports::connect::ConnectError;
use leasehold_engine::bindings::port::ConnectionContent;
use leasehold_engine::{Filter as _, Limit, Scope};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, InputStream, OutputStream, Pollable, StreamError, StreamResult,
};
use wasmtime_wasi::runtime::AbortOnDropJoinHandle;

/// How much is read and written at once.
const CHUNK: usize = 64 << 10;

/// An open connection.
pub(crate) struct Streams {
    incoming: Option<DynInputStream>,
    outgoing: Option<DynOutputStream>,
    sending: Sending,
    writer: Arc<tokio::sync::Mutex<Option<AbortOnDropJoinHandle<()>>>>,
    shared: Arc<Shared>,
}

/// The way to the task that writes; gone once the sending half is closed.
type Sending = Arc<Mutex<Option<mpsc::Sender<Bytes>>>>;

/// What both halves belong to. The last of them to go writes the connection down.
struct Shared {
    scope: Arc<Scope>,
    reach: Arc<Reach>,
    permission: Permission,
    target: String,
    sent: AtomicU64,
    received: AtomicU64,
    _place: Place,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let bytes = (self.sent.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed));
        self.reach.used(&self.scope, self.permission, std::mem::take(&mut self.target), bytes);
    }
}

impl Streams {
    pub(super) fn new(
        stream: Box<dyn Io>,
        scope: Arc<Scope>,
        reach: Arc<Reach>,
        permission: Permission,
        target: String,
        place: Place,
    ) -> Streams {
        let (reading, writing) = tokio::io::split(stream);
        let filter = reach.secrets().scrubber().map(scrub::Scrubber::stream);
        let looking = !reach.secrets().is_empty();
        let shared = Arc::new(Shared {
            scope,
            reach,
            permission,
            target,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            _place: place,
        });
        let (to_guest, receiver) = mpsc::channel(1);
        let reader = wasmtime_wasi::runtime::spawn(read(reading, to_guest, filter));
        let (sender, of_guest) = mpsc::channel(1);
        let (unsent, all_sent) = watch::channel(0);
        let unsent = Arc::new(unsent);
        let writer = wasmtime_wasi::runtime::spawn(write(writing, of_guest, unsent.clone()));
        let writer = Arc::new(tokio::sync::Mutex::new(Some(writer)));
        let sending: Sending = Arc::new(Mutex::new(Some(sender)));
        let incoming =
            Incoming { receiver, left: Bytes::new(), ended: false, shared: shared.clone(), _reader: reader };
        let outgoing = Outgoing {
            sending: sending.clone(),
            seam: looking.then(BytesMut::new),
            shared: shared.clone(),
            unsent,
            all_sent,
            flushing: false,
            _writer: writer.clone(),
        };
        Streams {
            incoming: Some(Box::new(incoming)),
            outgoing: Some(Box::new(outgoing)),
            sending,
            writer,
            shared,
        }
    }
}

#[async_trait]
impl ConnectionContent for Streams {
    fn incoming(&mut self) -> Option<DynInputStream> {
        self.incoming.take()
    }

    fn outgoing(&mut self) -> Option<DynOutputStream> {
        self.outgoing.take()
    }

    async fn finish(&mut self) -> Result<(), ConnectError> {
        drop(self.sending.lock().unwrap_or_else(PoisonError::into_inner).take());
        let Some(writer) = self.writer.lock().await.take() else { return Ok(()) };
        // What was written before still goes out; a peer that takes nothing is not waited for for ever.
        let time = self.shared.scope.remaining();
        tokio::time::timeout(time, writer).await.map_err(|_| ConnectError::Timeout)
    }
}

async fn read(
    mut from: ReadHalf<Box<dyn Io>>,
    to: mpsc::Sender<Result<Bytes, String>>,
    mut filter: Option<scrub::Stream>,
) {
    loop {
        let mut buffer = BytesMut::with_capacity(CHUNK);
        let piece = match from.read_buf(&mut buffer).await {
            Ok(0) => break,
            Ok(_) => buffer.freeze(),
            Err(error) => {
                let _ = to.send(Err(error.to_string())).await;
                return;
            }
        };
        let piece = match &mut filter {
            Some(filter) => filter.pass(piece),
            None => piece,
        };
        if !piece.is_empty() && to.send(Ok(piece)).await.is_err() {
            return;
        }
    }
    if let Some(rest) = filter.map(|mut filter| filter.end()).filter(|rest| !rest.is_empty()) {
        let _ = to.send(Ok(rest)).await;
    }
}

async fn write(
    mut to: WriteHalf<Box<dyn Io>>,
    mut from: mpsc::Receiver<Bytes>,
    unsent: Arc<watch::Sender<usize>>,
) {
    while let Some(piece) = from.recv().await {
        if let Err(error) = to.write_all(&piece).await {
            tracing::debug!(%error, "a connection takes nothing more");
            return;
        }
        unsent.send_modify(|unsent| *unsent -= 1);
    }
    let _ = to.shutdown().await;
}

struct Incoming {
    receiver: mpsc::Receiver<Result<Bytes, String>>,
    left: Bytes,
    ended: bool,
    shared: Arc<Shared>,
    _reader: AbortOnDropJoinHandle<()>,
}

#[async_trait]
impl Pollable for Incoming {
    async fn ready(&mut self) {
        if !self.left.is_empty() || self.ended {
            return;
        }
        match self.receiver.recv().await {
            Some(Ok(piece)) => self.left = piece,
            Some(Err(_)) | None => self.ended = true,
        }
    }
}

impl InputStream for Incoming {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if self.left.is_empty() && !self.ended {
            match self.receiver.try_recv() {
                Ok(Ok(piece)) => self.left = piece,
                Ok(Err(error)) => {
                    self.ended = true;
                    return Err(StreamError::LastOperationFailed(wasmtime::format_err!("{error}")));
                }
                Err(mpsc::error::TryRecvError::Empty) => return Ok(Bytes::new()),
                Err(mpsc::error::TryRecvError::Disconnected) => self.ended = true,
            }
        }
        if self.left.is_empty() {
            return Err(StreamError::Closed);
        }
        let piece = self.left.split_to(size.min(self.left.len()));
        let bytes = piece.len() as u64;
        let at = self.shared.received.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.shared.scope.meter.bytes_in.fetch_add(bytes, Ordering::Relaxed);
        if at > self.shared.scope.limits.get(Limit::HttpReceived) {
            self.ended = true;
            self.left.clear();
            return Err(StreamError::LastOperationFailed(wasmtime::format_err!(
                "limit `{}` hit",
                Limit::HttpReceived
            )));
        }
        Ok(piece)
    }
}

struct Outgoing {
    sending: Sending,
    /// The end of what was sent, when it could be the beginning of a placeholder.
    seam: Option<BytesMut>,
    shared: Arc<Shared>,
    /// Pieces that were handed over and are not with the peer yet.
    unsent: Arc<watch::Sender<usize>>,
    all_sent: watch::Receiver<usize>,
    /// The guest waits until there are none.
    flushing: bool,
    _writer: Arc<tokio::sync::Mutex<Option<AbortOnDropJoinHandle<()>>>>,
}

impl Outgoing {
    fn sender(&self) -> Option<mpsc::Sender<Bytes>> {
        self.sending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .filter(|sender| !sender.is_closed())
    }

    /// Closes the sending half, and says why to the guest.
    fn refused(&self, reason: String) -> StreamError {
        drop(self.sending.lock().unwrap_or_else(PoisonError::into_inner).take());
        StreamError::LastOperationFailed(wasmtime::format_err!("{reason}"))
    }
}

#[async_trait]
impl Pollable for Outgoing {
    async fn ready(&mut self) {
        let Some(sender) = self.sender() else { return };
        if self.flushing {
            tokio::select! {
                _ = self.all_sent.wait_for(|unsent| *unsent == 0) => {}
                () = sender.closed() => {}
            }
        } else {
            let _ = sender.reserve().await;
        }
    }
}

impl OutputStream for Outgoing {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if bytes.len() > CHUNK {
            return Err(StreamError::trap("wrote more than the stream had allowed"));
        }
        let Some(sender) = self.sender() else { return Err(StreamError::Closed) };
        let size = bytes.len() as u64;
        let at = self.shared.sent.fetch_add(size, Ordering::Relaxed) + size;
        self.shared.scope.meter.bytes_out.fetch_add(size, Ordering::Relaxed);
        if at > self.shared.scope.limits.get(Limit::HttpSent) {
            return Err(self.refused(format!("limit `{}` hit", Limit::HttpSent)));
        }
        if let Some(seam) = &mut self.seam
            && secret::seen(seam, &bytes)
        {
            let reason = "secrets do not travel over plain connections; send them in a request".to_owned();
            let Shared { scope, reach, permission, target, .. } = &*self.shared;
            let denial = reach.policy().never("leasehold:host/connect", *permission, target, reason.clone());
            reach.denied(scope, &denial);
            return Err(self.refused(reason));
        }
        self.unsent.send_modify(|unsent| *unsent += 1);
        match sender.try_send(bytes) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(StreamError::Closed),
            Err(mpsc::error::TrySendError::Full(_)) => {
                Err(StreamError::trap("wrote more than the stream had allowed"))
            }
        }
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.flushing = true;
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.flushing &= *self.all_sent.borrow() > 0;
        match self.sender() {
            Some(_) if self.flushing => Ok(0),
            None => Err(StreamError::Closed),
            Some(sender) if sender.capacity() == 0 => Ok(0),
            Some(_) => Ok(CHUNK),
        }
    }
}
