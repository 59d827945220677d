//! The requests of `kindling simulate`, parsed by the models of the client generated from the Assisted Service's API
//! document. A proxy between the simulator and the server records the requests.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::Method;
use axum::response::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kindling::assisted::client::ApiClient;
use kindling::assisted::reply::{ReplyPayload, StepReply};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tower::ServiceExt;

use crate::ClientSite;

/// A request that the proxy forwarded.
struct RecordedRequest {
    method: Method,
    path: String,
    body: Value,
}

/// A proxy in front of a server. It ends when it is dropped.
struct RecordingProxy {
    url: String,
    recorded: Arc<Mutex<Vec<RecordedRequest>>>,
    _runtime: Runtime,
}

impl RecordingProxy {
    fn start(server: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let recorded = Arc::new(Mutex::new(Vec::new()));
        let (all, server, client) = (Arc::clone(&recorded), server.to_owned(), reqwest::Client::new());
        let app = Router::new().fallback(move |request: Request| {
            let (all, server, client) = (Arc::clone(&all), server.clone(), client.clone());
            async move { forward(request, &server, &client, &all).await }
        });
        runtime.spawn(serve(listener, app));
        Self { url, recorded, _runtime: runtime }
    }
}

async fn serve(listener: TcpListener, app: Router) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let app = app.clone();
        let service = service_fn(move |request| app.clone().oneshot(request));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn forward(
    request: Request,
    server: &str,
    client: &reqwest::Client,
    all: &Mutex<Vec<RecordedRequest>>,
) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 1 << 24).await.unwrap();
    all.lock().unwrap().push(RecordedRequest {
        method: head.method.clone(),
        path: head.uri.path().to_owned(),
        body: if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() },
    });
    let mut headers = head.headers;
    headers.remove("host");
    let request = client.request(head.method, format!("{server}{}", head.uri)).headers(headers).body(body);
    let answer = request.send().await.unwrap();
    let mut response = Response::builder().status(answer.status());
    if let Some(kind) = answer.headers().get("content-type") {
        response = response.header("content-type", kind);
    }
    response.body(Body::from(answer.bytes().await.unwrap())).unwrap()
}

/// Returns each body, and the JSON in each reply, with the name of upstream's model for it.
fn documents(recorded: &[RecordedRequest]) -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    for request in recorded.iter().filter(|request| request.method == Method::POST) {
        if request.path.ends_with("/hosts") {
            all.push(("HostCreateParams", request.body.clone()));
            continue;
        }
        assert!(request.path.ends_with("/instructions"), "{}", request.path);
        all.push(("StepReply", request.body.clone()));
        let reply: StepReply = serde_json::from_value(request.body.clone()).unwrap();
        let model = match reply.payload().unwrap() {
            Some(ReplyPayload::Inventory(_)) => "Inventory",
            Some(ReplyPayload::Ntp(_)) => "NtpSynchronizationResponse",
            Some(ReplyPayload::Upgrade(_)) => "UpgradeAgentResponse",
            other => panic!("{other:?}"),
        };
        all.push((model, serde_json::from_str(reply.output.as_deref().unwrap()).unwrap()));
    }
    all
}

/// Creates an infra-env and returns its id.
fn create_infra_env(site: &ClientSite) -> String {
    let params = serde_json::from_value(json!({
        "name": "simulated", "pull_secret": r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#,
    }))
    .unwrap();
    let client = ApiClient::new(&site.url).unwrap();
    let created = Runtime::new().unwrap().block_on(client.register_infra_env(&params));
    created.unwrap().id.to_string()
}

#[test]
fn generated_client_models_parse_all_requests_of_simulated_hosts() {
    let Some(site) = ClientSite::start() else { return };
    let infra_env = create_infra_env(&site);
    let proxy = RecordingProxy::start(&site.url);
    let line = format!(
        "simulate --url {} --infra-env {infra_env} --profile standard --hosts 6 --fault no-ntp=2 \
         --fault little-memory --agent-version old --poll-interval 200ms --report-interval 200ms --json",
        proxy.url
    );
    let mut simulation = site
        .scratch
        .command(line.split_whitespace())
        .command()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    for line in BufReader::new(simulation.stdout.take().unwrap()).lines() {
        let report: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if report["statuses"] == json!({"insufficient-unbound": 1, "known-unbound": 5}) {
            break;
        }
    }
    simulation.kill().unwrap();
    simulation.wait().unwrap();

    let documents = documents(&proxy.recorded.lock().unwrap());
    let count = |model: &str| documents.iter().filter(|(name, _)| *name == model).count();
    assert!(count("HostCreateParams") >= 6 && count("Inventory") >= 6, "{documents:?}");
    assert!(count("NtpSynchronizationResponse") >= 6, "{documents:?}");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/assisted/tests/upstream_models.py");
    let mut models = Command::new(site.clients.join("python"))
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: String = documents.iter().map(|document| format!("{}\n", json!(document))).collect();
    models.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let result = models.wait_with_output().unwrap();
    let (output, log) = (String::from_utf8_lossy(&result.stdout), String::from_utf8_lossy(&result.stderr));
    assert!(result.status.success(), "{log}");
    assert_eq!(output, "");
    assert_eq!(log, format!("{} documents were read\n", documents.len()));
}
