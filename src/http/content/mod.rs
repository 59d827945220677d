//! A representation, served whole, in ranges, or on a condition (RFC 9110).
//!
//! A [`Representation`] holds the bytes, their entity tag and their modification time, and answers GET and HEAD. It
//! does not know what the bytes are for. The routes decide which paths and methods exist.

mod answer;
mod conditional;
mod date_header;
mod disposition;
mod head;
mod header_error;
mod multipart;
mod plan_body;
mod range;

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::Entry;
use axum::http::header::{self, HeaderMap};
use axum::http::{HeaderValue, Method, Response, StatusCode, Version};
use axum::response::IntoResponse;
use chrono::{DateTime, SubsecRound, Utc};
use isogen::Plan;

use crate::base_files::BaseFile;
use crate::http::zerocopy::BodyMode;
pub(in crate::http) use answer::AnswerBody;
pub(in crate::http) use conditional::is_listed_in_if_none_match;
use conditional::{ConditionOutcome, Validators};
pub(in crate::http) use date_header::DateHeader;
use head::{RangeHeadFields, ResponseHead, StatusAndFields};
pub use header_error::HeaderError;
use inventory::api::ApiError;
use multipart::MultipartBody;
pub(crate) use plan_body::PlanBody;
use range::{RangeRequest, RangeSelection};

/// A representation: bytes with an identity.
#[derive(Debug, Clone)]
pub struct Representation {
    plan: Arc<Plan>,
    base: Arc<BaseFile>,
    etag: String,
    /// The time of the last change in whole seconds, if it is known.
    modified: Option<DateTime<Utc>>,
    media_type: &'static str,
    file_name: Option<String>,
    head: ResponseHead,
}

impl Representation {
    /// Creates a representation. `etag` is a strong entity tag with its quotes; other bytes must have another one.
    /// `changed_at` is the time of the last change of the bytes, if it is known, and `file_name` the name to save them
    /// under. Answers have no `Last-Modified` if no HTTP date can express that time.
    ///
    /// # Errors
    ///
    /// Returns an error if `etag` is not a strong entity tag, or if `media_type` is not a valid header value.
    pub fn new(
        plan: Arc<Plan>,
        etag: String,
        changed_at: impl Into<Option<DateTime<Utc>>>,
        media_type: &'static str,
        file_name: Option<String>,
    ) -> Result<Self, HeaderError> {
        let date = |at: DateTime<Utc>| Some((at, conditional::format_date(at)?));
        let (modified, last_modified) = changed_at.into().and_then(|at| date(at.trunc_subsecs(0))).unzip();
        let content_type = HeaderError::parse(header::CONTENT_TYPE, media_type)?;
        let disposition = file_name.as_deref().map(disposition::attachment).transpose()?;
        let head = ResponseHead::new(parse_strong_tag(&etag)?, last_modified, (content_type, disposition));
        let base = Arc::new(BaseFile::new(Arc::clone(plan.source())));
        Ok(Self { plan, base, etag, modified, media_type, file_name, head })
    }

    /// Sets the file of the base image, which all plans over that base image share.
    #[must_use]
    pub(in crate::http) fn with_base_file(self, base: Arc<BaseFile>) -> Self {
        Self { base, ..self }
    }

    /// Marks the representation as free of secrets, so that shared caches may store it too.
    #[must_use]
    pub fn with_public_caching(self) -> Self {
        Self { head: self.head.with_public_caching(), ..self }
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
        self.respond_with_mode(BodyMode::default(), method, headers, version)
    }

    /// Returns the same answer as [`respond`](Self::respond), with a choice of how bytes are read. Use
    /// [`BodyMode::Read`] over TLS, and if any other layer reads the bytes.
    #[must_use]
    pub fn respond_with_mode(
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
        let mut response = self.answer_at_time(now, mode, (method, headers, version));
        if self.modified.is_some_and(|modified| modified > now)
            && let Entry::Occupied(mut header) = response.headers_mut().entry(header::LAST_MODIFIED)
        {
            // The clock was set back. `Last-Modified` must not be later than `Date` (RFC 9110, 8.8.2.1). Conditions use
            // the stored time.
            match conditional::format_date(now.trunc_subsecs(0)) {
                Some(date) => drop(header.insert(date)),
                None => drop(header.remove()),
            }
        }
        response
    }

