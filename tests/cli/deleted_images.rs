//! Disk space of base images that a running server removes or replaces.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use fixtures::{Architecture, Era, Recipe};
use isogen::BaseImage;
use serde_json::{Value, json};

use crate::serve::{PATIENCE, ServeProcess};
use crate::support::Scratch;

const API: &str = "/api/assisted-install/v2";
/// Longer than all buffers between server and client.
const ROOTFS_LEN: u64 = 32 << 20;

fn base_image(rootfs_len: u64) -> Vec<u8> {
    Recipe::new(Architecture::X86_64, Era::E2024_12).rootfs_len(rootfs_len).build()
}

/// Serves a file over HTTP and returns its URL.
fn serve_file(bytes: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/base.iso", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (mut reader, mut line) = (BufReader::new(&stream), String::new());
            while reader.read_line(&mut line).is_ok_and(|len| len > 2) {
                line.clear();
            }
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", bytes.len());
            // The client may have disconnected.
            let _ = (&stream).write_all(head.as_bytes()).and_then(|()| (&stream).write_all(&bytes));
        }
    });
    url
}

/// Returns the deleted files that a server has open or mapped.
fn deleted_files(server: &ServeProcess) -> Vec<PathBuf> {
    let process = PathBuf::from(format!("/proc/{}", server.child.id()));
    let descriptors = fs::read_dir(process.join("fd")).unwrap();
    let descriptors = descriptors.filter_map(|link| fs::read_link(link.ok()?.path()).ok());
    let maps = fs::read_to_string(process.join("maps")).unwrap();
    let mappings = maps.lines().filter_map(|line| Some(PathBuf::from(&line[line.find('/')?..])));
    let is_deleted_image = |path: &PathBuf| path.to_string_lossy().ends_with(".iso (deleted)");
    descriptors.chain(mappings).filter(is_deleted_image).collect()
}

/// Returns the value of the metric for deleted base images.
fn deleted_bytes(server: &ServeProcess) -> u64 {
    let text = String::from_utf8(server.request("GET /metrics", "").body).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix("kindling_deleted_image_bytes "));
    value.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

