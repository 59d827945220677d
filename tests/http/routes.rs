//! Responses to requests for existing and unknown paths, of all parts of a service, compared with `goldens/routes.txt`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use ignition::discovery::HttpUrl;
use kindling::http::App;
use kindling::http::images::{EmbeddedInputs, ImageServer};
use kindling::images::library::{Library, LibrarySettings};
use kindling::inventory::auth::{KeyTexts, LocalKeys, Policy};
use kindling::inventory::catalogue::Catalogue;
use kindling::inventory::files::FileStore;
use kindling::inventory::store::SqlStore;
use kindling::inventory::{AllowedHosts, Inventory, Settings};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::support::Scratch;

const IMAGES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94", "url": "http://127.0.0.1:9/x.iso"}]"#;
/// The id of an infra-env that does not exist.
const ID: &str = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11";
const API: &str = Settings::API;
const PATIENCE: Duration = Duration::from_secs(30);
/// Headers whose values are too long for the golden file, or that change with each version of a file.
const LONG_HEADERS: [&str; 3] = ["content-security-policy", "etag", "last-modified"];

/// The requests to a service with all parts: request line and headers, one per line. `{long}` stands for a path of 1500
/// bytes.
const TO_ALL_PARTS: &[&str] = &[
    "GET /images/{id}?version=4.18&arch=x86_64&type=full-iso",
    "HEAD /images/{id}?version=4.18&arch=x86_64&type=full-iso",
    "GET /byid/{id}/4.18/x86_64/full.iso|Host: evil.example",
    "GET /byid/{id}/4.18/x86_64",
    "GET /i/{id}/full.iso",
    "GET /i/",
    "PUT /i/{id}/full.iso",
    "POST /images/{id}|Origin: http://evil.example",
    "OPTIONS /boot-artifacts/kernel",
    "DELETE /metrics|Accept-Encoding: gzip",
    "GET /live",
    "HEAD /live",
    "HEAD /ready|Accept-Encoding: gzip",
    "GET /ready|Host: evil.example",
    "POST /health|Origin: http://evil.example",
    "GET /",
    "HEAD /",
    "GET /|Host: evil.example",
    "GET /page/page.js|Accept-Encoding: gzip",
    "POST /|Origin: http://evil.example",
    "PUT /docs",
    "GET /docs/",
    "GET {api}/v2/infra-envs",
    "HEAD {api}/v2/infra-envs",
    "GET {api}/v2/infra-envs/{id}",
    "HEAD {api}/v2/infra-envs/{id}",
    "GET {api}/v2/infra-envs/{id}/hosts/{id}/instructions|Host: evil.example",
    "PUT {api}/v2/infra-envs",
    "PUT {api}/v2/infra-envs|Host: evil.example",
    "PUT {api}/v2/infra-envs|Origin: http://evil.example",
    "HEAD {api}/v2/infra-envs/{id}/hosts/{id}/actions/bind",
    "HEAD {api}/v2/infra-envs/{id}/hosts/{id}/actions/bind|Host: evil.example",
    "TRACE {api}/v2/infra-envs/{id}/hosts/{id}/instructions",
    "OPTIONS {api}/v2/clusters/{id}",
    "POST {api}/v2/infra-envs|Content-Type: application/json",
    "POST {api}/v2/clusters|Origin: http://evil.example",
    "GET {api}",
    "GET {api}/",
    "GET {api}/v2/nothing",
    "HEAD {api}/v2/nothing",
    "HEAD {api}/v2/nothing|Host: evil.example",
    "POST {api}/v2/nothing|X-Request-Id: test",
    "GET {api}/v2/nothing|Host: evil.example",
    "POST {api}/v2/nothing|Origin: http://evil.example",
    "GET {api}/{long}|Accept-Encoding: gzip",
    "GET {api}/v2/openapi|Accept-Encoding: gzip",
    "HEAD {api}/v2/openapi|Accept-Encoding: gzip",
    "HEAD {api}/openapi",
    "POST {api}/v2/openapi",
    "GET /openapi.json|Accept-Encoding: gzip;q=0",
    "HEAD /openapi.json|Accept-Encoding: gzip",
    "DELETE /openapi.json",
    "GET /nothing",
    "HEAD /nothing",
    "POST /nothing",
    "OPTIONS /nothing",
    "OPTIONS *",
    "GET //",
    "GET /%2e%2e/nothing?a=b",
    "GET /nothing|Host: evil.example",
    "POST /nothing|Origin: http://evil.example",
    "GET /{long}|Accept-Encoding: gzip",
    "HEAD /{long}",
    "HEAD /{long}|Accept-Encoding: gzip",
    "GET http://127.0.0.1/nothing",
    "GET http://evil.example/",
    "CONNECT 127.0.0.1:80",
];

