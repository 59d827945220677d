//! `kindling serve` as operators run it: a process with options, environment variables, signals and a log.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{ProgramRun, Scratch};

/// More than ten times the duration of any response of a local server.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
const VERSIONS: &str = "/api/assisted-install/v2/component-versions";

/// A server for one test.
pub(crate) struct ServeProcess {
    pub(crate) child: Child,
    pub(crate) addresses: Vec<String>,
    pub(crate) log: Receiver<String>,
    log_so_far: Arc<Mutex<String>>,
}

/// A response as received.
#[derive(Debug)]
pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl RawAnswer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl ServeProcess {
    /// Starts a server on a free port and waits until it logs its address.
    #[track_caller]
    pub(crate) fn start(scratch: &Scratch, variables: &[(&str, &str)], options: &[&str]) -> Self {
        let run = scratch.command(["serve", "--listen", "127.0.0.1:0"].iter().chain(options));
        Self::spawn(with_variables(run, variables).command(), 1)
    }

    #[track_caller]
    pub(crate) fn spawn(mut command: Command, listeners: usize) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, log) = channel();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let log_so_far = Arc::new(Mutex::new(String::new()));
        let log_writer = Arc::clone(&log_so_far);
        thread::spawn(move || {
            let mut line = String::new();
            while stderr.read_line(&mut line).unwrap() > 0 {
                log_writer.lock().unwrap().push_str(&line);
                line.clear();
            }
            let _ = sender.send(log_writer.lock().unwrap().clone());
        });
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut addresses = Vec::new();
        while addresses.len() < listeners {
            let Some(line) = lines.next() else { panic!("{}", log.recv_timeout(PATIENCE).unwrap()) };
            let line = line.unwrap();
            let place = line.strip_prefix("listening on ").unwrap();
            let address = place.strip_prefix("http://").or_else(|| place.strip_prefix("https://"));
            addresses.push(address.unwrap_or(place).to_owned());
        }
        Self { child, addresses, log, log_so_far }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.addresses[0]).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request without a body. `headers` are further lines.
    #[track_caller]
    pub(crate) fn request(&self, line: &str, headers: &str) -> RawAnswer {
        self.request_with_body(line, headers, "")
    }

    #[track_caller]
    pub(crate) fn request_with_body(&self, line: &str, headers: &str, body: &str) -> RawAnswer {
        let mut stream = self.connect();
        let headers = if headers.is_empty() { String::new() } else { format!("{headers}\r\n") };
        let text = format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n{body}");
        // The server may close the connection before it has read everything.
        let _ = stream.write_all(text.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end =
            bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or_else(|| panic!("{line}"));
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        RawAnswer { status, head, body: bytes[end + 4..].to_vec() }
    }

    pub(crate) fn send_signal(&self, name: &str) {
        let done = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.child.id())]).status();
        assert!(done.unwrap().success());
    }

    /// Waits until the log of the running process contains a text.
    #[track_caller]
    fn wait_for_log(&self, text: &str) {
        let start = Instant::now();
        while !self.log_so_far.lock().unwrap().contains(text) {
            assert!(start.elapsed() < PATIENCE, "no {text:?} in {}", self.log_so_far.lock().unwrap());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end of the process. Returns its exit code and the log.
    pub(crate) fn wait_for_exit(mut self) -> (Option<i32>, String) {
        let start = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if start.elapsed() > PATIENCE => panic!("the server does not end"),
                None => thread::sleep(Duration::from_millis(10)),
            }
        };
        (status.code(), self.log.recv_timeout(PATIENCE).unwrap())
    }

    /// Stops the server and returns its log.
    pub(crate) fn stop(self) -> String {
        self.send_signal("TERM");
        let (code, log) = self.wait_for_exit();
        assert_eq!(code, Some(0), "{log}");
        log
    }
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn with_variables(run: ProgramRun, variables: &[(&str, &str)]) -> ProgramRun {
    variables.iter().fold(run, |run, (name, value)| run.env(name, value))
}

/// Creates a key pair in the scratch folder, and returns the options with the key files.
pub(crate) fn make_keys(scratch: &Scratch) -> [&'static str; 4] {
    scratch.run_kindling("auth keys --out keys").expect_success();
    ["--auth-type", "local", "--ec-private-key-file", "keys/ec-private-key.pem"]
}

