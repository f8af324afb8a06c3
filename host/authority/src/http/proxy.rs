//! A proxy between the host and servers, only where it is configured.
//!
//! Everything goes through a tunnel to an address that was judged here, so a proxy sees neither names nor, of
//! TLS, content, and cannot be used to reach what was refused.

use super::target::Target;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use leasehold_contract::authority::Scheme;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The longest answer of a proxy to a request for a tunnel.
const ANSWER_MAX: usize = 8 << 10;

/// The proxies of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxySettings {
    /// For requests without TLS.
    pub http: Option<Proxy>,
    /// For requests with TLS.
    pub https: Option<Proxy>,
    /// Hosts that are reached without one: a name means itself and all below it, `*` means all.
    pub except: Vec<String>,
}

/// A proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    host: String,
    port: u16,
    credentials: Option<String>,
}

/// An address that names no proxy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a proxy is written `http://[USER:PASSWORD@]HOST:PORT`; this is something else")]
pub struct ProxyError;

impl std::str::FromStr for Proxy {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        let uri: Uri = text.parse().map_err(|_| ProxyError)?;
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http")).ok_or(ProxyError)?;
        let credentials = authority.as_str().rsplit_once('@').map(|(user, _)| user.to_owned());
        let credentials = credentials
            .map(|user| percent_encoding::percent_decode_str(&user).decode_utf8_lossy().into_owned());
        Ok(Proxy {
            host: authority.host().to_owned(),
            port: authority.port_u16().unwrap_or(3128),
            credentials,
        })
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proxy({}:{})", self.host, self.port)
    }
}

impl ProxySettings {
    /// What the usual variables of the environment say.
    ///
    /// # Errors
    /// When one of them names no proxy.
    pub fn of_environment() -> Result<ProxySettings, ProxyError> {
        let variable = |name: &str| {
            let value = std::env::var(name.to_ascii_lowercase()).or_else(|_| std::env::var(name));
            value.ok().filter(|value| !value.is_empty())
        };
        let proxy = |name: &str| variable(name).map(|text| text.parse()).transpose();
        let except = variable("NO_PROXY").unwrap_or_default();
        let except = except.split(',').map(str::trim).filter(|host| !host.is_empty());
        Ok(ProxySettings {
            http: proxy("HTTP_PROXY")?,
            https: proxy("HTTPS_PROXY")?,
            except: except.map(str::to_owned).collect(),
        })
    }

    /// The proxy for a request, if it goes through one.
    pub(super) fn for_target(&self, target: &Target) -> Option<&Proxy> {
        let proxy = match target.scheme {
            Scheme::Http => self.http.as_ref(),
            Scheme::Https => self.https.as_ref(),
        }?;
        let host = target.host.as_str();
        let excepted = self.except.iter().any(|except| {
            let except = except.trim_start_matches("*.").trim_start_matches('.');
            let below = host.len().checked_sub(except.len() + 1).and_then(|cut| host.split_at_checked(cut));
            except == "*"
                || host.eq_ignore_ascii_case(except)
                || below.is_some_and(|(_, end)| {
                    end.strip_prefix('.').is_some_and(|end| end.eq_ignore_ascii_case(except))
                })
        });
        (!excepted).then_some(proxy)
    }
}

/// A connection through a proxy to this address.
pub(super) async fn tunnel(proxy: &Proxy, to: SocketAddr) -> io::Result<TcpStream> {
    let host = proxy.host.trim_start_matches('[').trim_end_matches(']');
    let mut stream = TcpStream::connect((host, proxy.port)).await?;
    let _ = stream.set_nodelay(true);
    let authorization = match &proxy.credentials {
        Some(user) => format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(user)),
        None => String::new(),
    };
    let request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    // Byte by byte: what follows the answer belongs to the tunnel.
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() == ANSWER_MAX {
            return Err(io::Error::other("the proxy's answer is too long"));
        }
        answer.push(stream.read_u8().await?);
    }
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let status = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    match status.first() {
        Some(b'2') if line.starts_with(b"HTTP/1.") => Ok(stream),
        _ => Err(io::Error::other(format!("the proxy refused: {}", String::from_utf8_lossy(status)))),
    }
}
