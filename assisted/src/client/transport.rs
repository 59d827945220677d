//! The transports of requests to a service: calls of a `tower` service, and HTTP connections (`connection`).

use std::any::type_name;
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::iter::successors;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tower_service::Service;

use super::body::{Body, BoxError};

pub(super) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pub(super) type ResponseBody = UnsyncBoxBody<Bytes, TransportError>;

/// A transport of requests to a service. Implementations do not follow redirects and do not retry.
pub(super) trait Transport: fmt::Debug + Send + Sync {
    /// Sends a request, and returns the response when its headers have arrived.
    fn send(
        &self,
        request: Request<Body>,
        length: RequestLength,
    ) -> BoxFuture<Result<Response<ResponseBody>, TransportError>>;
}

/// Kind of a request by its expected duration. Uploads have a longer timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestLength {
    /// A request without a body, or with a JSON document.
    Short,
    /// An upload of logs.
    Upload,
}

/// An error of a request without a complete response.
#[derive(Debug)]
pub(super) struct TransportError {
    pub(super) failure: Failure,
    pub(super) source: BoxError,
}

/// The step at which a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "reqwest"), allow(dead_code, reason = "services do not report all failures"))]
pub(super) enum Failure {
    Setup,
    Connect,
    Tls,
    Timeout,
    Connection,
}

impl TransportError {
    /// Classifies an error of a service by the I/O errors among its causes.
    fn from_service(source: BoxError) -> Self {
        let failure = causes(&*source).find_map(|cause| io_failure(cause.downcast_ref()?));
        Self { failure: failure.unwrap_or(Failure::Connection), source }
    }

    /// Classifies an error of a response body. It is never `Connect`, because the service already received the request.
    fn from_body(source: BoxError) -> Self {
        match Self::from_service(source) {
            Self { failure: Failure::Connect, source } => Self { failure: Failure::Connection, source },
            error => error,
        }
    }
}

fn io_failure(error: &io::Error) -> Option<Failure> {
    match error.kind() {
        ErrorKind::TimedOut => Some(Failure::Timeout),
        ErrorKind::AddrNotAvailable
        | ErrorKind::ConnectionRefused
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NotFound => Some(Failure::Connect),
        _ => None,
    }
}

/// Returns the error and its chain of causes.
pub(super) fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |cause: &&'a (dyn Error + 'static)| {
        let cause: &'a (dyn Error + 'static) = *cause;
        // `source` of an I/O error skips the wrapped error and returns the source of that error. Use the wrapped error.
        match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped as _),
            None => cause.source(),
        }
    })
}

/// A transport that calls a `tower` service. The mutex makes the type `Sync`; each request calls its own clone of the
/// service.
pub(super) struct ServiceTransport<S>(Mutex<S>);

impl<S> ServiceTransport<S> {
    pub(super) fn new(service: S) -> Self {
        Self(Mutex::new(service))
    }
}

impl<S, R> Transport for ServiceTransport<S>
where
    S: Service<Request<Body>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    fn send(
        &self,
        mut request: Request<Body>,
        _: RequestLength,
    ) -> BoxFuture<Result<Response<ResponseBody>, TransportError>> {
        let mut service = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        add_length(&mut request);
        let failed = |error: S::Error| TransportError::from_service(error.into());
        Box::pin(async move {
            poll_fn(|context| service.poll_ready(context)).await.map_err(failed)?;
            let response = service.call(request).await.map_err(failed)?;
            let body_failed = |error: R::Error| TransportError::from_body(error.into());
            Ok(response.map(|body| UnsyncBoxBody::new(body.map_err(body_failed))))
        })
    }
}

/// Adds `Content-Length`, as an HTTP connection would.
fn add_length(request: &mut Request<Body>) {
    if let Some(bytes) = request.body().size_hint().exact().filter(|bytes| *bytes > 0) {
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(bytes));
    }
}

impl<S> fmt::Debug for ServiceTransport<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServiceTransport").field(&type_name::<S>()).finish()
    }
}