pub(crate) fn make_token(scratch: &Scratch, line: &str) -> String {
    let line = format!("auth token --ec-private-key-file keys/ec-private-key.pem {line}");
    scratch.run_kindling(&line).expect_text().trim().to_owned()
}

#[test]
fn open_server_requires_no_token() {
    let scratch = Scratch::new();
    let server = ServeProcess::start(&scratch, &[], &[]);
    let live = server.request("GET /live", "");
    assert_eq!((live.status, live.body.len()), (200, 0));
    let ready = server.request("GET /ready", "");
    assert_eq!((ready.status, ready.json()), (200, json!({"ready": true, "database": "reachable"})));
    let health = server.request("GET /health", "");
    assert_eq!(health.status, 200);
    let mut health = health.json();
    // `addresses` contains a finding, because the base URL is a loopback address.
    let addresses = health.as_object_mut().unwrap().remove("addresses").unwrap();
    assert_eq!(addresses[0]["url"], format!("http://{}", server.addresses[0]));
    // The monitor begins while the server starts, so either state is possible.
    let monitor = if health["monitor"] == "active" { "active" } else { "standby" };
    assert_eq!(health, json!({"ready": true, "database": "ready", "monitor": monitor, "images": []}));
    assert_eq!(
        server.request(&format!("GET {VERSIONS}"), "").json()["versions"].as_object().unwrap().len(),
        4
    );
    let (get, head) =
        (server.request(&format!("GET {VERSIONS}"), ""), server.request(&format!("HEAD {VERSIONS}"), ""));
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), get.header("content-length"));
    let missing = server.request("GET /nothing", "");
    assert_eq!(missing.status, 404);
    assert_eq!(missing.json()["message"], "path /nothing was not found");
    let wrong = server.request("DELETE /health", "");
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET,HEAD")));
    assert!(scratch.has_file("kindling-data/kindling.db"));
    // The directory is private even if the server creates the subdirectories of images and of files first.
    let mode = std::fs::metadata(scratch.path("kindling-data")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    server.stop();
}

#[test]
fn server_with_keys_requires_tokens() {
    let scratch = Scratch::new();
    let options = make_keys(&scratch);
    let server = ServeProcess::start(&scratch, &[], &options);
    let get = format!("GET {VERSIONS}");
    let refused = server.request(&get, "");
    assert_eq!(refused.status, 401);
    assert_eq!(refused.json()["message"], "unauthenticated for invalid credentials");
    let user = make_token(&scratch, "--user");
    assert_eq!(server.request(&get, &format!("Authorization: {user}")).status, 200);
    assert_eq!(server.request(&get, &format!("Authorization: Bearer {user}")).status, 200);
    let endless = make_token(&scratch, "--user --expires never");
    assert_eq!(server.request(&get, &format!("Authorization: Bearer {endless}")).status, 200);
    let expired = make_token(&scratch, "--user --expires 0");
    let refused = server.request(&get, &format!("Authorization: Bearer {expired}"));
    assert_eq!((refused.status, &refused.json()["message"]), (401, &"the token has expired".into()));
    let stranger = make_token(&scratch, "--infra-env 6ba7b810-9dad-11d1-80b4-00c04fd430c8");
    assert_eq!(server.request(&get, &format!("X-Secret-Key: {stranger}")).status, 401);
    for path in ["/health", "/ready", "/live", "/openapi.json"] {
        assert_eq!(server.request(&format!("GET {path}"), "").status, 200, "{path}");
    }
    server.stop();
}

