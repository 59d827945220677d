//! The limits and timeouts for connections.

use std::time::Duration;

/// The limits of a server for its clients.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Maximum number of connections. Further connections wait in the kernel's queue. Each connection needs a file
    /// descriptor and some KiB of memory, so this mainly limits the descriptors. A hundred machines that run aria2 with
    /// 16 connections each use less than half of the default.
    pub connections: usize,
    /// Maximum number of connections from one client address. A typical client stays far below: a BMC opens a few
    /// connections, and aria2 opens 16. But one address may be a proxy for many clients, so half of all connections is
    /// a good value. If many clients open many connections, each client can still have 32.
    pub connections_of_client: usize,
    /// The timeout for a request head. It starts with the first byte of the head, or with the connection for the first
    /// request. A client that exceeds it usually sends single bytes to keep its slot.
    pub head_time: Duration,
    /// Maximum size of a request head in bytes. Tokens in headers and URLs take hundreds of bytes.
    pub head_bytes: usize,
    /// The timeout for the next request on an idle connection. BMCs read an image in bursts, minutes apart. Some BMCs
    /// treat the end of an idle connection as the end of the medium.
    pub idle_time: Duration,
    /// The timeout for a TLS handshake. It consists of four packets, but BMCs need seconds for their computations.
    pub handshake_time: Duration,
    /// The timeout for a client that reads nothing of a response, or sends nothing of an announced request body. It
    /// detects clients that have lost power or have stopped reading. Reading slowly is normal, and is allowed. Some
    /// BMCs stop reading while the machine restarts, which takes minutes. A client acknowledges bytes only after it has
    /// read a full packet or a sixteenth of its buffer.
    ///
    /// When the kernel has accepted the whole response, the server checks the client's progress only once per timeout.
    /// So it detects a lost client after at most twice this time.
    pub stall_time: Duration,
    /// The time for connections to finish after a shutdown request. Then the server closes the remaining ones.
    pub grace: Duration,
}

/// The number of connections that each client may have while any slot is free: twice as many as aria2 opens. Above this
/// number, a client may only have as many connections as there are free slots, so that a few clients cannot use all
/// slots.
pub(super) const MIN_SHARE: usize = 32;

impl ServerLimits {
    /// Returns the default limit per client address for a total number of connections.
    #[must_use]
    pub const fn default_client_share(connections: usize) -> usize {
        connections / 2
    }
}

impl Default for ServerLimits {
    fn default() -> Self {
        let connections = 4096;
        Self {
            connections,
            connections_of_client: Self::default_client_share(connections),
            head_time: Duration::from_secs(30),
            head_bytes: 64 << 10,
            idle_time: Duration::from_secs(300),
            handshake_time: Duration::from_secs(20),
            stall_time: Duration::from_secs(600),
            grace: Duration::from_secs(30),
        }
    }
}
