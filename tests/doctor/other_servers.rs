//! Compares the findings of the doctor about servers of other projects with the behaviour of these servers.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kindling::doctor::{CheckOutcome, ClientKind, ClientVerdict, DoctorOptions};

use crate::raw_server::{DoctorRequest, DoctoredReply, serve_file};
use crate::support::{ProgramRun, Scratch, require_qemu_with_http, require_tool};
use crate::{bootable_image, checks_with_outcome, examine_url, refusing_clients};

struct RunningServer(Child);

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Python's HTTP server does not support ranges, which most firmware needs.
#[test]
fn python_http_server_fails_for_firmware() {
    let Some(python) = require_tool("python3") else { return };
    let scratch = Scratch::new();
    scratch.write("full.iso", bootable_image());
    let mut command = Command::new(python);
    command.args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]).current_dir(scratch.folder());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let _running = RunningServer(child);
    let port = line.split("port ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let report = examine_url(&format!("http://127.0.0.1:{port}/full.iso"), &DoctorOptions::default());
    assert_eq!(refusing_clients(&report), ["bmc", "ipxe", "qemu"], "{report:#?}");
    let failing = checks_with_outcome(&report, CheckOutcome::Fails);
    for check in ["accept-ranges", "range", "range-open", "range-suffix", "range-64k", "keep-alive"] {
        assert!(failing.contains(&check), "{check}: {report:#?}");
    }
}

#[test]
fn nginx_passes_for_every_client() {
    let Some(nginx) = require_tool("nginx") else { return };
    let scratch = Scratch::new();
    scratch.write("full.iso", bootable_image());
    let folder = scratch.folder().display();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {folder}/{kind};"))
        .concat();
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    scratch.write(
        "nginx.conf",
        format!(
            "{user} daemon off; master_process off; pid {folder}/pid; error_log stderr; events {{}} http {{ access_log off; {temporary}\n\
             types {{ application/octet-stream iso; }} server {{ listen 127.0.0.1:{port}; root {folder}; }} }}\n"
        ),
    );
    let mut command = Command::new(nginx);
    command.arg("-c").arg(scratch.path("nginx.conf")).arg("-p").arg(scratch.folder());
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let _running = RunningServer(child);
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(start.elapsed() < Duration::from_secs(20), "nginx does not start");
        thread::sleep(Duration::from_millis(20));
    }
    let report = examine_url(&format!("http://127.0.0.1:{port}/full.iso"), &DoctorOptions::default());
    assert_eq!(checks_with_outcome(&report, CheckOutcome::Fails), [""; 0], "{report:#?}");
    assert_eq!(refusing_clients(&report), [""; 0]);
}

/// Returns `true` if QEMU opens a URL as a disk.
fn qemu_opens(qemu: &std::path::Path, url: &str) -> bool {
    let arguments = ["-M", "none", "-nodefaults", "-display", "none", "-monitor", "stdio", "-S", "-blockdev"];
    let node = format!("driver=http,node-name=image,read-only=on,url={url}");
    let output = ProgramRun::new(qemu, std::path::Path::new("."))
        .args(arguments)
        .args([node])
        .stdin("info block\nquit\n")
        .run();
    let stderr = &output.stderr;
    assert!(output.status.success() || stderr.contains("CURL"), "{stderr}");
    output.status.success()
}

/// QEMU opens exactly the URLs that the doctor accepts for it.
#[test]
fn qemu_agrees_with_doctor() {
    let Some(qemu) = require_qemu_with_http() else { return };
    type ReplyChange = fn(&DoctorRequest, &mut DoctoredReply);
    let changes: [(&str, ReplyChange, bool); 6] = [
        ("as it should be", |_, _| {}, true),
        ("no Accept-Ranges", |_, reply| reply.remove("Accept-Ranges"), false),
        (
            "no HEAD",
            |request, reply| {
                if request.method == "HEAD" {
                    reply.status(405)
                }
            },
            false,
        ),
        (
            "no length",
            |request, reply| {
                if request.method == "HEAD" {
                    reply.remove("Content-Length")
                }
            },
            false,
        ),
        ("no ETag", |_, reply| reply.remove("ETag"), true),
        ("one request each", |_, reply| reply.closes = true, true),
    ];
    for (name, change, works) in changes {
        let url = format!("http://{}/full.iso", serve_file(bootable_image(), Arc::new(change), None));
        let report = examine_url(&url, &DoctorOptions::default());
        assert_eq!(
            report.client(ClientKind::Qemu).unwrap().verdict == ClientVerdict::Works,
            works,
            "{name}: {report:#?}"
        );
        assert_eq!(qemu_opens(&qemu, &url), works, "{name}");
    }
}
