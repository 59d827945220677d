//! One representation, and how it is asked for: whole, in ranges, or only if it is another one (RFC 9110).
//!
//! A [`Content`] knows the bytes, their identity and their age, and answers GET and HEAD. It knows nothing of what the bytes
//! are for, and which paths and methods there are is the business of routes.

mod answer;
mod body;
mod conditional;
mod date;
mod disposition;
mod multipart;
pub mod range;

use std::io::{self, Write};
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::Entry;
use axum::http::header::{self, HeaderMap, HeaderName};
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
use multipart::Parts;
use range::{ByteRange, RangeRequest, Selection};

/// Clients may keep what they got, and ask each time whether it is still the same. Others in between may not: images have
/// secrets in them.
const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-cache");
/// All may keep it, and ask each time.
const PUBLIC: HeaderValue = HeaderValue::from_static("public, no-cache");
/// The media type of what has none that a header could hold.
const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// Headers as they are kept. Maps, one for each image, would not only take more themselves: with 2,000 images they were 250 MiB,
/// as memory between them could not be given back.
type Headers = Box<[(HeaderName, HeaderValue)]>;

/// A representation: bytes with an identity.
#[derive(Debug, Clone)]
pub struct Content {
    plan: Arc<Plan>,
    base: Arc<BaseFile>,
    etag: String,
    modified: DateTime<Utc>,
    media_type: &'static str,
    file_name: Option<String>,
    /// What answers say of it.
    identity: Headers,
    /// What those say besides that have bytes in them.
    description: Headers,
    /// How an answer with one range begins, as it is sent: with all of that.
    beginning: Box<[u8]>,
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
        let identity = [
            (header::CACHE_CONTROL, Some(PRIVATE)),
            (header::ETAG, HeaderValue::from_str(&etag).ok()),
            (header::LAST_MODIFIED, conditional::date_value(modified)),
        ];
        let description = [
            (header::ACCEPT_RANGES, Some(HeaderValue::from_static("bytes"))),
            (header::CONTENT_DISPOSITION, file_name.as_deref().and_then(disposition::attachment)),
            (header::CONTENT_TYPE, Some(HeaderValue::from_str(media_type).unwrap_or(OCTETS))),
        ];
        let [identity, description] = [identity, description]
            .map(|told| told.into_iter().filter_map(|(name, value)| Some((name, value?))).collect());
        let beginning = beginning([&identity, &description]);
        let base = Arc::new(BaseFile::new(Arc::clone(plan.source())));
        Self { plan, base, etag, modified, media_type, file_name, identity, description, beginning }
    }

    /// Sets the file of the base image that all plans over it share.
    #[must_use]
    pub(in crate::http) fn over(self, base: Arc<BaseFile>) -> Self {
        Self { base, ..self }
    }

    /// The same without secrets in it: a cache that many share may keep it as well.
    #[must_use]
    pub fn public(mut self) -> Self {
        for (_, value) in self.identity.iter_mut().filter(|(name, _)| name == header::CACHE_CONTROL) {
            *value = PUBLIC;
        }
        self.beginning = beginning([&self.identity, &self.description]);
        self
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
        let content_range = content_range(range, self.plan.len())?;
        let body = PlanBody::of_range(self.parts(), range.bounds(), mode).ok()?;
        head.extend_from_slice(&self.beginning);
        for part in [
            b"content-range: ",
            content_range.as_bytes(),
            b"\r\ncontent-length: ",
            itoa::Buffer::new().format(range.len()).as_bytes(),
            b"\r\ndate: ",
            date.value().as_bytes(),
            b"\r\n\r\n",
        ] {
            head.extend_from_slice(part);
        }
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
                return self
                    .base
                    .stamp()
                    .map_or_else(|error| self.unreadable(&error), |_| self.not_modified());
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
        // Also where the client should have it from an earlier answer: real ones take it from the last one they saw.
        let mut headers = map([&self.identity, &self.description]);
        let (status, len_told, body) = match selection {
            Selection::Unsatisfiable => return Ok(self.unsatisfiable()),
            Selection::Whole => (StatusCode::OK, len, body_of(0..len)?),
            Selection::One(range) => {
                put(&mut headers, header::CONTENT_RANGE, content_range(range, len));
                (StatusCode::PARTIAL_CONTENT, range.len(), body_of(range.bounds())?)
            }
            Selection::Several(ranges) => {
                let Parts { pieces, media_type } = Parts::new(&ranges, self.media_type, len);
                put(&mut headers, header::CONTENT_TYPE, media_type);
                let body = PlanBody::of_pieces(self.parts(), pieces, mode)?;
                (StatusCode::PARTIAL_CONTENT, body.left(), AnswerBody::Plan(body))
            }
        };
        headers.insert(header::CONTENT_LENGTH, len_told.into());
        let base_file = body.base_file();
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        if let Some(file) = base_file {
            response.extensions_mut().insert(file);
        }
        Ok(response)
    }

    fn not_modified(&self) -> Response<AnswerBody> {
        let mut response = Response::new(AnswerBody::Untold);
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.headers_mut() = map([&self.identity]);
        response
    }

    fn unsatisfiable(&self) -> Response<AnswerBody> {
        let reason = format!("no range of the request is in the {} bytes that there are", self.plan.len());
        let mut response = refusal(StatusCode::RANGE_NOT_SATISFIABLE, reason);
        let range = HeaderValue::try_from(format!("bytes */{}", self.plan.len())).ok();
        put(response.headers_mut(), header::CONTENT_RANGE, range);
        response.headers_mut().insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        response
    }
}

/// An answer without bytes of the representation, which says why.
fn refusal(status: StatusCode, reason: impl Into<String>) -> Response<AnswerBody> {
    ApiError::at_gate(status, reason).into_response().map(AnswerBody::Error)
}

/// What range it is, of how many bytes.
fn content_range(range: ByteRange, len: u64) -> Option<HeaderValue> {
    /// Three numbers with all their digits.
    const MOST: usize = "bytes -/".len() + 3 * "18446744073709551615".len();
    let mut text = [0; MOST];
    let mut rest = text.as_mut_slice();
    let mut digits = itoa::Buffer::new();
    for (before, number) in [("bytes ", range.first()), ("-", range.last()), ("/", len)] {
        rest.write_all(before.as_bytes()).ok()?;
        rest.write_all(digits.format(number).as_bytes()).ok()?;
    }
    let unused = rest.len();
    HeaderValue::from_bytes(text.get(..MOST - unused)?).ok()
}

/// The first lines of an answer with one range.
fn beginning(told: [&Headers; 2]) -> Box<[u8]> {
    let mut lines = b"HTTP/1.1 206 Partial Content\r\n".to_vec();
    for (name, value) in told.into_iter().flatten() {
        lines.extend_from_slice(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    lines.into()
}

/// A map of what is kept, with room for two more.
fn map<const N: usize>(kept: [&Headers; N]) -> HeaderMap {
    let len: usize = kept.iter().map(|headers| headers.len()).sum();
    let mut map = HeaderMap::with_capacity(len + 2);
    for (name, value) in kept.into_iter().flatten() {
        map.insert(name, value.clone());
    }
    map
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: Option<HeaderValue>) {
    if let Some(value) = value {
        headers.insert(name, value);
    }
}
