//! Builds and sends one API request, and reads its response.

use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::BodyExt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ClientError;
use super::base::with_query;
use super::body::{Body, BoxError};
use super::items::ItemSplitter;
use super::multipart::{FormUpload, UploadFailure};
use super::transport::{RequestLength, ResponseBody, Transport, TransportError};
use crate::error::EitherError;

/// Maximum number of bytes to read of an error response. Findings about many hosts may take hundreds of kilobytes.
const MAX_ERROR: usize = 1 << 20;
/// Maximum length of a plain-text reason, in characters. A proxy, for example, may respond with a long HTML page.
const MAX_REASON: usize = 2048;

/// A prepared request. The methods that return its response send it.
pub(super) struct Call<'a> {
    pub(super) transport: &'a dyn Transport,
    pub(super) max_response: usize,
    pub(super) operation: &'static str,
    /// The request, or the error in an argument of the operation.
    pub(super) request: Result<Request<Body>, ClientError>,
    /// The slot for the error of the data to upload. `None` if the request uploads no file.
    pub(super) upload: Option<UploadFailure>,
}

impl Call<'_> {
    pub(super) fn query(self, parameters: &[(&str, String)]) -> Self {
        if parameters.is_empty() {
            return self;
        }
        self.with(|request| {
            let (mut parts, body) = request.into_parts();
            parts.uri = with_query(parts.uri, parameters)?;
            Ok(Request::from_parts(parts, body))
        })
    }

    pub(super) fn json(self, body: &impl Serialize) -> Self {
        self.with(|request| {
            let bytes = serde_json::to_vec(body)?;
            Ok(with_body(request, HeaderValue::from_static("application/json"), bytes.into()))
        })
    }

    /// Sets a multipart form with one file as the body.
    pub(super) fn form(self, form: FormUpload) -> Self {
        let upload = Some(form.failure.clone());
        let call = self.with(|request| {
            let content_type = HeaderValue::try_from(form.content_type)?;
            Ok(with_body(request, content_type, form.body))
        });
        Self { upload, ..call }
    }

    /// Applies `change` to the request. Does nothing if an earlier step failed.
    fn with(self, change: impl FnOnce(Request<Body>) -> Result<Request<Body>, BoxError>) -> Self {
        Self { request: self.request.and_then(|request| change(request).map_err(ClientError::Setup)), ..self }
    }

    /// Sends the request, and parses the response.
    pub(super) async fn read<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        self.read_with_headers().await.map(|(_, value)| value)
    }

    /// Sends the request, and parses the response. Also returns the response headers.
    pub(super) async fn read_with_headers<T: DeserializeOwned>(self) -> Result<(HeaderMap, T), ClientError> {
        let (operation, limit) = (self.operation, self.max_response);
        let (parts, mut chunks) = self.send().await?.into_parts();
        let mut body = Vec::new();
        while let Some(chunk) =
            next_chunk(&mut chunks).await.map_err(|error| ClientError::transport(operation, error))?
        {
            if body.len().saturating_add(chunk.len()) > limit {
                return Err(ClientError::TooLarge { operation, limit });
            }
            body.extend_from_slice(&chunk);
        }
        let value =
            serde_json::from_slice(&body).map_err(|source| ClientError::Decode { operation, source })?;
        Ok((parts.headers, value))
    }

    /// Sends the request, and passes each item of the returned JSON list to `visit` until it returns `Break`.
    pub(super) async fn visit_items<T: DeserializeOwned>(
        self,
        mut visit: impl FnMut(T) -> ControlFlow<()>,
    ) -> Result<(), ClientError> {
        let (operation, limit) = (self.operation, self.max_response);
        let invalid = |source| Err(ClientError::Decode { operation, source });
        let mut chunks = self.send().await?.into_body();
        let mut splitter = ItemSplitter::default();
        while let Some(chunk) =
            next_chunk(&mut chunks).await.map_err(|error| ClientError::transport(operation, error))?
        {
            let visited = splitter.push(&chunk, |item| match serde_json::from_slice(item).map(&mut visit) {
                Ok(ControlFlow::Continue(())) => Ok(()),
                Ok(ControlFlow::Break(())) => Err(None),
                Err(error) => Err(Some(error)),
            });
            match visited {
                Ok(()) if splitter.is_not_a_list() => return invalid(custom_error("expected a JSON list")),
                Ok(()) if splitter.pending() > limit => {
                    return Err(ClientError::TooLarge { operation, limit });
                }
                Ok(()) => {}
                Err(None) => return Ok(()),
                Err(Some(error)) => return invalid(error),
            }
        }
        if splitter.is_complete() { Ok(()) } else { invalid(custom_error("the list is incomplete")) }
    }

    /// Sends the request, and ignores the response body. Requires the status `expected`: the service never returns
    /// another 2xx status for this operation.
    pub(super) async fn send_expecting(self, expected: u16) -> Result<(), ClientError> {
        let operation = self.operation;
        let status = self.send().await?.status().as_u16();
        if status == expected {
            Ok(())
        } else {
            Err(ClientError::UnexpectedStatus { operation, status, expected })
        }
    }

    async fn send(self) -> Result<Response<ResponseBody>, ClientError> {
        let operation = self.operation;
        let length = if self.upload.is_some() { RequestLength::Upload } else { RequestLength::Short };
        let result = self.transport.send(self.request?, length).await;
        // If the upload failed, a service in this process may still have responded to the incomplete data, while a
        // connection reports its own error. Return the cause in both cases.
        if let Some(source) = self.upload.and_then(|upload| upload.take()) {
            return Err(ClientError::Upload { operation, source });
        }
        let response = result.map_err(|error| ClientError::transport(operation, error))?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(read_error_response(operation, response).await)
        }
    }
}

