//! A server whose disk is full, on a small file system that only its process sees.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::serve::{Answer, PATIENCE, Server};
use crate::support::{Run, Scratch, missing};

const API: &str = "/api/assisted-install/v2";
const OS_IMAGES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "1", "url": "http://127.0.0.1:1/x.iso"}]"#;
const RELEASE_IMAGES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "4.18.3", "url": "quay.io/a:1"}]"#;
const SECRET: &str = r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#;
const FULL_DATABASE: &str = "no space left on the disk of the database";
const FULL_FILES: &str = "no space left on the disk of uploaded files";

/// A server with a file system of 16 MiB for its database and its files.
struct SmallDisk {
    server: Server,
    folder: PathBuf,
}

fn settings(run: Run) -> Run {
    // A host is disconnected as soon as it is read: that is a change which a full disk does not take.
    let run = run.env("HOST_MAX_DISCONNECTION_TIME", "0");
    run.env("OS_IMAGES", OS_IMAGES).env("RELEASE_IMAGES", RELEASE_IMAGES)
}

impl SmallDisk {
    fn start(scratch: &Scratch) -> Option<Self> {
        fs::create_dir(scratch.path("disk")).unwrap();
        let unshare = |script: &str| {
            let arguments = ["--map-root-user", "--mount", "sh", "-c", script];
            settings(Run::new("unshare", scratch.folder()).args(arguments)).command()
        };
        let mount = "mount -t tmpfs -o size=16m tmpfs disk";
        if !unshare(mount).output().is_ok_and(|output| output.status.success()) {
            missing("no file system can be mounted in a namespace (unshare)");
            return None;
        }
        let kindling = env!("CARGO_BIN_EXE_kindling");
        let serve = format!(
            "{mount} && exec {kindling} serve --listen 127.0.0.1:0 --data-dir disk --images-dir images"
        );
        let server = Server::spawn(unshare(&serve), 1);
        // The file system is not there for this process.
        let root = format!("/proc/{}/root", server.child.id());
        let folder = Path::new(&root).join(scratch.path("disk").strip_prefix("/").unwrap());
        Some(Self { server, folder })
    }

    /// Fills the file system but for some bytes.
    fn fill(&self, but: usize) {
        let mut file = File::create(self.folder.join("filler")).unwrap();
        let mut left = 16 << 20;
        while left > 0 && file.write_all(&[0; 4096]).is_ok() {
            left -= 4096;
        }
        let len = file.metadata().unwrap().len();
        file.set_len(len - but as u64).unwrap();
    }

    fn empty(&self) {
        fs::remove_file(self.folder.join("filler")).unwrap();
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        let headers = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
        self.server.send(&format!("POST {API}{path}"), &headers, &body)
    }

    fn upload(&self, cluster: &str, len: usize) -> Answer {
        let (headers, body) = form(len);
        self.server.send(&format!("POST {API}/clusters/{cluster}/logs?logs_type=controller"), &headers, &body)
    }
}

fn form(len: usize) -> (String, String) {
    let start = "--x\r\nContent-Disposition: form-data; name=\"upfile\"; filename=\"f\"\r\n\r\n";
    let body = format!("{start}{}\r\n--x--\r\n", "l".repeat(len));
    (format!("Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {}", body.len()), body)
}

fn cluster() -> Value {
    json!({"name": "c", "openshift_version": "4.18", "pull_secret": SECRET})
}

fn infra_env() -> Value {
    json!({"name": "e", "pull_secret": SECRET})
}

fn id(answer: &Answer) -> String {
    assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// All files of a folder and those in it.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()).into_iter().map(|file| format!("{name}/{file}")));
        } else {
            found.push(name);
        }
    }
    found.sort();
    found
}

