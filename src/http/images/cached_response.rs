//! Responses from the table of recent responses, without routes, inventory or planning.

use std::any::Any;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Instant;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, Response, StatusCode, header};

use super::boot_trace::ReaderTrace;
use super::counted_body::{CountedBody, count_response};
use super::download_log::DownloadedFile;
use super::inputs::{Currency, InfraEnvSnapshot};
use super::plans::PlannedFile;
use super::recent_answers::{FRESH, RecentAnswer, Requester};
use super::requested_image::ImageRequest;
use super::server::ImageServer;
use crate::http::content::{AnswerBody, DateHeader, ServedFile};
use crate::http::metrics::FileMeter;

impl ImageServer {
    /// Returns the response to a request whose URL was requested recently. Returns `None` for any other request, and
    /// for a request with credentials or an `Origin` header.
    pub(crate) fn cached_response<B>(
        &self,
        request: &Request<B>,
        requester: &Requester,
        now: Instant,
    ) -> Option<Response<Body>> {
        let headers = request.headers();
        if !matches!(*request.method(), Method::GET | Method::HEAD) || has_credentials(headers) {
            return None;
        }
        let url = request.uri().path_and_query()?;
        self.with_recent_answer((url.as_str(), requester), now, |recent, content| {
            let response = content.answer(requester.mode, (request.method(), headers, request.version()));
            // If the base image has changed, the routes return a better error.
            if response.status() == StatusCode::INTERNAL_SERVER_ERROR {
                return None;
            }
            let records = recent.begin_transfer((response.status(), response.body()), now);
            Some(count_response(response, records, recent.meter.clone()))
        })?
    }

    /// Returns the body for one range of an image whose URL was requested recently, and appends the response head to
    /// `head`. The request must contain only a URL and a `Range` header. Returns `None` if the header does not select
    /// exactly one range.
    pub(in crate::http) fn cached_range(
        &self,
        (url, range): (&str, &[u8]),
        requester: &Requester,
        now: Instant,
        (date, head): (&DateHeader, &mut Vec<u8>),
    ) -> Option<CountedBody> {
        self.with_recent_answer((url, requester), now, |recent, content| {
            let body = AnswerBody::Plan(content.range_body(range, requester.mode, (date, head))?);
            let records = recent.begin_transfer((StatusCode::PARTIAL_CONTENT, &body), now);
            Some(CountedBody::from_range(body, records, recent.meter.clone()))
        })?
    }

    /// Calls `use_it` with the recent response for a URL, if there is a valid one.
    fn with_recent_answer<T>(
        &self,
        (url, requester): (&str, &Requester),
        now: Instant,
        use_it: impl FnOnce(&RecentAnswer, &ServedFile) -> T,
    ) -> Option<T> {
        let is_same = |recent: &Arc<RecentAnswer>| {
            recent.url.as_str() == url
                && (recent.client, recent.mode) == (requester.client, requester.mode)
                && self.is_still_valid(recent, now)
        };
        // Try the last response of this connection first, because it needs no lookup in the table that all connections
        // share.
        let mut last = requester.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !last.as_ref().is_some_and(is_same) {
            *last = self.0.recent.find(url, requester.client).filter(is_same);
        }
        let recent = last.as_ref()?;
        let planned = recent.planned.upgrade()?;
        Some(use_it(recent, &planned.content))
    }

    /// Returns `true` if a response is recent and its infra-env is unchanged.
    fn is_still_valid(&self, recent: &RecentAnswer, now: Instant) -> bool {
        let is_fresh = now.saturating_duration_since(recent.at) < FRESH;
        let is_current = |state: &Weak<dyn Any + Send + Sync>| {
            state.upgrade().is_some_and(|state| self.0.inputs.currency(&state) == Currency::Current)
        };
        is_fresh && recent.infra_env.as_ref().is_none_or(is_current)
    }

    /// Adds a response to the table, unless the request had credentials or an `Origin` header. Also skips it if the
    /// source cannot confirm without a wait that the infra-env is current.
    pub(super) fn remember_answer(
        &self,
        request: &ImageRequest,
        current: Option<InfraEnvSnapshot>,
        planned: &Arc<PlannedFile>,
        (trace, meter, file): (Option<&Arc<ReaderTrace>>, &FileMeter, DownloadedFile),
    ) {
        if has_credentials(&request.headers) {
            return;
        }
        let Some(url) = request.uri.path_and_query() else { return };
        let state = current.map(|current| current.state);
        if state.as_ref().is_some_and(|state| self.0.inputs.currency(state) != Currency::Current) {
            return;
        }
        let infra_env = state.as_ref().map(Arc::downgrade);
        self.0.recent.add(RecentAnswer {
            url: url.clone(),
            client: request.client,
            mode: request.mode,
            at: Instant::now(),
            infra_env,
            planned: Arc::downgrade(planned),
            trace: trace.cloned(),
            meter: meter.clone(),
            file,
        });
    }
}

/// Returns `true` if a request has an `Authorization` or an `Origin` header.
fn has_credentials(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| [header::AUTHORIZATION, header::ORIGIN].contains(name))
}
