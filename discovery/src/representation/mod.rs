//! Images as HTTP representations, with range requests and conditional requests (RFC 9110).
//!
//! A [`Representation`] has a plan, an entity tag and a modification time, and computes responses to GET and HEAD
//! requests. The application decides which paths and methods exist and what the bytes are used for.
//!
//! [`Representation::respond`] returns a response with a body, for any HTTP library that uses the types of the crate
//! `http`. A server that sends bytes in another way calls [`Representation::answer`], which returns the head and the
//! ranges.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//!
//! use discovery::representation::Representation;
//! use http::{HeaderMap, Method, StatusCode, Version, header};
//! # use isogen::{Plan, Source};
//!
//! # let plan = Plan::from_source(Arc::new(Source::from_bytes("base", &b"0123456789"[..])));
//! let etag = format!("\"{}\"", plan.identity()?);
//! let image = Representation::new(Arc::new(plan), etag, None, "application/octet-stream", None)?;
//! let mut request = HeaderMap::new();
//! request.insert(header::RANGE, "bytes=2-4".parse()?);
//! let response = image.respond(&Method::GET, &request, Version::HTTP_11);
//! assert_eq!(response.status(), StatusCode::PARTIAL_CONTENT);
//! assert_eq!(response.headers()[header::CONTENT_RANGE], "bytes 2-4/10");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod conditional;
mod disposition;
mod head;
mod header_error;
mod multipart;
mod range;

use std::ops::Range;
use std::sync::Arc;

use chrono::{DateTime, SubsecRound, Utc};
use http::header::{self, Entry, HeaderMap};
use http::{HeaderValue, Method, Response, StatusCode, Version};
use isogen::Plan;

use crate::image::Image;
use crate::image_body::ImageBody;
pub use answer::{Answer, AnswerContent, BodyPiece};
use conditional::{ConditionOutcome, Validators};
pub use conditional::{format_date, is_listed_in_if_none_match};
use head::{RangeHeadFields, ResponseHead, StatusAndFields};
pub use header_error::HeaderError;
use multipart::MultipartBody;
use range::{ByteRange, RangeRequest, RangeSelection};

/// The bytes of an image, with their entity tag and modification time.
#[derive(Debug, Clone)]
pub struct Representation {
    image: Image,
    etag: String,
    /// The modification time in whole seconds, or `None` if it is unknown.
    modified: Option<DateTime<Utc>>,
    media_type: &'static str,
    file_name: Option<String>,
    head: ResponseHead,
}

