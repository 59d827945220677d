//! Listeners of `kindling serve`: TLS, unix sockets, and inherited sockets.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::serve::{PATIENCE, ServeProcess};
use crate::support::{CertificateAuthority, KINDLING, ProgramRun, Scratch, require_tool, write_pair};

/// Variables with the paths of the certificate and its key.
const CERTIFICATE: [(&str, &str); 2] = [("HTTPS_CERT_FILE", "cert.pem"), ("HTTPS_KEY_FILE", "key.pem")];
const INFRA_ENVS: &str = "/api/assisted-install/v2/infra-envs";
const OS_IMAGES: &str =
    r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "http://a/b", "version": "1"}]"#;

/// Creates a folder with an authority, and with a certificate and key that it issued.
fn scratch_with_certificate() -> (Scratch, CertificateAuthority) {
    let (scratch, authority) = (Scratch::new(), CertificateAuthority::new());
    scratch.write("ca.pem", &authority.pem);
    write_pair(&scratch, &authority.issue());
    (scratch, authority)
}

#[track_caller]
fn spawn_server(
    scratch: &Scratch,
    variables: &[(&str, &str)],
    arguments: &str,
    listeners: usize,
) -> ServeProcess {
    let run = scratch.command(["serve"].into_iter().chain(arguments.split_whitespace()));
    let run = variables.iter().fold(run, |run, (name, value)| run.env(name, value));
    ServeProcess::spawn(run.command(), listeners)
}

/// Returns the output of curl.
#[track_caller]
fn curl_output(scratch: &Scratch, arguments: &str) -> Vec<u8> {
    ProgramRun::new("curl", scratch.folder())
        .args(["-q", "-sS", "--noproxy", "*"])
        .args(arguments.split_whitespace())
        .run()
        .expect_success()
}

fn curl_status(scratch: &Scratch, arguments: &str) -> String {
    let code = curl_output(scratch, &format!("-o /dev/null -w %{{http_code}} {arguments}"));
    String::from_utf8(code).unwrap()
}

/// Waits for an effect of the server's background tasks.
#[track_caller]
fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn serve_listens_on_a_unix_socket() {
    if require_tool("curl").is_none() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.path("socket");
    let server = spawn_server(&scratch, &[("OS_IMAGES", OS_IMAGES)], "--listen unix:socket", 1);
    assert_eq!(server.addresses, ["unix:socket"]);
    let data = fs::symlink_metadata(&path).unwrap();
    assert!(data.file_type().is_socket());
    assert_eq!(data.permissions().mode() & 0o777, 0o660);
    // The file mode protects the socket, so no token is required, as on loopback.
    let get = "--unix-socket socket http://localhost";
    assert_eq!(curl_status(&scratch, &format!("{get}/health")), "200");
    assert_eq!(curl_status(&scratch, &format!("{get}{INFRA_ENVS}")), "200");
    let refused = scratch.run_kindling("serve --listen unix:socket --data-dir other");
    refused.expect_failure("--listen (KINDLING_LISTEN): cannot listen on unix:socket");
    refused.expect_failure("another process listens on this socket");
    assert_eq!(curl_status(&scratch, &format!("{get}/health")), "200");
    let log = server.stop();
    assert!(log.contains("other machines cannot reach http://localhost:"), "{log}");
    assert!(!scratch.has_file("socket"));

    // A server replaces the socket file of a killed server, but no other file.
    drop(UnixListener::bind(&path).unwrap());
    let both = spawn_server(&scratch, &[], "--listen 127.0.0.1:0,unix:socket", 2);
    assert_eq!(curl_status(&scratch, &format!("{get}/health")), "200");
    assert_eq!(both.request("GET /health", "").status, 200);
    both.stop();
    scratch.write("socket", "precious");
    scratch.run_kindling("serve --listen unix:socket").expect_failure("the path exists and is not a socket");
    assert_eq!(scratch.read("socket"), b"precious");
    scratch
        .run_kindling("serve --listen unix:none/socket")
        .expect_failure("--listen (KINDLING_LISTEN): cannot listen on unix:none/socket");
    scratch.run_kindling("serve --listen unix:").expect_usage_error("expected a path after unix:");
}

