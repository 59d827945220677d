//! How this server answers requests for a plan: with bodies that send pages of the base image's file without a copy.
//!
//! A [`ServedFile`] is a [`Representation`], which decides about conditions and ranges (RFC 9110), with the file of its
//! base image.

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

/// A representation with the file of its base image.
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
    /// Returns a representation with the file of its base image, which all plans over that base image share.
    pub(in crate::http) fn new(representation: Representation, base: Arc<BaseFile>) -> Self {
        Self { representation, base }
    }

    /// Marks the representation as free of secrets, so that shared caches may store it too.
    pub(in crate::http) fn with_public_caching(self) -> Self {
        Self { representation: self.representation.with_public_caching(), ..self }
    }

    /// Returns the representation.
    #[must_use]
    pub fn representation(&self) -> &Representation {
        &self.representation
    }

    /// Returns the response to a GET or HEAD, for a connection whose writes go straight to the kernel. See
    /// [`Representation::answer`].
    ///
    /// The response is 500 if the base image is no longer readable. If this is found later, the connection is closed
    /// before the last byte, and the reason is logged.
    #[must_use]
    pub fn respond(&self, method: &Method, headers: &HeaderMap, version: Version) -> Response<Body> {
        self.respond_with_mode(BodyMode::default(), method, headers, version)
    }

    /// Returns the same response as [`respond`](Self::respond), with a choice of how bytes are read. Use
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

    /// Returns the same response with a typed body, whose ranges are visible to the caller.
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

    /// Returns the body for a GET over HTTP/1.1 whose `Range` header has this value, if it selects exactly one range.
    /// The caller ensures that no other part of the request matters. Appends the head to `head` as it is sent: the head
    /// of [`answer`](Self::answer), plus a `Date`.
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
            // `answer` reports the error of the base image.
            Err(_) => {
                head.truncate(start);
                None
            }
        }
    }

    /// Returns the plan and the file of its base image.
    pub(in crate::http) fn plan_and_base(&self) -> (Arc<Plan>, Arc<BaseFile>) {
        (Arc::clone(self.representation.plan()), Arc::clone(&self.base))
    }

    fn unreadable_answer(&self, error: &io::Error) -> Response<AnswerBody> {
        tracing::error!(source = self.representation.plan().source().name(), %error, "cannot read image");
        refusal_response(StatusCode::INTERNAL_SERVER_ERROR, "cannot read the image; see the service's log")
    }
}

/// Returns a response. Its extensions tell the connection which base image the bytes belong to.
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

/// Returns an error response with a reason.
fn refusal_response(status: StatusCode, reason: impl Into<String>) -> Response<AnswerBody> {
    ApiError::infra_error(status, reason).into_response().map(AnswerBody::Error)
}
