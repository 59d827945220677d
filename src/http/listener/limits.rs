//! What connections may take, all in one place.

use std::time::Duration;

/// What clients may take of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many connections there may be in all. Further ones wait to be taken, in the kernel's queue. Each costs one file
    /// descriptor and some KiB, so this is a bound of descriptors first: a hundred machines with 16 connections of aria2 each
    /// have less than half of the default.
    pub connections: usize,
    /// How many of them one client address may have. A client that is refused above it is none of those that this server is
    /// for: a BMC has a few connections, aria2 has 16. It may stand for many though, as a proxy, so half of all is a usual
    /// value. See [`MIN_SHARE`] for how little is left when many clients want much.
    pub connections_of_client: usize,
    /// How long the head of a request may take to come, from its first byte on, and on a new connection from its beginning.
    /// Who is slower than this says one byte now and then to keep a place.
    pub head_time: Duration,
    /// How many bytes it may have. Tokens in headers and URLs have hundreds.
    pub head_bytes: usize,
    /// How long a connection may wait for its next request. BMCs read an image in bursts, minutes apart, and some take the end
    /// of an idle connection for the end of the medium.
    pub idle_time: Duration,
    /// How long a TLS handshake may take. It is four packets, and BMCs need seconds for their side of the arithmetic.
    pub handshake_time: Duration,
    /// How long a client may take nothing at all of what it asked for, or send nothing of what it announced. One that takes a
    /// little now and then is slow, which is normal; this is for those that were switched off, or read no more. Some BMCs stop
    /// reading while the machine starts again, which takes minutes. A client says what it took only when it is a packet, or a
    /// sixteenth of its buffer.
    ///
    /// Once the kernel has all of an answer, the server looks at the client's progress only once in this time. A client that has
    /// vanished by then is noticed within twice this time.
    pub stall_time: Duration,
    /// How long connections may go on after the end was asked for. What is then still under way is cut.
    pub grace: Duration,
}

/// How many connections a client address may have as long as there is one left: twice what aria2 takes. Above, a client may
/// have as many as are still free, so that no few clients take all.
pub const MIN_SHARE: usize = 32;

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_of_client: 2048,
            head_time: Duration::from_secs(30),
            head_bytes: 64 << 10,
            idle_time: Duration::from_secs(300),
            handshake_time: Duration::from_secs(20),
            stall_time: Duration::from_secs(600),
            grace: Duration::from_secs(30),
        }
    }
}