#[test]
fn full_disk_of_the_database_is_named_and_the_service_recovers() {
    let scratch = Scratch::new();
    let Some(disk) = SmallDisk::start(&scratch) else { return };
    let env = id(&disk.post("/infra-envs", &infra_env()));
    let host = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    let registered = disk.post(&format!("/infra-envs/{env}/hosts"), &json!({"host_id": host}));
    assert_eq!(registered.status, 201);
    disk.fill(0);
    let mut made = 1;
    // Some may find room in files that are there already.
    let refused = loop {
        let answer = disk.post("/infra-envs", &infra_env());
        if answer.status != 201 {
            break answer;
        }
        made += 1;
        assert!(made < 10_000);
    };
    assert_eq!((refused.status, &refused.json()["reason"]), (507, &FULL_DATABASE.into()));
    for _ in 0..3 {
        let instructions = format!("GET {API}/infra-envs/{env}/hosts/{host}/instructions");
        assert_eq!(disk.server.ask(&instructions, "").status, 507);
        let list = disk.server.ask(&format!("GET {API}/infra-envs"), "");
        assert_eq!((list.status, list.json().as_array().unwrap().len()), (200, made));
        let hosts = disk.server.ask(&format!("GET {API}/infra-envs/{env}/hosts"), "");
        assert_eq!((hosts.status, &hosts.json()[0]["status"]), (200, &"disconnected-unbound".into()));
    }
    disk.empty();
    id(&disk.post("/infra-envs", &infra_env()));
    let list = disk.server.ask(&format!("GET {API}/infra-envs"), "").json();
    assert_eq!(list.as_array().unwrap().len(), made + 1);
    disk.server.end();
}

#[test]
fn full_disk_of_files_is_named_and_leaves_no_part() {
    let scratch = Scratch::new();
    let Some(disk) = SmallDisk::start(&scratch) else { return };
    let cluster = id(&disk.post("/clusters", &cluster()));
    assert_eq!(disk.upload(&cluster, 100_000).status, 204);
    let kept = files(&disk.folder.join("files"));
    disk.fill(1 << 20);
    // In one part, and in several.
    for len in [2 << 20, 12 << 20] {
        let refused = disk.upload(&cluster, len);
        assert_eq!((refused.status, &refused.json()["reason"]), (507, &FULL_FILES.into()));
        let begun = Instant::now();
        while files(&disk.folder.join("files")) != kept && begun.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        assert_eq!(files(&disk.folder.join("files")), kept);
    }
    let logs = format!("GET {API}/clusters/{cluster}/logs?logs_type=controller");
    assert_eq!(disk.server.ask(&logs, "").body, vec![b'l'; 100_000]);
    disk.empty();
    assert_eq!(disk.upload(&cluster, 2 << 20).status, 204);
    assert_eq!(disk.server.ask(&logs, "").body.len(), 2 << 20);
    disk.server.end();
}

#[test]
fn parts_of_an_upload_that_was_killed_are_removed_at_the_next_start() {
    let scratch = Scratch::new();
    let start = || {
        let run = scratch.command(["serve", "--listen", "127.0.0.1:0"]);
        Server::spawn(settings(run).command(), 1)
    };
    let folder = scratch.path("kindling-data/files");
    let server = start();
    let body = cluster().to_string();
    let headers = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
    let cluster = id(&server.send(&format!("POST {API}/clusters"), &headers, &body));
    let path = format!("{API}/clusters/{cluster}/logs?logs_type=controller");
    let (headers, body) = form(1000);
    assert_eq!(server.send(&format!("POST {path}"), &headers, &body).status, 204);
    let complete = files(&folder);
    // More than the server keeps in memory, and not all of it.
    let (headers, body) = form(40 << 20);
    let mut stream = server.connect();
    write!(stream, "POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n\r\n").unwrap();
    stream.write_all(&body.as_bytes()[..30 << 20]).unwrap();
    let begun = Instant::now();
    while files(&folder) == complete {
        assert!(begun.elapsed() < PATIENCE, "no part is written");
        std::thread::yield_now();
    }
    let kill = Command::new("kill").args(["-9", &server.child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    server.wait();
    assert_eq!(files(&folder).len(), complete.len() + 1, "the part is left");
    let server = start();
    assert_eq!(files(&folder), complete);
    assert_eq!(server.ask(&format!("GET {path}"), "").body, vec![b'l'; 1000]);
    let _ = stream.read(&mut [0]);
    server.end();
}
