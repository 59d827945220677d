//! A server and a command with a full disk: a small file system in their own mount namespace.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::full_featured_image;
use crate::serve::{PATIENCE, RawAnswer, ServeProcess};
use crate::support::{ProgramRun, Scratch, report_missing, require_tool};

const API: &str = "/api/assisted-install/v2";
const OS_IMAGES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "1", "url": "http://127.0.0.1:1/x.iso"}]"#;
const RELEASE_IMAGES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "4.18.3", "url": "quay.io/a:1"}]"#;
const SECRET: &str = r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#;
const FULL_DATABASE: &str = "no space left on the disk of the database";
const FULL_FILES: &str = "no space left on the disk of uploaded files";

/// A server with a 16 MiB file system for its database and its files.
struct SmallDiskServer {
    server: ServeProcess,
    folder: PathBuf,
}

fn with_plain_settings(run: ProgramRun) -> ProgramRun {
    run.env("OS_IMAGES", OS_IMAGES).env("RELEASE_IMAGES", RELEASE_IMAGES)
}

impl SmallDiskServer {
    fn start(scratch: &Scratch) -> Option<Self> {
        fs::create_dir(scratch.path("disk")).unwrap();
        let unshare = |script: &str| {
            let arguments = ["--map-root-user", "--mount", "sh", "-c", script];
            with_plain_settings(ProgramRun::new("unshare", scratch.folder()).args(arguments)).command()
        };
        let mount = "mount -t tmpfs -o size=16m tmpfs disk";
        if !unshare(mount).output().is_ok_and(|output| output.status.success()) {
            report_missing("cannot mount a file system in a namespace (unshare)");
            return None;
        }
        let kindling = env!("CARGO_BIN_EXE_kindling");
        let serve = format!(
            "{mount} && exec {kindling} serve --listen 127.0.0.1:0 --data-dir disk --images-dir images"
        );
        let server = ServeProcess::spawn(unshare(&serve), 1);
        // The file system is visible only through the server's process.
        let root = format!("/proc/{}/root", server.child.id());
        let folder = Path::new(&root).join(scratch.path("disk").strip_prefix("/").unwrap());
        Some(Self { server, folder })
    }

    /// Fills the file system, except for `but` bytes.
    fn fill_except(&self, but: usize) {
        let mut file = File::create(self.folder.join("filler")).unwrap();
        let mut left = 16 << 20;
        while left > 0 && file.write_all(&[0; 4096]).is_ok() {
            left -= 4096;
        }
        let len = file.metadata().unwrap().len();
        file.set_len(len - but as u64).unwrap();
    }

    fn delete_filler(&self) {
        fs::remove_file(self.folder.join("filler")).unwrap();
    }

    fn post(&self, path: &str, body: &Value) -> RawAnswer {
        let body = body.to_string();
        let headers = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
        self.server.request_with_body(&format!("POST {API}{path}"), &headers, &body)
    }

    fn upload_logs(&self, cluster: &str, len: usize) -> RawAnswer {
        let (headers, body) = log_form(len);
        self.server.request_with_body(
            &format!("POST {API}/clusters/{cluster}/logs?logs_type=controller"),
            &headers,
            &body,
        )
    }
}

fn log_form(len: usize) -> (String, String) {
    let start = "--x\r\nContent-Disposition: form-data; name=\"upfile\"; filename=\"f\"\r\n\r\n";
    let body = format!("{start}{}\r\n--x--\r\n", "l".repeat(len));
    (format!("Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {}", body.len()), body)
}

fn cluster_body() -> Value {
    json!({"name": "c", "openshift_version": "4.18", "pull_secret": SECRET})
}

fn infra_env_body() -> Value {
    json!({"name": "e", "pull_secret": SECRET})
}

fn id_of_created(answer: &RawAnswer) -> String {
    assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// Returns all files of a folder and its subfolders.
fn all_files(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            files.extend(all_files(&entry.path()).into_iter().map(|file| format!("{name}/{file}")));
        } else {
            files.push(name);
        }
    }
    files.sort();
    files
}

#[test]
fn full_database_disk_is_reported_and_the_service_recovers() {
    let scratch = Scratch::new();
    let Some(disk) = SmallDiskServer::start(&scratch) else { return };
    let env = id_of_created(&disk.post("/infra-envs", &infra_env_body()));
    let host = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    let registered = disk.post(&format!("/infra-envs/{env}/hosts"), &json!({"host_id": host}));
    assert_eq!(registered.status, 201);
    disk.fill_except(0);
    let mut created = 1;
    // Some writes fit in the free space of existing files, so repeat the request until the server refuses one.
    let refused = loop {
        let answer = disk.post("/infra-envs", &infra_env_body());
        if answer.status != 201 {
            break answer;
        }
        created += 1;
        assert!(created < 10_000);
    };
    assert_eq!((refused.status, &refused.json()["reason"]), (507, &FULL_DATABASE.into()));
    for _ in 0..3 {
        // The poll would store the event that the agent must upgrade.
        let instructions = format!("GET {API}/infra-envs/{env}/hosts/{host}/instructions");
        assert_eq!(disk.server.request(&instructions, "").status, 507);
        let list = disk.server.request(&format!("GET {API}/infra-envs"), "");
        assert_eq!((list.status, list.json().as_array().unwrap().len()), (200, created));
        let hosts = disk.server.request(&format!("GET {API}/infra-envs/{env}/hosts"), "");
        assert_eq!((hosts.status, &hosts.json()[0]["status"]), (200, &"discovering-unbound".into()));
    }
    disk.delete_filler();
    id_of_created(&disk.post("/infra-envs", &infra_env_body()));
    let list = disk.server.request(&format!("GET {API}/infra-envs"), "").json();
    assert_eq!(list.as_array().unwrap().len(), created + 1);
    disk.server.stop();
}

