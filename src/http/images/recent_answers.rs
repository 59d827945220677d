//! Recent answers. A host reads its image in thousands of ranges under one URL. All but the first request in half a
//! second are answered from this table.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use axum::http::uri::PathAndQuery;

use super::inputs::Current;
use super::plans::Planned;
use super::trace::{Trace, Transfer};
use crate::http::content::AnswerBody;
use crate::http::listener::Client;
use crate::http::metrics::Meter;
use crate::http::zerocopy::BodyMode;
use crate::recent::Recent;

/// The minimum number of answers that are kept.
const MOST_KNOWN: usize = 1024;
/// How long an answer is reused without asking the inventory. If the inventory reports a change, it is asked sooner.
pub(super) const FRESH: Duration = Duration::from_millis(500);

/// The recent answers, by URL and client.
#[derive(Debug)]
pub(super) struct RecentAnswers {
    table: Mutex<Recent<u64, Arc<RecentAnswer>>>,
    hasher: RandomState,
}

/// The answer to a request.
#[derive(Debug)]
pub(super) struct RecentAnswer {
    pub(super) url: PathAndQuery,
    pub(super) client: Client,
    pub(super) mode: BodyMode,
    pub(super) at: Instant,
    /// The infra-env, if the request was for one.
    pub(super) current: Option<Current>,
    /// Weak: the plans are kept in [`Plans`](super::plans::Plans), which is bounded.
    pub(super) planned: Weak<Planned>,
    pub(super) trace: Option<Arc<Trace>>,
    pub(super) meter: Meter,
}

/// The client of a connection, with its last answer: usually its next request is for another range of the same image.
#[derive(Debug)]
pub(crate) struct Requester {
    pub(super) client: Client,
    pub(super) mode: BodyMode,
    pub(super) last: Mutex<Option<Arc<RecentAnswer>>>,
}

impl Requester {
    /// Returns a client without a last answer.
    pub(crate) fn new(client: Client, mode: BodyMode) -> Self {
        Self { client, mode, last: Mutex::new(None) }
    }
}

impl RecentAnswer {
    /// Returns the transfer of an answer that begins now, for the boot trace.
    pub(super) fn transfer(&self, body: &AnswerBody, now: Instant) -> Option<Transfer> {
        self.trace.as_ref().and_then(|trace| Trace::begin(trace, body, now))
    }
}

impl Default for RecentAnswers {
    fn default() -> Self {
        Self { table: Mutex::new(Recent::new(MOST_KNOWN)), hasher: RandomState::new() }
    }
}

impl RecentAnswers {
    fn with<T>(&self, use_it: impl FnOnce(&mut Recent<u64, Arc<RecentAnswer>>) -> T) -> T {
        // A panic leaves the table valid, because each answer can be made again.
        use_it(&mut self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn key(&self, url: &str, client: Client) -> u64 {
        self.hasher.hash_one((url, client))
    }

    pub(super) fn find(&self, url: &str, client: Client) -> Option<Arc<RecentAnswer>> {
        let key = self.key(url, client);
        self.with(|table| table.get(key))
    }

    pub(super) fn add(&self, answered: RecentAnswer) {
        let key = self.key(answered.url.as_str(), answered.client);
        self.with(|table| table.insert(key, Arc::new(answered)));
    }
}
