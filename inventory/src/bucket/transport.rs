//! HTTP requests to an object store, with a limit on the time without progress, and errors without response bodies.
//!
//! A whole transfer has no time limit, because a file may be large, and a connection or a reader slow. Instead, the
//! time without progress is limited, in each direction. Only the body of an error must arrive completely within that
//! time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};
use reqwest::{Body, Client, Request, Url};
use tokio::time::{Instant, timeout, timeout_at};

use super::failure::ServiceError;

/// Maximum number of bytes to read from an error response.
const MAX_ERROR: usize = 64 << 10;
/// Number of bytes of a request that count as one step of progress.
const STEP: usize = 64 << 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// HTTP access to an object store. Clones share their connections.
#[derive(Clone, Debug)]
pub struct BucketTransport {
    client: Client,
    /// Maximum time without progress before a request fails, and time limit for the body of an error.
    stall: Duration,
}

/// The error of a transfer in which no bytes were sent or received for this time.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("no progress for {stall:?}")]
struct StallError {
    stall: Duration,
}

impl BucketTransport {
    /// Creates a transport that uses `client`. The client must have no time limits for whole requests or responses.
    #[must_use]
    pub fn new(client: Client, stall: Duration) -> Self {
        Self { client, stall }
    }

    /// Creates a transport with the certificates of the system, or with the certificates in `SSL_CERT_FILE`.
    pub(crate) fn with_system_certificates(stall: Duration) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .user_agent(concat!("kindling/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .build()?;
        Ok(Self { client, stall })
    }

    /// Sends a request and waits for the head of the response. Fails if no bytes are sent for too long.
    async fn send(&self, request: HttpRequest) -> Result<Response<Body>, HttpError> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string());
        let mut request =
            Request::new(parts.method, url.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?);
        *request.headers_mut() = parts.headers;
        let progress = Progress::default();
        *request.body_mut() = Some(match body.as_bytes() {
            Some(bytes) => bytes.clone().into(),
            // The client of the object store has already set the `Content-Length` header.
            None => Body::wrap_stream(in_steps(body, progress.clone())),
        });
        let result = progress.watch(self.client.execute(request), self.stall).await;
        Ok(result.map_err(|stall| HttpError::new(HttpErrorKind::Timeout, stall))?.map_err(http_error)?.into())
    }
}

impl HttpConnector for BucketTransport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for BucketTransport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (mut parts, body) = self.send(request).await?.into_parts();
        let body = without_stalls(body, self.stall);
        let status = parts.status;
        if status.is_success() || status.is_redirection() {
            return Ok(HttpResponse::from_parts(parts, body));
        }
        let error = ServiceError { status, code: error_code(body, self.stall).await };
        // The client of the object store handles these statuses itself, so they are returned as responses.
        let is_known = matches!(status, StatusCode::NOT_FOUND | StatusCode::PRECONDITION_FAILED);
        if is_known && !error.is_missing_bucket() {
            parts.headers.remove(axum::http::header::CONTENT_LENGTH);
            return Ok(HttpResponse::from_parts(parts, Bytes::new().into()));
        }
        // The client retries requests that fail with this kind of error.
        let kind = if error.is_temporary() { HttpErrorKind::Request } else { HttpErrorKind::Unknown };
        Err(HttpError::new(kind, error))
    }
}

/// Returns the code of an error response, such as `NoSuchBucket`, or `None` if the body does not arrive within `limit`.
/// The rest of the body may contain credentials.
async fn error_code(body: HttpResponseBody, limit: Duration) -> Option<String> {
    let text = timeout(limit, first_bytes(body)).await.ok()?;
    let text = String::from_utf8_lossy(&text);
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    let is_code = (1..=64).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_code.then(|| code.to_owned())
}

/// Returns the start of an error response, at most [`MAX_ERROR`] bytes.
async fn first_bytes(body: HttpResponseBody) -> Vec<u8> {
    let mut text = Vec::new();
    let mut chunks = body.bytes_stream();
    while let Some(Ok(chunk)) = chunks.next().await {
        let room = MAX_ERROR.saturating_sub(text.len());
        text.extend(chunk.iter().take(room));
        if chunk.len() >= room {
            break;
        }
    }
    text
}

/// Converts an error and removes its URL.
fn http_error(error: reqwest::Error) -> HttpError {
    let kind = if error.is_connect() {
        HttpErrorKind::Connect
    } else if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_decode() {
        HttpErrorKind::Decode
    } else {
        HttpErrorKind::Interrupted
    };
    HttpError::new(kind, error.without_url())
}

/// The time of the last progress. Clones share it.
#[derive(Clone, Debug)]
struct Progress(Arc<Mutex<Instant>>);

