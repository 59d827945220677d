//! A table of recent responses. A host reads its image in thousands of ranges from one URL. In each half second, only
//! the first request goes through the routes. The others use this table.

use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use axum::http::uri::PathAndQuery;
use lru::LruCache;

use super::boot_trace::ReaderTrace;
use super::counted_body::TransferRecords;
use super::download_log::{DownloadLog, DownloadedFile};
use super::plans::PlannedFile;
use crate::http::content::AnswerBody;
use crate::http::listener::ClientAddress;
use crate::http::metrics::FileMeter;
use crate::http::zerocopy::BodyMode;

/// Maximum number of responses in the table.
const MAX_ANSWERS: NonZero<usize> = NonZero::new(2048).unwrap();
/// How long a response is reused without a call to the source. A change reported by the source ends this earlier.
pub(super) const FRESH: Duration = Duration::from_millis(500);

/// The recent responses by URL and client.
#[derive(Debug)]
pub(super) struct RecentAnswers {
    table: Mutex<LruCache<u64, Arc<RecentAnswer>>>,
    hasher: RandomState,
}

/// A recent response: everything needed to respond to another request for the same URL.
#[derive(Debug)]
pub(super) struct RecentAnswer {
    pub(super) url: PathAndQuery,
    pub(super) client: ClientAddress,
    pub(super) mode: BodyMode,
    pub(super) at: Instant,
    /// The state of the snapshot, if the request was for an infra-env. The reference is weak, because the source limits
    /// its own cache. Once the state is dropped from that cache, the infra-env no longer counts as current.
    pub(super) infra_env: Option<Weak<dyn Any + Send + Sync>>,
    /// The plan. The reference is weak, because [`SharedPlanCache`](super::plans::SharedPlanCache) limits the number of
    /// plans in memory.
    pub(super) planned: Weak<PlannedFile>,
    pub(super) trace: Option<Arc<ReaderTrace>>,
    pub(super) meter: FileMeter,
    pub(super) file: DownloadedFile,
}

/// The client of a connection, with its last response. The next request is usually for another range of the same image.
#[derive(Debug)]
pub(crate) struct Requester {
    pub(super) client: ClientAddress,
    pub(super) mode: BodyMode,
    pub(super) last: Mutex<Option<Arc<RecentAnswer>>>,
}

impl Requester {
    /// Creates a client without a last response.
    pub(crate) fn new(client: ClientAddress, mode: BodyMode) -> Self {
        Self { client, mode, last: Mutex::new(None) }
    }
}

impl RecentAnswer {
    /// Creates the recorders for a response that begins now.
    pub(super) fn begin_transfer(
        &self,
        (status, body): (StatusCode, &AnswerBody),
        now: Instant,
    ) -> TransferRecords {
        TransferRecords {
            trace: self.trace.as_ref().and_then(|trace| ReaderTrace::begin_transfer(trace, body, now)),
            log: DownloadLog::begin(self.file, (status, body), now),
        }
    }
}

impl Default for RecentAnswers {
    fn default() -> Self {
        Self { table: Mutex::new(LruCache::new(MAX_ANSWERS)), hasher: RandomState::new() }
    }
}

impl RecentAnswers {
    fn with_cache<T>(&self, use_it: impl FnOnce(&mut LruCache<u64, Arc<RecentAnswer>>) -> T) -> T {
        // A panic leaves the table valid, because every response can be created again.
        use_it(&mut self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn cache_key(&self, url: &str, client: ClientAddress) -> u64 {
        self.hasher.hash_one((url, client))
    }

    pub(super) fn find(&self, url: &str, client: ClientAddress) -> Option<Arc<RecentAnswer>> {
        let key = self.cache_key(url, client);
        self.with_cache(|table| table.get(&key).cloned())
    }

    pub(super) fn add(&self, answer: RecentAnswer) {
        let key = self.cache_key(answer.url.as_str(), answer.client);
        self.with_cache(|table| table.put(key, Arc::new(answer)));
    }
}
