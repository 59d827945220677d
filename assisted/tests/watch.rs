//! Tests of watches and waits, with a service whose hosts change and a paused clock.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code: what is not as expected must stop the test"
)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assisted::client::{ApiClient, ClientError, ClientErrorKind, HostChange, HostWatch, WatchOptions};
use assisted::host::{Host, HostStatus};
use assisted::{HostId, InfraEnvId};
use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::time::Instant;

const INFRA_ENV: &str = "51dece57-19a2-4f0c-98f6-16982905e1c7";

fn infra_env() -> InfraEnvId {
    INFRA_ENV.parse().unwrap()
}

fn id(number: u8) -> HostId {
    format!("00000000-0000-0000-0000-0000000000{number:02}").parse().unwrap()
}

fn host(number: u8, status: &str) -> Value {
    let mut host: Value = serde_json::from_str(include_str!("recorded/host.json")).unwrap();
    let fields = [("id", json!(id(number))), ("status", json!(status))];
    host.as_object_mut().unwrap().extend(fields.map(|(name, value)| (name.to_owned(), value)));
    host
}

/// A response of the service.
enum Reply {
    Body(Value),
    Status(u16),
    RetryAfter(&'static str),
    Never,
}

impl Reply {
    async fn respond(self) -> Response {
        match self {
            Self::Body(body) => axum::Json(body).into_response(),
            Self::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
            Self::RetryAfter(seconds) => {
                ([("retry-after", seconds)], StatusCode::SERVICE_UNAVAILABLE).into_response()
            }
            Self::Never => std::future::pending().await,
        }
    }
}

/// Returns a client of a service that sends each response once, and the times of its requests in seconds.
fn client(replies: impl IntoIterator<Item = Reply>) -> (ApiClient, Arc<Mutex<Vec<u64>>>) {
    let replies = Arc::new(Mutex::new(VecDeque::from_iter(replies)));
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (log, begin) = (Arc::clone(&requests), Instant::now());
    let router = Router::new().fallback(move || {
        log.lock().unwrap().push(begin.elapsed().as_secs());
        let reply = replies.lock().unwrap().pop_front();
        async { reply.unwrap_or(Reply::Never).respond().await }
    });
    (ApiClient::over(None, router).unwrap(), requests)
}

fn options() -> WatchOptions {
    WatchOptions::new(tokio::time::sleep)
}

/// Returns the next `count` changes as texts, such as `added 01 known`.
async fn changes(watch: &mut HostWatch, count: usize) -> Vec<String> {
    let describe = |change: Result<HostChange, ClientError>| {
        let change = change.unwrap();
        let name = match &change {
            HostChange::Added(_) => "added",
            HostChange::Changed(_) => "changed",
            HostChange::Removed(_) => "removed",
        };
        let host = change.host();
        let number = host.id.to_string().split_off(34);
        format!("{name} {number} {}", host.status)
    };
    watch.take(count).map(describe).collect().await
}

#[tokio::test(start_paused = true)]
async fn watch_returns_the_changes_of_hosts() {
    let mut checked_in = host(1, "known");
    let times = ["checked_in_at", "updated_at"].map(|it| (it.to_owned(), json!("2030-01-01T00:00:00Z")));
    checked_in.as_object_mut().unwrap().extend(times);
    let (client, requests) = client([
        Reply::Body(json!([host(2, "known"), host(1, "known")])),
        Reply::Body(json!([host(1, "known"), host(2, "known")])),
        Reply::Body(json!([checked_in, host(2, "known"), host(3, "discovering")])),
        Reply::Body(json!([host(1, "installing"), host(3, "known")])),
        Reply::Body(json!([])),
    ]);
    let mut watch = client.watch_hosts(infra_env(), options());
    assert!(requests.lock().unwrap().is_empty());
    assert_eq!(changes(&mut watch, 2).await, ["added 01 known", "added 02 known"]);
    assert_eq!(*requests.lock().unwrap(), [0]);
    assert_eq!(changes(&mut watch, 1).await, ["added 03 discovering"]);
    assert_eq!(*requests.lock().unwrap(), [0, 5, 10]);
    assert_eq!(
        changes(&mut watch, 3).await,
        ["changed 01 installing", "changed 03 known", "removed 02 known"]
    );
    assert_eq!(changes(&mut watch, 2).await, ["removed 01 installing", "removed 03 known"]);
    assert_eq!(*requests.lock().unwrap(), [0, 5, 10, 15, 20]);
}

#[tokio::test(start_paused = true)]
async fn watch_continues_after_temporary_errors() {
    let (client, requests) = client([
        Reply::Status(503),
        Reply::Status(500),
        Reply::Status(429),
        Reply::Body(json!([host(1, "known")])),
        Reply::Status(502),
        Reply::RetryAfter("100"),
        Reply::Status(502),
        Reply::Status(502),
        Reply::Status(502),
        Reply::Status(502),
        Reply::Status(404),
    ]);
    let options = options().interval(Duration::from_secs(10)).max_backoff(Duration::from_secs(40));
    let mut watch = client.watch_hosts(infra_env(), options);
    assert_eq!(changes(&mut watch, 1).await, ["added 01 known"]);
    assert_eq!(*requests.lock().unwrap(), [0, 10, 30, 70]);
    let error = watch.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ClientErrorKind::NotFound);
    let later = [80, 90, 190, 230, 270, 310, 350];
    assert_eq!(requests.lock().unwrap().get(4..).unwrap(), later);
    assert!(watch.next().await.is_none());
    assert!(watch.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn cancelled_call_of_a_watch_continues_later() {
    let (client, requests) = client([Reply::Body(json!([])), Reply::Body(json!([host(1, "known")]))]);
    let mut watch = client.watch_hosts(infra_env(), options());
    assert!(tokio::time::timeout(Duration::from_secs(3), watch.next()).await.is_err());
    assert_eq!(changes(&mut watch, 1).await, ["added 01 known"]);
    assert_eq!(*requests.lock().unwrap(), [0, 5]);
}

#[tokio::test(start_paused = true)]
async fn wait_ends_when_the_host_meets_the_condition() {
    let (client, requests) = client([
        Reply::Body(host(1, "discovering")),
        Reply::Status(503),
        Reply::Status(503),
        Reply::Body(host(1, "discovering")),
        Reply::Body(host(1, "known")),
    ]);
    let mut calls = 0;
    let is_known = |host: &Host| {
        calls += 1;
        host.status == HostStatus::Known
    };
    let minute = Duration::from_secs(60);
    let host = client.wait_for_host((infra_env(), id(1)), is_known, minute, &options()).await.unwrap();
    assert_eq!(host.id, id(1));
    assert_eq!(calls, 3);
    assert_eq!(*requests.lock().unwrap(), [0, 5, 10, 20, 25]);
}

#[tokio::test(start_paused = true)]
async fn wait_ends_with_a_timeout() {
    let wait = async |replies: Vec<Reply>| {
        let (client, _) = client(replies);
        let begin = Instant::now();
        let time = Duration::from_secs(7);
        let result = client.wait_for_host((infra_env(), id(1)), |_| false, time, &options()).await;
        (result.unwrap_err(), begin.elapsed().as_secs())
    };
    let text = "cannot wait for host: the condition is not met after 7 s";
    // The service does not respond to the second request.
    let (error, seconds) = wait(vec![Reply::Body(host(1, "known"))]).await;
    assert_eq!((error.to_string().as_str(), error.kind(), seconds), (text, ClientErrorKind::Timeout, 7));
    assert!(matches!(&error, ClientError::WaitTimeout { source: None, .. }) && !error.is_retryable());

    let (error, _) = wait(vec![Reply::Status(503), Reply::Status(502)]).await;
    let ClientError::WaitTimeout { source: Some(source), .. } = error else { panic!("{error:?}") };
    assert_eq!(source.status(), Some(502));

    let (error, _) = wait(vec![Reply::Status(503), Reply::Body(host(1, "known"))]).await;
    assert!(matches!(error, ClientError::WaitTimeout { source: None, .. }), "{error:?}");

    let (error, seconds) = wait(vec![Reply::Status(404)]).await;
    assert_eq!((error.kind(), seconds), (ClientErrorKind::NotFound, 0));
}

#[test]
fn watches_can_be_shared() {
    fn check<T: Send + Sync + Unpin + 'static>(_: &T) {}
    fn check_future<T: Send>(_: &T) {}
    let (client, _) = client([]);
    let options = WatchOptions::default();
    check(&options);
    check(&client.watch_hosts(infra_env(), options.clone()));
    check_future(&client.wait_for_host((infra_env(), id(1)), |_| true, Duration::MAX, &options));
}
