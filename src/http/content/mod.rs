//! One representation, and how it is asked for: whole, in ranges, or only if it is another one (RFC 9110).
//!
//! A [`Content`] knows the bytes, their identity and their age, and answers GET and HEAD. It knows nothing of what the bytes
//! are for, and which paths and methods there are is the business of routes.

mod body;
mod conditional;
mod disposition;
mod multipart;
mod pool;
pub mod range;
mod residency;

use std::io;
use std::ops::Range;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::Entry;
use axum::http::header::{self, HeaderMap, HeaderName};
use axum::http::{HeaderValue, Method, Response, StatusCode, Version};
use chrono::{DateTime, SubsecRound, Utc};
use isogen::Plan;

pub use body::BodyMode;
use body::Piece;
pub(crate) use body::PlanBody;
pub(in crate::http) use conditional::is_known;
use conditional::{Outcome, Validators};
use multipart::Parts;
use range::{RangeRequest, Selection};

/// Clients may keep what they got, and ask each time whether it is still the same. Others in between may not: images have
/// secrets in them.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("private, no-cache");
/// The media type of what has none that a header could hold.
const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// The bytes of a representation that an answer is about, from the first to the last: in the extensions of answers that
/// have a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span(pub Range<u64>);

/// A representation: bytes with an identity.
#[derive(Debug, Clone)]
pub struct Content {
    plan: Arc<Plan>,
    etag: String,
    modified: DateTime<Utc>,
    media_type: &'static str,
    file_name: Option<String>,
    /// What answers say of it.
    identity: HeaderMap,
    /// What those say besides that have bytes in them.
    description: HeaderMap,
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
        let mut identity = HeaderMap::new();
        identity.insert(header::CACHE_CONTROL, CACHE_CONTROL);
        put(&mut identity, header::ETAG, HeaderValue::from_str(&etag).ok());
        put(&mut identity, header::LAST_MODIFIED, conditional::date_value(modified));
        let mut description = identity.clone();
        description.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        let name = file_name.as_deref().and_then(disposition::attachment);
        put(&mut description, header::CONTENT_DISPOSITION, name);
        description.insert(header::CONTENT_TYPE, HeaderValue::from_str(media_type).unwrap_or(OCTETS));
        Self { plan, etag, modified, media_type, file_name, identity, description }
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
        let now = Utc::now();
        let mut response = self.respond_at(now, mode, (method, headers, version));
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

    fn respond_at(
        &self,
        now: DateTime<Utc>,
        mode: BodyMode,
        (method, headers, version): (&Method, &HeaderMap, Version),
    ) -> Response<Body> {
        let validators = Validators { etag: &self.etag, modified: self.modified, now };
        match validators.evaluate(headers) {
            Outcome::Failed => return refusal(StatusCode::PRECONDITION_FAILED),
            Outcome::NotModified => return self.not_modified(),
            Outcome::Proceed => {}
        }
        let request = if *method == Method::GET && validators.lets_ranges_pass(headers) {
            RangeRequest::of(headers)
        } else {
            None
        };
        let selection = match request.map(|request| request.select(self.plan.len())) {
            None => Selection::Whole,
            Some(Selection::Several(_)) if version < Version::HTTP_11 => Selection::Whole,
            Some(selection) => selection,
        };
        let answer = match selection {
            Selection::Unsatisfiable => return self.unsatisfiable(),
            selection => Answer::new(self, &selection),
        };
        answer.response(self, *method == Method::HEAD, mode).unwrap_or_else(|error| {
            tracing::error!(source = self.plan.source().name(), %error, "an image cannot be read");
            refusal(StatusCode::INTERNAL_SERVER_ERROR)
        })
    }

    fn not_modified(&self) -> Response<Body> {
        // A length would be that of the whole image (RFC 9110, 8.6), and routers add one of 0 where a body tells it. This
        // one does not.
        let nothing = futures_util::stream::empty::<io::Result<Bytes>>();
        let mut response = Response::new(Body::from_stream(nothing));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().clone_from(&self.identity);
        response
    }

    fn unsatisfiable(&self) -> Response<Body> {
        let mut response = refusal(StatusCode::RANGE_NOT_SATISFIABLE);
        let range = HeaderValue::try_from(format!("bytes */{}", self.plan.len())).ok();
        put(response.headers_mut(), header::CONTENT_RANGE, range);
        response.headers_mut().insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        response
    }
}

/// What is sent of a representation.
struct Answer {
    status: StatusCode,
    pieces: Vec<Piece>,
    range: Option<HeaderValue>,
    media_type: Option<HeaderValue>,
}

impl Answer {
    fn new(content: &Content, selection: &Selection) -> Self {
        let len = content.plan.len();
        match selection {
            Selection::One(range) => Self {
                status: StatusCode::PARTIAL_CONTENT,
                pieces: vec![Piece::Range(range.bounds())],
                range: HeaderValue::try_from(format!("bytes {range}/{len}")).ok(),
                media_type: None,
            },
            Selection::Several(ranges) => {
                let Parts { pieces, media_type } = Parts::new(ranges, content.media_type, len);
                Self { status: StatusCode::PARTIAL_CONTENT, pieces, range: None, media_type }
            }
            Selection::Whole | Selection::Unsatisfiable => Self {
                status: StatusCode::OK,
                pieces: vec![Piece::Range(0..len)],
                range: None,
                media_type: None,
            },
        }
    }

    fn response(self, content: &Content, is_head: bool, mode: BodyMode) -> io::Result<Response<Body>> {
        let len = self.pieces.iter().map(Piece::len).sum::<u64>();
        let has_body = !is_head && len > 0;
        let span = self.span().filter(|_| has_body);
        let body = if has_body {
            Body::new(PlanBody::new(Arc::clone(&content.plan), self.pieces, mode)?)
        } else {
            content.plan.source().recent_stamp()?;
            Body::empty()
        };
        let mut response = Response::new(body);
        if let Some(span) = span {
            response.extensions_mut().insert(Span(span));
        }
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        // Also where the client should have it from an earlier answer: real ones take it from the last one they saw.
        headers.clone_from(&content.description);
        headers.insert(header::CONTENT_LENGTH, len.into());
        put(headers, header::CONTENT_RANGE, self.range);
        put(headers, header::CONTENT_TYPE, self.media_type);
        Ok(response)
    }
}

impl Answer {
    fn span(&self) -> Option<Range<u64>> {
        let ranges = || self.pieces.iter().filter_map(Piece::range);
        let first = ranges().map(|range| range.start).min()?;
        let end = ranges().map(|range| range.end).max()?;
        Some(first..end)
    }
}

/// An answer without bytes. It says nothing about those that there are.
fn refusal(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_LENGTH, 0.into());
    response
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: Option<HeaderValue>) {
    if let Some(value) = value {
        headers.insert(name, value);
    }
}
