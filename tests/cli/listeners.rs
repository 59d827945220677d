//! What `kindling serve` listens on: TLS, unix sockets, and sockets that it is handed.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::serve::{PATIENCE, Server};
use crate::support::{Authority, KINDLING, Run, Scratch, require_tool, write_pair};

/// Variables that say where the certificate is.
const CERTIFICATE: [(&str, &str); 2] = [("HTTPS_CERT_FILE", "cert.pem"), ("HTTPS_KEY_FILE", "key.pem")];
const INFRA_ENVS: &str = "/api/assisted-install/v2/infra-envs";
const OS_IMAGES: &str =
    r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "http://a/b", "version": "1"}]"#;

/// A folder with an authority, and a certificate and key that it issued.
fn certified() -> (Scratch, Authority) {
    let (scratch, authority) = (Scratch::new(), Authority::new());
    scratch.write("ca.pem", &authority.pem);
    write_pair(&scratch, &authority.issue());
    (scratch, authority)
}

#[track_caller]
fn spawn(scratch: &Scratch, variables: &[(&str, &str)], arguments: &str, listeners: usize) -> Server {
    let run = scratch.command(["serve"].into_iter().chain(arguments.split_whitespace()));
    let run = variables.iter().fold(run, |run, (name, value)| run.env(name, value));
    Server::spawn(run.command(), listeners)
}

/// What curl prints.
#[track_caller]
fn curl(scratch: &Scratch, arguments: &str) -> Vec<u8> {
    Run::new("curl", scratch.folder())
        .args(["-q", "-sS", "--noproxy", "*"])
        .args(arguments.split_whitespace())
        .output()
        .success()
}

fn status(scratch: &Scratch, arguments: &str) -> String {
    let code = curl(scratch, &format!("-o /dev/null -w %{{http_code}} {arguments}"));
    String::from_utf8(code).unwrap()
}

/// Waits for something that the server does in its own time.
#[track_caller]
fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn it_listens_at_a_path() {
    if require_tool("curl").is_none() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.path("socket");
    let server = spawn(&scratch, &[("OS_IMAGES", OS_IMAGES)], "--listen unix:socket", 1);
    assert_eq!(server.addresses, ["unix:socket"]);
    let data = fs::symlink_metadata(&path).unwrap();
    assert!(data.file_type().is_socket());
    assert_eq!(data.permissions().mode() & 0o777, 0o660);
    // Whoever may open it may do everything, as on a loopback address.
    let get = "--unix-socket socket http://localhost";
    assert_eq!(status(&scratch, &format!("{get}/health")), "200");
    assert_eq!(status(&scratch, &format!("{get}{INFRA_ENVS}")), "200");
    let refused = scratch.kindling("serve --listen unix:socket --data-dir other");
    refused.failure("unix:socket cannot be listened on");
    refused.failure("somebody listens there");
    assert_eq!(status(&scratch, &format!("{get}/health")), "200");
    let log = server.end();
    assert!(log.contains("SERVICE_BASE_URL is not set"), "{log}");
    assert!(!scratch.has("socket"));

    // What a server leaves behind that ends at once does not stop the next one; anything else does.
    drop(UnixListener::bind(&path).unwrap());
    let both = spawn(&scratch, &[], "--listen 127.0.0.1:0,unix:socket", 2);
    assert_eq!(status(&scratch, &format!("{get}/health")), "200");
    assert_eq!(both.ask("GET /health", "").status, 200);
    both.end();
    scratch.write("socket", "precious");
    scratch.kindling("serve --listen unix:socket").failure("there is a file that is no socket");
    assert_eq!(scratch.read("socket"), b"precious");
    scratch.kindling("serve --listen unix:none/socket").failure("unix:none/socket cannot be listened on");
    scratch.kindling("serve --listen unix:").usage("expected a path behind unix:");
}

