//! Requests that were answered a moment ago. A machine reads its image in thousands of ranges under one URL; for all but
//! the first in half a second, an answer is a look into a table.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, Method, Request, Response, StatusCode, header};

use super::ImageServer;
use super::inputs::Current;
use super::plans::Planned;
use super::trace::{Trace, Transfer};
use super::wanted::Asked;
use super::watched::{self, Watched};
use crate::http::content::{AnswerBody, Content, Date};
use crate::http::listener::Client;
use crate::http::metrics::Meter;
use crate::http::zerocopy::BodyMode;
use crate::recent::Recent;

/// How many requests are known at least.
const MOST_KNOWN: usize = 1024;
/// How long what a request came to is taken to be so without asking the inventory, which is asked sooner when it says that
/// something has changed.
const FRESH: Duration = Duration::from_millis(500);

/// What requests came to.
#[derive(Debug)]
pub(super) struct Known {
    table: Mutex<Recent<u64, Arc<Answered>>>,
    hasher: RandomState,
}

/// What a request came to.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) url: PathAndQuery,
    pub(super) client: Client,
    pub(super) mode: BodyMode,
    pub(super) at: Instant,
    /// The infra-env, if the request was for one.
    pub(super) current: Option<Current>,
    /// It is kept with the plans, which are of bounded size.
    pub(super) planned: Weak<Planned>,
    pub(super) trace: Option<Arc<Trace>>,
    pub(super) meter: Meter,
}

/// Who asks over a connection, and what it was answered last: mostly it asks for more of that.
#[derive(Debug)]
pub(crate) struct Asker {
    client: Client,
    mode: BodyMode,
    last: Mutex<Option<Arc<Answered>>>,
}

impl Asker {
    /// Somebody who has not asked for anything yet.
    pub(crate) fn new(client: Client, mode: BodyMode) -> Self {
        Self { client, mode, last: Mutex::new(None) }
    }
}

impl Answered {
    /// What notes how far an answer gets that is begun now.
    fn transfer(&self, body: &AnswerBody, now: Instant) -> Option<Transfer> {
        self.trace.as_ref().and_then(|trace| Trace::begin(trace, body, now))
    }
}

impl Default for Known {
    fn default() -> Self {
        Self { table: Mutex::new(Recent::new(MOST_KNOWN)), hasher: RandomState::new() }
    }
}

impl Known {
    fn with<T>(&self, use_it: impl FnOnce(&mut Recent<u64, Arc<Answered>>) -> T) -> T {
        // Whoever panicked over the table left it whole: what is in it can be found out again.
        use_it(&mut self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn key(&self, url: &str, client: Client) -> u64 {
        self.hasher.hash_one((url, client))
    }

    fn find(&self, url: &str, client: Client) -> Option<Arc<Answered>> {
        let key = self.key(url, client);
        self.with(|table| table.get(key))
    }

    pub(super) fn add(&self, answered: Answered) {
        let key = self.key(answered.url.as_str(), answered.client);
        self.with(|table| table.insert(key, Arc::new(answered)));
    }
}

impl ImageServer {
    /// The answer to a request like one that was answered a moment ago. Those that say who they are from in a header, or
    /// where they come from, have to be looked at each time.
    pub(crate) fn again<B>(
        &self,
        request: &Request<B>,
        asker: &Asker,
        now: Instant,
    ) -> Option<Response<Body>> {
        let headers = request.headers();
        if !matches!(*request.method(), Method::GET | Method::HEAD) || tells_who_asks(headers) {
            return None;
        }
        let url = request.uri().path_and_query()?;
        self.known((url.as_str(), asker), now, |answered, content| {
            let response = content.answer(asker.mode, (request.method(), headers, request.version()));
            // What is to be said of a live image that was changed is not known here.
            if response.status() == StatusCode::INTERNAL_SERVER_ERROR {
                return None;
            }
            let transfer = answered.transfer(response.body(), now);
            Some(watched::watch(response, transfer, answered.meter.clone()))
        })?
    }

    /// The bytes for a request of which there is nothing to know but its URL and its `Range`, where that is for one range and
    /// the same URL was asked for a moment ago. The head is written as it is sent.
    pub(in crate::http) fn range_again(
        &self,
        (url, range): (&str, &[u8]),
        asker: &Asker,
        now: Instant,
        (date, head): (&Date, &mut Vec<u8>),
    ) -> Option<Watched> {
        self.known((url, asker), now, |answered, content| {
            let body = AnswerBody::Plan(content.range(range, asker.mode, (date, head))?);
            let transfer = answered.transfer(&body, now);
            Some(Watched::of_range(body, transfer, answered.meter.clone()))
        })?
    }

    /// Does something with what a URL came to a moment ago.
    fn known<T>(
        &self,
        (url, asker): (&str, &Asker),
        now: Instant,
        use_it: impl FnOnce(&Answered, &Content) -> T,
    ) -> Option<T> {
        let is_same = |answered: &Arc<Answered>| {
            answered.url.as_str() == url
                && (answered.client, answered.mode) == (asker.client, asker.mode)
                && self.holds(answered, now)
        };
        // All connections share the table, and this one has a look into its own pocket first.
        let mut last = asker.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !last.as_ref().is_some_and(is_same) {
            *last = self.0.known.find(url, asker.client).filter(is_same);
        }
        let answered = last.as_ref()?;
        let planned = answered.planned.upgrade()?;
        Some(use_it(answered, &planned.content))
    }

    /// Whether what a request came to is still so.
    fn holds(&self, answered: &Answered, now: Instant) -> bool {
        let is_fresh = now.saturating_duration_since(answered.at) < FRESH;
        let is_current = |current: &Current| self.0.inputs.is_current(current);
        is_fresh && answered.current.as_ref().is_none_or(is_current)
    }

    /// Remembers what a request came to.
    pub(super) fn remember(
        &self,
        asked: &Asked,
        current: Option<Current>,
        planned: &Arc<Planned>,
        (trace, meter): (Option<&Arc<Trace>>, &Meter),
    ) {
        if tells_who_asks(&asked.headers) {
            return;
        }
        let Some(url) = asked.uri.path_and_query() else { return };
        self.0.known.add(Answered {
            url: url.clone(),
            client: asked.client,
            mode: asked.mode,
            at: Instant::now(),
            current,
            planned: Arc::downgrade(planned),
            trace: trace.cloned(),
            meter: meter.clone(),
        });
    }
}

/// Whether a request has a header that says who asks, or from where.
fn tells_who_asks(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| [header::AUTHORIZATION, header::ORIGIN].contains(name))
}
