//! The way of requests for images that were answered a moment ago: past all that finds out what a request means.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use axum::routing::future::RouteFuture;
use futures_util::future::Either;
use tower::Service;

use super::first_boot::is_restricted;
use super::images::ImageServer;
use super::metrics::Area;

/// Answers what it can, and leaves the rest to the routes.
#[derive(Clone, Debug)]
pub(super) struct Shortcut {
    pub(super) images: ImageServer,
    pub(super) routes: Router,
}

impl Service<Request> for Shortcut {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<Ready<Result<Response<Body>, Infallible>>, RouteFuture<Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Routers always are.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let begun = Instant::now();
        // Where not everything may be had, the routes say what.
        let known = if is_restricted(&request) { None } else { self.images.again(&request) };
        match known {
            Some(response) => {
                self.images.metrics().answered(Area::Images, response.status(), begun.elapsed());
                Either::Left(ready(Ok(response)))
            }
            None => Either::Right(self.routes.call(request)),
        }
    }
}
