//! TLS towards servers: the system's roots, and those a host adds.

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// Roots that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file of certificates cannot be read.
    #[error("cannot use the certificates in {}: {reason}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The library refuses its settings.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[source] rustls::Error),
}

/// Connects with TLS. Cheap to clone.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    /// Trusts the system's roots and these.
    pub(super) fn new(extra: &[CertificateDer<'static>]) -> Result<Tls, TlsError> {
        let mut roots = RootCertStore::empty();
        let native = rustls_native_certs::load_native_certs();
        // One broken file of the system must not take the others with it.
        roots.add_parsable_certificates(native.certs);
        for certificate in extra {
            roots.add(certificate.clone()).map_err(TlsError::Setup)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Tls(TlsConnector::from(Arc::new(config))))
    }

    /// Speaks TLS over a connection, with the server this host names.
    pub(super) async fn connect<S>(
        &self,
        host: &str,
        stream: S,
    ) -> std::io::Result<tokio_rustls::client::TlsStream<S>>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    {
        let host = host.strip_suffix('.').unwrap_or(host).to_owned();
        let name = ServerName::try_from(host).map_err(std::io::Error::other)?;
        self.0.connect(name, stream).await
    }
}

/// The certificates in a file.
pub(super) fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| unusable(path, &error))?;
    let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(|error| unusable(path, &error))?;
    match certificates.is_empty() {
        true => Err(unusable(path, &"there are none in it")),
        false => Ok(certificates),
    }
}

fn unusable(path: &Path, reason: &dyn std::fmt::Display) -> TlsError {
    TlsError::Certificates { path: path.into(), reason: reason.to_string() }
}