#[test]
fn tls_server_also_serves_boot_files_over_plain_http() {
    if require_tool("curl").is_none() {
        return;
    }
    let (scratch, _authority) = scratch_with_certificate();
    let variables = [&CERTIFICATE[..], &[("OS_IMAGES", OS_IMAGES)]].concat();
    let server = spawn_server(
        &scratch,
        &variables,
        "--listen 127.0.0.1:0,unix:socket --listen-tls 127.0.0.1:0 --listen-tls 127.0.0.2:0",
        4,
    );
    let [tls, second, plain, unix] = &server.addresses[..] else { panic!("{:?}", server.addresses) };
    assert!(second.starts_with("127.0.0.2:") && unix == "unix:socket");
    let tls = format!("--cacert ca.pem https://{tls}");
    let (plain, unix) = (format!("http://{plain}"), "--unix-socket socket http://localhost".to_owned());
    let body = r#"{"name":"demo","pull_secret":"{\"auths\":{\"quay.io\":{\"auth\":\"dXNlcjpwYXNz\"}}}"}"#;
    scratch.write("body.json", body);
    let created = curl_output(&scratch, &format!("--json @body.json {tls}{INFRA_ENVS}"));
    let created: serde_json::Value = serde_json::from_slice(&created).unwrap();
    let url = created["download_url"].as_str().unwrap();
    assert!(url.starts_with(tls.rsplit(' ').next().unwrap()), "{url}");
    let id = created["id"].as_str().unwrap();
    let script = format!("{INFRA_ENVS}/{id}/downloads/files?file_name=ipxe-script");
    let config = format!("{INFRA_ENVS}/{id}/downloads/files?file_name=discovery.ign");
    for (path, everywhere, without_tls) in [
        ("/health", "200", "200"),
        ("/live", "200", "200"),
        (script.as_str(), "200", "200"),
        (config.as_str(), "200", "404"),
        (INFRA_ENVS, "200", "404"),
        // The base image of the infra-env is unavailable (400). Version 4.19 is unknown (404).
        (&format!("/byid/{id}/4.19/x86_64/full.iso"), "404", "404"),
        (&format!("/images/{id}?version=4.18"), "400", "404"),
        (&format!("/images/{id}/pxe-initrd"), "400", "400"),
        (&format!("/images/{id}/s390x-initrd-addrsize"), "400", "404"),
        ("/boot-artifacts/kernel", "400", "400"),
    ] {
        for (base, expected) in [(&tls, everywhere), (&unix, everywhere), (&plain, without_tls)] {
            assert_eq!(curl_status(&scratch, &format!("{base}{path}")), expected, "{base}{path}");
        }
    }
    let body = curl_output(&scratch, &format!("{plain}{INFRA_ENVS}"));
    assert_eq!(body, b"this path is only served over TLS\n");
    assert_eq!(curl_status(&scratch, &format!("-X DELETE {plain}{INFRA_ENVS}/{id}")), "404");
    let log = server.stop();
    assert!(log.contains("uri=/api/assisted-install/v2/infra-envs status=404"), "{log}");
}

/// The TLS record with which a client closes the connection does not count as the start of a request.
#[test]
fn tls_connections_end_with_their_clients() {
    if require_tool("curl").is_none() {
        return;
    }
    let (scratch, _authority) = scratch_with_certificate();
    let line = "--listen-tls 127.0.0.1:0 --max-client-connections 4";
    let server = spawn_server(&scratch, &CERTIFICATE, line, 1);
    for version in ["1.2", "1.3"] {
        let get = format!(
            "--cacert ca.pem --tlsv{version} --tls-max {version} https://{}/live",
            server.addresses[0]
        );
        let arguments: Vec<_> = "-q -sS --noproxy *".split(' ').chain(get.split(' ')).collect();
        let curl = || ProgramRun::new("curl", scratch.folder()).args(&arguments).run().status.success();
        for _ in 0..10 {
            wait_for("earlier connections have ended", curl);
        }
    }
    server.stop();
}