impl Default for Progress {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Progress {
    fn record(&self) {
        // The time is only assigned, so a panic cannot leave it invalid, and a poisoned lock is usable.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for `work`. Fails if the work makes no progress for the time `stall`.
    async fn watch<T>(&self, work: impl Future<Output = T>, stall: Duration) -> Result<T, StallError> {
        let mut work = std::pin::pin!(work);
        loop {
            let last = self.last();
            if let Ok(result) = timeout_at(last + stall, &mut work).await {
                return Ok(result);
            }
            if self.last() == last {
                return Err(StallError { stall });
            }
        }
    }
}

/// Returns the bytes of a request in small steps. Each step is recorded as progress when the connection takes it.
fn in_steps(
    body: HttpRequestBody,
    progress: Progress,
) -> impl Stream<Item = Result<Bytes, HttpError>> + Send + 'static {
    let split = |chunk: Result<Bytes, HttpError>| {
        let mut steps = Vec::new();
        let chunk = chunk.map(|mut bytes| {
            while bytes.len() > STEP {
                steps.push(Ok(bytes.split_to(STEP)));
            }
            bytes
        });
        steps.push(chunk);
        stream::iter(steps)
    };
    body.into_data_stream().flat_map(split).inspect(move |_| progress.record())
}

/// Returns the body of a response. The body fails if its next bytes do not arrive in time. The time that a slow reader
/// takes does not count.
fn without_stalls(body: Body, stall: Duration) -> HttpResponseBody {
    let frames = stream::unfold(Some(body), move |body| async move {
        let mut body = body?;
        match timeout(stall, body.frame()).await {
            Ok(Some(Ok(frame))) => Some((Ok(frame), Some(body))),
            Ok(Some(Err(error))) => Some((Err(http_error(error)), None)),
            Ok(None) => None,
            Err(_) => Some((Err(HttpError::new(HttpErrorKind::Timeout, StallError { stall })), None)),
        }
    });
    HttpResponseBody::new(StreamBody::new(frames))
}

#[cfg(test)]
mod tests {
    use object_store::PutPayload;
    use tokio::time::sleep;

    use super::*;

    // The clock of these tests is paused: it advances only while all tasks wait.

    /// Longer than any pause in a transfer that makes progress, and shorter than the whole transfer.
    const STALL: Duration = Duration::from_secs(4);
    const PAUSE: Duration = Duration::from_millis(50);
    const STEPS: usize = 90;

    fn pieces() -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
        stream::iter(0..STEPS).then(|_| async {
            sleep(PAUSE).await;
            Ok(Bytes::from_static(b"piece"))
        })
    }

    #[tokio::test(start_paused = true)]
    async fn slow_response_is_complete_and_a_stalled_one_fails() {
        let start = Instant::now();
        let slow = without_stalls(Body::wrap_stream(pieces()), STALL);
        assert_eq!(slow.bytes().await.unwrap().len(), 5 * STEPS);
        assert!(start.elapsed() > STALL);
        let stalled = Body::wrap_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let error = without_stalls(stalled, PAUSE).bytes().await.unwrap_err();
        assert_eq!(error.kind(), HttpErrorKind::Timeout);
    }

    #[tokio::test(start_paused = true)]
    async fn error_body_that_takes_too_long_has_no_code() {
        let read_code = |pause: Duration| {
            let body =
                stream::iter(b"<Error><Code>AccessDenied</Code></Error>").then(move |byte| async move {
                    sleep(pause).await;
                    Ok::<_, std::io::Error>(Bytes::copy_from_slice(&[*byte]))
                });
            error_code(without_stalls(Body::wrap_stream(body), STALL), STALL)
        };
        assert_eq!(read_code(Duration::ZERO).await.as_deref(), Some("AccessDenied"));
        let start = Instant::now();
        assert_eq!(read_code(STALL / 2).await, None);
        assert!(start.elapsed() < STALL * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_reader_is_not_a_stall() {
        let ready = stream::iter([(); 3].map(|()| Ok::<_, std::io::Error>(Bytes::from_static(b"piece"))));
        let mut chunks = without_stalls(Body::wrap_stream(ready), PAUSE).bytes_stream();
        for _ in 0..3 {
            sleep(PAUSE * 3).await;
            chunks.next().await.unwrap().unwrap();
        }
        assert!(chunks.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn slow_upload_is_complete_and_a_stalled_one_fails() {
        let progress = Progress::default();
        let payload = HttpRequestBody::from(PutPayload::from(vec![7; STEPS * STEP + 1]));
        let mut steps = std::pin::pin!(in_steps(payload, progress.clone()));
        let upload = async {
            let mut total = 0;
            while let Some(step) = steps.next().await {
                total += step.unwrap().len();
                sleep(PAUSE).await;
            }
            total
        };
        let start = Instant::now();
        assert_eq!(progress.watch(upload, STALL).await.unwrap(), STEPS * STEP + 1);
        assert!(start.elapsed() > STALL);
        let error = Progress::default().watch(std::future::pending::<()>(), PAUSE).await.unwrap_err();
        assert_eq!(error.to_string(), "no progress for 50ms");
    }
}
