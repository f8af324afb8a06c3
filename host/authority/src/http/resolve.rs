//! Addresses of names.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use tokio::sync::Semaphore;

/// What a resolver returns.
pub type Addresses<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Knows the addresses of names.
pub trait Resolve: Send + Sync {
    /// The addresses of a host, in the order they should be tried.
    fn addresses<'a>(&'a self, host: &'a str) -> Addresses<'a>;
}

/// Look-ups of the system at one time. One that hangs holds a thread that cannot be given back.
/// Hit: further ones wait inside their connect time.
const LOOKUPS: usize = 32;

/// Asks the system, as every other program does.
pub struct System(Semaphore);

impl Default for System {
    fn default() -> Self {
        System(Semaphore::new(LOOKUPS))
    }
}

impl Resolve for System {
    fn addresses<'a>(&'a self, host: &'a str) -> Addresses<'a> {
        Box::pin(async move {
            let _place = self.0.acquire().await.map_err(io::Error::other)?;
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address: SocketAddr| address.ip()).collect())
        })
    }
}
