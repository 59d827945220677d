//! The way of requests for images that were answered a moment ago: past all that finds out what a request means.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use tower::Service;

use super::content::Date;
use super::images::{CountedBody, ImageServer, Requester};
use super::metrics::Area;

/// What answers the requests of a server: routes, and a shortcut past them for images. Clones are the same.
#[derive(Clone, Debug)]
pub struct App {
    images: Option<ImageServer>,
    routes: Router,
    /// What answers depend on for caches, where pages of other origins may fetch images.
    varies: Option<HeaderValue>,
}

impl App {
    pub(super) fn new(images: Option<&ImageServer>, routes: Router, varies: Option<HeaderValue>) -> Self {
        Self { images: images.cloned(), routes, varies }
    }

    /// The answer of the routes.
    pub(super) async fn answer(mut self, request: Request<Body>) -> Response<Body> {
        let Ok(mut response) = self.routes.call(request).await;
        if response.status() == StatusCode::NO_CONTENT {
            // The routes tell the length of every body, and this is none (RFC 9110, 8.6).
            response.headers_mut().remove(header::CONTENT_LENGTH);
        }
        response
    }

    /// The answer to a request that came a moment ago too. It is made without waiting.
    pub(super) fn cached_response<B>(
        &self,
        request: &Request<B>,
        requester: &Requester,
    ) -> Option<Response<Body>> {
        let images = self.images.as_ref()?;
        let begun = Instant::now();
        let mut response = images.cached_response(request, requester, begun)?;
        if let Some(varies) = &self.varies {
            response.headers_mut().append(header::VARY, varies.clone());
        }
        images.metrics().answered(Area::Images, response.status(), begun.elapsed());
        Some(response)
    }

    /// The bytes for a request of now of which there is nothing to know but its URL and its `Range`, if it came a moment ago too.
    /// The head is added as it is sent.
    pub(super) fn cached_range(
        &self,
        range: (&str, &[u8]),
        (requester, begun): (&Requester, Instant),
        head: (&Date, &mut Vec<u8>),
    ) -> Option<CountedBody> {
        let images = self.images.as_ref().filter(|_| self.varies.is_none())?;
        let body = images.cached_range(range, requester, begun, head)?;
        images.metrics().answered(Area::Images, StatusCode::PARTIAL_CONTENT, begun.elapsed());
        Some(body)
    }
}

/// For servers of others. Bytes are read into buffers: such a server may look at them.
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
        Self { images: None, routes, varies: None }
    }
}
