//! The limits of connections, all in one place.

use std::time::Duration;

/// The limits that a server sets to its clients.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// The most connections in all. Further ones wait in the kernel's queue. Each connection costs one file descriptor
    /// and some KiB, so this mainly limits descriptors. A hundred machines with 16 connections of aria2 each use less
    /// than half of the default.
    pub connections: usize,
    /// The most connections of one client address. No client that this server is made for exceeds it: a BMC has a few
    /// connections, aria2 has 16. But one address may be a proxy for many clients, so half of all connections is a
    /// usual value. A client keeps a share of 32 when many clients open many connections.
    pub connections_of_client: usize,
    /// The timeout for a request head, from its first byte on; for the first request of a connection, from the start of
    /// the connection. A slower client is one that sends a byte now and then to keep its slot.
    pub head_time: Duration,
    /// The most bytes of a request head. Tokens in headers and URLs have hundreds.
    pub head_bytes: usize,
    /// The timeout for the next request of a connection. BMCs read an image in bursts, minutes apart, and some take the
    /// end of an idle connection for the end of the medium.
    pub idle_time: Duration,
    /// The timeout for a TLS handshake. It takes four packets, and BMCs need seconds to compute their side.
    pub handshake_time: Duration,
    /// The timeout for a client that reads none of a response, or sends none of an announced request body. A client
    /// that reads a little now and then is slow, which is normal. This timeout is for clients that were switched off or
    /// have stopped reading. Some BMCs stop reading while the machine restarts, which takes minutes. A client
    /// acknowledges what it has read only when that is a full packet, or a sixteenth of its buffer.
    ///
    /// Once the kernel has the whole response, the server checks the client's progress only once in this time. It
    /// notices a client that has vanished by then within twice this time.
    pub stall_time: Duration,
    /// The time that connections may continue after shutdown is requested. Then the server closes the remaining ones.
    pub grace: Duration,
}

/// The number of connections that a client address may have if any slot is free: twice as many as aria2 opens. Beyond
/// that, a client may have as many as there are free slots, so that a few clients cannot take all.
pub(super) const MIN_SHARE: usize = 32;

impl ServerLimits {
    /// Returns the usual limit for one client address if there may be this many connections in all.
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
