//! What is done with every request: it gets an id, and the log tells what became of it.

use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;
use uuid::Uuid;

use super::Redacted;
use super::metrics::{Area, Metrics};

/// The header with the id of a request. Whoever sends one finds it in the log; a request without has one of ours from here
/// on. It is not sent back.
const ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id that is taken.
const MAX_ID: usize = 128;

/// Follows a request on its way. Everything that is logged about it has its id.
pub(super) async fn follow(State(metrics): State<Metrics>, mut request: Request, next: Next) -> Response {
    let id = identify(&mut request);
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let begun = Instant::now();
    let span = tracing::info_span!("request", id);
    let response = next.run(request).instrument(span.clone()).await;
    let (status, after) = (response.status(), begun.elapsed());
    let area = Area::of(uri.path());
    metrics.answered(area, status, after);
    macro_rules! tell {
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
    // A machine reads its image in thousands of requests. What it reads is told once, and in boot traces.
    if area == Area::Images && status.is_success() {
        tell!(debug);
    } else {
        tell!(info);
    }
    response
}

/// The id of a request, which has one afterwards.
fn identify(request: &mut Request) -> String {
    let given = request.headers().get(ID).and_then(|id| id.to_str().ok());
    if let Some(id) = given.filter(|id| !id.is_empty() && id.len() <= MAX_ID) {
        return id.to_owned();
    }
    let id = Uuid::new_v4().to_string();
    if let Ok(value) = HeaderValue::from_str(&id) {
        request.headers_mut().insert(ID, value);
    }
    id
}
