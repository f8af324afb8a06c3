//! The edge that HTTP of guests leaves through.
//!
//! A guest says what it wants to send; everything about the connection is decided here: which address, which
//! certificate, which length, which headers are the host's, how long to wait, and whether at all.

mod body;
mod call;
mod dial;
mod headers;
mod pool;
mod proxy;
mod resolve;
mod send;
mod target;
mod tls;

pub(crate) use call::Kept;
pub(crate) use dial::{Io, Unconnected};
pub use proxy::{Proxy, ProxyError, ProxySettings};
pub use resolve::{Addresses, Resolve, System};
pub use target::Target;
pub use tls::TlsError;

use pool::Pools;
use rustls::pki_types::CertificateDer;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tls::Tls;

/// How a host reaches the network.
#[derive(Clone, Debug, Default)]
pub struct HttpSettings {
    /// Files of certificates, in PEM, that are trusted beside the system's.
    pub certificates: Vec<PathBuf>,
    /// Proxies; none unless somebody asks for them.
    pub proxy: ProxySettings,
}

/// The edge of one host. Its connections end with it.
pub struct HttpEdge {
    settings: HttpSettings,
    /// Made when it is first needed: reading the system's roots takes longer than starting a process.
    tls: OnceLock<Result<Tls, String>>,
    extra: Vec<CertificateDer<'static>>,
    resolver: Arc<dyn Resolve>,
    pools: Pools,
}

impl HttpEdge {
    /// An edge that asks the system for addresses.
    ///
    /// # Errors
    /// When certificates cannot be used.
    pub fn new(settings: HttpSettings) -> Result<HttpEdge, TlsError> {
        HttpEdge::with_resolver(settings, Arc::new(System::default()))
    }

    /// An edge that asks this resolver for addresses.
    ///
    /// # Errors
    /// When certificates cannot be used.
    pub fn with_resolver(settings: HttpSettings, resolver: Arc<dyn Resolve>) -> Result<HttpEdge, TlsError> {
        let extra =
            settings.certificates.iter().map(|path| tls::read(path)).collect::<Result<Vec<_>, _>>()?;
        let extra = extra.into_iter().flatten().collect();
        Ok(HttpEdge { settings, tls: OnceLock::new(), extra, resolver, pools: Pools::default() })
    }

    fn tls(&self) -> Result<&Tls, String> {
        self.tls
            .get_or_init(|| Tls::new(&self.extra).map_err(|error| error.to_string()))
            .as_ref()
            .map_err(Clone::clone)
    }
}

impl std::fmt::Debug for HttpEdge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpEdge").field("settings", &self.settings).finish_non_exhaustive()
    }
}