#[test]
fn signal_ends_handshakes() {
    let (scratch, _) = scratch_with_certificate();
    let server = spawn_server(&scratch, &CERTIFICATE, "--listen-tls 127.0.0.1:0", 1);
    // One connection without a handshake, and one with an incomplete handshake.
    let _silent = server.connect();
    let mut partial = server.connect();
    partial.write_all(b"\x16\x03\x01\x02\x00\x01").unwrap();
    let start = Instant::now();
    server.send_signal("TERM");
    let (code, log) = server.wait_for_exit();
    assert_eq!(code, Some(0), "{log}");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}: {log}", start.elapsed());
}

#[test]
fn certificate_is_reloaded() {
    if require_tool("curl").is_none() {
        return;
    }
    let (scratch, authority) = scratch_with_certificate();
    let server = spawn_server(&scratch, &CERTIFICATE, "--listen-tls 127.0.0.1:0", 1);
    let get = format!("https://{}/health", server.addresses[0]);
    let serves = |authority: &str| {
        let output = ProgramRun::new("curl", scratch.folder())
            .args(["-q", "-sS", "--noproxy", "*", "--cacert", authority, &get])
            .run();
        output.status.success()
    };
    assert!(serves("ca.pem"));
    // After a signal, an invalid pair of certificate and key changes nothing.
    scratch.write("key.pem", authority.issue().1);
    server.send_signal("HUP");
    let other = CertificateAuthority::new();
    scratch.write("other.pem", &other.pem);
    assert!(serves("ca.pem") && !serves("other.pem"));
    write_pair(&scratch, &other.issue());
    server.send_signal("HUP");
    wait_for("the new one is served after a signal", || serves("other.pem"));
    assert!(!serves("ca.pem"));
    // Without a signal, the server also detects files that a rename replaces, as Kubernetes does it.
    let (chain, key) = authority.issue();
    for (name, text) in [("cert.pem", chain), ("key.pem", key)] {
        scratch.write("new", text);
        fs::rename(scratch.path("new"), scratch.path(name)).unwrap();
    }
    wait_for("the files are looked at", || serves("ca.pem"));
    let log = server.stop();
    assert!(log.contains("certificate reloaded"), "{log}");
    assert!(log.contains("does not match the first certificate"), "{log}");
}

#[test]
fn invalid_certificates_prevent_the_start() {
    let (scratch, authority) = scratch_with_certificate();
    let serve = |line: &str| scratch.run_kindling(&format!("serve --data-dir data {line}"));
    let pair = "--https-cert-file cert.pem --https-key-file key.pem";
    serve("--listen-tls 127.0.0.1:0").expect_failure("TLS needs a certificate and its key: HTTPS_CERT_FILE");
    serve(&format!("--listen 127.0.0.1:0 {pair}"))
        .expect_failure("a certificate is configured, but no TLS listener");
    serve("--https-cert-file cert.pem").expect_usage_error("--https-key-file");
    serve("--https-key-file key.pem").expect_usage_error("--https-cert-file");
    scratch.write("key.pem", authority.issue().1);
    serve(&format!("--listen-tls 127.0.0.1:0 {pair}"))
        .expect_failure("the private key in key.pem does not match the first certificate in cert.pem");
    scratch.write("key.pem", "");
    serve(&format!("--listen-tls 127.0.0.1:0 {pair}"))
        .expect_failure("key.pem contains no unencrypted private key");
    scratch.remove("cert.pem");
    serve(&format!("--listen-tls 127.0.0.1:0 {pair}")).expect_failure("cannot read cert.pem");
    assert!(!scratch.has_file("data"));
}

