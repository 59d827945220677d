//! Tests that the client behaves the same over a connection and in the same process.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code: what is not as expected must stop the test"
)]

use std::error::Error as _;
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use assisted::client::{
    ApiClient, Body, ClientCredential, ClientError, ClientErrorKind, ClusterFilter, EventFilter, LogsUpload,
};
use assisted::host::HostUpdateParams;
use assisted::infra_env::{InfraEnvCreateParams, InfraEnvUpdateParams};
use assisted::{ClusterId, HostId, InfraEnvId, Secret};
use axum::Router;
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{any, get, post};
use futures_util::stream;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tower::{Service, ServiceExt};

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("recorded/", $name, ".json"))
    };
}

const CLUSTER: &str = "4f630ba3-0297-4d99-a7c7-f62e7bca1332";
const INFRA_ENV: &str = "51dece57-19a2-4f0c-98f6-16982905e1c7";
const HOST: &str = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11";

/// A service with a few operations, which records its requests.
#[derive(Clone, Default)]
struct Site {
    /// Method, URL, client headers and body of each request.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn router(&self) -> Router {
        let site = self.clone();
        let error = |status: u16, body: &'static str| {
            move || async move { (StatusCode::from_u16(status).unwrap(), body) }
        };
        let hosts = "/infra-envs/{i}/hosts";
        let host = "/infra-envs/{i}/hosts/{h}";
        let event_headers = [("event-count", "7"), ("severity-count-info", "5")];
        let api = Router::new()
            .route("/clusters", get(async || recorded!("clusters")))
            .route("/clusters/{c}/logs", post(receive_form))
            .route(
                "/clusters/{c}",
                any(error(409, r#"{"code":"409","id":409,"kind":"Error","reason":"busy","href":""}"#)),
            )
            .route("/clusters/default-config", get(error(401, r#"{"code":401,"message":"no token"}"#)))
            .route("/events", get(async move || (event_headers, recorded!("events"))))
            .route(
                "/infra-envs",
                get(async || recorded!("infra_envs"))
                    .post(async || (StatusCode::CREATED, recorded!("infra_env"))),
            )
            .route("/infra-envs/{i}", get(async || "<html>").patch(error(201, "{}")).delete(error(200, "")))
            .route("/infra-envs/{i}/preflight", get(async || Redirect::temporary("/elsewhere")))
            .route(hosts, get(async || recorded!("hosts")))
            .route(host, get(error(404, recorded!("operation_error"))).patch(async || recorded!("host")))
            .route(
                "/openshift-versions",
                get(async || ([("retry-after", "7")], StatusCode::TOO_MANY_REQUESTS)),
            )
            .route("/os-images/{v}/{a}", any(error(204, "")))
            .route("/component-versions", get(breaking_response));
        Router::new()
            .nest("/prefix/api/assisted-install/v2", api)
            .layer(middleware::from_fn(move |request, next| record(site.clone(), request, next)))
    }
}

async fn record(site: Site, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let is_form = parts.headers.get("content-type").is_some_and(|it| it.as_bytes().starts_with(b"multipart"));
    let mut line = format!("{} {}", parts.method, parts.uri.path_and_query().unwrap());
    for name in ["authorization", "discovery_agent_version", "content-length", "host"] {
        let value = parts.headers.get(name).map(|value| value.to_str().unwrap());
        line = format!("{line} {name}={}", value.unwrap_or_default());
    }
    let id = parts.headers.get("x-request-id").unwrap().to_str().unwrap();
    assert!(id.parse::<uuid::Uuid>().is_ok());
    if is_form || parts.method == Method::GET {
        site.requests.lock().unwrap().push(line);
        return next.run(Request::from_parts(parts, body)).await;
    }
    let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let json = parts.headers.get("content-type").is_some_and(|it| it == "application/json");
    site.requests.lock().unwrap().push(format!("{line} {json} {}", String::from_utf8_lossy(&bytes)));
    next.run(Request::from_parts(parts, bytes.into())).await
}

async fn receive_form(headers: HeaderMap, request: Request) -> Response {
    let has_length = headers.contains_key("content-length");
    let mut form = Multipart::from_request(request, &()).await.unwrap();
    let mut received = Vec::new();
    loop {
        let Ok(field) = form.next_field().await else { return StatusCode::BAD_REQUEST.into_response() };
        let Some(field) = field else { break };
        let names = format!("{:?} {:?}", field.name().unwrap(), field.file_name().unwrap());
        let Ok(bytes) = field.bytes().await else { return StatusCode::BAD_REQUEST.into_response() };
        received.push(format!("{names} {} {has_length}", bytes.len()));
    }
    // The client ignores the response body, but only accepts the status 204.
    let expected = [
        [r#""upfile" "logs.tar.gz" 1000 true"#.to_owned()],
        [r#""upfile" "a%22b.tar.gz" 131072 false"#.to_owned()],
        [r#""upfile" "logs.tar.gz" 131072 true"#.to_owned()],
    ];
    if expected.iter().any(|expected| *received == expected[..]) {
        StatusCode::NO_CONTENT.into_response()
    } else {
        (StatusCode::IM_A_TEAPOT, format!("{received:?}")).into_response()
    }
}

/// Returns a response body that fails after its first byte.
async fn breaking_response() -> axum::body::Body {
    axum::body::Body::from_stream(stream::iter([Ok("{"), Err(io::Error::other("disk failure"))]))
}

async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let router = router.clone();
            let service = service_fn(move |request| router.clone().oneshot(request));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    format!("http://{address}/prefix")
}

fn ids() -> (ClusterId, InfraEnvId, HostId) {
    (CLUSTER.parse().unwrap(), INFRA_ENV.parse().unwrap(), HOST.parse().unwrap())
}

/// Returns a result as text: the value, or everything that a caller can read from the error.
fn text<T: std::fmt::Debug>(result: Result<T, ClientError>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => {
            let variant = format!("{error:?}");
            let variant = variant.split([' ', '(']).next().unwrap();
            format!(
                "{variant} {:?}: {error} ({:?}, {:?}, {:?}, {:?}, {:?})",
                error.kind(),
                error.status(),
                error.reason(),
                error.findings(),
                error.retry_after(),
                error.is_retryable()
            )
        }
    }
}

fn chunks() -> Body {
    Body::from_stream(stream::iter([Ok::<_, io::Error>(vec![1_u8; 65536]), Ok(vec![2; 65536])]))
}

/// Calls the same operations with any client, and returns their results as text.
async fn results(client: &ApiClient) -> Vec<String> {
    let (c, i, h) = ids();
    let mut visited = Vec::new();
    let visit = |item: Value| {
        visited.push(item);
        ControlFlow::Continue(())
    };
    let visit_result = client.visit_hosts(i, visit).await;
    let create = InfraEnvCreateParams::new("edge \u{e9}", Secret::new("{}"));
    let changes = InfraEnvUpdateParams::default();
    let rename = HostUpdateParams { host_name: Some("a".to_owned()), ..HostUpdateParams::default() };
    let architecture = assisted::architecture::CpuArchitecture::Arm64;
    let upload = async |logs| text(client.upload_controller_logs(c, logs).await);
    let broken = || stream::iter([Ok(vec![1_u8; 10]), Err(io::Error::other("disk failure"))]);
    vec![
        text(visit_result),
        format!("{visited:?}"),
        text(
            client
                .list_clusters(&ClusterFilter {
                    owner: Some("a b&\u{e9}".to_owned()),
                    ..ClusterFilter::default()
                })
                .await,
        ),
        text(client.list_events(&EventFilter::for_cluster(c)).await),
        text(client.list_infra_envs(Some(c)).await),
        text(client.register_infra_env(&create).await),
        text(client.update_host(i, h, &rename).await),
        text(client.remove_os_image("4.18/../a?b %\u{e9}", architecture).await),
        text(client.remove_os_image("..", architecture).await),
        // Calls that fail.
        text(client.delete_cluster(c).await),
        text(client.cluster_defaults().await),
        text(client.get_host(i, h).await),
        text(client.get_infra_env(i).await),
        text(client.update_infra_env(i, &changes).await),
        text(client.delete_infra_env(i).await),
        text(client.preflight(i).await),
        text(client.openshift_versions(&assisted::client::VersionFilter::default()).await),
        text(client.os_images().await),
        text(client.component_versions().await),
        text(client.with_max_response(10).list_hosts(i).await),
        // Log uploads.
        text(client.upload_host_logs(c, (i, h), LogsUpload::new("logs.tar.gz", vec![2; 1000])).await),
        upload(LogsUpload::new("a\"b.tar.gz", chunks())).await,
        upload(LogsUpload::new("logs.tar.gz", chunks()).with_length(2 << 16)).await,
        upload(LogsUpload::new("logs.tar.gz", chunks()).with_length((2 << 16) + 1)).await,
        upload(LogsUpload::new("logs.tar.gz", chunks()).with_length((2 << 16) - 1)).await,
        upload(LogsUpload::new("logs.tar.gz", Body::from_stream(broken()))).await,
    ]
}

fn with_settings(client: &ApiClient) -> ApiClient {
    let agent = ClientCredential::Agent(Secret::new("0ther"));
    let client = client.with_credential(&agent).unwrap().with_agent_version("quay.io/a:1").unwrap();
    client.with_credential(&ClientCredential::Bearer(Secret::new("t0ken"))).unwrap()
}

#[tokio::test]
async fn results_and_errors_do_not_depend_on_the_transport() {
    let (site, remote_site) = (Site::default(), Site::default());
    let url = serve(remote_site.router()).await;
    let direct = ApiClient::builder(&url).transport(reqwest::Client::builder().no_proxy()).build().unwrap();
    let in_process = ApiClient::over(Some(&url), site.router()).unwrap();
    let remote = results(&with_settings(&direct)).await;
    let local = results(&with_settings(&in_process)).await;
    for (remote, local) in remote.iter().zip(&local) {
        assert_eq!(remote, local);
    }
    assert_eq!(remote.len(), local.len());
    let kinds = remote.iter().filter_map(|text| text.split_once(": cannot")).map(|(kind, _)| kind);
    let expected = [
        "PathSegment Invalid",
        "Response Conflict",
        "Response Unauthorized",
        "Response NotFound",
        "Decode UnexpectedResponse",
        "Decode UnexpectedResponse",
        "UnexpectedStatus UnexpectedResponse",
        "Response UnexpectedResponse",
        "Response RateLimited",
        "Response NotFound",
        "Connection Connection",
        "TooLarge TooLarge",
        "Upload Upload",
        "Upload Upload",
        "Upload Upload",
    ];
    assert_eq!(kinds.collect::<Vec<_>>(), expected, "{remote:#?}");
    let (sent, sent_remotely) = (site.requests.lock().unwrap(), remote_site.requests.lock().unwrap());
    // A connection may close without sending a request whose body cannot be read, so ignore the last three requests.
    let complete = sent.len() - 3;
    assert_eq!(sent.get(..complete), sent_remotely.get(..complete));
    assert!(
        sent.iter()
            .all(|line| line.contains(" authorization=Bearer t0ken discovery_agent_version=quay.io/a:1 "))
    );
    assert!(
        sent.iter().any(|line| line.contains("/os-images/4.18%2F..%2Fa%3Fb%20%25%C3%A9/arm64")),
        "{sent:?}"
    );
}

#[tokio::test]
async fn requests_without_a_service_url_have_paths_and_no_host() {
    let router = Router::new().fallback(async |request: Request| {
        let host = request.headers().contains_key("host");
        assert_eq!((request.uri().to_string().as_str(), host), ("/api/assisted-install/v2/os-images", false));
        "[]"
    });
    let client = ApiClient::over(None, router).unwrap();
    assert!(client.os_images().await.unwrap().is_empty());
    assert!(format!("{client:?}").contains("ServiceTransport"));
}

#[test]
fn rejects_invalid_urls() {
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
        let error = ApiClient::over(Some(url), Router::new()).unwrap_err();
        assert!(matches!(error, ClientError::Url { .. }), "{url}: {error:?}");
        let text = error.to_string();
        assert!(!text.contains("s3cret") && !text.ends_with(' '), "{text}");
    }
}

/// A service that is not `Sync`, must be polled before a call, and fails with an I/O error of the given kind.
struct FailingService {
    kind: io::ErrorKind,
    is_ready: std::cell::Cell<bool>,
}

impl Clone for FailingService {
    fn clone(&self) -> Self {
        Self { kind: self.kind, is_ready: std::cell::Cell::new(false) }
    }
}

impl Service<Request<Body>> for FailingService {
    type Response = axum::http::Response<axum::body::Body>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = std::future::Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.is_ready.set(true);
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        assert!(self.is_ready.get());
        let error = io::Error::from(self.kind);
        std::future::ready(Err(io::Error::other(error).into()))
    }
}

#[tokio::test]
async fn error_of_a_service_is_classified_by_its_cause() {
    for (kind, text) in [
        (io::ErrorKind::TimedOut, "cannot list base images: request timed out"),
        (io::ErrorKind::ConnectionRefused, "cannot list base images: no connection to the service"),
        (io::ErrorKind::NotFound, "cannot list base images: no connection to the service"),
        (io::ErrorKind::BrokenPipe, "cannot list base images: connection failed"),
    ] {
        let service = FailingService { kind, is_ready: false.into() };
        let error = ApiClient::over(None, service).unwrap().os_images().await.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.is_retryable()), (text, true));
        assert!(error.source().is_some());
        let expected = match kind {
            io::ErrorKind::TimedOut => ClientErrorKind::Timeout,
            io::ErrorKind::BrokenPipe => ClientErrorKind::Connection,
            _ => ClientErrorKind::Connect,
        };
        assert_eq!(error.kind(), expected);
    }
}

