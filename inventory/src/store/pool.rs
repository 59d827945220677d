//! The limits of connection pools.

use std::time::Duration;

/// A few connections keep a database busy. Further queries wait in this process, where waiting is cheap.
pub(super) const MAX_CONNECTIONS: u32 = 10;
/// A query that waits longer for a connection fails.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
