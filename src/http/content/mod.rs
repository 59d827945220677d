//! A representation, served whole, in ranges, or on a condition (RFC 9110).
//!
//! A [`Content`] holds the bytes, their entity tag and their modification time, and answers GET and HEAD. It does not
//! know what the bytes are for. The routes decide which paths and methods exist.

mod answer;
mod body;
mod conditional;
mod date;
mod disposition;
mod head;
mod multipart;
pub mod range;

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::Entry;
use axum::http::header::{self, HeaderMap};
use axum::http::{HeaderValue, Method, Response, StatusCode, Version};
use axum::response::IntoResponse;
use chrono::{DateTime, SubsecRound, Utc};
use isogen::Plan;

use crate::api_error::ApiError;
use crate::http::zerocopy::{BaseFile, BodyMode};
pub(in crate::http) use answer::AnswerBody;
pub(crate) use body::PlanBody;
pub(in crate::http) use conditional::is_known;
use conditional::{Outcome, Validators};
pub(in crate::http) use date::Date;
use head::{Head, RangeFields, StatusAndFields};
use multipart::Multipart;
use range::{RangeRequest, Selection};

/// Replaces a media type that is not a valid header value.
const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// A representation: bytes with an identity.
#[derive(Debug, Clone)]
pub struct Content {
    plan: Arc<Plan>,
    base: Arc<BaseFile>,
    etag: String,
    modified: DateTime<Utc>,
    media_type: &'static str,
    file_name: Option<String>,
    head: Head,
}

impl Content {
    /// Creates a representation. `etag` is a strong entity tag with its quotes; other bytes must have another one.
    /// `changed_at` is the time of the last change of the bytes, and `file_name` the name to save them under.
    #[must_use]
    pub fn new(
        plan: Arc<Plan>,
        etag: String,
        changed_at: DateTime<Utc>,
        media_type: &'static str,
        file_name: Option<String>,
    ) -> Self {
        let modified = changed_at.trunc_subsecs(0);
        let content_type = HeaderValue::from_str(media_type).unwrap_or(OCTETS);
        let disposition = file_name.as_deref().and_then(disposition::attachment);
        let head = Head::new(&etag, conditional::date_value(modified), (content_type, disposition));
        let base = Arc::new(BaseFile::new(Arc::clone(plan.source())));
        Self { plan, base, etag, modified, media_type, file_name, head }
    }

    /// Sets the file of the base image, which all plans over that base image share.
    #[must_use]
    pub(in crate::http) fn over(self, base: Arc<BaseFile>) -> Self {
        Self { base, ..self }
    }

    /// Marks the representation as free of secrets, so that shared caches may store it too.
    #[must_use]
    pub fn public(self) -> Self {
        Self { head: self.head.public(), ..self }
    }

    /// Returns the plan of the bytes.
    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Returns the entity tag, with its quotes.
    #[must_use]
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// Returns the name to save the bytes under.
    #[must_use]
    pub fn file_name(&self) -> Option<&str> {
        self.file_name.as_deref()
    }

    /// Returns the answer to a GET or HEAD, for a connection whose writes go straight to the kernel.
    ///
    /// * Conditions are evaluated in the order of RFC 9110, 13.2.2, and answered with 304 or 412.
    /// * Only a GET can ask for ranges, as the RFC says. The answer to a HEAD describes all bytes.
    /// * One range is answered with 206, several with 206 and `multipart/byteranges` in the requested order. The answer
    ///   has all bytes if the client asks for too many ranges, for more bytes than the whole, or for several ranges
    ///   over HTTP/1.0, which does not know `multipart/byteranges`. If no range is satisfiable, the answer is 416.
    /// * With `If-Range`, the answer has ranges only if the representation is unchanged, and all bytes otherwise. A
    ///   client that resumes a download never gets a part of another representation. A date counts only after its
    ///   second is over.
    /// * An answer with bytes always has a `Content-Length`.
    ///
    /// The answer is 500 if the base image is no longer readable. If this is found later, the connection is closed
    /// before the last byte, and the reason is logged.
    #[must_use]
    pub fn respond(&self, method: &Method, headers: &HeaderMap, version: Version) -> Response<Body> {
        self.respond_in(BodyMode::default(), method, headers, version)
    }

    /// Returns the same answer as [`respond`](Self::respond), with a choice of how bytes are read. Use
    /// [`BodyMode::Read`] over TLS, and if any other layer reads the bytes.
    #[must_use]
    pub fn respond_in(
        &self,
        mode: BodyMode,
        method: &Method,
        headers: &HeaderMap,
        version: Version,
    ) -> Response<Body> {
        self.answer(mode, (method, headers, version)).map(Body::new)
    }

    /// Returns the same answer with a typed body, whose ranges are visible to the caller.
    pub(in crate::http) fn answer(
        &self,
        mode: BodyMode,
        (method, headers, version): (&Method, &HeaderMap, Version),
    ) -> Response<AnswerBody> {
        let now = Utc::now();
        let mut response = self.answer_at(now, mode, (method, headers, version));
        if self.modified > now {
            // The clock was set back. `Last-Modified` must not be later than `Date` (RFC 9110, 8.8.2.1). Conditions use
            // the stored time.
            let date = conditional::date_value(now.trunc_subsecs(0));
            if let (Entry::Occupied(mut header), Some(date)) =
                (response.headers_mut().entry(header::LAST_MODIFIED), date)
            {
                header.insert(date);
            }
        }
        response
    }

