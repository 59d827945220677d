//! A client that limits how often a watch restarts.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use tokio::time::{Instant, sleep_until};
use tower::service_fn;

/// Minimum time between the starts of two watches.
const INTERVAL: Duration = Duration::from_secs(1);

/// Returns a client that delays a watch if the previous one started recently. A watch that ends without an error
/// restarts immediately. Without the delay, a proxy that ends all watches would cause a busy loop.
pub(crate) fn paced(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let earliest = Arc::new(Mutex::new(Instant::now()));
    let service = service_fn(move |request: Request<Body>| {
        let (client, earliest) = (client.clone(), Arc::clone(&earliest));
        async move {
            if is_watch(&request) {
                let begin = {
                    let mut earliest = earliest.lock().unwrap_or_else(PoisonError::into_inner);
                    let begin = (*earliest).max(Instant::now());
                    *earliest = begin + INTERVAL;
                    begin
                };
                sleep_until(begin).await;
            }
            client.send(request).await
        }
    });
    Client::new(service, namespace)
}

fn is_watch(request: &Request<Body>) -> bool {
    let mut pairs = request.uri().query().unwrap_or_default().split('&');
    pairs.any(|pair| pair == "watch=true")
}
