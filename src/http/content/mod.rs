//! One representation, and how it is asked for: whole, in ranges, or only if it is another one (RFC 9110).
//!
//! A [`Content`] knows the bytes, their identity and their age, and answers GET and HEAD. It knows nothing of what the bytes
//! are for, and which paths and methods there are is the business of routes.

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
use multipart::Parts;
use range::{RangeRequest, Selection};

/// The media type of a representation whose own media type no header can hold.
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
    /// A representation of which other bytes have another entity tag, which is strong and has its quotes. `changed_at` is
    /// when its bytes became what they are, and `file_name` the name to save them under.
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

    /// Sets the file of the base image that all plans over it share.
    #[must_use]
    pub(in crate::http) fn over(self, base: Arc<BaseFile>) -> Self {
        Self { base, ..self }
    }

    /// The same without secrets in it: a cache that many share may keep it as well.
    #[must_use]
    pub fn public(self) -> Self {
        Self { head: self.head.public(), ..self }
    }

    /// The bytes.
    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The entity tag, with its quotes.
    #[must_use]
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// The name to save the bytes under.
    #[must_use]
    pub fn file_name(&self) -> Option<&str> {
        self.file_name.as_deref()
    }

    /// The answer to a GET or HEAD, over a connection whose writes go straight to the kernel.
    ///
    /// * Conditions are evaluated in the order of RFC 9110, 13.2.2, and answered with 304 or 412.
    /// * Ranges are for GET alone, as the standard has it. A HEAD answers for all bytes.
    /// * One range is answered with 206, several with `multipart/byteranges` in the order asked for; with clients of
    ///   HTTP/1.0, which do not know these, everything. So are too many ranges, and ranges that are more than the whole.
    ///   Where no range exists: 416.
    /// * With `If-Range`, ranges are those of the same bytes, or everything is sent: a client that goes on with a download
    ///   never gets a part of something else. Dates count once their second is over.
    /// * The length is always told beforehand.
    ///
    /// A base that cannot be read any more is answered with 500. Where that comes out later, the connection is closed
    /// before the last byte, and the log says why.
    #[must_use]
    pub fn respond(&self, method: &Method, headers: &HeaderMap, version: Version) -> Response<Body> {
        self.respond_in(BodyMode::default(), method, headers, version)
    }

    /// As [`respond`](Self::respond), with the choice how bytes are read. Over TLS, and where anything else looks at
    /// them, that has to be [`BodyMode::Read`].
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

    /// The same, with a body that others look into.
    pub(in crate::http) fn answer(
        &self,
        mode: BodyMode,
        (method, headers, version): (&Method, &HeaderMap, Version),
    ) -> Response<AnswerBody> {
        let now = Utc::now();
        let mut response = self.answer_at(now, mode, (method, headers, version));
        if self.modified > now {
            // The clock was set back. No answer may tell of a change that is still to come (RFC 9110, 8.8.2.1); conditions
            // go by the true time.
            let date = conditional::date_value(now.trunc_subsecs(0));
            if let (Entry::Occupied(mut told), Some(date)) =
                (response.headers_mut().entry(header::LAST_MODIFIED), date)
            {
                told.insert(date);
            }
        }
        response
    }

    /// The bytes for a GET over HTTP/1.1 whose `Range` header has this value, where it is for one range that there is, and nothing
    /// else of the request is to be considered. The head is added to `head` as it is sent: the same as that of
    /// [`answer`](Self::answer) then is, with its date.
    pub(in crate::http) fn range(
        &self,
        value: &[u8],
        mode: BodyMode,
        (date, head): (&Date, &mut Vec<u8>),
    ) -> Option<PlanBody> {
        let Selection::One(range) = RangeRequest::parse(value)?.select(self.plan.len()) else { return None };
        // What is to be told then is more than a list of headers.
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
        // Most requests make no condition, and have few headers.
        let validators = conditional::is_there_any(headers).then_some(Validators {
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
                    |_| response(self.head.not_modified(), AnswerBody::Untold),
                );
            }
            Outcome::Proceed => {}
        }
        let do_ranges_pass = validators.is_none_or(|validators| validators.lets_ranges_pass(headers));
        let is_for_ranges = *method == Method::GET && do_ranges_pass;
        let request = if is_for_ranges { RangeRequest::of(headers) } else { None };
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

    /// The answer with what was selected.
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
                let Parts { pieces, media_type } = Parts::new(&ranges, self.media_type, len);
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

/// Returns an answer. The connection learns from its extensions which base image the bytes belong to.
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

/// An answer without bytes of the representation, which says why.
fn refusal(status: StatusCode, reason: impl Into<String>) -> Response<AnswerBody> {
    ApiError::at_gate(status, reason).into_response().map(AnswerBody::Error)
}