impl Representation {
    /// Creates a representation. `etag` is a strong entity tag with its quotes, and must be different for different
    /// bytes. `changed_at` is the modification time of the bytes, if known, and `file_name` is the name that clients
    /// save the bytes under. Responses omit `Last-Modified` if the time cannot be written as an HTTP date.
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
        let date = |at: DateTime<Utc>| Some((at, format_date(at)?));
        let (modified, last_modified) = changed_at.into().and_then(|at| date(at.trunc_subsecs(0))).unzip();
        let content_type = HeaderError::parse(header::CONTENT_TYPE, media_type)?;
        let disposition = file_name.as_deref().map(disposition::attachment).transpose()?;
        let head = ResponseHead::new(parse_strong_tag(&etag)?, last_modified, (content_type, disposition));
        Ok(Self { image: Image::from(plan), etag, modified, media_type, file_name, head })
    }

    /// Allows shared caches to store the responses too. Use it only if the representation contains no secrets.
    #[must_use]
    pub fn with_public_caching(self) -> Self {
        Self { head: self.head.with_public_caching(), ..self }
    }

    /// Returns the plan that the bytes come from.
    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        self.image.plan()
    }

    /// Returns the entity tag, including its quotes.
    #[must_use]
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// Returns the modification time in whole seconds, if it is known.
    #[must_use]
    pub fn modified(&self) -> Option<DateTime<Utc>> {
        self.modified
    }

    /// Returns the name that clients save the bytes under.
    #[must_use]
    pub fn file_name(&self) -> Option<&str> {
        self.file_name.as_deref()
    }

    /// Returns the response to a GET or HEAD request. See [`answer`](Self::answer).
    ///
    /// The body ends with an error if the base image can no longer be read, or was changed since the representation was
    /// created. The server must then close the connection without sending the last byte.
    #[must_use]
    pub fn respond(&self, method: &Method, headers: &HeaderMap, version: Version) -> Response<ImageBody> {
        let Answer { status, mut fields, content } = self.answer(method, headers, version);
        let body = match content {
            AnswerContent::Range(range) => self.image.body(range),
            AnswerContent::Multipart(pieces) => ImageBody::from_pieces(&self.image, pieces),
            AnswerContent::Empty => ImageBody::empty(),
            AnswerContent::NotModified => ImageBody::without_length(),
            AnswerContent::Refusal(reason) => {
                fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
                ImageBody::from_text(reason + "\n")
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = fields;
        response
    }

    /// Returns the response to a GET or HEAD request, without the bytes.
    ///
    /// * Conditions are evaluated in the order of RFC 9110, 13.2.2. They can result in status 304 or 412.
    /// * Only a GET request can select ranges, as RFC 9110 requires. The response to a HEAD request describes the whole
    ///   representation.
    /// * A single range results in status 206. Several ranges result in 206 with `multipart/byteranges`, in the
    ///   requested order. If no range is satisfiable, the status is 416. The response contains the whole representation
    ///   if the client requests too many ranges, or more bytes than the whole, or several ranges over HTTP/1.0, which
    ///   does not support `multipart/byteranges`.
    /// * With `If-Range`, the response contains ranges only if the representation is unchanged, and otherwise the whole
    ///   representation. A client that resumes a download thus never receives parts of two representations. A date in
    ///   `If-Range` only counts after its second is over.
    /// * A response with bytes always has a `Content-Length`.
    #[must_use]
    pub fn answer(&self, method: &Method, headers: &HeaderMap, version: Version) -> Answer {
        let now = Utc::now();
        let mut answer = self.answer_at_time(now, (method, headers, version));
        if self.modified.is_some_and(|modified| modified > now)
            && let Entry::Occupied(mut header) = answer.fields.entry(header::LAST_MODIFIED)
        {
            // `modified` is in the future if the clock was set back, or if recorded times of quick changes are spaced
            // out. `Last-Modified` must not be later than `Date` (RFC 9110, 8.8.2.1). Conditions still use the stored
            // time.
            match format_date(now.trunc_subsecs(0)) {
                Some(date) => drop(header.insert(date)),
                None => drop(header.remove()),
            }
        }
        answer
    }

    /// Serves a GET request over HTTP/1.1 with this `Range` header, if the header selects exactly one range. Returns
    /// the range, and appends the response head to `head`: the head that [`answer`](Self::answer) returns, plus `Date`.
    ///
    /// This method is for servers that write to sockets themselves. The caller must check that no other part of the
    /// request affects the response. `date` is the value of `Date` for the second that begins at `second`.
    #[inline]
    pub fn write_range_head(
        &self,
        value: &[u8],
        (second, date): (DateTime<Utc>, &HeaderValue),
        head: &mut Vec<u8>,
    ) -> Option<Range<u64>> {
        let len = self.plan().len();
        let RangeSelection::One(range) = RangeRequest::parse(value)?.select(len) else {
            return None;
        };
        // Only `answer` corrects `Last-Modified` if `modified` is in the future.
        if self.modified.is_some_and(|modified| modified > second) {
            return None;
        }
        self.head.write_range_head(&RangeHeadFields::new(range, len)?, date, head);
        Some(range.bounds())
    }

    fn answer_at_time(
        &self,
        now: DateTime<Utc>,
        (method, headers, version): (&Method, &HeaderMap, Version),
    ) -> Answer {
        // Most requests have no condition and few headers, so one scan of the header names is faster than five lookups.
        let validators = conditional::has_condition(headers).then_some(Validators {
            etag: &self.etag,
            modified: self.modified,
            now,
        });
        match validators.map_or(ConditionOutcome::Proceed, |validators| validators.evaluate(headers)) {
            ConditionOutcome::Failed => {
                return refusal(
                    StatusCode::PRECONDITION_FAILED,
                    "precondition failed: If-Match / If-Unmodified-Since does not match this image",
                );
            }
            ConditionOutcome::NotModified => {
                return to_answer(self.head.not_modified(), AnswerContent::NotModified);
            }
            ConditionOutcome::Proceed => {}
        }
        let are_ranges_allowed = validators.is_none_or(|validators| validators.allows_ranges(headers));
        let use_ranges = *method == Method::GET && are_ranges_allowed;
        let request = if use_ranges { RangeRequest::from_headers(headers) } else { None };
        let selection = match request.map(|request| request.select(self.plan().len())) {
            None => RangeSelection::Whole,
            Some(RangeSelection::Several(_)) if version < Version::HTTP_11 => RangeSelection::Whole,
            Some(selection) => selection,
        };
        match selection {
            RangeSelection::Whole => self.whole_answer(*method != Method::HEAD),
            RangeSelection::One(range) => self.range_answer(range),
            RangeSelection::Several(ranges) => self.multipart_answer(&ranges),
            RangeSelection::Unsatisfiable => self.unsatisfiable_answer(),
        }
    }

    fn whole_answer(&self, is_body_wanted: bool) -> Answer {
        let len = self.plan().len();
        let is_empty = len == 0 || !is_body_wanted;
        let content = if is_empty { AnswerContent::Empty } else { AnswerContent::Range(0..len) };
        to_answer(self.head.whole_fields(len), content)
    }

    fn range_answer(&self, range: ByteRange) -> Answer {
        let len = self.plan().len();
        match RangeHeadFields::new(range, len) {
            Some(fields) => to_answer(self.head.range_fields(fields), AnswerContent::Range(range.bounds())),
            None => internal_error(format!(
                "range {range} of {len} bytes does not fit into a Content-Range header"
            )),
        }
    }

    fn multipart_answer(&self, ranges: &[ByteRange]) -> Answer {
        match MultipartBody::new(ranges, self.media_type, self.plan().len()) {
            Ok(MultipartBody { pieces, media_type }) => {
                let len = pieces.iter().map(BodyPiece::len).sum();
                let head = self.head.multipart_fields(media_type, len);
                to_answer(head, AnswerContent::Multipart(pieces))
            }
            Err(error) => internal_error(error.to_string()),
        }
    }

    fn unsatisfiable_answer(&self) -> Answer {
        let len = self.plan().len();
        let reason = format!("requested range is outside the image ({len} bytes)");
        let mut answer = refusal(StatusCode::RANGE_NOT_SATISFIABLE, reason);
        match head::put_unsatisfied_range(&mut answer.fields, len) {
            Ok(()) => answer,
            Err(error) => internal_error(error.to_string()),
        }
    }
}

/// Parses a strong entity tag: characters between two double quotes (RFC 9110, 8.8.3).
fn parse_strong_tag(etag: &str) -> Result<HeaderValue, HeaderError> {
    let opaque = etag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    if opaque.is_none_or(|opaque| opaque.contains(['"', ' ', '\t'])) {
        return Err(HeaderError::new(header::ETAG, etag));
    }
    HeaderError::parse(header::ETAG, etag)
}

#[inline]
fn to_answer((status, fields): StatusAndFields, content: AnswerContent) -> Answer {
    Answer { status, fields, content }
}

fn refusal(status: StatusCode, reason: impl Into<String>) -> Answer {
    Answer { status, fields: HeaderMap::new(), content: AnswerContent::Refusal(reason.into()) }
}

fn internal_error(reason: String) -> Answer {
    refusal(StatusCode::INTERNAL_SERVER_ERROR, reason)
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
    fn rejects_invalid_header_values() {
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
    fn unknown_modification_time_is_not_sent() {
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