/// Keys may also be in variables, as PEM or on one line.
#[test]
fn keys_are_read_from_environment_variables() {
    let scratch = Scratch::new();
    make_keys(&scratch);
    let printed = scratch.run_kindling("auth keys --env").expect_text();
    let lines: Vec<(&str, &str)> = printed.lines().map(|line| line.split_once('=').unwrap()).collect();
    assert_eq!(
        lines.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ["EC_PRIVATE_KEY_PEM", "EC_PUBLIC_KEY_PEM"]
    );
    let server = ServeProcess::start(&scratch, &[&lines[..], &[("AUTH_TYPE", "local")]].concat(), &[]);
    let user = with_variables(scratch.command(["auth", "token", "--user"]), &lines).run().expect_text();
    let answer = server.request(&format!("GET {VERSIONS}"), &format!("Authorization: {}", user.trim()));
    assert_eq!(answer.status, 200);
    let text = |name: &str| String::from_utf8(scratch.read(&format!("keys/{name}"))).unwrap();
    let (private, public) = (text("ec-private-key.pem"), text("ec-public-key.pem"));
    let pems = [("EC_PRIVATE_KEY_PEM", private.as_str()), ("EC_PUBLIC_KEY_PEM", public.as_str())];
    with_variables(scratch.command(["auth", "token", "--user"]), &pems).run().expect_success();
    let mixed = [lines[0], pems[1], ("AUTH_TYPE", "local")];
    let refused = with_variables(scratch.command(["serve", "--listen", "127.0.0.1:0"]), &mixed).run();
    refused.expect_failure("cannot use the keys in EC_PRIVATE_KEY_PEM and EC_PUBLIC_KEY_PEM");
    refused.expect_failure("the public key does not belong to the private key");
    server.stop();
}

#[test]
fn request_heads_are_limited() {
    let scratch = Scratch::new();
    let options = make_keys(&scratch);
    let server = ServeProcess::start(&scratch, &[], &options);
    let get = format!("GET {VERSIONS}");
    assert_eq!(server.request(&get, &format!("Authorization: {}", "A".repeat(1 << 20))).status, 431);
    assert_eq!(server.request(&get, &format!("Authorization: {}", "A".repeat(60_000))).status, 401);
    assert_eq!(server.request(&format!("{get}?api_key={}", "A".repeat(1 << 20)), "").status, 431);
    assert_eq!(server.request(&get, &"A: b\r\n".repeat(200)).status, 431);
    assert_eq!(server.request(&get, "Authorization: \u{e9}\u{e9}").status, 401);
    assert_eq!(server.request(&format!("{get}?api_key=%ff%00"), "").status, 401);
    assert_eq!(server.request("GARBAGE", "").status, 400);
    let user = make_token(&scratch, "--user");
    assert_eq!(server.request(&get, &format!("Authorization: {user}")).status, 200);
    server.stop();
}

#[test]
fn log_shows_requests_without_secrets() {
    let scratch = Scratch::new();
    let options = make_keys(&scratch);
    for (level, format) in [("info", "json"), ("debug", "text"), ("trace", "text")] {
        let data = format!("data-{level}");
        let variables = [("LOG_LEVEL", level), ("LOG_FORMAT", format), ("KINDLING_DATA_DIR", &data)];
        let server = ServeProcess::start(&scratch, &variables, &options);
        let user = make_token(&scratch, "--user");
        let machine = make_token(&scratch, "--infra-env 6ba7b810-9dad-11d1-80b4-00c04fd430c8");
        for token in [&user, &machine] {
            for header in ["Authorization: Bearer", "X-Secret-Key:", "Image-Token:", "Watcher-Authorization:"]
            {
                let headers = format!("X-Request-ID: the-id-of-this\r\n{header} {token}");
                server.request(&format!("GET {VERSIONS}"), &headers);
            }
            for line in [
                format!("GET {VERSIONS}?api_key={token}&image_token={token}&owner={token}"),
                format!("GET {VERSIONS}?api%5Fkey={token}"),
                format!("GET /byapikey/{token}/4.18/x86_64/full.iso"),
                format!("GET /bytoken/{token}/4.18/x86_64/full.iso"),
                format!("POST /api/assisted-install/v2/{token}"),
                format!("GET http://user:{token}@test/byapikey/{token}"),
            ] {
                server.request(&line, "");
            }
        }
        let log = server.stop();
        for token in [&user, &machine] {
            for part in token.split('.') {
                assert!(!log.contains(part), "a token is in the log:\n{log}");
            }
        }
        let private = String::from_utf8(scratch.read("keys/ec-private-key.pem")).unwrap();
        assert!(private.lines().filter(|line| !line.starts_with('-')).all(|line| !log.contains(line)));
        assert!(log.contains("/byapikey/*****/4.18/x86_64/full.iso"), "{log}");
        assert!(log.contains("?api_key=*****&image_token=*****&owner=*****"), "{log}");
        assert!(log.contains("the-id-of-this"), "{log}");
        let answered = log.lines().filter(|line| line.contains("answered")).count();
        assert_eq!(answered, 20, "{log}");
        if format == "json" {
            for line in log.lines() {
                let line: Value =
                    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                let fields = &line["fields"];
                if fields["message"] == "answered" {
                    assert!(fields["status"].is_u64() && fields["method"].is_string(), "{line}");
                    assert!(line["span"]["id"].is_string(), "{line}");
                }
            }
        }
    }
}

