//! The application of a server, with a shortcut for repeated image requests that bypasses the routes.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use tower::Service;
use tower::util::BoxCloneSyncService;

use super::Certificate;
use super::content::DateHeader;
use super::controllers::Controllers;
use super::images::{CountedBody, ImageServer, Requester};
use super::metrics::RequestArea;

/// The application that a server runs: its routes, and a shortcut for repeated image requests. Clones share the state.
#[derive(Clone, Debug)]
pub struct App {
    images: Option<ImageServer>,
    routes: BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>,
    /// The `Vary` header for responses. Present if pages of other origins may download images.
    varies: Option<HeaderValue>,
}

impl App {
    pub(super) fn new<S>(images: Option<&ImageServer>, routes: S, varies: Option<HeaderValue>) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
        Self { images: images.cloned(), routes: BoxCloneSyncService::new(routes), varies }
    }

    /// Adds the validity of the server's certificate to the metrics.
    pub fn export_certificate(&self, certificate: &Certificate) {
        if let Some(images) = &self.images {
            images.metrics().add_certificate(certificate);
        }
    }

    /// Adds the controllers of custom resources to the metrics and to the health report.
    pub fn export_controllers(&self, controllers: Box<dyn Controllers>) {
        if let Some(images) = &self.images {
            images.metrics().add_controllers(controllers);
        }
    }

    /// Returns the response of the routes, without the shortcut for repeated requests.
    pub(super) async fn answer(mut self, request: Request<Body>) -> Response<Body> {
        let Ok(mut response) = self.routes.call(request).await;
        if response.status() == StatusCode::NO_CONTENT {
            // The routes add a length to every body, but a 204 response must not have one (RFC 9110, 8.6).
            response.headers_mut().remove(header::CONTENT_LENGTH);
        }
        response
    }

    /// Returns the response to an image request if its URL was requested a moment ago. This never waits.
    pub(super) fn cached_response<B>(
        &self,
        request: &Request<B>,
        requester: &Requester,
    ) -> Option<Response<Body>> {
        let images = self.images.as_ref()?;
        let start = Instant::now();
        let mut response = images.cached_response(request, requester, start)?;
        if let Some(varies) = &self.varies {
            response.headers_mut().append(header::VARY, varies.clone());
        }
        images.metrics().count_response(RequestArea::Images, response.status(), start.elapsed());
        Some(response)
    }

    /// Returns the body for one range of an image if its URL was requested a moment ago, and appends the response head
    /// to `head`. The request must contain only a URL and a `Range` header. `start` must be the current time.
    pub(super) fn cached_range(
        &self,
        range: (&str, &[u8]),
        (requester, start): (&Requester, Instant),
        head: (&DateHeader, &mut Vec<u8>),
    ) -> Option<CountedBody> {
        let images = self.images.as_ref().filter(|_| self.varies.is_none())?;
        let body = images.cached_range(range, requester, start, head)?;
        images.metrics().count_response(RequestArea::Images, StatusCode::PARTIAL_CONTENT, start.elapsed());
        Some(body)
    }
}

/// Allows other HTTP servers to run the application. The bytes of images are read into buffers instead of mapped,
/// because such a server may read them.
impl<B> Service<Request<B>> for App
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let app = self.clone();
        Box::pin(async move { Ok(app.answer(request.map(Body::new)).await) })
    }
}

impl From<Router> for App {
    fn from(routes: Router) -> Self {
        Self::new(None, routes, None)
    }
}