/// The requests to a service that allows pages of `http://ui.example`.
const ACROSS_ORIGINS: &[&str] = &[
    "OPTIONS {api}/v2/infra-envs|Origin: http://ui.example|Access-Control-Request-Method: POST",
    "OPTIONS /nothing|Origin: http://ui.example|Access-Control-Request-Method: POST",
    "OPTIONS /images/{id}|Origin: http://evil.example|Access-Control-Request-Method: GET",
    "GET {api}/v2/infra-envs|Origin: http://ui.example",
    "PUT {api}/v2/infra-envs|Origin: http://ui.example",
    "POST /nothing|Origin: http://ui.example",
    "GET /openapi.json|Origin: http://ui.example|Accept-Encoding: gzip",
    "GET /nothing|Origin: http://evil.example",
    "POST /nothing|Origin: http://evil.example",
];

/// The requests to a service that requires tokens.
const WITHOUT_TOKEN: &[&str] = &[
    "GET {api}/v2/infra-envs",
    "HEAD {api}/v2/infra-envs",
    "PUT {api}/v2/infra-envs",
    "PUT {api}/v2/infra-envs|Host: evil.example",
    "GET {api}/v2/nothing",
    "GET /openapi.json",
    "HEAD /openapi.json",
    "GET /images/{id}?version=4.18&arch=x86_64&type=full-iso",
    "GET /|Host: evil.example",
    "GET /nothing|Host: evil.example",
    "POST /nothing|Origin: http://evil.example",
];

/// The requests to a service of images, and to the API as a library.
const TO_ONE_PART: &[&str] = &[
    "GET /",
    "GET /nothing",
    "HEAD /nothing",
    "POST /health",
    "POST /metrics",
    "GET {api}/v2/infra-envs",
    "PUT {api}/v2/infra-envs",
    "HEAD {api}/v2/nothing",
    "PUT /openapi.json",
];

/// A service on its own port.
struct RoutedService {
    address: SocketAddr,
    runtime: Option<Runtime>,
    _scratch: Scratch,
}

impl RoutedService {
    /// Starts the app that `app` builds from an inventory and its image server.
    fn start<A: Into<App>>(
        policy: Policy,
        change: impl FnOnce(&mut Settings),
        app: impl FnOnce(&Inventory, &ImageServer) -> A,
    ) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let scratch = Scratch::new();
        let address = runtime.block_on(async {
            let url = HttpUrl::parse("url", "http://service.example").unwrap();
            let mut settings = Settings::new(url.clone(), url.clone());
            settings.allowed_hosts = AllowedHosts::Addresses;
            change(&mut settings);
            let catalogue = Catalogue::parse(IMAGES).unwrap();
            let os_images = catalogue.os_images().to_vec();
            let library = Library::open(LibrarySettings::new(scratch.path("images")), []).unwrap();
            let store = SqlStore::open_file(&scratch.path("test.db")).await.unwrap();
            let files = FileStore::in_directory(&scratch.path("files")).unwrap();
            let inventory = Inventory::new(Arc::new(store), files, catalogue, settings, policy);
            let inputs = Arc::new(EmbeddedInputs::new(inventory.clone()));
            let app = app(&inventory, &ImageServer::new(os_images, library, inputs, url)).into();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::spawn(kindling::http::serve(listener, app, std::future::pending()));
            address
        });
        Self { address, runtime: Some(runtime), _scratch: scratch }
    }

    fn start_with_all_parts(policy: Policy, change: impl FnOnce(&mut Settings)) -> Self {
        Self::start(policy, change, |inventory, images| kindling::http::app(inventory, Some(images)))
    }

    /// Sends a request on its own connection. Returns the head and the body of the response.
    fn send(&self, request: &str) -> (String, Vec<u8>) {
        let request = request.replace("{api}", API).replace("{id}", ID).replace("{long}", &"a".repeat(1500));
        let (line, headers) = request.split_once('|').unwrap_or((&request, ""));
        let host = if headers.contains("Host: ") { "" } else { "Host: 127.0.0.1\r\n" };
        let headers: String = headers.split_terminator('|').map(|header| format!("{header}\r\n")).collect();
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "{line} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n").unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).unwrap();
        let end = response.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let body = response.split_off(end + 4);
        (String::from_utf8(response).unwrap(), body)
    }

    /// Describes the responses to requests in the format of the golden file.
    fn describe_responses(&self, name: &str, requests: &[&str]) -> String {
        let mut text = format!("# {name}\n\n");
        for request in requests {
            let (head, body) = self.send(request);
            writeln!(text, "{request}\n{}", response_text(&head, &body)).unwrap();
        }
        text
    }
}

