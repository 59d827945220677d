//! Limits event streams: the number that a client may have open, and their end at a shutdown.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;

use super::listener::{ClientAddress, ShutdownSignal};
use inventory::api::ApiError;

/// Maximum number of open streams per client. Each browser tab with the page has one.
const MAX_STREAMS_OF_CLIENT: usize = 32;
/// The time in seconds after which a refused client may try again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("30");

/// The number of open streams of each client that has any.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenStreams(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// An open stream. Dropping it reduces the count of its client.
#[derive(Debug)]
struct OpenStream {
    open: OpenStreams,
    client: Option<IpAddr>,
}

impl OpenStreams {
    /// Counts a new stream of a client. Returns `None` if the client has too many. Clients without an address are on
    /// this machine, and are not limited.
    fn add(&self, client: ClientAddress) -> Option<OpenStream> {
        let client = client.quota_key();
        if let Some(client) = client {
            let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let count = open.entry(client).or_default();
            if *count >= MAX_STREAMS_OF_CLIENT {
                return None;
            }
            *count += 1;
        }
        Some(OpenStream { open: self.clone(), client })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let Some(client) = self.client else { return };
        let mut open = self.open.0.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(&client) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                open.remove(&client);
            }
        }
    }
}

/// Refuses a stream if its client has too many. Ends open streams when the server begins to shut down.
pub(super) async fn limit_event_streams(
    State(open): State<OpenStreams>,
    request: Request,
    next: Next,
) -> Response {
    let client = request.extensions().get::<ClientAddress>().copied().unwrap_or_default();
    let shutdown = request.extensions().get::<ShutdownSignal>().cloned();
    let response = next.run(request).await;
    if response.headers().get(header::CONTENT_TYPE).is_none_or(|value| value != "text/event-stream") {
        return response;
    }
    let Some(stream) = open.add(client) else {
        let reason = format!("client {client} has {MAX_STREAMS_OF_CLIENT} streams open, which is the limit");
        let mut refusal = ApiError::infra_error(StatusCode::TOO_MANY_REQUESTS, reason).into_response();
        refusal.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
        return refusal;
    };
    response.map(|body| {
        let shutdown = async {
            match shutdown {
                Some(shutdown) => shutdown.begun().await,
                None => std::future::pending().await,
            }
        };
        let frames = body.into_data_stream().take_until(Box::pin(shutdown));
        Body::from_stream(frames.map(move |frame| {
            // Count the stream until its body is dropped.
            let _counted = &stream;
            frame
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: &str) -> ClientAddress {
        ClientAddress(Some(address.parse().unwrap()))
    }

    #[test]
    fn streams_are_counted_until_they_end() {
        let open = OpenStreams::default();
        let mut streams: Vec<_> =
            (0..MAX_STREAMS_OF_CLIENT).filter_map(|_| open.add(client("192.0.2.1"))).collect();
        assert_eq!(streams.len(), MAX_STREAMS_OF_CLIENT);
        assert!(open.add(client("192.0.2.1")).is_none());
        streams.extend(open.add(client("192.0.2.2")));
        streams.extend(open.add(ClientAddress(None)));
        assert_eq!(streams.len(), MAX_STREAMS_OF_CLIENT + 2);
        streams.remove(0);
        streams.extend(open.add(client("::ffff:192.0.2.1")));
        assert_eq!(streams.len(), MAX_STREAMS_OF_CLIENT + 2);
        streams.clear();
        assert!(open.0.lock().unwrap().is_empty());
    }
}