#[track_caller]
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until no deleted file is open.
#[track_caller]
fn wait_until_space_is_free(server: &ServeProcess) {
    let start = Instant::now();
    loop {
        let open = (deleted_files(server), deleted_bytes(server));
        if open == (Vec::new(), 0) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{open:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A keep-alive connection.
struct KeptConnection(BufReader<TcpStream>);

impl KeptConnection {
    fn new(server: &ServeProcess) -> Self {
        Self(BufReader::new(server.connect()))
    }

    /// Sends a request, and returns the length of the unread body.
    fn begin(&mut self, path: &str) -> usize {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.0.get_mut().write_all(head.as_bytes()).unwrap();
        let (mut line, mut len, mut status) = (String::new(), 0, String::new());
        while self.0.read_line(&mut line).unwrap() > 2 {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
                len = value.trim().parse().unwrap();
            }
            if status.is_empty() {
                status.clone_from(&line);
            }
            line.clear();
        }
        if !status.starts_with("HTTP/1.1 200 ") {
            let text = String::from_utf8_lossy(&self.read(len)).into_owned();
            panic!("{path}: {status}{text}");
        }
        len
    }

    fn read(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn get(&mut self, path: &str) -> Vec<u8> {
        let len = self.begin(path);
        self.read(len)
    }
}

/// Adds a base image and waits until it is ready.
fn add_image(server: &ServeProcess, url: &str) {
    let body = json!({
        "openshift_version": "4.99", "cpu_architecture": "x86_64", "version": "499.1", "url": url,
    })
    .to_string();
    let headers = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
    let added = server.request_with_body(&format!("POST {API}/os-images"), &headers, &body);
    assert_eq!(added.status, 201, "{}", String::from_utf8_lossy(&added.body));
    wait_until_ready(server);
}

fn wait_until_ready(server: &ServeProcess) {
    wait_until("the image does not become ready", || {
        let health = server.request("GET /health", "").json();
        let images = health["images"].as_array().unwrap();
        // The server reads the new list of images shortly after the response that confirms the addition.
        images.iter().any(|image| image["version"] == "499.1")
            && images.iter().all(|image| image["state"] == "ready")
    });
}

/// Removes the added base image and waits until its file is deleted.
fn remove_image(server: &ServeProcess, scratch: &Scratch) {
    assert_eq!(server.request(&format!("DELETE {API}/os-images/4.99/x86_64"), "").status, 204);
    wait_until("the file is not deleted", || {
        !scratch.names().iter().any(|name| name.starts_with("kindling-data/") && name.ends_with(".iso"))
    });
}

fn start_server(scratch: &Scratch, variables: &[(&str, &str)]) -> ServeProcess {
    ServeProcess::start(scratch, variables, &["--added-image-servers", "127.0.0.1"])
}

/// Returns the root file system of a base image.
fn rootfs_of(scratch: &Scratch, image: &[u8]) -> Vec<u8> {
    let image = BaseImage::open(scratch.write("reference.iso", image)).unwrap();
    image.rootfs().unwrap().read_all(1 << 30).unwrap()
}

const ROOTFS: &str = "/boot-artifacts/rootfs?version=499.1";

#[test]
fn removing_an_image_frees_its_space_immediately() {
    let scratch = Scratch::new();
    let server = start_server(&scratch, &[]);
    let urls = [1, 2].map(|mib| serve_file(base_image(mib << 20)));
    let mut idle = KeptConnection::new(&server);
    for round in 0..4 {
        add_image(&server, &urls[round % 2]);
        let body = json!({
            "name": "demo", "openshift_version": "4.99",
            "pull_secret": r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#,
        })
        .to_string();
        let headers = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
        let created = server.request_with_body(&format!("POST {API}/infra-envs"), &headers, &body);
        let id = created.json()["id"].as_str().unwrap().to_owned();
        for file in ["full.iso", "minimal.iso", "kernel", "initrd", "rootfs"] {
            let path = format!("/i/{id}/{file}");
            assert!(!idle.get(&path).is_empty());
            assert_eq!(server.request(&format!("GET {path}"), "Range: bytes=0-99").status, 206);
        }
        assert_eq!(server.request(&format!("GET {ROOTFS}"), "").status, 200);
        assert_eq!(server.request(&format!("DELETE {API}/infra-envs/{id}"), "").status, 204);
        remove_image(&server, &scratch);
        // The idle connection has read every response.
        wait_until_space_is_free(&server);
    }
    server.stop();
}

#[test]
fn removed_image_counts_until_its_last_reader_finishes() {
    let scratch = Scratch::new();
    let server = start_server(&scratch, &[]);
    let image = base_image(ROOTFS_LEN);
    let (len, rootfs) = (image.len() as u64, rootfs_of(&scratch, &image));
    add_image(&server, &serve_file(image));
    let mut reader = KeptConnection::new(&server);
    assert_eq!(reader.begin(ROOTFS), rootfs.len());
    let mut bytes = reader.read(100_000);
    assert_eq!(deleted_bytes(&server), 0);
    remove_image(&server, &scratch);
    wait_until("the reader is not counted", || deleted_bytes(&server) == len);
    assert!(!deleted_files(&server).is_empty());
    assert_eq!(server.request(&format!("GET {ROOTFS}"), "").status, 400);
    bytes.extend(reader.read(rootfs.len() - bytes.len()));
    assert!(bytes == rootfs);
    wait_until_space_is_free(&server);
    drop(reader);
    server.stop();
}

#[test]
fn replaced_image_counts_until_its_last_reader_finishes() {
    let scratch = Scratch::new();
    let [first, second] = [ROOTFS_LEN, ROOTFS_LEN / 2].map(base_image);
    let path = scratch.write("base.iso", &first);
    let images: Value = json!([{
        "openshift_version": "4.99", "cpu_architecture": "x86_64", "version": "499.1",
        "url": format!("file://{}", path.display()),
    }]);
    let server = start_server(&scratch, &[("OS_IMAGES", &images.to_string())]);
    wait_until_ready(&server);
    let rootfs = rootfs_of(&scratch, &first);
    let mut reader = KeptConnection::new(&server);
    assert_eq!(reader.begin(ROOTFS), rootfs.len());
    let mut bytes = reader.read(100_000);
    fs::rename(scratch.write("new.iso", &second), &path).unwrap();
    let other = rootfs_of(&scratch, &second);
    wait_until("the replacement is not noticed", || {
        let head = server.request(&format!("HEAD {ROOTFS}"), "");
        head.header("content-length") == Some(&other.len().to_string())
    });
    assert!(server.request(&format!("GET {ROOTFS}"), "").body == other);
    assert_eq!(deleted_bytes(&server), first.len() as u64);
    bytes.extend(reader.read(rootfs.len() - bytes.len()));
    assert!(bytes == rootfs);
    wait_until_space_is_free(&server);
    drop(reader);
    server.stop();
}
