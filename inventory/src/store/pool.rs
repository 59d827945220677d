//! Limits for the database connection pools.

use std::time::Duration;

/// Maximum number of connections. A few connections keep the database busy, and waiting in this process is cheaper than
/// in the database.
pub(super) const MAX_CONNECTIONS: u32 = 10;
/// Time limit for getting a connection from the pool.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