#[test]
fn signal_shuts_down_gracefully() {
    for name in ["TERM", "INT"] {
        let scratch = Scratch::new();
        let server = ServeProcess::start(&scratch, &[], &[]);
        // One connection without any request, one with an incomplete request, and one that waits for its next request.
        let _silent = server.connect();
        let mut partial = server.connect();
        partial.write_all(b"GET /live HTT").unwrap();
        let mut idle = server.connect();
        idle.write_all(b"GET /live HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
        let mut start = [0; 12];
        idle.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
        let start = Instant::now();
        server.send_signal(name);
        let (code, log) = server.wait_for_exit();
        assert_eq!(code, Some(0), "{log}");
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}: {log}", start.elapsed());
    }
}

#[test]
fn hangup_without_tls_is_logged_and_changes_nothing() {
    let scratch = Scratch::new();
    let server = ServeProcess::start(&scratch, &[], &[]);
    for _ in 0..3 {
        server.send_signal("HUP");
        assert_eq!(server.request("GET /live", "").status, 200);
    }
    // The response to a request may arrive before the server handles the signal.
    server.wait_for_log("SIGHUP: nothing to reload without TLS");
    server.stop();
}

#[test]
fn unsupported_methods_are_refused_with_the_allowed_methods() {
    let scratch = Scratch::new();
    let server = ServeProcess::start(&scratch, &[], &[]);
    let id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    let paths = [
        "/live".to_owned(),
        "/ready".to_owned(),
        "/health".to_owned(),
        "/metrics".to_owned(),
        "/".to_owned(),
        "/docs".to_owned(),
        "/openapi.json".to_owned(),
        "/api/assisted-install/v2/openapi".to_owned(),
        "/boot-artifacts/kernel".to_owned(),
        format!("/images/{id}"),
        format!("/images/{id}/pxe-initrd"),
        format!("/byid/{id}/4.18/x86_64/full.iso"),
        format!("/byapikey/{id}/4.18/x86_64/full.iso"),
        format!("/bytoken/{id}/4.18/x86_64/full.iso"),
        format!("/i/{id}"),
        format!("/i/{id}/full.iso"),
        format!("/i/{id}/boot-trace"),
    ];
    for path in paths {
        for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"] {
            let answer = server.request_with_body(&format!("{method} {path}"), "Content-Length: 5", "hello");
            let allow = answer.header("allow").map(|allow| allow.replace(' ', ""));
            assert_eq!((answer.status, allow.as_deref()), (405, Some("GET,HEAD")), "{method} {path}");
            let message = format!("method {method} is not allowed, but [GET,HEAD] are");
            assert_eq!(answer.json()["message"], message, "{method} {path}");
        }
    }
    server.stop();
}

#[test]
fn serve_reports_missing_base_images() {
    let image = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94.1", "url": "http://127.0.0.1:1/a.iso"}]"#;
    for (images, is_told) in [("", true), (image, false)] {
        let scratch = Scratch::new();
        let log = ServeProcess::start(&scratch, &[("OS_IMAGES", images)], &[]).stop();
        let warning = log.lines().find(|line| line.contains("OS_IMAGES (--os-images) is not set"));
        assert_eq!(warning.is_some(), is_told, "{log}");
        let parts = ["WARN", "/v2/os-images", "start with --os-images '[{\"openshift_version\": "];
        assert!(warning.is_none_or(|line| parts.iter().all(|part| line.contains(part))), "{log}");
    }
}

