//! Plain connections to endpoints that the host granted by name. Needs `tcp` or `unix-http`.

use crate::error::{denied, failed, transient, Error, TransientCategory};
use crate::imports::leasehold::host::connect::{self, ConnectError};
use crate::stream::broken;
use crate::{InputStream, OutputStream};

/// An open connection. Dropping it closes it.
#[derive(Debug)]
pub struct Connection {
    // Streams go before what they belong to.
    incoming: InputStream,
    outgoing: OutputStream,
    connection: connect::Connection,
}

impl Connection {
    /// Opens a connection to a granted name.
    ///
    /// # Errors
    /// When nothing of that name is granted, or nobody answers there.
    pub fn open(name: &str) -> Result<Connection, Error> {
        let connection = connect::open(name).map_err(of_connect)?;
        let taken = |()| broken("the connection has no streams");
        let incoming = connection.incoming().map_err(taken)?;
        let outgoing = connection.outgoing().map_err(taken)?;
        Ok(Connection { incoming, outgoing, connection })
    }

    /// What arrives.
    pub fn incoming(&self) -> &InputStream {
        &self.incoming
    }

    /// What is sent.
    pub fn outgoing(&self) -> &OutputStream {
        &self.outgoing
    }

    /// Closes the sending half once everything written is sent.
    ///
    /// # Errors
    /// When the peer takes nothing in time.
    pub fn finish(&self) -> Result<(), Error> {
        self.connection.finish().map_err(of_connect)
    }
}

/// Why there is no connection, as an error.
pub fn of_connect(error: ConnectError) -> Error {
    match error {
        ConnectError::Denied(reason) => denied(reason),
        ConnectError::Unreachable(reason) => transient(TransientCategory::Network, reason),
        ConnectError::Timeout => transient(TransientCategory::Timeout, "the peer did not answer in time"),
        ConnectError::Limit(reason) => failed("connection_limit", reason),
    }
}