#[tokio::test]
async fn broken_body_is_not_a_refused_connection() {
    for (kind, expected) in [
        (io::ErrorKind::ConnectionRefused, ClientErrorKind::Connection),
        (io::ErrorKind::TimedOut, ClientErrorKind::Timeout),
    ] {
        let body = move || axum::body::Body::from_stream(stream::iter([Ok("["), Err(io::Error::from(kind))]));
        let router = Router::new().fallback(async move || body());
        let error = ApiClient::over(None, router).unwrap().os_images().await.unwrap_err();
        assert_eq!(error.kind(), expected);
    }
}

#[tokio::test]
async fn kind_of_an_error_response_is_from_its_status() {
    use ClientErrorKind as Kind;
    for (status, kind) in [
        (300, Kind::UnexpectedResponse),
        (307, Kind::UnexpectedResponse),
        (400, Kind::Invalid),
        (401, Kind::Unauthorized),
        (403, Kind::Forbidden),
        (404, Kind::NotFound),
        (405, Kind::NotImplemented),
        (408, Kind::Timeout),
        (409, Kind::Conflict),
        (410, Kind::NotFound),
        (413, Kind::TooLarge),
        (418, Kind::UnexpectedResponse),
        (422, Kind::Invalid),
        (423, Kind::Unavailable),
        (425, Kind::Unavailable),
        (429, Kind::RateLimited),
        (500, Kind::Internal),
        (501, Kind::NotImplemented),
        (502, Kind::Unavailable),
        (503, Kind::Unavailable),
        (504, Kind::Timeout),
        (507, Kind::Unavailable),
        (599, Kind::UnexpectedResponse),
    ] {
        let router = Router::new().fallback(async move || StatusCode::from_u16(status).unwrap());
        let error = ApiClient::over(None, router).unwrap().os_images().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{status}");
        let is_temporary =
            matches!(kind, Kind::Unavailable | Kind::RateLimited | Kind::Internal | Kind::Timeout);
        assert_eq!(error.is_retryable(), is_temporary, "{status}");
    }
}

#[tokio::test]
async fn message_has_no_empty_reason() {
    let blank = r#"{"code":"404","id":404,"kind":"Error","href":"","reason":" \n"}"#;
    for body in ["", " \n", blank, r#"{"code":404,"message":""}"#] {
        let router = Router::new().fallback(async move || (StatusCode::NOT_FOUND, body));
        let error = ApiClient::over(None, router).unwrap().os_images().await.unwrap_err();
        assert_eq!(error.to_string(), "cannot list base images: status 404: Not Found", "{body}");
    }
}

#[test]
fn clients_and_their_futures_can_be_shared() {
    fn check<T: Send + Sync>(_: &T) {}
    fn check_future<T: Send>(_: &T) {}
    let service = FailingService { kind: io::ErrorKind::TimedOut, is_ready: false.into() };
    let client = ApiClient::over(None, service).unwrap();
    check(&client);
    check(&LogsUpload::new("a", vec![1]));
    check_future(&client.os_images());
}