#[test]
fn log_has_the_page_and_the_client_of_each_change() {
    let scratch = Scratch::new();
    let server = ServeProcess::start(&scratch, &[], &[]);
    let path = "/api/assisted-install/v2/infra-envs/6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    for method in ["DELETE", "PATCH", "POST", "PUT"] {
        server.request_with_body(&format!("{method} {path}"), "Content-Length: 2", "{}");
    }
    let page = format!("page for browsers url=http://{}/", server.addresses[0]);
    let log = server.stop();
    assert!(log.lines().any(|line| line.contains("INFO") && line.contains(&page)), "{log}");
    for (method, status) in [("DELETE", 404), ("PATCH", 400), ("POST", 405), ("PUT", 405)] {
        let part = format!("answered client=127.0.0.1 method={method} uri={path} status={status} ");
        assert!(log.lines().any(|line| line.contains("INFO") && line.contains(&part)), "{part}: {log}");
    }
}

#[test]
fn responses_are_compressed_on_request() {
    let scratch = Scratch::new();
    let server = ServeProcess::start(&scratch, &[("SELF_VERSION", &"v".repeat(1500))], &[]);
    let plain = server.request(&format!("GET {VERSIONS}"), "");
    assert_eq!(plain.header("content-encoding"), None);
    let packed = server.request(&format!("GET {VERSIONS}"), "Accept-Encoding: gzip");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.head.to_ascii_lowercase().contains("vary: accept-encoding"), "{}", packed.head);
    assert!(packed.body.len() < plain.body.len() / 2);
    // A HEAD response has no body, so the server does not know its compressed length.
    let head = server.request(&format!("HEAD {VERSIONS}"), "Accept-Encoding: gzip");
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, None, 0));
    assert!(head.head.to_ascii_lowercase().contains("vary: accept-encoding"), "{}", head.head);
    let head = server.request(&format!("HEAD {VERSIONS}"), "");
    assert_eq!(head.header("content-length"), Some(plain.body.len().to_string().as_str()));
    // The response is sent uncompressed even if the client accepts no such encoding.
    for unknown in ["identity;q=0", "*;q=0", "br, identity;q=0"] {
        let answer = server.request(&format!("GET {VERSIONS}"), &format!("Accept-Encoding: {unknown}"));
        assert_eq!((answer.status, answer.header("content-encoding")), (200, None), "{unknown}");
        assert!(answer.body == plain.body);
    }
    server.stop();
    let server = ServeProcess::start(&scratch, &[], &[]);
    let small = server.request(&format!("GET {VERSIONS}"), "Accept-Encoding: gzip");
    assert!(small.body.len() < 1400);
    assert_eq!(small.header("content-encoding"), None);
    server.stop();
}

#[test]
fn allowed_origins_pass_cors() {
    let scratch = Scratch::new();
    let domains = ("ALLOWED_DOMAINS", "https://ui.example.com, https://*.example.org");
    let server = ServeProcess::start(&scratch, &[domains], &[]);
    for (origin, is_allowed) in [
        ("https://ui.example.com", true),
        ("https://a.example.org", true),
        ("https://evil.example.com", false),
        ("https://example.org.evil.com", false),
    ] {
        let answer = server.request(&format!("GET {VERSIONS}"), &format!("Origin: {origin}"));
        let expected = is_allowed.then_some(origin);
        assert_eq!(answer.header("access-control-allow-origin"), expected, "{origin}");
        let headers = format!("Origin: {origin}\r\nAccess-Control-Request-Method: PATCH");
        let preflight = server.request(&format!("OPTIONS {VERSIONS}"), &headers);
        assert_eq!((preflight.status, preflight.header("access-control-allow-origin")), (200, expected));
        assert_eq!(preflight.header("access-control-max-age"), Some("600"));
        assert!(preflight.header("access-control-allow-methods").unwrap().contains("PATCH"));
    }
    server.stop();
    let server = ServeProcess::start(&scratch, &[], &[]);
    let answer = server.request(&format!("GET {VERSIONS}"), "Origin: https://ui.example.com");
    assert_eq!(answer.header("access-control-allow-origin"), None);
    server.stop();
}

#[test]
fn serve_listens_on_several_addresses() {
    let scratch = Scratch::new();
    let run = scratch.command(["serve"]).env("KINDLING_LISTEN", "127.0.0.1:0,127.0.0.2:0");
    let server = ServeProcess::spawn(run.command(), 2);
    assert!(server.addresses[1].starts_with("127.0.0.2:"));
    for address in &server.addresses {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /live HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.0 200"), "{text}");
    }
    let address = server.addresses[0].clone();
    scratch
        .run_kindling(&format!("serve --listen {address} --data-dir other"))
        .expect_failure("cannot listen on");
    assert!(!scratch.has_file("other"));
    server.stop();
}