/// The variables of the image service of the Assisted Installer.
#[test]
fn port_variables_of_the_image_service_are_accepted() {
    if require_tool("curl").is_none() {
        return;
    }
    let (scratch, _authority) = scratch_with_certificate();
    let ports = [("LISTEN_PORT", "0"), ("HTTP_LISTEN_PORT", "0")];
    let refused = |variables: &[(&str, &str)], phrase: &str| {
        let run =
            variables.iter().fold(scratch.command(["serve"]), |run, (name, value)| run.env(name, value));
        run.run().expect_failure(phrase);
        assert!(!scratch.has_file("kindling-data"));
    };
    refused(&ports[..1], "other machines can reach [::]:0");
    refused(&[&ports[..], &CERTIFICATE[..]].concat(), "`--auth-type none --allow-open-access`");
    let open = [("AUTH_TYPE", "none"), ("KINDLING_ALLOW_OPEN_ACCESS", "true")];
    let port = |address: &str| address.rsplit(':').next().unwrap().to_owned();

    let server = spawn_server(&scratch, &[&ports[..1], &open[..]].concat(), "", 1);
    let url = format!("http://127.0.0.1:{}{INFRA_ENVS}", port(&server.addresses[0]));
    assert_eq!(curl_status(&scratch, &url), "200");
    let log = server.stop();
    assert!(log.contains("other machines cannot reach http://"), "{log}");

    let server = spawn_server(&scratch, &[&ports[..], &open[..], &CERTIFICATE[..]].concat(), "", 2);
    let [tls, plain] = &server.addresses[..] else { panic!("{:?}", server.addresses) };
    let tls = format!("--cacert ca.pem https://127.0.0.1:{}{INFRA_ENVS}", port(tls));
    assert_eq!(curl_status(&scratch, &tls), "200");
    assert_eq!(curl_status(&scratch, &format!("http://127.0.0.1:{}{INFRA_ENVS}", port(plain))), "404");
    server.stop();
}

/// A script that starts a command with sockets at its descriptors from 3 on, like systemd.
const SUPERVISOR: &str = r"
import os, socket, sys
names, program = sys.argv[1], sys.argv[2:]
sockets = []
for name in names.split(':'):
    if name == 'unix':
        sockets.append(socket.socket(socket.AF_UNIX))
        sockets[-1].bind('socket')
    elif name == 'datagram':
        sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        sockets[-1].bind(('127.0.0.1', 0))
    else:
        sockets.append(socket.socket())
        sockets[-1].bind(('0.0.0.0' if name == 'open' else '127.0.0.1', 0))
    if name != 'datagram':
        sockets[-1].listen()
above = [os.dup2(each.fileno(), 100 + at) for at, each in enumerate(sockets)]
for at, each in enumerate(above):
    os.dup2(each, 3 + at)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(sockets)), LISTEN_FDNAMES=names)
os.execv(program[0], program)
";

fn run_supervised(scratch: &Scratch, names: &str) -> ProgramRun {
    ProgramRun::new("python3", scratch.folder()).args(["-c", SUPERVISOR, names, KINDLING, "serve"])
}

#[test]
fn serve_listens_on_inherited_sockets() {
    if require_tool("curl").is_none() || require_tool("python3").is_none() {
        return;
    }
    let (scratch, _authority) = scratch_with_certificate();
    let certified = |run: ProgramRun| CERTIFICATE.iter().fold(run, |run, (name, value)| run.env(name, value));
    let server = ServeProcess::spawn(certified(run_supervised(&scratch, "https:api:unix")).command(), 3);
    let [tls, plain, _] = &server.addresses[..] else { panic!("{:?}", server.addresses) };
    assert_eq!(curl_status(&scratch, &format!("--cacert ca.pem https://{tls}{INFRA_ENVS}")), "200");
    assert_eq!(curl_status(&scratch, &format!("http://{plain}{INFRA_ENVS}")), "404");
    assert_eq!(curl_status(&scratch, &format!("--unix-socket socket http://localhost{INFRA_ENVS}")), "200");
    server.stop();
    assert!(scratch.has_file("socket"), "an inherited socket file must be kept");
    scratch.remove("socket");

    run_supervised(&scratch, "https").run().expect_failure("TLS needs a certificate");
    run_supervised(&scratch, "open").run().expect_failure("other machines can reach");
    run_supervised(&scratch, "datagram").run().expect_failure("cannot take over the sockets from systemd");
    // `LISTEN_*` variables for another process are ignored.
    let run = scratch.command(["serve", "--listen", "127.0.0.1:0"]);
    let run = run.env("LISTEN_PID", "1").env("LISTEN_FDS", "3");
    let server = ServeProcess::spawn(run.command(), 1);
    assert_eq!(server.request("GET /health", "").status, 200);
    server.stop();
}

