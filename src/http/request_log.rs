//! Logs every request with an id.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;
use uuid::Uuid;

use super::listener::ClientAddress;
use super::metrics::{Metrics, RequestArea};
use super::redacted::RedactedUrl;

/// The header with the id of a request. The log uses the id from the client. A request without one gets an id here. The
/// response does not contain the id.
const ID: HeaderName = HeaderName::from_static("x-request-id");
/// Maximum length of an id.
const MAX_ID: usize = 128;

/// The state for logging and counting requests.
#[derive(Clone, Debug)]
pub(super) struct RequestLog {
    pub(super) metrics: Metrics,
    ids: Arc<RequestIds>,
}

/// Generates request ids. They only need to be unique. A random number from the system would cost a system call for
/// each id.
#[derive(Debug)]
struct RequestIds {
    begin: u128,
    count: AtomicU64,
}

impl RequestLog {
    pub(super) fn new(metrics: Metrics) -> Self {
        let ids = RequestIds { begin: Uuid::new_v4().as_u128(), count: AtomicU64::new(0) };
        Self { metrics, ids: Arc::new(ids) }
    }
}

impl RequestIds {
    fn next_id(&self) -> Uuid {
        /// The difference between consecutive ids. All its multiples are distinct because it is odd, and ids look
        /// random because it is large.
        const STRIDE: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let value = self.begin.wrapping_add(STRIDE.wrapping_mul(count.into()));
        uuid::Builder::from_random_bytes(value.to_be_bytes()).into_uuid()
    }
}

/// Runs a request, and logs its result. All log messages about the request contain its id.
pub(super) async fn log_request(
    State(following): State<RequestLog>,
    mut request: Request,
    next: Next,
) -> Response {
    let id = ensure_request_id(&mut request, &following.ids);
    let (method, uri) = (request.method().clone(), request.uri().clone());
    // A request without an address comes from this machine.
    let client = request.extensions().get::<ClientAddress>().copied().unwrap_or_default();
    let start = Instant::now();
    let span = tracing::info_span!("request", id);
    let response = next.run(request).instrument(span.clone()).await;
    let (status, after) = (response.status(), start.elapsed());
    let area = RequestArea::from_path(uri.path());
    following.metrics.count_response(area, status, after);
    macro_rules! log_answered {
        ($level:ident) => {
            tracing::$level!(
                parent: &span,
                %client,
                %method,
                uri = %RedactedUrl(&uri),
                status = status.as_u16(),
                micros = u64::try_from(after.as_micros()).unwrap_or(u64::MAX),
                "answered"
            )
        };
    }
    // Log frequent requests only at `debug`. A machine reads its image in thousands of requests: other log lines show
    // the start of reading and the end of a download, and the boot trace has the details. Agents check in once a
    // minute, and events about their hosts report all changes.
    let is_frequent = area == RequestArea::Images || is_check_in(uri.path());
    if is_frequent && status.is_success() {
        log_answered!(debug);
    } else {
        log_answered!(info);
    }
    response
}

/// Returns `true` for the path at which agents poll for steps and send replies to them.
fn is_check_in(path: &str) -> bool {
    path.ends_with("/instructions")
}

/// Returns the id of a request. Adds an id if the request has none.
fn ensure_request_id(request: &mut Request, ids: &RequestIds) -> String {
    let header = request.headers().get(ID).and_then(|id| id.to_str().ok());
    if let Some(id) = header.filter(|id| !id.is_empty() && id.len() <= MAX_ID) {
        return id.to_owned();
    }
    let id = ids.next_id().to_string();
    if let Ok(value) = HeaderValue::from_str(&id) {
        request.headers_mut().insert(ID, value);
    }
    id
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn request_ids_differ() {
        let [one, other] = [(); 2].map(|()| RequestLog::new(Metrics::default()));
        let ids =
            [one, other].map(|following| (0..10_000).map(|_| following.ids.next_id()).collect::<Vec<_>>());
        let distinct: HashSet<_> = ids.iter().flatten().collect();
        assert_eq!(distinct.len(), 20_000);
        assert!(distinct.iter().all(|id| id.get_version_num() == 4));
    }
}
