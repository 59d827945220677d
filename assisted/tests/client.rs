//! Tests of the client against a small HTTP server on the loopback interface, which records requests.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code: what is not as expected must stop the test"
)]

#[path = "../examples/simulated_agent.rs"]
#[allow(dead_code, reason = "the program of the example is not run")]
mod simulated_agent;

use std::collections::BTreeMap;
use std::error::Error as _;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assisted::architecture::CpuArchitecture;
use assisted::client::reqwest::Body;
use assisted::client::{
    ApiClient, ApiClientBuilder, ClientCredential, ClientError, ClusterFilter, ClusterHosts, EventFilter,
    EventOrder, HostFilter, InfraEnvFile, LogsUpload, VersionFilter,
};
use assisted::cluster::{
    ClusterCreateParams, ClusterImportParams, ClusterUpdateParams, CompletionParams,
    DisconnectedClusterParams, FinalizingStage, OperatorReport, OperatorStatus,
};
use assisted::event::{Category, ReportedEvent, Severity};
use assisted::host::{
    ChosenRole, HostCreateParams, HostProgressParams, HostRole, HostStage, HostStatus, HostUpdateParams,
    LogsState,
};
use assisted::infra_env::{InfraEnvCreateParams, InfraEnvUpdateParams};
use assisted::reply::{ReplyPayload, StepReply};
use assisted::step::{Step, StepType};
use assisted::version::OsImageParams;
use assisted::{ClusterId, HostId, InfraEnvId, Millis, Secret};
use axum::Router;
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tower::ServiceExt;

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("recorded/", $name, ".json"))
    };
}