#[test]
fn serve_is_started_by_socket_activation() {
    if require_tool("curl").is_none() || require_tool("systemd-socket-activate").is_none() {
        return;
    }
    let scratch = Scratch::new();
    let socket = scratch.path("activated");
    let mut supervisor = Command::new("systemd-socket-activate")
        .args(["-l", socket.to_str().unwrap(), KINDLING, "serve"])
        .current_dir(scratch.folder())
        .spawn()
        .unwrap();
    wait_for("the server listens", || socket.exists());
    let options = ["-q", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", "activated"];
    let url = format!("http://localhost{INFRA_ENVS}");
    let answer = ProgramRun::new("curl", scratch.folder()).args(options).args([&url]).run();
    let ended = Command::new("kill").arg(supervisor.id().to_string()).status().unwrap();
    assert!(ended.success() && supervisor.wait().unwrap().success());
    assert_eq!(answer.expect_text(), "200");
}

/// Returns `true` if curl with these arguments gets a response over TLS.
fn is_answered_over_tls(scratch: &Scratch, server: &ServeProcess, arguments: &str) -> bool {
    let port = server.addresses[0].rsplit(':').next().unwrap();
    let line = format!("-q -sS --noproxy * --cacert ca.pem {arguments} https://localhost:{port}/live");
    ProgramRun::new("curl", scratch.folder()).args(line.split(' ')).run().status.success()
}

#[test]
fn tls_versions_and_cipher_suites_are_limited() {
    if require_tool("curl").is_none() {
        return;
    }
    let (scratch, _authority) = scratch_with_certificate();
    const GCM: &str = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
    let old = "--tlsv1.2 --tls-max 1.2";
    let spawn = |data: &str, name: &str, value: &str| {
        let variables = [CERTIFICATE[0], CERTIFICATE[1], (name, value)];
        let place = format!("--data-dir {data} --listen-tls 127.0.0.1:0");
        spawn_server(&scratch, &variables, &place, 1)
    };
    let newest = spawn("newest", "TLS_MIN_VERSION", "VersionTLS13");
    assert!(is_answered_over_tls(&scratch, &newest, "--tlsv1.3"));
    assert!(!is_answered_over_tls(&scratch, &newest, old));
    let usual = spawn("usual", "TLS_MIN_VERSION", "VersionTLS12");
    assert!(is_answered_over_tls(&scratch, &usual, old));
    let few = spawn("few", "TLS_CIPHER_SUITES", &format!("{GCM}, TLS_RSA_WITH_AES_128_CBC_SHA"));
    assert!(is_answered_over_tls(&scratch, &few, &format!("{old} --ciphers ECDHE-ECDSA-AES128-GCM-SHA256")));
    assert!(!is_answered_over_tls(&scratch, &few, &format!("{old} --ciphers ECDHE-ECDSA-AES256-GCM-SHA384")));
    assert!(is_answered_over_tls(&scratch, &few, "--tlsv1.3"));
    let refused = |name: &str, value: &str| {
        let run = scratch.command(["serve", "--listen-tls", "127.0.0.1:0"]).env(name, value);
        CERTIFICATE.iter().fold(run, |run, (name, value)| run.env(name, value)).run()
    };
    refused("TLS_CIPHER_SUITES", "TLS_RSA_WITH_AES_128_CBC_SHA")
        .expect_failure("none of the TLS 1.2 cipher suites");
    refused("TLS_MIN_VERSION", "VersionTLS14").expect_usage_error("expected VersionTLS12 or VersionTLS13");
}

/// Replaces the server's certificate with a certificate that is valid in these years.
fn write_certificate(scratch: &Scratch, authority: &CertificateAuthority, from: i32, until: i32) {
    let pair = authority.issue_for_names(&["localhost"], |params| {
        params.not_before = rcgen::date_time_ymd(from, 1, 1);
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
    });
    write_pair(scratch, &pair);
}

#[test]
fn expired_or_future_certificate_is_a_warning_and_a_metric() {
    if require_tool("curl").is_none() {
        return;
    }
    let (scratch, authority) = scratch_with_certificate();
    write_certificate(&scratch, &authority, 2001, 2002);
    let server = spawn_server(&scratch, &CERTIFICATE, "--listen-tls 127.0.0.1:0", 1);
    let metric = |name: &str| {
        let text = curl_output(&scratch, &format!("--insecure https://{}/metrics", server.addresses[0]));
        let text = String::from_utf8(text).unwrap();
        let name = format!("kindling_tls_certificate_{name}_timestamp_seconds ");
        text.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok())
    };
    let year = |year: i32| Some(rcgen::date_time_ymd(year, 1, 1).unix_timestamp());
    assert_eq!((metric("not_before"), metric("not_after")), (year(2001), year(2002)));
    for (from, until) in [(2020, 9000), (8000, 9000)] {
        write_certificate(&scratch, &authority, from, until);
        server.send_signal("HUP");
        wait_for("the certificate is reloaded", || metric("not_before") == year(from));
        assert_eq!(metric("not_after"), year(until));
    }
    let log = server.stop();
    for part in [
        "certificate has expired, clients refuse it chain=cert.pem end=2002-01-01 00:00:00 UTC",
        "certificate is not valid yet, clients refuse it chain=cert.pem begin=8000-01-01 00:00:00 UTC",
    ] {
        assert_eq!(log.matches(part).count(), 1, "{part}: {log}");
    }
    assert_eq!(log.matches("clients refuse it").count(), 2, "{log}");
    let plain = ServeProcess::start(&scratch, &[], &[]);
    let metrics = String::from_utf8(plain.request("GET /metrics", "").body).unwrap();
    assert!(!metrics.contains("tls_certificate"), "{metrics}");
    plain.stop();
}