#[test]
fn full_file_disk_is_reported_and_leaves_no_partial_file() {
    let scratch = Scratch::new();
    let Some(disk) = SmallDiskServer::start(&scratch) else { return };
    let cluster = id_of_created(&disk.post("/clusters", &cluster_body()));
    assert_eq!(disk.upload_logs(&cluster, 100_000).status, 204);
    let before = all_files(&disk.folder.join("files"));
    disk.fill_except(1 << 20);
    // As a single upload, and in several parts.
    for len in [2 << 20, 12 << 20] {
        let refused = disk.upload_logs(&cluster, len);
        assert_eq!((refused.status, &refused.json()["reason"]), (507, &FULL_FILES.into()));
        let start = Instant::now();
        while all_files(&disk.folder.join("files")) != before && start.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        assert_eq!(all_files(&disk.folder.join("files")), before);
    }
    let logs = format!("GET {API}/clusters/{cluster}/logs?logs_type=controller");
    assert_eq!(disk.server.request(&logs, "").body, vec![b'l'; 100_000]);
    disk.delete_filler();
    assert_eq!(disk.upload_logs(&cluster, 2 << 20).status, 204);
    assert_eq!(disk.server.request(&logs, "").body.len(), 2 << 20);
    disk.server.stop();
}

#[test]
fn partial_uploads_are_removed_at_the_next_start() {
    let scratch = Scratch::new();
    let start = || {
        let run = scratch.command(["serve", "--listen", "127.0.0.1:0"]);
        ServeProcess::spawn(with_plain_settings(run).command(), 1)
    };
    let folder = scratch.path("kindling-data/files");
    let server = start();
    let body = cluster_body().to_string();
    let headers = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
    let cluster = id_of_created(&server.request_with_body(&format!("POST {API}/clusters"), &headers, &body));
    let path = format!("{API}/clusters/{cluster}/logs?logs_type=controller");
    let (headers, body) = log_form(1000);
    assert_eq!(server.request_with_body(&format!("POST {path}"), &headers, &body).status, 204);
    let complete = all_files(&folder);
    // The upload is larger than the server's buffers, and incomplete.
    let (headers, body) = log_form(40 << 20);
    let mut stream = server.connect();
    write!(stream, "POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n\r\n").unwrap();
    stream.write_all(&body.as_bytes()[..30 << 20]).unwrap();
    let start_time = Instant::now();
    while all_files(&folder) == complete {
        assert!(start_time.elapsed() < PATIENCE, "no partial file was written");
        std::thread::yield_now();
    }
    let kill = Command::new("kill").args(["-9", &server.child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    server.wait_for_exit();
    assert_eq!(all_files(&folder).len(), complete.len() + 1, "the killed server left no partial file");
    let server = start();
    assert_eq!(all_files(&folder), complete);
    assert_eq!(server.request(&format!("GET {path}"), "").body, vec![b'l'; 1000]);
    let _ = stream.read(&mut [0]);
    server.stop();
}

#[test]
fn command_on_a_full_disk_reports_needed_and_free_bytes() {
    let scratch = full_featured_image().scratch_with_image();
    fs::create_dir(scratch.path("disk")).unwrap();
    let run = |script: &str| {
        let arguments = ["--map-root-user", "--mount", "sh", "-c", script];
        ProgramRun::new("unshare", scratch.folder()).args(arguments).run()
    };
    let mount = "mount -t tmpfs -o size=256k tmpfs disk";
    if !require_tool("unshare").is_some_and(|_| run(mount).status.success()) {
        report_missing("cannot mount a file system in a namespace (unshare)");
        return;
    }
    let kindling = env!("CARGO_BIN_EXE_kindling");
    let output = run(&format!(
        "{mount} && {kindling} iso ignition embed -i config.ign -o disk/a.iso image.iso; ls -A disk >&2"
    ));
    let len = full_featured_image().bytes.len();
    let needed = format!("no space left on the disk: the file needs {len} bytes, ");
    assert!(output.stderr.contains(&needed), "{}", output.stderr);
    assert!(output.stderr.ends_with("bytes are free\n"), "a file is left: {}", output.stderr);
}