impl Drop for RoutedService {
    fn drop(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

/// Returns the status, the headers in alphabetical order, and the body of an error. Bodies of other responses change
/// with each version.
fn response_text(head: &str, body: &[u8]) -> String {
    let (status, headers) = head.trim_end().split_once("\r\n").unwrap();
    let is_error = status.split(' ').nth(1).unwrap() >= "400";
    let mut headers: Vec<String> = headers
        .lines()
        .map(|line| line.split_once(": ").unwrap())
        .filter(|(name, _)| *name != "date")
        .map(|(name, value)| {
            let is_omitted =
                LONG_HEADERS.contains(&name) || name == "content-length" && !is_error && value != "0";
            format!("  {name}: {}\n", if is_omitted { "..." } else { value })
        })
        .collect();
    headers.sort();
    let body = match std::str::from_utf8(body) {
        Ok("") => "no body".to_owned(),
        Ok(text) if is_error => text.trim_end().replace(&"a".repeat(1500), "{long}"),
        Ok(_) => "a text".to_owned(),
        Err(_) => "a compressed body".to_owned(),
    };
    format!("  {status}\n{}  {body}\n", String::from_iter(headers))
}

/// `UPDATE_GOLDEN=1` writes the golden file.
#[test]
fn responses_match_the_golden_file() {
    let keys = LocalKeys::parse(KeyTexts::generate().unwrap().private.reveal(), None).unwrap();
    let open = RoutedService::start_with_all_parts(Policy::Open, |_| {});
    let across = RoutedService::start_with_all_parts(Policy::Open, |settings| {
        settings.allowed_origins = vec!["http://ui.example".to_owned()];
    });
    let local = RoutedService::start_with_all_parts(Policy::local(keys), |_| {});
    let images =
        RoutedService::start(Policy::Open, |_| {}, |_, images| kindling::http::image_app(images, &[]));
    let api = RoutedService::start(Policy::Open, |_| {}, |inventory, _| inventory.router());
    let text = [
        open.describe_responses("All parts, policy none", TO_ALL_PARTS),
        across.describe_responses("All parts, policy none, an allowed origin", ACROSS_ORIGINS),
        local.describe_responses("All parts, policy local", WITHOUT_TOKEN),
        images.describe_responses("Images", TO_ONE_PART),
        api.describe_responses("API", TO_ONE_PART),
    ];
    let (text, path) =
        (text.concat(), PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/http/goldens/routes.txt"));
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        return;
    }
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    for (line, recorded) in text.lines().zip(recorded.lines()) {
        assert_eq!(line, recorded, "if the change is intended, set UPDATE_GOLDEN=1\n{text}");
    }
    assert_eq!(text.len(), recorded.len(), "if the change is intended, set UPDATE_GOLDEN=1\n{text}");
}

#[test]
fn refused_method_gets_the_allowed_methods_on_every_path() {
    let service = RoutedService::start_with_all_parts(Policy::Open, |_| {});
    let document = serde_json::to_value(kindling::http::openapi()).unwrap();
    let base = document["servers"][0]["url"].as_str().unwrap();
    let paths = document["paths"].as_object().unwrap();
    for (path, item) in paths {
        let base = item["servers"][0]["url"].as_str().unwrap_or(base).trim_end_matches('/');
        let parts: Vec<_> =
            path.split('/').map(|part| if part.starts_with('{') { ID } else { part }).collect();
        let (head, body) = service.send(&format!("TRACE {base}{}", parts.join("/")));
        let allowed = head.lines().find_map(|line| line.strip_prefix("allow: ")).unwrap_or_default();
        let refusal: Value = serde_json::from_slice(&body).unwrap();
        let expected = format!("method TRACE is not allowed, but [{allowed}] are");
        assert_eq!(refusal["message"], expected, "{path}: {head}");
        let declared = item.as_object().unwrap().keys().filter(|name| !name.starts_with(['s', 'x']));
        let declared: BTreeSet<String> = declared.map(|name| name.to_uppercase()).collect();
        let allowed: BTreeSet<String> =
            allowed.split(',').filter(|name| *name != "HEAD").map(str::to_owned).collect();
        assert_eq!(allowed, declared, "{path}");
    }
    assert!(paths.len() > 80, "{}", paths.len());
}