#[test]
fn host_name_of_a_listener_is_resolved() {
    let scratch = Scratch::new();
    let server = spawn_server(&scratch, &[], "--listen localhost:0", 1);
    assert!(!server.addresses[0].ends_with(":0"), "{:?}", server.addresses);
    assert_eq!(server.request("GET /health", "").status, 200);
    server.stop();
    let label = "x".repeat(64);
    for (option, variable) in [("--listen", "KINDLING_LISTEN"), ("--listen-tls", "KINDLING_LISTEN_TLS")] {
        scratch.run_kindling(&format!("serve {option} {label}:0")).expect_failure(&format!(
            "{option} ({variable}): cannot resolve host \"{label}\"; use an IP address"
        ));
    }
    scratch.run_kindling("serve --listen 127.0.1:0").expect_usage_error("expected an IP address and a port");
}

#[test]
fn unusable_address_error_names_its_option() {
    let scratch = Scratch::new();
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let in_use = format!("cannot listen on {address}: the port is in use; choose another one with");
    let run = |variable: (&str, &str), line: &str| {
        scratch.command(line.split(' ')).env(variable.0, variable.1).run()
    };
    for output in [
        scratch.run_kindling(&format!("serve --listen {address}")),
        run(("KINDLING_LISTEN", &address.to_string()), "serve"),
    ] {
        output.expect_failure(&format!("{in_use} --listen (KINDLING_LISTEN)"));
        output.expect_failure("Address already in use");
    }
    let port = address.port().to_string();
    for (variable, option) in [("HTTP_LISTEN_PORT", "--http-listen-port"), ("LISTEN_PORT", "--listen-port")] {
        run((variable, &port), "serve --auth-type none --allow-open-access")
            .expect_failure(&format!("the port is in use; choose another one with {option} ({variable})"));
    }
    let foreign =
        scratch.run_kindling("serve --auth-type none --allow-open-access --listen 203.0.113.7:8090");
    foreign.expect_failure(
        "cannot listen on 203.0.113.7:8090: this machine does not have the address 203.0.113.7; choose another one with \
         --listen (KINDLING_LISTEN)",
    );
}
