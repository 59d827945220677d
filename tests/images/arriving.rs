//! Images on a live image that is still coming.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{Response, StatusCode};
use axum::routing::get;
use futures_util::{StreamExt, stream};
use isogen::Digest;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::{Gate, Policy, Server, base_bytes, base_with, header, run};

/// So many bytes of the live image come at once, and the rest when it is let through.
const FIRST: usize = 400_000;

/// A server of a live image. Parts that are asked for come at once.
pub(crate) async fn mirror(bytes: Bytes, gate: Arc<Notify>) -> String {
    let answer = move |request: Request| std::future::ready(part(&bytes, &request, Arc::clone(&gate)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/base.iso", listener.local_addr().unwrap());
    let app = Router::new().route("/base.iso", get(answer));
    tokio::spawn(kindling::http::serve(listener, app, std::future::pending()));
    url
}

/// What is asked for. Of all that follows some byte, most waits for the gate.
fn part(bytes: &Bytes, request: &Request, gate: Arc<Notify>) -> Response<Body> {
    let range =
        request.headers().get("range").and_then(|range| range.to_str().unwrap().strip_prefix("bytes="));
    let (first, last) = range.and_then(|range| range.split_once('-')).unwrap_or(("0", ""));
    let first: usize = first.parse().unwrap();
    let end = last.parse().map_or(bytes.len(), |last: usize| bytes.len().min(last + 1));
    let part = bytes.slice(first..end);
    let at_once = if last.is_empty() { part.len().min(FIRST) } else { part.len() };
    let parts = [Some(part.slice(..at_once)), Some(part.slice(at_once..)).filter(|rest| !rest.is_empty())];
    let body = stream::iter(parts.into_iter().flatten().enumerate()).then(move |(number, part)| {
        let gate = Arc::clone(&gate);
        async move {
            if number > 0 {
                gate.notified().await;
            }
            Ok::<_, std::io::Error>(part)
        }
    });
    let mut response = Response::builder().header("etag", "\"one\"").header("content-length", part.len());
    if range.is_some() {
        let range = format!("bytes {first}-{}/{}", end - 1, bytes.len());
        response = response.status(StatusCode::PARTIAL_CONTENT).header("content-range", range);
    }
    response.body(Body::from_stream(body)).unwrap()
}

#[test]
fn what_is_there_is_served_while_the_rest_comes() {
    run(async {
        let bytes = Bytes::from(base_bytes());
        let gate = Arc::new(Notify::new());
        let url = mirror(bytes.clone(), Arc::clone(&gate)).await;
        let more = json!({"url": url, "sha256": Digest::of(&bytes).to_string()});
        let server = Server::start_in(TempDir::new().unwrap(), (Policy::Open, None), more, None).await;
        let (_, id) = server.infra_env().await;
        let url = format!("{}/i/{id}/full.iso", server.base);
        let first = server.client.get(&url).header("range", "bytes=0-99999").send().await.unwrap();
        assert_eq!(first.status(), 206);
        let etag = header(&first, "etag");
        let first = first.bytes().await.unwrap();
        assert!(!server.live_images.is_ready());
        let whole = tokio::spawn(server.client.get(&url).send());
        let whole = whole.await.unwrap().unwrap();
        assert_eq!(header(&whole, "etag"), etag);
        gate.notify_one();
        let whole = whole.bytes().await.unwrap();
        server.live_images.ready().await;
        // What was served early is what is served for ever.
        let again = server.get(&format!("/byid/{id}/4.14/x86_64/full.iso")).await;
        assert_eq!(header(&again, "etag"), etag);
        assert!(again.bytes().await.unwrap() == whole);
        assert!(whole.starts_with(&first));
    });
}

#[test]
fn who_waits_for_what_is_coming_is_in_nobodys_way() {
    /// More than may read from a disk at once.
    const WAITING: usize = 40;
    run(async {
        let bytes = Bytes::from(base_with(b"a program"));
        let gate = Arc::new(Notify::new());
        let url = mirror(bytes.clone(), Arc::clone(&gate)).await;
        let more = json!({"url": url, "sha256": Digest::of(&bytes).to_string(), "openshift_version": "4.18"});
        // Two requests have their turn at a time.
        let turns = Some(Gate::open(100));
        let server = Server::start_in(TempDir::new().unwrap(), (Policy::Open, None), more, turns).await;
        // The early boot of these images needs a program that comes last.
        let mut minimal = Vec::new();
        for _ in 0..3 {
            let (_, id) = server.infra_env_on("4.18").await;
            let path = format!("/i/{id}/minimal.iso");
            minimal.push((tokio::spawn(server.client.get(format!("{}{path}", server.base)).send()), path));
        }
        let (_, id) = server.infra_env_on("4.18").await;
        let url = format!("{}/i/{id}/full.iso", server.base);
        let range = |range: &str| server.client.get(&url).header("range", format!("bytes={range}")).send();
        let late: Vec<_> = (0..WAITING).map(|_| tokio::spawn(range("-100"))).collect();
        let asked = format!(r#"kindling_image_answers_total{{file="full.iso",kind="range"}} {WAITING}"#);
        while !server.get("/metrics").await.text().await.unwrap().contains(&asked) {
            tokio::task::yield_now().await;
        }
        let early = range("0-99999").await.unwrap();
        assert_eq!(early.bytes().await.unwrap().len(), 100_000);
        assert!(!server.live_images.is_ready());
        assert!(minimal.iter().all(|(request, _)| !request.is_finished()), "nothing was waited for");
        gate.notify_one();
        for answer in late {
            assert_eq!(answer.await.unwrap().unwrap().bytes().await.unwrap().len(), 100);
        }
        for (request, path) in minimal {
            let early = request.await.unwrap().unwrap().bytes().await.unwrap();
            server.live_images.ready().await;
            assert!(server.bytes(&path).await == early);
        }
    });
}
