//! Recent answers. A host reads its image in thousands of ranges under one URL. All but the first request in half a
//! second are answered from this table.

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

/// The number of answers that are kept.
const MAX_ANSWERS: NonZero<usize> = NonZero::new(2048).unwrap();
/// How long an answer is reused without asking the inventory. If the inventory reports a change, it is asked sooner.
pub(super) const FRESH: Duration = Duration::from_millis(500);

/// The recent answers, by URL and client.
#[derive(Debug)]
pub(super) struct RecentAnswers {
    table: Mutex<LruCache<u64, Arc<RecentAnswer>>>,
    hasher: RandomState,
}

/// The answer to a request.
#[derive(Debug)]
pub(super) struct RecentAnswer {
    pub(super) url: PathAndQuery,
    pub(super) client: ClientAddress,
    pub(super) mode: BodyMode,
    pub(super) at: Instant,
    /// The state of the snapshot, if the request was for an infra-env. Weak: the source keeps it in a cache, which is
    /// bounded. An infra-env that has left that cache is no longer known to be current.
    pub(super) infra_env: Option<Weak<dyn Any + Send + Sync>>,
    /// Weak: the plans are kept in [`SharedPlanCache`](super::plans::SharedPlanCache), which is bounded.
    pub(super) planned: Weak<PlannedFile>,
    pub(super) trace: Option<Arc<ReaderTrace>>,
    pub(super) meter: FileMeter,
    pub(super) file: DownloadedFile,
}

/// The client of a connection, with its last answer: usually its next request is for another range of the same image.
#[derive(Debug)]
pub(crate) struct Requester {
    pub(super) client: ClientAddress,
    pub(super) mode: BodyMode,
    pub(super) last: Mutex<Option<Arc<RecentAnswer>>>,
}

impl Requester {
    /// Returns a client without a last answer.
    pub(crate) fn new(client: ClientAddress, mode: BodyMode) -> Self {
        Self { client, mode, last: Mutex::new(None) }
    }
}

impl RecentAnswer {
    /// Returns the records of an answer that begins now.
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
        // A panic leaves the table valid, because each answer can be made again.
        use_it(&mut self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn cache_key(&self, url: &str, client: ClientAddress) -> u64 {
        self.hasher.hash_one((url, client))
    }

    pub(super) fn find(&self, url: &str, client: ClientAddress) -> Option<Arc<RecentAnswer>> {
        let key = self.cache_key(url, client);
        self.with_cache(|table| table.get(&key).cloned())
    }

    pub(super) fn add(&self, answered: RecentAnswer) {
        let key = self.cache_key(answered.url.as_str(), answered.client);
        self.with_cache(|table| table.put(key, Arc::new(answered)));
    }
}
