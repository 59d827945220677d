//! The HTTPS server of the webhooks.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::review;
use super::reviewer::{ReviewedResource, Reviewer};

/// Base path of all webhooks. The name of the resource follows.
pub(crate) const BASE_PATH: &str = "/apis/admission.agentinstall.openshift.io/v1/";

/// Maximum length of a request body. The API server stores objects of up to 1.5 MiB, and an update contains two
/// objects.
const MAX_BODY_LEN: usize = 3 << 20;
/// Maximum number of connections. API servers keep idle connections open.
const MAX_CONNECTIONS: usize = 256;
/// Maximum number of concurrent requests.
const MAX_REQUESTS: usize = 32;
/// Maximum duration of a TLS handshake, and of a request. The API server waits for the same time.
const MAX_TIME: Duration = Duration::from_secs(10);
/// Maximum idle time before the next request on an open connection.
const MAX_IDLE: Duration = Duration::from_secs(120);
/// Delay after a connection could not be accepted, for example because no file descriptors are free.
const ACCEPT_DELAY: Duration = Duration::from_millis(100);

/// The state that all connections share.
struct Server {
    tls: TlsAcceptor,
    reviewer: Reviewer,
    requests: Semaphore,
}

/// Serves the webhooks. Never returns. If the future is dropped, all connections are closed.
pub(crate) async fn serve(listener: Arc<TcpListener>, tls: TlsAcceptor, reviewer: Reviewer) {
    let server = Arc::new(Server { tls, reviewer, requests: Semaphore::new(MAX_REQUESTS) });
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut tasks = JoinSet::new();
    loop {
        // The semaphore is never closed.
        let Ok(slot) = Arc::clone(&connections).acquire_owned().await else { return };
        while tasks.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                tasks.spawn(Arc::clone(&server).connection(stream, slot));
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn Error, "could not accept a connection to the webhooks");
                tokio::time::sleep(ACCEPT_DELAY).await;
            }
        }
    }
}

impl Server {
    async fn connection(self: Arc<Self>, stream: TcpStream, _slot: OwnedSemaphorePermit) {
        let stream = match timeout(MAX_TIME, self.tls.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                return tracing::debug!(error = &error as &dyn Error, "TLS handshake of a webhook failed");
            }
            Err(_) => return,
        };
        let service = service_fn(|request| {
            let server = Arc::clone(&self);
            async move { Ok::<_, Infallible>(server.respond(request).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(MAX_IDLE)
            .serve_connection(TokioIo::new(stream), service);
        if let Err(error) = connection.await {
            tracing::debug!(error = &error as &dyn Error, "connection to a webhook failed");
        }
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        match timeout(MAX_TIME, self.try_respond(request)).await {
            Ok(Ok(body)) => {
                let mut response = Response::new(Full::new(body));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                response
            }
            Ok(Err(refusal)) => refusal.response(),
            Err(_) => Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the request took too long").response(),
        }
    }

    async fn try_respond(&self, request: Request<Incoming>) -> Result<Bytes, Refusal> {
        let resource = resource_of(&request)?;
        // The slots limit how many request bodies are in memory at the same time.
        let _slot = self.requests.acquire().await;
        let body = Limited::new(request.into_body(), MAX_BODY_LEN);
        let body = body.collect().await.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
            Some(_) => Refusal::too_large(),
            None => Refusal::new(StatusCode::BAD_REQUEST, "cannot read the body"),
        })?;
        let mut request = review::parse(&body.to_bytes())
            .map_err(|message| Refusal::new(StatusCode::BAD_REQUEST, message))?;
        let verdict = self.reviewer.review(resource, &mut request).await;
        if let Some(denial) = &verdict.denial {
            tracing::info!(
                resource = resource.plural(),
                namespace = request.namespace.as_deref().unwrap_or_default(),
                name = request.name,
                reason = denial.message,
                "request denied"
            );
        }
        Ok(review::response(&request, &verdict).to_string().into())
    }
}

/// Returns the resource for the path of a request. Refuses requests with a wrong method, content type or length.
fn resource_of(request: &Request<Incoming>) -> Result<ReviewedResource, Refusal> {
    let name = request.uri().path().strip_prefix(BASE_PATH);
    let resource = ReviewedResource::ALL.into_iter().find(|resource| name == Some(resource.plural()));
    let resource = resource.ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, "no such webhook"))?;
    if request.method() != Method::POST {
        return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "webhooks accept POST only"));
    }
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = content_type.and_then(|value| value.split(';').next()).unwrap_or_default();
    if !media_type.trim().eq_ignore_ascii_case("application/json") {
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected application/json"));
    }
    let is_too_large = |len: u64| usize::try_from(len).is_ok_and(|len| len > MAX_BODY_LEN);
    if request.body().size_hint().exact().is_some_and(is_too_large) {
        return Err(Refusal::too_large());
    }
    Ok(resource)
}

/// The response to a request that is not a valid admission review.
struct Refusal {
    status: StatusCode,
    message: String,
}

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    fn too_large() -> Self {
        let message = format!("the body is larger than {MAX_BODY_LEN} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    fn response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::from(format!("{}\n", self.message)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }
}
