//! Opens connections: names become addresses once, addresses are judged, and the judged one is connected to.

use super::HttpEdge;
use super::pool::{Connection, Origin};
use super::proxy;
use crate::policy::address::{Place, canonical, reachable};
use hyper::client::conn::http1;
use ipnet::IpNet;
use leasehold_contract::authority::{HostPattern, Scheme};
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use wasmtime_wasi_http::Error;
use wasmtime_wasi_http::io::TokioIo;

/// The most a connection buffers of an answer's head. What a call may have is checked when it is there.
const HEAD_MAX: usize = 512 << 10;

/// Header fields of an answer. Servers that mean well have a few dozen. Hit: the answer is not delivered.
const FIELDS_MAX: usize = 256;

/// A byte stream of any kind.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Why there is no connection.
pub(crate) enum Unconnected {
    /// Every address of the name is one that has to be granted.
    Address {
        /// What was found, for people.
        found: String,
        /// The network that a grant would have to name.
        network: String,
    },
    /// Anything else.
    Failed(Error),
}

impl HttpEdge {
    /// Connects to a host, at an address that it may lead to.
    pub(crate) async fn tcp(
        &self,
        host: &str,
        port: u16,
        pattern: &HostPattern,
        networks: &[IpNet],
    ) -> Result<(TcpStream, IpAddr), Unconnected> {
        let addresses = self.judged(host, pattern, networks).await?;
        let mut last = Error::DestinationUnavailable;
        for address in addresses {
            match TcpStream::connect(SocketAddr::new(address, port)).await {
                Ok(stream) => {
                    // Requests are written whole; waiting for more of them only delays.
                    let _ = stream.set_nodelay(true);
                    return Ok((stream, address));
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    last = Error::ConnectionRefused
                }
                Err(error) => last = Error::Connect(error),
            }
        }
        Err(Unconnected::Failed(last))
    }

    /// The addresses of a host that it may lead to.
    async fn judged(
        &self,
        host: &str,
        pattern: &HostPattern,
        networks: &[IpNet],
    ) -> Result<Vec<IpAddr>, Unconnected> {
        let found = match host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => self.resolver.addresses(host).await.map_err(|error| {
                tracing::debug!(host, %error, "a name was not found");
                Unconnected::Failed(Error::DnsError { rcode: Some("not found".into()), info_code: None })
            })?,
        };
        let allowed: Vec<_> =
            found.iter().copied().filter(|address| reachable(pattern, networks, *address)).collect();
        match (allowed.is_empty(), found.first()) {
            (false, _) => Ok(allowed),
            (true, None) => Err(Unconnected::Failed(Error::DestinationNotFound)),
            (true, Some(first)) => {
                let found = format!("`{host}` leads to {first}, {}", Place::of(*first).name());
                Err(Unconnected::Address { found, network: IpNet::from(canonical(*first)).to_string() })
            }
        }
    }

    /// Opens a connection for requests to a network host.
    pub(super) async fn network(
        &self,
        origin: Origin,
        pattern: &HostPattern,
        networks: &[IpNet],
    ) -> Result<Connection, Unconnected> {
        let Origin::Network(target) = &origin else {
            return Err(Unconnected::Failed(Error::InternalError(None)));
        };
        let (host, port) = (target.host.as_str(), target.port);
        let (stream, peer): (Box<dyn Io>, IpAddr) = match self.settings.proxy.for_target(target) {
            None => {
                let (stream, peer) = self.tcp(host, port, pattern, networks).await?;
                (Box::new(stream), peer)
            }
            Some(proxy) => {
                // The proxy is told the address that was judged, so it cannot be led elsewhere by the name.
                let addresses = self.judged(host, pattern, networks).await?;
                let peer =
                    addresses.first().copied().ok_or(Unconnected::Failed(Error::DestinationNotFound))?;
                let tunnel = proxy::tunnel(proxy, SocketAddr::new(peer, port)).await;
                (Box::new(tunnel.map_err(|error| Unconnected::Failed(Error::Connect(error)))?), peer)
            }
        };
        let stream: Box<dyn Io> = match target.scheme {
            Scheme::Http => stream,
            Scheme::Https => {
                let failed = |reason| Unconnected::Failed(Error::InternalError(Some(reason)));
                let connected = self.tls().map_err(failed)?.connect(host, stream).await;
                Box::new(connected.map_err(|error| Unconnected::Failed(tls_error(error)))?)
            }
        };
        handshake(stream, origin, Some(peer)).await
    }

    /// Opens a connection for requests over a Unix socket.
    pub(super) async fn unix(&self, origin: Origin) -> Result<Connection, Unconnected> {
        let Origin::Unix(path) = &origin else { return Err(Unconnected::Failed(Error::InternalError(None))) };
        let stream = UnixStream::connect(path).await.map_err(|error| Unconnected::Failed(refused(error)))?;
        handshake(Box::new(stream), origin, None).await
    }
}

async fn handshake(
    stream: Box<dyn Io>,
    origin: Origin,
    peer: Option<IpAddr>,
) -> Result<Connection, Unconnected> {
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_MAX)
        .max_headers(FIELDS_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| Unconnected::Failed(Error::Hyper(error)))?;
    // Belongs to the connection and ends with it, not with the call that opened it.
    let driver = wasmtime_wasi::runtime::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended");
        }
    });
    Ok(Connection { sender, origin, peer, _driver: driver })
}

fn refused(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Error::ConnectionRefused,
        io::ErrorKind::NotFound => Error::DestinationNotFound,
        _ => Error::Connect(error),
    }
}

fn tls_error(error: io::Error) -> Error {
    let certificate = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>())
        .is_some_and(|error| matches!(error, rustls::Error::InvalidCertificate(_)));
    tracing::debug!(%error, "TLS failed");
    if certificate { Error::TlsCertificateError } else { Error::TlsProtocolError }
}