/// An option overrides a variable, and a variable with the prefix `KINDLING_` overrides one without. An empty variable
/// is ignored.
#[test]
fn settings_come_from_options_and_variables() {
    let scratch = Scratch::new();
    let version = |variables: &[(&str, &str)], options: &[&str]| {
        let server = ServeProcess::start(&scratch, variables, options);
        let answer = server.request(&format!("GET {VERSIONS}"), "").json();
        server.stop();
        answer["versions"]["assisted-installer-service"].as_str().unwrap().to_owned()
    };
    let plain = ("SELF_VERSION", "plain");
    assert_eq!(version(&[plain], &[]), "plain");
    assert_eq!(version(&[plain, ("MYAPP_SELF_VERSION", "prefixed")], &[]), "prefixed");
    assert_eq!(version(&[plain, ("MYAPP_SELF_VERSION", "")], &[]), "plain");
    assert_eq!(version(&[plain], &["--self-version", "option"]), "option");
    let empty = ["SELF_VERSION", "DB_PORT", "HOST_MAX_DISCONNECTION_TIME", "OS_IMAGES", "INFRA_ENV_ID"];
    let empty = empty.map(|name| (name, ""));
    assert_eq!(version(&empty, &[]), format!("kindling-{}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn error_for_an_invalid_value_names_its_variable() {
    let scratch = Scratch::new();
    for (name, value, expected) in [
        ("KINDLING_LISTEN", "localhost", "expected an IP address and a port, such as 127.0.0.1:8090"),
        ("KINDLING_LISTEN_TLS", "8443", "expected an IP address and a port, such as 127.0.0.1:8090"),
        ("AUTH_TYPE", "ldap", "[possible values: none, local]"),
        ("DB_PORT", "70000", "not in 0..=65535"),
        ("ISO_IMAGE_TYPE", "iso", "expected full-iso or minimal-iso"),
        ("HOST_MAX_DISCONNECTION_TIME", "3", "expected a duration, such as 90s"),
        ("MYAPP_HOST_MAX_DISCONNECTION_TIME", "soon", "expected a duration, such as 90s"),
        ("ENABLE_REJECT_UNKNOWN_FIELDS", "maybe", "expected true or false"),
        ("SKIP_CERT_VERIFICATION", "2", "expected true or false"),
        ("ENABLE_UPGRADE_AGENT", "maybe", "expected true or false"),
        ("NETWORK_DISCOVERY_DELAY_SECONDS", "-1", "-1 is not in 0..="),
        ("MIN_VERSION_FOR_NMSTATE_SERVICE", "new", "expected a version, such as 4.18"),
        ("INFRA_ENV_ID", "mine", "expected a UUID"),
        ("CLUSTER_NETWORK_CIDR", "fd01::/48", "expected a network, such as 10.128.0.0/14"),
        ("CLUSTER_NETWORK_HOST_PREFIX", "33", "33 is not in 1..=32"),
        ("SERVICE_NETWORK_CIDR_IPV6", "fd02::", "expected a network, such as fd01::/48"),
        ("ALLOWED_DOMAINS", "https://*.*", "expected an origin"),
        ("LOG_LEVEL", "loud", "expected error, warn, info, debug, trace"),
        ("LOG_FORMAT", "xml", "[possible values: text, json]"),
    ] {
        let output = scratch.command(["serve"]).env(name, value).run();
        output.expect_usage_error(&format!("invalid value '{value}'"));
        output.expect_usage_error(expected);
        output.expect_usage_error(&format!("the value comes from the variable {name}\n"));
    }
    for (name, value, expected) in [
        (
            "AUTH_TYPE",
            "rhsso",
            "AUTH_TYPE (--auth-type): this policy of the Assisted Service is not supported",
        ),
        ("SERVICE_BASE_URL", "ftp://x", "SERVICE_BASE_URL \"ftp://x\""),
        ("IMAGE_SERVICE_BASE_URL", "http://user:secret@", "IMAGE_SERVICE_BASE_URL"),
        ("OS_IMAGES", "[]", "OS_IMAGES"),
        ("OS_IMAGES", "@missing.json", "reading missing.json"),
        ("KINDLING_OS_IMAGES_FILE", "missing.json", "reading missing.json"),
        ("RELEASE_IMAGES", "{}", "RELEASE_IMAGES"),
        ("IGNORED_OPENSHIFT_VERSIONS", "4.18", "IGNORED_OPENSHIFT_VERSIONS"),
        ("SERVICE_CA_CERT_PATH", "missing.pem", "SERVICE_CA_CERT_PATH"),
        ("KINDLING_DATABASE_URL", "postgres://user:secret@127.0.0.1:1/x", "postgres://127.0.0.1:1/x"),
        ("KINDLING_EC_PRIVATE_KEY_FILE", "missing.pem", ""),
    ] {
        let run = scratch.command(["serve", "--listen", "127.0.0.1:0"]).env(name, value);
        if name == "KINDLING_EC_PRIVATE_KEY_FILE" {
            run.env("AUTH_TYPE", "local").run().expect_failure("reading missing.pem");
            continue;
        }
        let output = run.run();
        output.expect_failure(expected);
        assert!(!output.stderr.contains("secret"), "{}", output.stderr);
    }
    let both = scratch.command(["serve", "--database-url", "sqlite:x"]).env("DB_HOST", "db").run();
    both.expect_usage_error("cannot be used with");
}

#[test]
fn open_access_requires_an_explicit_option() {
    let scratch = Scratch::new();
    let refused = |line: &str, phrase: &str| {
        let output = scratch.run_kindling(&format!("serve {line}"));
        output.expect_failure(phrase);
        assert_eq!(scratch.names(), Vec::<String>::new());
    };
    for address in ["0.0.0.0:0", "[::]:0", "127.0.0.1:0,0.0.0.0:0", "192.0.2.1:80"] {
        refused(&format!("--listen {address}"), "or `--auth-type none --allow-open-access`");
        refused(&format!("--listen {address} --auth-type none"), "--allow-open-access");
        refused(&format!("--listen {address} --auth-type local"), "no private key: set EC_PRIVATE_KEY_PEM");
    }
    let run =
        scratch.command(["serve", "--listen", "0.0.0.0:0", "--auth-type", "none", "--allow-open-access"]);
    let server = ServeProcess::spawn(run.command(), 1);
    assert!(server.stop().contains("every client that reaches this address may do everything"));
    let mapped =
        ServeProcess::spawn(scratch.command(["serve", "--listen", "[::ffff:127.0.0.1]:0"]).command(), 1);
    mapped.stop();
}

#[test]
fn image_lists_may_be_read_from_files() {
    let scratch = Scratch::new();
    let list = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "http://a/b", "version": "1"}]"#;
    scratch.write("images.json", list);
    scratch.write("wrong.json", "[{}]");
    ServeProcess::start(&scratch, &[("OS_IMAGES", list)], &[]).stop();
    ServeProcess::start(&scratch, &[("OS_IMAGES", "@images.json")], &[]).stop();
    ServeProcess::start(&scratch, &[], &["--os-images-file", "images.json"]).stop();
    let output = scratch.run_kindling("serve --listen 127.0.0.1:0 --os-images-file wrong.json");
    output.expect_failure("--os-images-file: wrong.json: [0].openshift_version is missing");
    scratch
        .run_kindling("serve --os-images [] --os-images-file wrong.json")
        .expect_usage_error("cannot be used with");
}