    /// Returns the body for a GET over HTTP/1.1 whose `Range` header has this value, if it selects exactly one range.
    /// The caller ensures that no other part of the request matters. Appends the head to `head` as it is sent: the head
    /// of [`answer`](Self::answer), plus a `Date`.
    pub(in crate::http) fn range_body(
        &self,
        value: &[u8],
        mode: BodyMode,
        (date, head): (&DateHeader, &mut Vec<u8>),
    ) -> Option<PlanBody> {
        let RangeSelection::One(range) = RangeRequest::parse(value)?.select(self.plan.len()) else {
            return None;
        };
        // The clock was set back: `Last-Modified` needs a correction, which only `answer` makes.
        if self.modified.is_some_and(|modified| modified > date.start_of_second()) {
            return None;
        }
        let fields = RangeHeadFields::new(range, self.plan.len())?;
        // `answer` reports the error of the base image.
        let body = PlanBody::from_range(self.plan_and_base(), range.bounds(), mode).ok()?;
        self.head.write_range_head(&fields, date.value()?, head);
        Some(body)
    }

    fn answer_at_time(
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
        match validators.map_or(ConditionOutcome::Proceed, |validators| validators.evaluate(headers)) {
            ConditionOutcome::Failed => {
                return refusal_response(
                    StatusCode::PRECONDITION_FAILED,
                    "precondition failed: If-Match / If-Unmodified-Since does not match this image",
                );
            }
            ConditionOutcome::NotModified => {
                return self.base.stamp().map_or_else(
                    |error| self.unreadable_answer(&error),
                    |_| to_response(self.head.not_modified(), AnswerBody::EmptyWithoutLength),
                );
            }
            ConditionOutcome::Proceed => {}
        }
        let are_ranges_allowed = validators.is_none_or(|validators| validators.allows_ranges(headers));
        let use_ranges = *method == Method::GET && are_ranges_allowed;
        let request = if use_ranges { RangeRequest::from_headers(headers) } else { None };
        let selection = match request.map(|request| request.select(self.plan.len())) {
            None => RangeSelection::Whole,
            Some(RangeSelection::Several(_)) if version < Version::HTTP_11 => RangeSelection::Whole,
            Some(selection) => selection,
        };
        self.selected_answer(selection, *method != Method::HEAD, mode)
            .unwrap_or_else(|error| self.unreadable_answer(&error))
    }

    /// Returns the plan and the file of its base image.
    pub(in crate::http) fn plan_and_base(&self) -> (Arc<Plan>, Arc<BaseFile>) {
        (Arc::clone(&self.plan), Arc::clone(&self.base))
    }

    fn unreadable_answer(&self, error: &io::Error) -> Response<AnswerBody> {
        tracing::error!(source = self.plan.source().name(), %error, "cannot read image");
        refusal_response(StatusCode::INTERNAL_SERVER_ERROR, "cannot read the image; see the service's log")
    }

