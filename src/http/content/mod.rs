//! Responses with the content of an image, whose bodies send pages of the base image's file without a copy.
//!
//! A [`ServedFile`] combines a [`Representation`], which evaluates conditions and ranges (RFC 9110), with the file of
//! its base image.

mod answer;
mod date_header;
mod plan_body;

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Response, StatusCode, Version};
use axum::response::IntoResponse;
use discovery::representation::{Answer, AnswerContent, Representation};
use isogen::Plan;

use crate::base_files::BaseFile;
use crate::http::zerocopy::BodyMode;
pub(in crate::http) use answer::AnswerBody;
pub(in crate::http) use date_header::DateHeader;
use inventory::api::ApiError;
pub(crate) use plan_body::PlanBody;

/// A representation of an image, with the file of its base image.
#[derive(Debug, Clone)]
pub struct ServedFile {
    representation: Representation,
    base: Arc<BaseFile>,
}

impl From<Representation> for ServedFile {
    fn from(representation: Representation) -> Self {
        let base = Arc::new(BaseFile::new(Arc::clone(representation.plan().source())));
        Self { representation, base }
    }
}

impl ServedFile {
    /// Returns a representation with the file of its base image. All plans for the same base image share this file.
    pub(in crate::http) fn new(representation: Representation, base: Arc<BaseFile>) -> Self {
        Self { representation, base }
    }

    /// Marks the representation as free of secrets, so that shared caches may store it too.
    pub(in crate::http) fn with_public_caching(self) -> Self {
        Self { representation: self.representation.with_public_caching(), ..self }
    }

    /// Returns the representation, which has the entity tag and the length of the image.
    #[must_use]
    pub fn representation(&self) -> &Representation {
        &self.representation
    }

    /// Returns the response to a GET or HEAD request, for a connection that passes the bytes directly to the kernel.
    /// See [`Representation::answer`].
    ///
    /// The status is 500 if the base image cannot be read. If reading fails later, the connection is closed before the
    /// last byte, and the reason is logged.
    #[must_use]
    pub fn respond(&self, method: &Method, headers: &HeaderMap, version: Version) -> Response<Body> {
        self.respond_with_mode(BodyMode::default(), method, headers, version)
    }

    /// Like [`respond`](Self::respond), but with a choice of how bytes are read. Use [`BodyMode::Read`] for TLS, and if
    /// any other layer reads the bytes.
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

    /// Like [`respond_with_mode`](Self::respond_with_mode), but with a typed body that reports its ranges.
    pub(in crate::http) fn answer(
        &self,
        mode: BodyMode,
        (method, headers, version): (&Method, &HeaderMap, Version),
    ) -> Response<AnswerBody> {
        let Answer { status, fields, content, .. } = self.representation.answer(method, headers, version);
        let body = match content {
            AnswerContent::Range(range) => {
                PlanBody::from_range(self.plan_and_base(), range, mode).map(AnswerBody::Plan)
            }
            AnswerContent::Multipart(pieces) => {
                PlanBody::from_pieces(self.plan_and_base(), pieces, mode).map(AnswerBody::Plan)
            }
            AnswerContent::Empty => self.base.stamp().map(|_| AnswerBody::Empty),
            AnswerContent::NotModified => self.base.stamp().map(|_| AnswerBody::EmptyWithoutLength),
            AnswerContent::Refusal(reason) => {
                let mut response = refusal_response(status, reason);
                response.headers_mut().extend(fields);
                return response;
            }
            other => Err(io::Error::other(format!("unknown content {other:?}"))),
        };
        match body {
            Ok(body) => to_response((status, fields), body),
            Err(error) => self.unreadable_answer(&error),
        }
    }

    /// Returns the body for an HTTP/1.1 GET request whose `Range` header is `value`, and appends the response head to
    /// `head`. Returns `None` if the header does not select exactly one range. The caller ensures that no other part of
    /// the request changes the response. The head is the same as in [`answer`](Self::answer), plus a `Date`.
    pub(in crate::http) fn range_body(
        &self,
        value: &[u8],
        mode: BodyMode,
        (date, head): (&DateHeader, &mut Vec<u8>),
    ) -> Option<PlanBody> {
        let start = head.len();
        let date = (date.start_of_second(), date.value()?);
        let range = self.representation.write_range_head(value, date, head)?;
        match PlanBody::from_range(self.plan_and_base(), range, mode) {
            Ok(body) => Some(body),
            // Fall back to `answer`, which reports the error.
            Err(_) => {
                head.truncate(start);
                None
            }
        }
    }

    pub(in crate::http) fn plan_and_base(&self) -> (Arc<Plan>, Arc<BaseFile>) {
        (Arc::clone(self.representation.plan()), Arc::clone(&self.base))
    }

    fn unreadable_answer(&self, error: &io::Error) -> Response<AnswerBody> {
        tracing::error!(source = self.representation.plan().source().name(), %error, "cannot read image");
        refusal_response(StatusCode::INTERNAL_SERVER_ERROR, "cannot read the image; see the service's log")
    }
}

/// Creates a response. An extension of the response names the base image of the body, so that the connection can send
/// its pages.
fn to_response((status, fields): (StatusCode, HeaderMap), body: AnswerBody) -> Response<AnswerBody> {
    let base_file = body.base_file();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    if let Some(file) = base_file {
        response.extensions_mut().insert(file);
    }
    response
}

fn refusal_response(status: StatusCode, reason: impl Into<String>) -> Response<AnswerBody> {
    ApiError::infra_error(status, reason).into_response().map(AnswerBody::Error)
}
