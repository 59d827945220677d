//! The transport over HTTP connections, which `reqwest` manages.

use std::error::Error;
use std::mem;
use std::time::Duration;

use futures_util::stream;
use http::{Request, Response};
use http_body::{Body as _, Frame};
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;

use super::body::Body;
use super::transport::{BoxFuture, Failure, RequestLength, ResponseBody, Transport, TransportError, causes};

/// The connection pool of a client. Clones of the client share it.
#[derive(Debug)]
pub(super) struct Connections {
    pub(super) http: reqwest::Client,
    pub(super) upload_timeout: Duration,
}

impl Transport for Connections {
    fn send(
        &self,
        request: Request<Body>,
        length: RequestLength,
    ) -> BoxFuture<Result<Response<ResponseBody>, TransportError>> {
        let (http, upload_timeout) = (self.http.clone(), self.upload_timeout);
        Box::pin(async move {
            let is_empty = request.body().is_end_stream();
            let mut request = reqwest::Request::try_from(request.map(reqwest::Body::wrap)).map_err(sort)?;
            if is_empty {
                *request.body_mut() = None;
            }
            if length == RequestLength::Upload {
                *request.timeout_mut() = Some(upload_timeout);
            }
            Ok(into_http(http.execute(request).await.map_err(sort)?))
        })
    }
}

/// Converts a response. This replaces the conversion of `reqwest`, which wraps each body error in another error that
/// adds no information.
fn into_http(mut response: reqwest::Response) -> Response<ResponseBody> {
    let mut converted = Response::new(());
    *converted.status_mut() = response.status();
    *converted.headers_mut() = mem::take(response.headers_mut());
    let frames = stream::try_unfold(response, async |mut response| {
        let chunk = response.chunk().await.map_err(sort)?;
        Ok(chunk.map(|bytes| (Frame::data(bytes), response)))
    });
    converted.map(|()| UnsyncBoxBody::new(StreamBody::new(frames)))
}

/// Classifies an error of the HTTP client. Removes the URL from the error, because the URL may contain a token.
fn sort(error: reqwest::Error) -> TransportError {
    let source = error.without_url();
    let failure = if source.is_builder() {
        Failure::Setup
    } else if source.is_connect() && causes(&source).any(<dyn Error>::is::<rustls::Error>) {
        Failure::Tls
    } else if source.is_connect() {
        Failure::Connect
    } else if source.is_timeout() {
        Failure::Timeout
    } else {
        Failure::Connection
    };
    TransportError { failure, source: source.into() }
}
