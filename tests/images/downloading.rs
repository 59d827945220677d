//! Images on a base image that is being downloaded.

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

use super::{ImageTestServer, InputsGate, Policy, base_image_bytes, base_image_with_nmstatectl, header, run};

/// Bytes of the base image that are sent at once; the rest waits for the gate.
const FIRST: usize = 400_000;

/// A server of a base image that answers range requests at once.
pub(crate) async fn start_mirror(bytes: Bytes, gate: Arc<Notify>) -> String {
    let answer =
        move |request: Request| std::future::ready(gated_range_response(&bytes, &request, Arc::clone(&gate)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/base.iso", listener.local_addr().unwrap());
    let app = Router::new().route("/base.iso", get(answer));
    tokio::spawn(kindling::http::serve(listener, app, std::future::pending()));
    url
}

/// Explicit ranges are answered at once. Of an open-ended range, most bytes wait for the gate.
fn gated_range_response(bytes: &Bytes, request: &Request, gate: Arc<Notify>) -> Response<Body> {
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
fn downloaded_part_is_served_during_the_download() {
    run(async {
        let bytes = Bytes::from(base_image_bytes());
        let gate = Arc::new(Notify::new());
        let url = start_mirror(bytes.clone(), Arc::clone(&gate)).await;
        let more = json!({"url": url, "sha256": Digest::from_data(&bytes).to_string()});
        let server =
            ImageTestServer::start_in_directory(TempDir::new().unwrap(), (Policy::Open, None), more, None)
                .await;
        let (_, id) = server.create_infra_env().await;
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
        server.live_images.wait_all_ready().await;
        // Bytes that were served early must equal the final ones.
        let again = server.get(&format!("/byid/{id}/4.14/x86_64/full.iso")).await;
        assert_eq!(header(&again, "etag"), etag);
        assert!(again.bytes().await.unwrap() == whole);
        assert!(whole.starts_with(&first));
    });
}

#[test]
fn waiting_for_a_download_does_not_delay_other_requests() {
    /// More than the number of concurrent disk reads.
    const WAITING: usize = 40;
    run(async {
        let bytes = Bytes::from(base_image_with_nmstatectl(b"a program"));
        let gate = Arc::new(Notify::new());
        let url = start_mirror(bytes.clone(), Arc::clone(&gate)).await;
        let more =
            json!({"url": url, "sha256": Digest::from_data(&bytes).to_string(), "openshift_version": "4.18"});
        // There are two request slots.
        let turns = Some(InputsGate::with_permits(100));
        let server =
            ImageTestServer::start_in_directory(TempDir::new().unwrap(), (Policy::Open, None), more, turns)
                .await;
        // The early-boot archive of these images needs `nmstatectl`, which comes last.
        let mut minimal = Vec::new();
        for _ in 0..3 {
            let (_, id) = server.create_infra_env_with_version("4.18").await;
            let path = format!("/i/{id}/minimal.iso");
            minimal.push((tokio::spawn(server.client.get(format!("{}{path}", server.base)).send()), path));
        }
        let (_, id) = server.create_infra_env_with_version("4.18").await;
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
        assert!(minimal.iter().all(|(request, _)| !request.is_finished()), "the request did not wait");
        gate.notify_one();
        for answer in late {
            assert_eq!(answer.await.unwrap().unwrap().bytes().await.unwrap().len(), 100);
        }
        for (request, path) in minimal {
            let early = request.await.unwrap().unwrap().bytes().await.unwrap();
            server.live_images.wait_all_ready().await;
            assert!(server.get_bytes(&path).await == early);
        }
    });
}