#[test]
fn it_serves_with_tls_and_beside_it_what_machines_start_with() {
    if require_tool("curl").is_none() {
        return;
    }
    let (scratch, _authority) = certified();
    let variables = [&CERTIFICATE[..], &[("OS_IMAGES", OS_IMAGES)]].concat();
    let server = spawn(
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
    let made = curl(&scratch, &format!("--json @body.json {tls}{INFRA_ENVS}"));
    let made: serde_json::Value = serde_json::from_slice(&made).unwrap();
    let url = made["download_url"].as_str().unwrap();
    assert!(url.starts_with(tls.rsplit(' ').next().unwrap()), "{url}");
    let id = made["id"].as_str().unwrap();
    let script = format!("{INFRA_ENVS}/{id}/downloads/files?file_name=ipxe-script");
    let config = format!("{INFRA_ENVS}/{id}/downloads/files?file_name=discovery.ign");
    for (path, everywhere, without_tls) in [
        ("/health", "200", "200"),
        ("/live", "200", "200"),
        (script.as_str(), "200", "200"),
        (config.as_str(), "200", "404"),
        (INFRA_ENVS, "200", "404"),
        // Their live image cannot be had, and the version of this one is not known.
        (&format!("/byid/{id}/4.19/x86_64/full.iso"), "404", "404"),
        (&format!("/images/{id}?version=4.18"), "400", "404"),
        (&format!("/images/{id}/pxe-initrd"), "400", "400"),
        (&format!("/images/{id}/s390x-initrd-addrsize"), "400", "404"),
        ("/boot-artifacts/kernel", "400", "400"),
    ] {
        for (base, expected) in [(&tls, everywhere), (&unix, everywhere), (&plain, without_tls)] {
            assert_eq!(status(&scratch, &format!("{base}{path}")), expected, "{base}{path}");
        }
    }
    let told = curl(&scratch, &format!("{plain}{INFRA_ENVS}"));
    assert_eq!(told, b"this is served over TLS alone\n");
    assert_eq!(status(&scratch, &format!("-X DELETE {plain}{INFRA_ENVS}/{id}")), "404");
    let log = server.end();
    assert!(log.contains("uri=/api/assisted-install/v2/infra-envs status=404"), "{log}");
}

#[test]
fn a_certificate_is_read_again() {
    if require_tool("curl").is_none() {
        return;
    }
    let (scratch, authority) = certified();
    let server = spawn(&scratch, &CERTIFICATE, "--listen-tls 127.0.0.1:0", 1);
    let get = format!("https://{}/health", server.addresses[0]);
    let serves = |authority: &str| {
        let output = Run::new("curl", scratch.folder())
            .args(["-q", "-sS", "--noproxy", "*", "--cacert", authority, &get])
            .output();
        output.status.success()
    };
    assert!(serves("ca.pem"));
    // A pair that is none, with a signal: nothing changes.
    scratch.write("key.pem", authority.issue().1);
    server.signal("HUP");
    let other = Authority::new();
    scratch.write("other.pem", &other.pem);
    assert!(serves("ca.pem") && !serves("other.pem"));
    write_pair(&scratch, &other.issue());
    server.signal("HUP");
    wait_for("the new one is served after a signal", || serves("other.pem"));
    assert!(!serves("ca.pem"));
    // Without a signal, and with names that are moved, as Kubernetes does it.
    let (chain, key) = authority.issue();
    for (name, text) in [("cert.pem", chain), ("key.pem", key)] {
        scratch.write("new", text);
        fs::rename(scratch.path("new"), scratch.path(name)).unwrap();
    }
    wait_for("the files are looked at", || serves("ca.pem"));
    let log = server.end();
    assert!(log.contains("the certificate was read again"), "{log}");
    assert!(log.contains("is not that of the first certificate"), "{log}");
}

#[test]
fn wrong_certificates_stop_the_start() {
    let (scratch, authority) = certified();
    let serve = |line: &str| scratch.kindling(&format!("serve --data-dir data {line}"));
    let pair = "--https-cert-file cert.pem --https-key-file key.pem";
    serve("--listen-tls 127.0.0.1:0").failure("TLS needs a certificate and its key: HTTPS_CERT_FILE");
    serve(&format!("--listen 127.0.0.1:0 {pair}")).failure("nothing to listen on with TLS");
    serve("--https-cert-file cert.pem").usage("--https-key-file");
    serve("--https-key-file key.pem").usage("--https-cert-file");
    scratch.write("key.pem", authority.issue().1);
    serve(&format!("--listen-tls 127.0.0.1:0 {pair}"))
        .failure("the private key in key.pem is not that of the first certificate in cert.pem");
    scratch.write("key.pem", "");
    serve(&format!("--listen-tls 127.0.0.1:0 {pair}")).failure("key.pem has no private key in it");
    scratch.remove("cert.pem");
    serve(&format!("--listen-tls 127.0.0.1:0 {pair}")).failure("cert.pem cannot be read");
    assert!(!scratch.has("data"));
}

/// The variables of the image service of the Assisted Installer.
#[test]
fn ports_are_those_of_the_image_service() {
    if require_tool("curl").is_none() {
        return;
    }
    let (scratch, _authority) = certified();
    let ports = [("LISTEN_PORT", "0"), ("HTTP_LISTEN_PORT", "0")];
    let refused = |variables: &[(&str, &str)], phrase: &str| {
        let run =
            variables.iter().fold(scratch.command(["serve"]), |run, (name, value)| run.env(name, value));
        run.output().failure(phrase);
        assert!(!scratch.has("kindling-data"));
    };
    refused(&ports[..1], "[::]:0 can be reached from other machines");
    refused(&[&ports[..], &CERTIFICATE[..]].concat(), "AUTH_TYPE (--auth-type) is not set");
    let open = [("AUTH_TYPE", "none"), ("KINDLING_ALLOW_OPEN_ACCESS", "true")];
    let port = |address: &str| address.rsplit(':').next().unwrap().to_owned();

    let server = spawn(&scratch, &[&ports[..1], &open[..]].concat(), "", 1);
    let url = format!("http://127.0.0.1:{}{INFRA_ENVS}", port(&server.addresses[0]));
    assert_eq!(status(&scratch, &url), "200");
    assert!(server.end().contains("SERVICE_BASE_URL is not set"));

    let server = spawn(&scratch, &[&ports[..], &open[..], &CERTIFICATE[..]].concat(), "", 2);
    let [tls, plain] = &server.addresses[..] else { panic!("{:?}", server.addresses) };
    let tls = format!("--cacert ca.pem https://127.0.0.1:{}{INFRA_ENVS}", port(tls));
    assert_eq!(status(&scratch, &tls), "200");
    assert_eq!(status(&scratch, &format!("http://127.0.0.1:{}{INFRA_ENVS}", port(plain))), "404");
    server.end();
}

/// Starts a command with sockets at its descriptors from 3 on, as systemd does.
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

fn supervised(scratch: &Scratch, names: &str) -> Run {
    Run::new("python3", scratch.folder()).args(["-c", SUPERVISOR, names, KINDLING, "serve"])
}

#[test]
fn it_listens_on_sockets_that_it_is_handed() {
    if require_tool("curl").is_none() || require_tool("python3").is_none() {
        return;
    }
    let (scratch, _authority) = certified();
    let certified = |run: Run| CERTIFICATE.iter().fold(run, |run, (name, value)| run.env(name, value));
    let server = Server::spawn(certified(supervised(&scratch, "https:api:unix")).command(), 3);
    let [tls, plain, _] = &server.addresses[..] else { panic!("{:?}", server.addresses) };
    assert_eq!(status(&scratch, &format!("--cacert ca.pem https://{tls}{INFRA_ENVS}")), "200");
    assert_eq!(status(&scratch, &format!("http://{plain}{INFRA_ENVS}")), "404");
    assert_eq!(status(&scratch, &format!("--unix-socket socket http://localhost{INFRA_ENVS}")), "200");
    server.end();
    assert!(scratch.has("socket"), "it is not ours to remove");
    scratch.remove("socket");

    supervised(&scratch, "https").output().failure("TLS needs a certificate");
    supervised(&scratch, "open").output().failure("can be reached from other machines");
    supervised(&scratch, "datagram").output().failure("the sockets of systemd cannot be taken");
    // Variables that are for another process are not for us.
    let run = scratch.command(["serve", "--listen", "127.0.0.1:0"]);
    let run = run.env("LISTEN_PID", "1").env("LISTEN_FDS", "3");
    let server = Server::spawn(run.command(), 1);
    assert_eq!(server.ask("GET /health", "").status, 200);
    server.end();
}

#[test]
fn it_is_started_by_its_first_connection() {
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
    wait_for("somebody listens", || socket.exists());
    let options = ["-q", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", "activated"];
    let url = format!("http://localhost{INFRA_ENVS}");
    let answer = Run::new("curl", scratch.folder()).args(options).args([&url]).output();
    let ended = Command::new("kill").arg(supervisor.id().to_string()).status().unwrap();
    assert!(ended.success() && supervisor.wait().unwrap().success());
    assert_eq!(answer.printed(), "200");
}

/// Whether curl, as it is told, gets an answer over TLS.
fn is_answered(scratch: &Scratch, server: &Server, arguments: &str) -> bool {
    let port = server.addresses[0].rsplit(':').next().unwrap();
    let line = format!("-q -sS --noproxy * --cacert ca.pem {arguments} https://localhost:{port}/live");
    Run::new("curl", scratch.folder()).args(line.split(' ')).output().status.success()
}

#[test]
fn it_speaks_the_versions_and_suites_that_it_may() {
    if require_tool("curl").is_none() {
        return;
    }
    let (scratch, _authority) = certified();
    const GCM: &str = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
    let old = "--tlsv1.2 --tls-max 1.2";
    let spawn = |data: &str, name: &str, value: &str| {
        let variables = [CERTIFICATE[0], CERTIFICATE[1], (name, value)];
        let place = format!("--data-dir {data} --listen-tls 127.0.0.1:0");
        spawn(&scratch, &variables, &place, 1)
    };
    let newest = spawn("newest", "TLS_MIN_VERSION", "VersionTLS13");
    assert!(is_answered(&scratch, &newest, "--tlsv1.3"));
    assert!(!is_answered(&scratch, &newest, old));
    let usual = spawn("usual", "TLS_MIN_VERSION", "VersionTLS12");
    assert!(is_answered(&scratch, &usual, old));
    let few = spawn("few", "TLS_CIPHER_SUITES", &format!("{GCM}, TLS_RSA_WITH_AES_128_CBC_SHA"));
    assert!(is_answered(&scratch, &few, &format!("{old} --ciphers ECDHE-ECDSA-AES128-GCM-SHA256")));
    assert!(!is_answered(&scratch, &few, &format!("{old} --ciphers ECDHE-ECDSA-AES256-GCM-SHA384")));
    assert!(is_answered(&scratch, &few, "--tlsv1.3"));
    let refused = |name: &str, value: &str| {
        let run = scratch.command(["serve", "--listen-tls", "127.0.0.1:0"]).env(name, value);
        CERTIFICATE.iter().fold(run, |run, (name, value)| run.env(name, value)).output()
    };
    refused("TLS_CIPHER_SUITES", "TLS_RSA_WITH_AES_128_CBC_SHA").failure("TLS 1.2 has none of the suites");
    refused("TLS_MIN_VERSION", "VersionTLS14").usage("expected VersionTLS12 or VersionTLS13");
}