    /// Returns the body for a GET over HTTP/1.1 whose `Range` header has this value, if it selects exactly one range.
    /// The caller ensures that no other part of the request matters. Appends the head to `head` as it is sent: the head
    /// of [`answer`](Self::answer), plus a `Date`.
    pub(in crate::http) fn range(
        &self,
        value: &[u8],
        mode: BodyMode,
        (date, head): (&Date, &mut Vec<u8>),
    ) -> Option<PlanBody> {
        let Selection::One(range) = RangeRequest::parse(value)?.select(self.plan.len()) else { return None };
        // The clock was set back: `Last-Modified` needs a correction, which only `answer` makes.
        if self.modified > date.second() {
            return None;
        }
        let fields = RangeFields::range(range, self.plan.len())?;
        let body = PlanBody::of_range(self.parts(), range.bounds(), mode).ok()?;
        self.head.write(&fields, date, head);
        Some(body)
    }

    fn answer_at(
        &self,
        now: DateTime<Utc>,
        mode: BodyMode,
        (method, headers, version): (&Method, &HeaderMap, Version),
    ) -> Response<AnswerBody> {
        // Most requests have no condition and few headers, so one scan of the names replaces five lookups.
        let validators = conditional::has_condition(headers).then_some(Validators {
            etag: &self.etag,
            modified: self.modified,
            now,
        });
        match validators.map_or(Outcome::Proceed, |validators| validators.evaluate(headers)) {
            Outcome::Failed => {
                return refusal(
                    StatusCode::PRECONDITION_FAILED,
                    "it is not what the request has a condition for",
                );
            }
            Outcome::NotModified => {
                return self.base.stamp().map_or_else(
                    |error| self.unreadable(&error),
                    |_| response(self.head.not_modified(), AnswerBody::EmptyWithoutLength),
                );
            }
            Outcome::Proceed => {}
        }
        let are_ranges_allowed = validators.is_none_or(|validators| validators.allows_ranges(headers));
        let use_ranges = *method == Method::GET && are_ranges_allowed;
        let request = if use_ranges { RangeRequest::of(headers) } else { None };
        let selection = match request.map(|request| request.select(self.plan.len())) {
            None => Selection::Whole,
            Some(Selection::Several(_)) if version < Version::HTTP_11 => Selection::Whole,
            Some(selection) => selection,
        };
        self.selected(selection, *method != Method::HEAD, mode)
            .unwrap_or_else(|error| self.unreadable(&error))
    }

    /// Returns the plan and the file of its base image.
    pub(in crate::http) fn parts(&self) -> (Arc<Plan>, Arc<BaseFile>) {
        (Arc::clone(&self.plan), Arc::clone(&self.base))
    }

    fn unreadable(&self, error: &io::Error) -> Response<AnswerBody> {
        tracing::error!(source = self.plan.source().name(), %error, "an image cannot be read");
        refusal(StatusCode::INTERNAL_SERVER_ERROR, "the image cannot be read; the log says why")
    }

    /// Returns the answer with the selected bytes.
    fn selected(
        &self,
        selection: Selection,
        is_body_wanted: bool,
        mode: BodyMode,
    ) -> io::Result<Response<AnswerBody>> {
        let len = self.plan.len();
        let body_of = |range| {
            if is_body_wanted && len > 0 {
                PlanBody::of_range(self.parts(), range, mode).map(AnswerBody::Plan)
            } else {
                self.base.stamp().map(|_| AnswerBody::Empty)
            }
        };
        let (head, body) = match selection {
            Selection::Unsatisfiable => return Ok(self.unsatisfiable()),
            Selection::Whole => (self.head.with_range(RangeFields::whole(len)), body_of(0..len)?),
            Selection::One(range) => {
                let fields = RangeFields::range(range, len);
                let fields = fields.ok_or_else(|| io::Error::other("a range that no header can hold"))?;
                (self.head.with_range(fields), body_of(range.bounds())?)
            }
            Selection::Several(ranges) => {
                let Multipart { pieces, media_type } = Multipart::new(&ranges, self.media_type, len);
                let body = PlanBody::of_pieces(self.parts(), pieces, mode)?;
                (self.head.with_parts(media_type, body.left()), AnswerBody::Plan(body))
            }
        };
        Ok(response(head, body))
    }

    fn unsatisfiable(&self) -> Response<AnswerBody> {
        let reason = format!("requested range is outside the image ({} bytes)", self.plan.len());
        let mut response = refusal(StatusCode::RANGE_NOT_SATISFIABLE, reason);
        head::put_length(response.headers_mut(), self.plan.len());
        response
    }
}

/// Returns an answer. Its extensions tell the connection which base image the bytes belong to.
fn response((status, fields): StatusAndFields, body: AnswerBody) -> Response<AnswerBody> {
    let base_file = body.base_file();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    if let Some(file) = base_file {
        response.extensions_mut().insert(file);
    }
    response
}

/// Returns an error answer with a reason.
fn refusal(status: StatusCode, reason: impl Into<String>) -> Response<AnswerBody> {
    ApiError::at_gate(status, reason).into_response().map(AnswerBody::Error)
}