fn with_body(mut request: Request<Body>, content_type: HeaderValue, body: Body) -> Request<Body> {
    request.headers_mut().insert(CONTENT_TYPE, content_type);
    request.map(|_| body)
}

async fn next_chunk(body: &mut ResponseBody) -> Result<Option<Bytes>, TransportError> {
    while let Some(frame) = body.frame().await.transpose()? {
        if let Ok(bytes) = frame.into_data() {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

fn custom_error(message: &str) -> serde_json::Error {
    serde::de::Error::custom(message)
}

/// Reads an error response.
async fn read_error_response(operation: &'static str, response: Response<ResponseBody>) -> ClientError {
    let (parts, mut chunks) = response.into_parts();
    let (status, retry_after) = (parts.status, retry_after(&parts.headers));
    let mut body = Vec::new();
    // If the connection breaks, report the status with the part of the reason that arrived.
    while let Ok(Some(chunk)) = next_chunk(&mut chunks).await {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_ERROR {
            break;
        }
    }
    let is_cut_json = body.len() > MAX_ERROR && body.trim_ascii_start().starts_with(b"{");
    let standard = status.canonical_reason().unwrap_or("no reason given");
    let (reason, findings) = match serde_json::from_slice(&body) {
        Ok(EitherError::Operation(error)) => (error.reason, error.findings),
        Ok(EitherError::Infra(error)) => (error.message, Vec::new()),
        Err(_) => (String::from_utf8_lossy(&body).trim().chars().take(MAX_REASON).collect(), Vec::new()),
    };
    let reason = match reason {
        _ if is_cut_json => format!("{standard} (the response is longer than {MAX_ERROR} bytes)"),
        empty if empty.trim().is_empty() => standard.to_owned(),
        reason => reason,
    };
    ClientError::Response { operation, status: status.as_u16(), reason, findings, retry_after }
}

/// Parses `Retry-After`: a number of seconds, or an HTTP date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = DateTime::parse_from_rfc2822(text).ok()?.to_utc();
    Some((at - Utc::now()).to_std().unwrap_or_default())
}