/// The token in a URL changes with the key. If the key stays the same, so does the URL.
#[test]
fn changed_key_changes_urls() {
    const INFRA_ENVS: &str = "/api/assisted-install/v2/infra-envs";
    let scratch = Scratch::new();
    scratch.run_kindling("auth keys --out one").expect_success();
    scratch.run_kindling("auth keys --out two").expect_success();
    let list = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "http://a/b", "version": "1"}]"#;
    let start = |key: &str| {
        let file = format!("{key}/ec-private-key.pem");
        let user =
            scratch.run_kindling(&format!("auth token --user --ec-private-key-file {file}")).expect_text();
        let variables =
            [("OS_IMAGES", list), ("AUTH_TYPE", "local"), ("KINDLING_EC_PRIVATE_KEY_FILE", &file)];
        (ServeProcess::start(&scratch, &variables, &[]), format!("Authorization: {}", user.trim()))
    };
    let url = |infra_env: &Value| {
        infra_env["download_url"].as_str().unwrap().split_once("/by").unwrap().1.to_owned()
    };
    let token = |url: &str| url.split('/').nth(1).unwrap().to_owned();
    let (server, user) = start("one");
    let body = r#"{"name": "demo", "pull_secret": "{\"auths\":{\"quay.io\":{\"auth\":\"dXNlcjpwYXNz\"}}}"}"#;
    let headers = format!("{user}\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
    let created = server.request_with_body(&format!("POST {INFRA_ENVS}"), &headers, body);
    assert_eq!(created.status, 201, "{created:?}");
    let get = format!("GET {INFRA_ENVS}/{}", created.json()["id"].as_str().unwrap());
    let first = url(&created.json());
    assert!(first.starts_with("apikey/"), "{first}");
    server.stop();
    let (server, user) = start("one");
    // The URLs contain the port of the server, which changes, so the test compares only their tokens.
    assert_eq!(token(&url(&server.request(&get, &user).json())), token(&first));
    server.stop();
    let (server, user) = start("two");
    let second = url(&server.request(&get, &user).json());
    assert_ne!(second, first);
    assert_eq!(server.request(&format!("{get}?api_key={}", token(&first)), "").status, 401);
    assert_eq!(server.request(&format!("{get}?api_key={}", token(&second)), "").status, 200);
    assert!(server.stop().contains("access policy or its key changed"));
    let server = ServeProcess::start(&scratch, &[("OS_IMAGES", list)], &[]);
    let open = url(&server.request(&get, "").json());
    assert!(open.starts_with("id/"), "{open}");
    server.stop();
}

