//! The id and the log line of every request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;
use uuid::Uuid;

use super::metrics::{Area, Metrics};
use super::redacted::Redacted;

/// The header with the id of a request. The log shows the id that a client sends; a request without one gets an id
/// here. The response does not contain it.
const ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest accepted id.
const MAX_ID: usize = 128;

/// The state that following a request needs.
#[derive(Clone, Debug)]
pub(super) struct Following {
    pub(super) metrics: Metrics,
    ids: Arc<Ids>,
}

/// The source of request ids. They only have to differ: the system's random numbers would cost a call each.
#[derive(Debug)]
struct Ids {
    begin: u128,
    given: AtomicU64,
}

impl Following {
    pub(super) fn new(metrics: Metrics) -> Self {
        let ids = Ids { begin: Uuid::new_v4().as_u128(), given: AtomicU64::new(0) };
        Self { metrics, ids: Arc::new(ids) }
    }
}

impl Ids {
    fn next(&self) -> Uuid {
        /// Odd, so that all multiples differ, and long, so that they look random.
        const STRIDE: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
        let given = self.given.fetch_add(1, Ordering::Relaxed);
        let value = self.begin.wrapping_add(STRIDE.wrapping_mul(given.into()));
        uuid::Builder::from_random_bytes(value.to_be_bytes()).into_uuid()
    }
}

/// Runs a request and logs its result. All log messages about the request contain its id.
pub(super) async fn follow(State(following): State<Following>, mut request: Request, next: Next) -> Response {
    let id = identify(&mut request, &following.ids);
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let begun = Instant::now();
    let span = tracing::info_span!("request", id);
    let response = next.run(request).instrument(span.clone()).await;
    let (status, after) = (response.status(), begun.elapsed());
    let area = Area::from_path(uri.path());
    following.metrics.answered(area, status, after);
    macro_rules! log_answered {
        ($level:ident) => {
            tracing::$level!(
                parent: &span,
                %method,
                uri = %Redacted(&uri),
                status = status.as_u16(),
                micros = u64::try_from(after.as_micros()).unwrap_or(u64::MAX),
                "answered"
            )
        };
    }
    // A machine reads its image in thousands of requests. The log reports once that it begins to read, and boot traces
    // have the rest.
    if area == Area::Images && status.is_success() {
        log_answered!(debug);
    } else {
        log_answered!(info);
    }
    response
}

/// Returns the id of a request, after adding one if it has none.
fn identify(request: &mut Request, ids: &Ids) -> String {
    let given = request.headers().get(ID).and_then(|id| id.to_str().ok());
    if let Some(id) = given.filter(|id| !id.is_empty() && id.len() <= MAX_ID) {
        return id.to_owned();
    }
    let id = ids.next().to_string();
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
    fn ids_differ() {
        let [one, other] = [(); 2].map(|()| Following::new(Metrics::default()));
        let ids = [one, other].map(|following| (0..10_000).map(|_| following.ids.next()).collect::<Vec<_>>());
        let distinct: HashSet<_> = ids.iter().flatten().collect();
        assert_eq!(distinct.len(), 20_000);
        assert!(distinct.iter().all(|id| id.get_version_num() == 4));
    }
}
