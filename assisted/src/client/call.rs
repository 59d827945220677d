//! One request and its response.

use std::ops::ControlFlow;
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::items::ItemSplitter;
use super::{ApiClient, ClientError};
use crate::error::EitherError;

/// The most bytes of an error response that are read. Findings about many hosts may be hundreds of kilobytes.
const MAX_ERROR: usize = 1 << 20;
/// The most characters of a reason that is not JSON: an HTML page of a proxy, for example.
const MAX_REASON: usize = 2048;

/// A request to send.
pub(super) struct Call<'a> {
    pub(super) client: &'a ApiClient,
    pub(super) operation: &'static str,
    /// The request, or an error in the arguments of the operation.
    pub(super) request: Result<RequestBuilder, ClientError>,
}

impl Call<'_> {
    /// Adds query parameters.
    pub(super) fn query(self, parameters: &[(&str, String)]) -> Self {
        if parameters.is_empty() {
            return self;
        }
        self.with(|request| request.query(parameters))
    }

    /// Sets a JSON body.
    pub(super) fn json(self, body: &impl Serialize) -> Self {
        self.with(|request| request.json(body))
    }

    /// Changes the request.
    pub(super) fn with(self, change: impl FnOnce(RequestBuilder) -> RequestBuilder) -> Self {
        Self { request: self.request.map(change), ..self }
    }

    /// Sends the request, and parses the response.
    pub(super) async fn read<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        self.read_with_headers().await.map(|(_, value)| value)
    }

    /// Sends the request, and parses the response. Also returns its headers.
    pub(super) async fn read_with_headers<T: DeserializeOwned>(self) -> Result<(HeaderMap, T), ClientError> {
        let (operation, limit) = (self.operation, self.client.max_response);
        let mut response = self.send().await?;
        let mut body = Vec::new();
        while let Some(chunk) =
            response.chunk().await.map_err(|error| ClientError::transport(operation, error))?
        {
            if body.len().saturating_add(chunk.len()) > limit {
                return Err(ClientError::TooLarge { operation, limit });
            }
            body.extend_from_slice(&chunk);
        }
        let value =
            serde_json::from_slice(&body).map_err(|source| ClientError::Decode { operation, source })?;
        Ok((response.headers().clone(), value))
    }

    /// Sends the request, and passes each item of the list in the response to `visit`, until it breaks.
    pub(super) async fn visit_items<T: DeserializeOwned>(
        self,
        mut visit: impl FnMut(T) -> ControlFlow<()>,
    ) -> Result<(), ClientError> {
        let (operation, limit) = (self.operation, self.client.max_response);
        let invalid = |source| Err(ClientError::Decode { operation, source });
        let mut response = self.send().await?;
        let mut splitter = ItemSplitter::default();
        while let Some(chunk) =
            response.chunk().await.map_err(|error| ClientError::transport(operation, error))?
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

    /// Sends the request, and ignores the body of the response. `expected` is the status of this operation's successful
    /// responses. The service does not send any other 2xx status.
    pub(super) async fn send_expecting(self, expected: u16) -> Result<(), ClientError> {
        let operation = self.operation;
        let status = self.send().await?.status().as_u16();
        if status == expected {
            Ok(())
        } else {
            Err(ClientError::UnexpectedStatus { operation, status, expected })
        }
    }

    async fn send(self) -> Result<Response, ClientError> {
        let operation = self.operation;
        let response =
            self.request?.send().await.map_err(|error| ClientError::transport(operation, error))?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(read_error_response(operation, response).await)
        }
    }
}

fn custom_error(message: &str) -> serde_json::Error {
    serde::de::Error::custom(message)
}

/// Reads an error response.
async fn read_error_response(operation: &'static str, mut response: Response) -> ClientError {
    let status = response.status();
    let retry_after = retry_after(response.headers());
    let mut body = Vec::new();
    // The status is known. A body that breaks off only shortens the reason.
    while let Ok(Some(chunk)) = response.chunk().await {
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
        empty if empty.is_empty() => standard.to_owned(),
        reason => reason,
    };
    ClientError::Response { operation, status: status.as_u16(), reason, findings, retry_after }
}

/// Returns the time until a retry: seconds, or an HTTP date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = DateTime::parse_from_rfc2822(text).ok()?.to_utc();
    Some((at - Utc::now()).to_std().unwrap_or_default())
}