#[test]
fn two_servers_do_not_share_a_data_directory() {
    let scratch = Scratch::new();
    let server = ServeProcess::start(&scratch, &[], &[]);
    scratch.run_kindling("serve --listen 127.0.0.1:0").expect_failure("kindling-data/kindling.db is in use");
    assert_eq!(server.request("GET /health", "").status, 200);
    server.stop();
    ServeProcess::start(&scratch, &[], &[]).stop();
}

#[test]
fn rejects_invalid_bucket_settings_at_start() {
    let scratch = Scratch::new();
    for (name, value, phrase) in [
        ("S3_ENDPOINT_URL", "http://user:s3cret@127.0.0.1:9", "a URL with a user or password"),
        ("S3_ENDPOINT_URL", "s3cret:9000", "S3_ENDPOINT_URL"),
        ("AWS_REGION", "us east", "AWS_REGION: \"us east\" is not a region"),
        ("AWS_SECRET_ACCESS_KEY", "s3cret\n", "AWS_SECRET_ACCESS_KEY: contains characters"),
    ] {
        let run = scratch.command(["serve", "--listen", "127.0.0.1:0", "--files", "s3://kindling-files/a"]);
        let run = run.env("S3_ENDPOINT_URL", "http://127.0.0.1:9").env("AWS_REGION", "us-east-1");
        let run = run.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
        let output = run.env(name, value).run();
        output.expect_failure(phrase);
        assert!(!output.stderr.contains("s3cret"), "{}", output.stderr);
    }
    let images = json!([{
        "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94.1",
        "url": "s3://images/a.iso",
    }]);
    let run = scratch.command(["serve", "--listen", "127.0.0.1:0"]).env("OS_IMAGES", images.to_string());
    run.env("S3_ENDPOINT_URL", "http://a b").run().expect_failure("S3_ENDPOINT_URL");
}

/// Images do not need the bucket of uploaded files, so the server stays ready without it.
#[test]
fn unreachable_bucket_is_visible_in_readiness() {
    let scratch = Scratch::new();
    let away = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = format!("http://{away}");
    let variables = [
        ("KINDLING_FILES", "s3://kindling-files"),
        ("S3_ENDPOINT_URL", &endpoint),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
    ];
    let server = ServeProcess::start(&scratch, &variables, &[]);
    for path in ["/ready", "/health"] {
        let answer = server.request(&format!("GET {path}"), "");
        assert_eq!((answer.status, &answer.json()["files"]), (200, &json!("unreachable")), "{answer:?}");
    }
    server.stop();
}
