//! Counts the requests to the Kubernetes API, and limits their rate.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::errors::RequestError;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads an object.
    Get,
    /// Creates an object.
    Create,
    /// Changes an object.
    Patch,
    /// Changes the status of an object.
    PatchStatus,
}

impl Verb {
    /// Returns the name of the verb in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Create => "create",
            Self::Patch => "patch",
            Self::PatchStatus => "patch_status",
        }
    }
}

/// Kind, verb and outcome of a request.
type RequestKey = (String, Verb, &'static str);

/// Numbers of requests, by kind, verb and outcome. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct RequestCounts(Arc<Mutex<BTreeMap<RequestKey, u64>>>);

impl RequestCounts {
    /// Counts a request.
    pub(crate) fn count<T>(&self, kind: &str, verb: Verb, result: &Result<T, RequestError>) {
        let outcome = match result {
            Ok(_) => "ok",
            Err(error) => error.name(),
        };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((kind.to_owned(), verb, outcome)).or_default() += 1;
    }

    /// Returns the counts by kind, verb and outcome.
    #[must_use]
    pub fn snapshot(&self) -> Vec<(RequestKey, u64)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(key, count)| (key.clone(), *count)).collect()
    }
}

/// A rate limit for requests. After a second without requests, a burst of one second's requests is allowed.
#[derive(Debug)]
pub(crate) struct RateLimit {
    interval: Duration,
    /// The time at which the next request may start, according to the rate.
    paid_at: Mutex<Instant>,
}

/// Maximum idle time that counts towards a burst of later requests.
const BURST: Duration = Duration::from_secs(1);

impl RateLimit {
    pub(crate) fn new(per_second: u32) -> Self {
        let interval = Duration::from_secs(1).checked_div(per_second).unwrap_or(Duration::from_secs(1));
        Self { interval, paid_at: Mutex::new(Instant::now()) }
    }

    /// Waits until the rate allows one more request.
    pub(crate) async fn acquire(&self) {
        let begin = {
            let mut paid_at = self.paid_at.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let begin = (*paid_at).max(now.checked_sub(BURST).unwrap_or(now));
            *paid_at = begin + self.interval;
            begin
        };
        tokio::time::sleep_until(begin).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn burst_is_followed_by_the_rate() {
        tokio::time::advance(BURST * 2).await;
        let (limit, begin) = (RateLimit::new(50), Instant::now());
        tokio::time::advance(BURST * 2).await;
        for _ in 0..50 {
            limit.acquire().await;
        }
        assert!(begin.elapsed() <= BURST * 2 + Duration::from_millis(25), "{:?}", begin.elapsed());
        for _ in 0..100 {
            limit.acquire().await;
        }
        let elapsed = begin.elapsed() - BURST * 2;
        assert!(
            elapsed >= Duration::from_millis(1_950) && elapsed <= Duration::from_millis(2_100),
            "{elapsed:?}"
        );
    }
}