    /// Returns the answer with the selected bytes.
    fn selected_answer(
        &self,
        selection: RangeSelection,
        is_body_wanted: bool,
        mode: BodyMode,
    ) -> io::Result<Response<AnswerBody>> {
        let len = self.plan.len();
        let body_of = |range| {
            if is_body_wanted && len > 0 {
                PlanBody::from_range(self.plan_and_base(), range, mode).map(AnswerBody::Plan)
            } else {
                self.base.stamp().map(|_| AnswerBody::Empty)
            }
        };
        let (head, body) = match selection {
            RangeSelection::Unsatisfiable => return self.unsatisfiable_answer(),
            RangeSelection::Whole => (self.head.whole_fields(len), body_of(0..len)?),
            RangeSelection::One(range) => {
                let fields = RangeHeadFields::new(range, len).ok_or_else(|| {
                    io::Error::other(format!(
                        "range {range} of {len} bytes does not fit into a Content-Range header"
                    ))
                })?;
                (self.head.range_fields(fields), body_of(range.bounds())?)
            }
            RangeSelection::Several(ranges) => {
                let MultipartBody { pieces, media_type } =
                    MultipartBody::new(&ranges, self.media_type, len).map_err(io::Error::other)?;
                let body = PlanBody::from_pieces(self.plan_and_base(), pieces, mode)?;
                (self.head.multipart_fields(media_type, body.remaining_len()), AnswerBody::Plan(body))
            }
        };
        Ok(to_response(head, body))
    }

    fn unsatisfiable_answer(&self) -> io::Result<Response<AnswerBody>> {
        let reason = format!("requested range is outside the image ({} bytes)", self.plan.len());
        let mut response = refusal_response(StatusCode::RANGE_NOT_SATISFIABLE, reason);
        head::put_unsatisfied_range(response.headers_mut(), self.plan.len()).map_err(io::Error::other)?;
        Ok(response)
    }
}

/// Parses a strong entity tag: characters between two quotes (RFC 9110, 8.8.3).
fn parse_strong_tag(etag: &str) -> Result<HeaderValue, HeaderError> {
    let opaque = etag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    if opaque.is_none_or(|opaque| opaque.contains(['"', ' ', '\t'])) {
        return Err(HeaderError::new(header::ETAG, etag));
    }
    HeaderError::parse(header::ETAG, etag)
}

/// Returns an answer. Its extensions tell the connection which base image the bytes belong to.
fn to_response((status, fields): StatusAndFields, body: AnswerBody) -> Response<AnswerBody> {
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
fn refusal_response(status: StatusCode, reason: impl Into<String>) -> Response<AnswerBody> {
    ApiError::infra_error(status, reason).into_response().map(AnswerBody::Error)
}

#[cfg(test)]
mod tests {
    use isogen::Source;

    use super::*;

    fn representation(
        etag: &str,
        changed_at: Option<DateTime<Utc>>,
        media_type: &'static str,
    ) -> Result<Representation, HeaderError> {
        let plan = Plan::from_source(Arc::new(Source::from_bytes("base", &b"0123456789"[..])));
        Representation::new(Arc::new(plan), etag.to_owned(), changed_at, media_type, Some("ü\r\n".to_owned()))
    }

    #[test]
    fn rejects_values_that_no_header_can_have() {
        for (etag, media_type, expected) in [
            ("abc", "text/plain", r#"not a valid etag: "abc""#),
            ("W/\"abc\"", "text/plain", r#"not a valid etag: "W/\"abc\"""#),
            ("\"", "text/plain", r#"not a valid etag: "\"""#),
            ("\"a\"b\"", "text/plain", r#"not a valid etag: "\"a\"b\"""#),
            ("\"a\r\nb\"", "text/plain", r#"not a valid etag: "\"a\r\nb\"""#),
            ("\"abc\"", "text/plain\n", r#"not a valid content-type: "text/plain\n""#),
        ] {
            assert_eq!(representation(etag, None, media_type).unwrap_err().to_string(), expected);
        }
        representation("\"abc\"", None, "text/plain").unwrap();
    }

    #[test]
    fn unknown_time_of_the_last_change_is_not_sent() {
        let far_future = DateTime::<Utc>::MAX_UTC;
        for (changed_at, is_sent) in
            [(None, false), (Some(far_future), false), (Some(DateTime::UNIX_EPOCH), true)]
        {
            let content = representation("\"abc\"", changed_at, "text/plain").unwrap();
            let response = content.respond(&Method::GET, &HeaderMap::new(), Version::HTTP_11);
            assert_eq!(response.headers().contains_key(header::LAST_MODIFIED), is_sent, "{changed_at:?}");
        }
    }
}