/// A request, as the server received it.
#[derive(Clone, Debug)]
struct Received {
    /// Method, path and query of the request.
    line: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// A server that responds to every request in the same way.
struct Server {
    url: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Server {
    async fn start(status: u16, headers: &[(&'static str, &str)], body: &str) -> Self {
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&received);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let body = body.to_owned();
        let app = Router::new().fallback(move |request: Request| {
            let (log, headers, body) = (Arc::clone(&log), headers.clone(), body.clone());
            async move {
                let (parts, content) = request.into_parts();
                let content = axum::body::to_bytes(content, 1 << 20).await.unwrap();
                let line = format!("{} {}", parts.method, parts.uri);
                log.lock().unwrap().push(Received { line, headers: parts.headers, body: content.into() });
                let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
                for (name, value) in headers {
                    response.headers_mut().insert(name, value.parse().unwrap());
                }
                response
            }
        });
        Self { url: serve(app).await, received }
    }

    #[track_caller]
    fn last(&self) -> Received {
        self.received.lock().unwrap().last().unwrap().clone()
    }
}

async fn serve(app: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let app = app.clone();
            let service = service_fn(move |request| app.clone().oneshot(request));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    url
}

/// Returns a builder of clients that ignore the proxy settings of the environment.
fn builder(url: &str) -> ApiClientBuilder {
    ApiClient::builder(url).transport(reqwest::Client::builder().no_proxy())
}

fn client(url: &str) -> ApiClient {
    builder(url).build().unwrap()
}

const CLUSTER: &str = "4f630ba3-0297-4d99-a7c7-f62e7bca1332";
const INFRA_ENV: &str = "51dece57-19a2-4f0c-98f6-16982905e1c7";
const HOST: &str = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11";

fn ids() -> (ClusterId, InfraEnvId, HostId) {
    (CLUSTER.parse().unwrap(), INFRA_ENV.parse().unwrap(), HOST.parse().unwrap())
}

/// Calls the client, and checks that the call succeeds and that the server receives the given request. `{c}`, `{i}` and
/// `{h}` stand for the ids.
macro_rules! sends {
    ($status:literal, $response:expr, $client:ident => $call:expr, $line:literal $(, $body:expr)?) => {{
        let server = Server::start($status, &[], $response).await;
        let $client = client(&server.url);
        if let Err(error) = $call.await {
            panic!("{}: {error:?}", $line);
        }
        let expected_bodies = [Value::Null $(, $body)?];
        server.received_only($line, expected_bodies.last().unwrap());
    }};
}

impl Server {
    #[track_caller]
    fn received_only(&self, line: &str, body: &Value) {
        let line = line.replace("{c}", CLUSTER).replace("{i}", INFRA_ENV).replace("{h}", HOST);
        let (method, path) = line.split_once(' ').unwrap();
        let received = self.last();
        assert_eq!(received.line, format!("{method} /api/assisted-install/v2{path}"));
        let is_json = received.headers.get("content-type").is_some_and(|it| it == "application/json");
        assert_eq!(is_json, !body.is_null(), "{line}");
        let sent_body = if is_json { serde_json::from_slice(&received.body).unwrap() } else { Value::Null };
        assert_eq!(sent_body, *body, "{line}");
        assert_eq!(self.received.lock().unwrap().len(), 1, "{line}");
    }
}

#[tokio::test]
async fn operations_on_clusters_send_the_documented_requests() {
    let (cluster, ..) = ids();
    let response = recorded!("new_cluster");
    let params = ClusterCreateParams::new("edge", "4.18", Secret::new("{}"));
    let body = json!({"name": "edge", "openshift_version": "4.18", "pull_secret": "{}"});
    sends!(201, response, it => it.register_cluster(&params), "POST /clusters", body);
    let id = "b5b8d2d1-6f4b-4f29-8d0a-0e9f5c1f2a33";
    let params = ClusterImportParams {
        name: "a".to_owned(),
        api_vip_dnsname: "api.a.b".to_owned(),
        openshift_cluster_id: id.parse().unwrap(),
        openshift_version: None,
    };
    let body = json!({"name": "a", "api_vip_dnsname": "api.a.b", "openshift_cluster_id": id});
    sends!(201, recorded!("imported_cluster"), it => it.import_cluster(&params), "POST /clusters/import", body);
    let params = DisconnectedClusterParams { name: "a".to_owned(), openshift_version: "4.18".to_owned() };
    let body = json!({"name": "a", "openshift_version": "4.18"});
    sends!(201, response, it => it.register_disconnected_cluster(&params), "POST /clusters/disconnected", body);
    let filter = ClusterFilter {
        with_hosts: true,
        openshift_cluster_id: Some(id.parse().unwrap()),
        owner: Some("a b".to_owned()),
    };
    sends!(200, recorded!("clusters"), it => it.list_clusters(&filter),
        "GET /clusters?with_hosts=true&openshift_cluster_id=b5b8d2d1-6f4b-4f29-8d0a-0e9f5c1f2a33&owner=a+b");
    sends!(200, response, it => it.get_cluster(cluster, ClusterHosts::Included), "GET /clusters/{c}?exclude-hosts=false");
    sends!(200, response, it => it.get_cluster(cluster, ClusterHosts::Excluded), "GET /clusters/{c}?exclude-hosts=true");
    let changes = ClusterUpdateParams { name: Some("b".to_owned()), ..ClusterUpdateParams::default() };
    sends!(201, response, it => it.update_cluster(cluster, &changes), "PATCH /clusters/{c}", json!({"name": "b"}));
    sends!(204, "", it => it.delete_cluster(cluster), "DELETE /clusters/{c}");
    sends!(200, recorded!("default_config"), it => it.cluster_defaults(), "GET /clusters/default-config");
}

#[tokio::test]
async fn operations_on_infra_envs_send_the_documented_requests() {
    let (cluster, infra_env, _) = ids();
    let (response, url) = (recorded!("infra_env"), recorded!("image_url"));
    let params = InfraEnvCreateParams::new("edge", Secret::new("{}"));
    let body = json!({"name": "edge", "pull_secret": "{}"});
    sends!(201, response, it => it.register_infra_env(&params), "POST /infra-envs", body.clone());
    sends!(200, "[]", it => it.list_infra_envs(None), "GET /infra-envs");
    sends!(200, recorded!("infra_envs"), it => it.list_infra_envs(Some(cluster)), "GET /infra-envs?cluster_id={c}");
    let visit = |_: Value| ControlFlow::Continue(());
    sends!(200, "[]", it => it.visit_infra_envs(visit), "GET /infra-envs");
    sends!(200, "[]", it => it.infra_envs_with_name("edge"), "GET /infra-envs");
    sends!(200, response, it => it.get_infra_env(infra_env), "GET /infra-envs/{i}");
    let findings =
        format!(r#"{{"infra_env_id": "{infra_env}", "image_generation": 1, "network": [], "ignition": []}}"#);
    sends!(200, &findings, it => it.preflight(infra_env), "GET /infra-envs/{i}/preflight");
    sends!(200, "{}", it => it.register_infra_env_as::<Value>(&params), "POST /infra-envs", body);
    sends!(200, "{}", it => it.get_infra_env_as::<Value>(infra_env), "GET /infra-envs/{i}");
    sends!(200, "{}", it => it.preflight_as::<Value>(infra_env), "GET /infra-envs/{i}/preflight");
    let changes =
        InfraEnvUpdateParams { kernel_arguments: Some(Vec::new()), ..InfraEnvUpdateParams::default() };
    let body = json!({"kernel_arguments": []});
    sends!(201, response, it => it.update_infra_env(infra_env, &changes), "PATCH /infra-envs/{i}", body);
    sends!(204, "", it => it.delete_infra_env(infra_env), "DELETE /infra-envs/{i}");
    sends!(200, url, it => it.image_url(infra_env), "GET /infra-envs/{i}/downloads/image-url");
    sends!(200, url, it => it.file_url(infra_env, InfraEnvFile::DiscoveryIgnition),
        "GET /infra-envs/{i}/downloads/files-presigned?file_name=discovery.ign");
    sends!(200, url, it => it.file_url(infra_env, InfraEnvFile::BootScript),
        "GET /infra-envs/{i}/downloads/files-presigned?file_name=ipxe-script&ipxe_script_type=discovery-image-always");
    sends!(200, url, it => it.file_url(infra_env, InfraEnvFile::BootOrderScript),
        "GET /infra-envs/{i}/downloads/files-presigned?file_name=ipxe-script&ipxe_script_type=boot-order-control");
    sends!(204, "", it => it.regenerate_signing_key(infra_env), "POST /infra-envs/{i}/regenerate-signing-key");
}

#[tokio::test]
async fn infra_envs_are_found_by_their_exact_name() {
    let ids = [INFRA_ENV, CLUSTER, HOST];
    let items = ids.iter().zip(["edge", "edge2", "edge"]).map(|(id, name)| json!({"id": id, "name": name}));
    let server = Server::start(200, &[], &Value::from_iter(items).to_string()).await;
    let infra_envs = client(&server.url).infra_envs_with_name("edge").await.unwrap();
    assert_eq!(infra_envs.iter().map(InfraEnvId::to_string).collect::<Vec<_>>(), [INFRA_ENV, HOST]);
}

#[tokio::test]
async fn visit_stops_at_the_first_break() {
    let server = Server::start(200, &[], "[1, 2, 3, {]").await;
    let mut visited = Vec::new();
    let visit = |item: u8| {
        visited.push(item);
        if item == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    client(&server.url).visit_infra_envs(visit).await.unwrap();
    assert_eq!(visited, [1, 2]);
}

#[tokio::test]
async fn html_page_instead_of_a_list_is_an_error() {
    for body in ["<html><body>Welcome</body></html>", r#"{"items": []}"#, ""] {
        let server = Server::start(200, &[], body).await;
        let error = client(&server.url).infra_envs_with_name("edge").await.unwrap_err();
        assert!(matches!(error, ClientError::Decode { .. }), "{body}: {error:?}");
    }
}

#[tokio::test]
async fn operations_on_hosts_send_the_documented_requests() {
    let (cluster, i, h) = ids();
    let response = recorded!("host");
    sends!(200, recorded!("hosts"), it => it.list_hosts(i), "GET /infra-envs/{i}/hosts");
    let filter = HostFilter {
        role: Some(HostRole::Master),
        status: Some(HostStatus::PreparingForInstallation),
        with_inventory: true,
        with_connectivity: false,
    };
    sends!(200, "[]", it => it.list_cluster_hosts(cluster, &filter),
        "GET /clusters/{c}/hosts?with-inventory=true&with-connectivity=false&role=master&status=preparing-for-installation");
    sends!(200, response, it => it.get_host(i, h), "GET /infra-envs/{i}/hosts/{h}");
    let changes = HostUpdateParams { host_role: Some(ChosenRole::Worker), ..HostUpdateParams::default() };
    let body = json!({"host_role": "worker"});
    sends!(201, response, it => it.update_host(i, h, &changes), "PATCH /infra-envs/{i}/hosts/{h}", body);
    sends!(204, "", it => it.delete_host(i, h), "DELETE /infra-envs/{i}/hosts/{h}");
    let body = json!({"cluster_id": CLUSTER});
    sends!(200, response, it => it.bind_host(i, h, cluster), "POST /infra-envs/{i}/hosts/{h}/actions/bind", body);
    sends!(200, response, it => it.unbind_host(i, h), "POST /infra-envs/{i}/hosts/{h}/actions/unbind");
    sends!(202, response, it => it.install_host(i, h), "POST /infra-envs/{i}/hosts/{h}/actions/install");
    let args = || vec!["-n".to_owned()];
    let body = json!({"args": ["-n"]});
    sends!(201, response, it => it.set_installer_args(i, h, args()), "PATCH /infra-envs/{i}/hosts/{h}/installer-args", body);
    sends!(200, r#"{"config":"{}"}"#, it => it.host_ignition(i, h), "GET /infra-envs/{i}/hosts/{h}/ignition");
    let body = json!({"config": "{}"});
    sends!(201, "", it => it.set_host_ignition(i, h, "{}".to_owned()), "PATCH /infra-envs/{i}/hosts/{h}/ignition", body);
}

#[tokio::test]
async fn operations_of_agents_send_the_documented_requests() {
    let (cluster, i, h) = ids();
    let image = Some("quay.io/a".to_owned());
    let params = HostCreateParams { discovery_agent_version: image, ..HostCreateParams::new(h) };
    let body = json!({"host_id": HOST, "discovery_agent_version": "quay.io/a"});
    sends!(201, recorded!("registered_host"), it => it.register_host(i, &params), "POST /infra-envs/{i}/hosts", body);
    sends!(200, recorded!("steps"), it => it.next_steps(i, h, 1_700_000_000),
        "GET /infra-envs/{i}/hosts/{h}/instructions?timestamp=1700000000");
    let reply = StepReply::done(&Step::new(StepType::StopInstallation, "stop-installation-1", Vec::new()));
    let body = json!({"step_type": "stop-installation", "step_id": "stop-installation-1"});
    sends!(204, "", it => it.post_reply(i, h, &reply), "POST /infra-envs/{i}/hosts/{h}/instructions", body);
    let progress = HostProgressParams::new(HostStage::WritingImage, "50%");
    let body = json!({"current_stage": "Writing image to disk", "progress_info": "50%"});
    sends!(200, "", it => it.update_host_progress(i, h, &progress), "PUT /infra-envs/{i}/hosts/{h}/progress", body);
    let body = json!({"logs_state": "collecting"});
    sends!(204, "", it => it.update_host_logs_progress(i, h, LogsState::Collecting),
        "PUT /infra-envs/{i}/hosts/{h}/logs-progress", body);
    let event = ReportedEvent {
        cluster_id: Some(cluster),
        event_time: Millis(None),
        ..ReportedEvent::now("reboots_for_node", Severity::Info, "rebooted")
    };
    let body = json!({
        "name": "reboots_for_node", "cluster_id": CLUSTER, "severity": "info", "message": "rebooted",
        "event_time": "0001-01-01T00:00:00.000Z",
    });
    sends!(201, "", it => it.report_event(&event), "POST /events", body);
}

#[tokio::test]
async fn operations_of_controllers_send_the_documented_requests() {
    let (c, ..) = ids();
    let response = recorded!("cluster");
    sends!(202, response, it => it.install_cluster(c), "POST /clusters/{c}/actions/install");
    sends!(202, response, it => it.cancel_installation(c), "POST /clusters/{c}/actions/cancel");
    sends!(202, response, it => it.reset_cluster(c), "POST /clusters/{c}/actions/reset");
    let body = json!({"finalizing_stage": "Waiting for cluster operators"});
    sends!(200, "", it => it.update_cluster_progress(c, FinalizingStage::WaitingForClusterOperators),
        "PUT /clusters/{c}/progress", body);
    sends!(200, "[]", it => it.monitored_operators(c), "GET /clusters/{c}/monitored-operators");
    let report = OperatorReport {
        version: "4.20.1".to_owned(),
        status_info: "ok".to_owned(),
        ..OperatorReport::new("console", OperatorStatus::Available)
    };
    let body = json!({"name": "console", "status": "available", "status_info": "ok", "version": "4.20.1"});
    sends!(200, "", it => it.report_operator(c, &report), "PUT /clusters/{c}/monitored-operators", body);
    sends!(201, "", it => it.upload_ingress_certificate(c, "PEM\n"), "POST /clusters/{c}/uploads/ingress-cert", json!("PEM\n"));
    for (result, body) in [
        (CompletionParams::success(), json!({"is_success": true})),
        (CompletionParams::failure("no"), json!({"is_success": false, "error_info": "no"})),
    ] {
        sends!(202, response, it => it.complete_installation(c, &result), "POST /clusters/{c}/actions/complete-installation", body);
    }
    let body = json!({"logs_state": "completed"});
    sends!(204, "", it => it.update_cluster_logs_progress(c, LogsState::Completed), "PUT /clusters/{c}/logs-progress", body);
}

#[tokio::test]
async fn operations_on_versions_send_the_documented_requests() {
    let filter = VersionFilter { version: Some("4.18".to_owned()), only_latest: true };
    let response = recorded!("openshift_versions");
    sends!(200, response, it => it.openshift_versions(&VersionFilter::default()), "GET /openshift-versions");
    sends!(200, response, it => it.openshift_versions(&filter), "GET /openshift-versions?version=4.18&only_latest=true");
    sends!(200, recorded!("component_versions"), it => it.component_versions(), "GET /component-versions");
    sends!(200, recorded!("supported_architectures"), it => it.supported_architectures("4.18"),
        "GET /support-levels/architectures?openshift_version=4.18");
    sends!(200, recorded!("os_images"), it => it.os_images(), "GET /os-images");
    let params = OsImageParams {
        openshift_version: "4.18".to_owned(),
        cpu_architecture: CpuArchitecture::Arm64,
        url: "http://a/b.iso".to_owned(),
        version: "418.1".to_owned(),
        sha256: Some("ab".repeat(32)),
    };
    let body = json!({
        "openshift_version": "4.18", "cpu_architecture": "arm64", "url": "http://a/b.iso", "version": "418.1",
        "sha256": "ab".repeat(32),
    });
    let response = r#"{"openshift_version":"4.18","cpu_architecture":"arm64","url":"http://a/b.iso","version":"418.1","type":"full-iso","configured":false}"#;
    sends!(201, response, it => it.add_os_image(&params), "POST /os-images", body);
    // A version is always one path segment, even if it contains slashes or dots.
    sends!(204, "", it => it.remove_os_image("4.18/../a?b", CpuArchitecture::Arm64), "DELETE /os-images/4.18%2F..%2Fa%3Fb/arm64");
}

#[tokio::test]
async fn events_have_the_counts_of_the_headers() {
    let headers = [
        ("event-count", "7"),
        ("severity-count-info", "5"),
        ("severity-count-critical", "2"),
        ("severity-count-error", "x"),
    ];
    let server = Server::start(200, &headers, recorded!("events")).await;
    let (cluster, infra_env, host) = ids();
    let filter = EventFilter {
        infra_env_id: Some(infra_env),
        host_ids: vec![host, host],
        limit: Some(-1),
        offset: 3,
        order: EventOrder::Descending,
        severities: vec![Severity::Info, Severity::Error],
        categories: vec![Category::User, Category::Metrics],
        message: Some("a&b".to_owned()),
        deleted_hosts: true,
        cluster_level: true,
        ..EventFilter::for_cluster(cluster)
    };
    let list = client(&server.url).list_events(&filter).await.unwrap();
    assert_eq!(list.count, Some(7));
    assert_eq!(list.by_severity, BTreeMap::from([(Severity::Info, 5), (Severity::Critical, 2)]));
    assert!(list.events.len() > 3);
    server.received_only(
        "GET /events?cluster_id={c}&infra_env_id={i}&host_ids={h}%2C{h}&limit=-1&offset=3&order=descending\
         &severities=info%2Cerror&categories=user%2Cmetrics&message=a%26b&deleted_hosts=true&cluster_level=true",
        &Value::Null,
    );
    let server = Server::start(200, &[], "[]").await;
    let list = client(&server.url).list_events(&EventFilter::for_infra_env(infra_env)).await.unwrap();
    assert_eq!((list.count, list.by_severity.len(), list.events.len()), (None, 0, 0));
    server.received_only("GET /events?infra_env_id={i}", &Value::Null);
}

#[tokio::test]
async fn requests_carry_the_credential_and_a_new_id() {
    let token = || Secret::new("t0ken");
    let credentials = [
        (ClientCredential::Bearer(token()), "authorization", "Bearer t0ken"),
        (ClientCredential::Authorization(token()), "authorization", "t0ken"),
        (ClientCredential::Agent(token()), "x-secret-key", "t0ken"),
        (ClientCredential::Watcher(token()), "watcher-authorization", "t0ken"),
    ];
    let server = Server::start(200, &[], "[]").await;
    for (credential, name, value) in credentials {
        assert!(!format!("{credential:?}").contains("t0ken"));
        let builder = builder(&server.url).credential(credential).agent_version("quay.io/a:1");
        assert!(!format!("{builder:?}").contains("t0ken"));
        let client = builder.build().unwrap();
        assert!(!format!("{client:?}").contains("t0ken"));
        client.list_infra_envs(None).await.unwrap();
        let headers = server.last().headers;
        assert_eq!(headers.get(name).unwrap(), value);
        assert_eq!(headers.get("discovery_agent_version").unwrap(), "quay.io/a:1");
    }
    let received = server.received.lock().unwrap();
    let id = |received: &Received| received.headers.get("x-request-id").unwrap().to_str().unwrap().to_owned();
    let ids: std::collections::BTreeSet<_> = received.iter().map(id).collect();
    assert_eq!(ids.len(), 4);
    assert!(ids.iter().all(|id| id.parse::<uuid::Uuid>().is_ok()));
}

#[tokio::test]
async fn anonymous_client_sends_no_credential() {
    let server = Server::start(200, &[], "[]").await;
    client(&server.url).os_images().await.unwrap();
    for name in ["authorization", "x-secret-key", "watcher-authorization", "discovery_agent_version"] {
        assert!(!server.last().headers.contains_key(name), "{name}");
    }
}

#[tokio::test]
async fn error_reason_comes_from_either_error_document() {
    let page = "<html><body>502 Bad Gateway</body></html>";
    let long = "x".repeat(100_000);
    for (status, body, reason) in [
        (404, recorded!("operation_error"), "record not found"),
        (
            401,
            r#"{"code":401,"message":"unauthenticated for invalid credentials"}"#,
            "unauthenticated for invalid credentials",
        ),
        (502, page, page),
        (503, "", "Service Unavailable"),
        (599, " \n", "no reason given"),
        (500, &long, &"x".repeat(2048)),
        (
            409,
            r#"{"code":"409","id":409,"kind":"Error","href":"","reason":"no","findings":[{"line":1}]}"#,
            "no",
        ),
        (400, r#"{"message":1}"#, r#"{"message":1}"#),
    ] {
        let server = Server::start(status, &[], body).await;
        let error = client(&server.url).os_images().await.unwrap_err();
        assert_eq!((error.status(), error.reason()), (Some(status), Some(reason)));
        assert_eq!(error.to_string(), format!("cannot list base images: status {status}: {reason}"));
    }
}

#[tokio::test]
async fn error_has_the_findings_of_a_large_body() {
    let finding = json!({"line": 1, "message": "x".repeat(1000)});
    let body = |count: usize| {
        let findings = vec![&finding; count];
        json!({"code": "400", "id": 400, "kind": "Error", "href": "", "reason": "no", "findings": findings})
    };
    let text = body(1000).to_string();
    assert!(text.len() > 1_000_000 && text.len() < 1 << 20);
    let server = Server::start(400, &[], &text).await;
    let error = client(&server.url).os_images().await.unwrap_err();
    assert_eq!((error.reason(), error.findings().len()), (Some("no"), 1000));
    assert_eq!(error.findings().first(), Some(&finding));

    let server = Server::start(400, &[], &body(2000).to_string()).await;
    let error = client(&server.url).os_images().await.unwrap_err();
    assert_eq!(error.reason(), Some("Bad Request (the response is longer than 1048576 bytes)"));
    assert!(error.findings().is_empty());

    let server = Server::start(404, &[], recorded!("operation_error")).await;
    assert!(client(&server.url).os_images().await.unwrap_err().findings().is_empty());
}

#[tokio::test]
async fn unexpected_success_status_is_an_error() {
    let server = Server::start(200, &[], "<html>Log in</html>").await;
    let (_, infra_env, host) = ids();
    let reply = StepReply::done(&Step::new(StepType::StopInstallation, "stop-installation-1", Vec::new()));
    let error = client(&server.url).post_reply(infra_env, host, &reply).await.unwrap_err();
    let text = "cannot report step result: unexpected status 200, expected 204";
    assert_eq!((error.to_string().as_str(), error.is_retryable()), (text, false));
}

#[tokio::test]
async fn rejects_segments_that_change_the_path() {
    let server = Server::start(204, &[], "").await;
    for segment in ["", ".", ".."] {
        let error = client(&server.url).remove_os_image(segment, CpuArchitecture::Arm64).await.unwrap_err();
        let text = format!("cannot remove base image: {segment:?} cannot be part of a path");
        assert_eq!((error.to_string(), error.is_retryable()), (text, false));
    }
    assert!(server.received.lock().unwrap().is_empty());
    for (segment, sent) in [("%2e%2e", "%252e%252e"), ("...", "...")] {
        client(&server.url).remove_os_image(segment, CpuArchitecture::Arm64).await.unwrap();
        assert_eq!(server.last().line, format!("DELETE /api/assisted-install/v2/os-images/{sent}/arm64"));
    }
}

/// Starts a server that closes each connection, after a TLS handshake or after sending `greeting`.
async fn closing_server(tls: Option<TlsAcceptor>, greeting: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.write_all(greeting).await;
            match &tls {
                Some(tls) => drop(tls.accept(stream).await),
                None => drop(stream.read(&mut [0; 4096]).await),
            }
        }
    });
    url
}

#[tokio::test]
async fn failed_tls_handshake_is_not_retryable() {
    let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(
        tokio_rustls::rustls::crypto::aws_lc_rs::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(vec![certified.cert.der().clone()], key)
    .unwrap();
    let untrusted = closing_server(Some(Arc::new(config).into()), b"").await;
    let without_tls = closing_server(None, b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    for url in [untrusted, without_tls] {
        let error = client(&url).os_images().await.unwrap_err();
        assert!(matches!(error, ClientError::Tls { .. }), "{error:?}");
        assert!(!error.is_retryable());
        assert_eq!(error.to_string(), "cannot list base images: TLS handshake failed");
    }
    // A service that closes the connection during the handshake, for example because it restarts.
    let error = client(&closing_server(None, b"").await).os_images().await.unwrap_err();
    assert!(matches!(error, ClientError::Connect { .. }), "{error:?}");
    assert!(error.is_retryable());
}

#[tokio::test]
async fn error_status_decides_whether_it_is_retryable() {
    for (status, can_help) in [
        (400, false),
        (401, false),
        (403, false),
        (404, false),
        (408, true),
        (409, false),
        (413, false),
        (423, true),
        (425, true),
        (429, true),
        (500, true),
        (501, false),
        (502, true),
        (503, true),
        (504, true),
        (507, true),
    ] {
        let server = Server::start(status, &[], "").await;
        let error = client(&server.url).os_images().await.unwrap_err();
        assert_eq!((error.status(), error.is_retryable()), (Some(status), can_help));
        assert_eq!(server.received.lock().unwrap().len(), 1, "the client must not retry status {status}");
    }
}

#[tokio::test]
async fn error_has_the_retry_after_of_the_response() {
    let past_date = "Wed, 21 Oct 2015 07:28:00 GMT";
    let future_date = "Fri, 31 Dec 9999 23:59:59 GMT";
    for (text, min, max) in [("5", 5, 5), (past_date, 0, 0), (future_date, 1 << 30, u64::MAX)] {
        let server = Server::start(503, &[("retry-after", text)], "").await;
        let error = client(&server.url).os_images().await.unwrap_err();
        let seconds = error.retry_after().unwrap().as_secs();
        assert!((min..=max).contains(&seconds), "{text}: {seconds}");
    }
    for headers in [&[("retry-after", "soon")][..], &[]] {
        let server = Server::start(503, headers, "").await;
        assert_eq!(client(&server.url).os_images().await.unwrap_err().retry_after(), None);
    }
}

#[tokio::test]
async fn redirect_is_not_followed() {
    let other = Server::start(200, &[], "[]").await;
    let location = format!("{}/elsewhere", other.url);
    let server = Server::start(307, &[("location", &location)], "").await;
    let client = builder(&server.url).credential(ClientCredential::Agent(Secret::new("t"))).build().unwrap();
    let error = client.os_images().await.unwrap_err();
    assert_eq!((error.status(), error.is_retryable()), (Some(307), false));
    assert!(other.received.lock().unwrap().is_empty());
}

#[tokio::test]
async fn unusable_response_is_an_error() {
    let server = Server::start(200, &[], "<html>").await;
    let error = client(&server.url).os_images().await.unwrap_err();
    assert!(matches!(error, ClientError::Decode { operation: "list base images", .. }), "{error:?}");
    assert!(!error.is_retryable());
    let server = Server::start(200, &[], recorded!("hosts")).await;
    let limited = |bytes| builder(&server.url).max_response(bytes).build().unwrap();
    let (.., infra_env, _) = ids();
    let len = recorded!("hosts").len();
    assert_eq!(limited(len).list_hosts(infra_env).await.unwrap().len(), 1);
    let error = limited(len - 1).list_hosts(infra_env).await.unwrap_err();
    assert!(matches!(error, ClientError::TooLarge { limit, .. } if limit == len - 1), "{error:?}");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn missing_response_is_a_retryable_error() {
    // Dropping the listener frees the port, so no process listens on it.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/?token=s3cret", listener.local_addr().unwrap());
    drop(listener);
    let error = client(&url).os_images().await.unwrap_err();
    assert!(matches!(error, ClientError::Connect { .. }), "{error:?}");
    assert!(error.is_retryable());
    assert_eq!(error.to_string(), "cannot list base images: no connection to the service");
    assert!(!format!("{error:?} {}", error.source().unwrap()).contains("os-images"), "{error:?}");

    // A service that accepts connections and never responds.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let error =
        builder(&url).timeout(Duration::from_millis(50)).build().unwrap().os_images().await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout { .. }), "{error:?}");
    assert!(error.is_retryable());

    // A service that closes the connection in the middle of a response.
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[").await;
        }
    });
    let error = client(&url).os_images().await.unwrap_err();
    assert!(matches!(error, ClientError::Connection { .. }), "{error:?}");
    assert!(error.is_retryable());
}

#[tokio::test]
async fn path_of_the_service_url_is_a_prefix() {
    for suffix in ["/prefix/a", "/prefix/a/", "/prefix/a/?query#fragment"] {
        let server = Server::start(200, &[], "[]").await;
        client(&format!("{}{suffix}", server.url)).os_images().await.unwrap();
        assert_eq!(server.last().line, "GET /prefix/a/api/assisted-install/v2/os-images");
    }
}

#[test]
fn rejects_invalid_settings() {
    assert!(!format!("{:?}", builder("http://u:s3cret@a/")).contains("s3cret"));
    let proxy = reqwest::Proxy::all("http://u:s3cret@127.0.0.1:1").unwrap();
    let proxied = ApiClient::builder("http://a").transport(reqwest::Client::builder().proxy(proxy));
    assert!(!format!("{proxied:?}").contains("s3cret"));
    assert!(!format!("{:?}", proxied.build().unwrap()).contains("s3cret"));
    for url in [
        "",
        "a",
        "/a",
        "127.0.0.1:8090",
        "ftp://a",
        "mailto:a@b",
        "http://",
        "http://u:s3cret@a/",
        "http://u@a/",
    ] {
        let error = builder(url).build().unwrap_err();
        assert!(matches!(error, ClientError::Url { .. }), "{url}: {error:?}");
        assert!(!error.is_retryable() && !error.to_string().contains("s3cret"));
    }
    let token = ClientCredential::Bearer(Secret::new("a\nb"));
    let error = builder("http://a").credential(token).build().unwrap_err();
    assert_eq!(error.to_string(), "invalid characters in the value for header authorization");
    let error = builder("http://a").agent_version("a\nb").build().unwrap_err();
    assert!(matches!(error, ClientError::Header { name: "discovery_agent_version" }));
}

/// Starts a server that receives forms. Returns its URL and its log. An entry of the log has the URI, the names of the
/// field and the file, the length and the sum of the bytes, and whether the request has a length.
async fn form_server() -> (String, Arc<Mutex<Vec<String>>>) {
    let forms = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&forms);
    let app = Router::new().fallback(move |uri: Uri, request: Request| {
        let log = Arc::clone(&log);
        async move { receive_form(&uri, request, &log).await }
    });
    (serve(app).await, forms)
}

async fn receive_form(uri: &Uri, request: Request, log: &Mutex<Vec<String>>) -> Response {
    let has_length = request.headers().contains_key("content-length");
    let mut form = Multipart::from_request(request, &()).await.unwrap();
    while let Some(mut field) = form.next_field().await.unwrap() {
        let names = format!("{:?} {:?}", field.name().unwrap(), field.file_name().unwrap());
        let (mut bytes, mut sum) = (0_usize, 0_u64);
        while let Some(chunk) = field.chunk().await.unwrap() {
            bytes += chunk.len();
            sum += chunk.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        }
        log.lock().unwrap().push(format!("{uri} {names} {bytes} {sum} {has_length}"));
    }
    StatusCode::NO_CONTENT.into_response()
}

#[tokio::test]
async fn logs_are_uploaded_as_a_stream() {
    let (url, forms) = form_server().await;
    let client = client(&url);
    let (cluster, infra_env, host) = ids();
    let logs = LogsUpload::new("logs.tar.gz", vec![2; 1000]);
    client.upload_host_logs(cluster, (infra_env, host), logs).await.unwrap();
    let chunks = || stream::iter((0..16).map(|_| Ok::<_, std::io::Error>(vec![1_u8; 65536])));
    let logs = LogsUpload::new("controller_logs.tar.gz", Body::wrap_stream(chunks()));
    client.upload_controller_logs(cluster, logs).await.unwrap();
    let logs = LogsUpload::new("controller_logs.tar.gz", Body::wrap_stream(chunks())).with_length(16 << 16);
    client.upload_controller_logs(cluster, logs).await.unwrap();

    let path = format!("/api/assisted-install/v2/clusters/{CLUSTER}/logs");
    let expected = [
        format!(
            r#"{path}?logs_type=host&infra_env_id={INFRA_ENV}&host_id={HOST} "upfile" "logs.tar.gz" 1000 2000 true"#
        ),
        format!(r#"{path}?logs_type=controller "upfile" "controller_logs.tar.gz" 1048576 1048576 false"#),
        format!(r#"{path}?logs_type=controller "upfile" "controller_logs.tar.gz" 1048576 1048576 true"#),
    ];
    assert_eq!(*forms.lock().unwrap(), expected);

    let broken = stream::iter([Ok(vec![1_u8; 10]), Err(std::io::Error::other("disk failure"))]);
    let logs = LogsUpload::new("logs.tar.gz", Body::wrap_stream(broken));
    let error = client.upload_controller_logs(cluster, logs).await.unwrap_err();
    assert!(matches!(error, ClientError::Upload { .. }), "{error:?}");
    assert!(!error.is_retryable());
    assert_eq!(error.to_string(), "cannot upload controller logs: cannot read the data to upload");
}

#[tokio::test]
async fn example_replies_to_each_step() {
    let replies = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&replies);
    let reply = move |axum::Json(reply): axum::Json<StepReply>| async move {
        log.lock().unwrap().push(reply);
        StatusCode::NO_CONTENT
    };
    let api = Router::new()
        .route("/component-versions", get(async || recorded!("component_versions")))
        .route("/infra-envs/{i}/hosts", post(async || recorded!("registered_host")))
        .route("/infra-envs/{i}/hosts/{h}/instructions", get(async || recorded!("steps")).post(reply))
        .route("/infra-envs/{i}/hosts/{h}", get(async || recorded!("host")));
    let url = serve(Router::new().nest("/api/assisted-install/v2", api)).await;
    let (_, infra_env, host) = ids();
    let host = simulated_agent::simulate(&url, infra_env, host).await.unwrap();
    assert_eq!(host.status, HostStatus::Known);
    let replies = replies.lock().unwrap();
    let [inventory, ntp] = replies.as_slice() else { panic!("{replies:?}") };
    assert_eq!(inventory.step_type, Some(StepType::Inventory.into()));
    let Ok(Some(ReplyPayload::Inventory(report))) = inventory.payload() else { panic!("{inventory:?}") };
    assert_eq!(report.addresses().collect::<Vec<_>>(), ["192.0.2.11/24"]);
    assert_eq!(
        ntp.output.as_deref(),
        Some(r#"{"ntp_sources":[{"source_name":"ntp.example.com","source_state":"synced"}]}"#)
    );
}
