//! A running server whose clock jumps by years in both directions.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fixtures::{Architecture, Era, Recipe};
use serde_json::json;

use crate::serve::{RawAnswer, ServeProcess};
use crate::support::{Scratch, require_file, require_tool};

/// Maximum time until the monitor notices a silent host.
const MAX_DELAY: Duration = Duration::from_secs(60);

const INFRA_ENVS: &str = "/api/assisted-install/v2/infra-envs";

/// A server with one infra-env that reads its time from a file.
struct JumpingClock {
    server: ServeProcess,
    scratch: Scratch,
    infra_env: String,
}

impl JumpingClock {
    fn start() -> Option<Self> {
        require_tool("faketime")?;
        let machine = format!("{}-linux-gnu", std::env::consts::ARCH);
        let library =
            require_file(PathBuf::from("/usr/lib").join(machine).join("faketime/libfaketimeMT.so.1"))?;
        let scratch = Scratch::new();
        scratch
            .write("base.iso", Recipe::new(Architecture::X86_64, Era::E2024_12).rootfs_len(32 << 20).build());
        scratch.write("clock", "+0d");
        let images = json!([{
            "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "1",
            "url": format!("file://{}", scratch.path("base.iso").display()),
        }]);
        let run = scratch.command(["serve", "--listen", "127.0.0.1:0"]).env("OS_IMAGES", images.to_string());
        let mut command = run.command();
        command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", scratch.path("clock"));
        command.env("HOST_MAX_DISCONNECTION_TIME", "2s").env("HOST_MONITOR_INTERVAL", "500ms");
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let server = ServeProcess::spawn(command, 1);
        let body = r#"{"name":"demo","pull_secret":"{\"auths\":{\"quay.io\":{\"auth\":\"dXNlcjpwYXNz\"}}}"}"#;
        let created = Self::post_json(&server, &format!("POST {INFRA_ENVS}"), body);
        let infra_env = created.json()["id"].as_str().unwrap().to_owned();
        Some(Self { server, scratch, infra_env })
    }

    fn post_json(server: &ServeProcess, line: &str, body: &str) -> RawAnswer {
        let headers = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
        server.request_with_body(line, &headers, body)
    }

    /// Sets the clock by an offset such as `+10y`.
    fn set_offset(&self, offset: &str) {
        self.scratch.write("clock", offset);
    }

    fn get_image(&self, headers: &str) -> RawAnswer {
        self.server.request(&format!("GET /i/{}/full.iso", self.infra_env), headers)
    }

    /// Registers a host and returns its path.
    fn register_host(&self) -> String {
        let hosts = format!("{INFRA_ENVS}/{}/hosts", self.infra_env);
        let id = "3d8a7a3c-8d0e-4f3b-9d3c-0c1f0b7c5a11";
        let body = json!({"host_id": id, "discovery_agent_version": "1"}).to_string();
        let created = Self::post_json(&self.server, &format!("POST {hosts}"), &body);
        assert_eq!(created.status, 201, "{created:?}");
        format!("{hosts}/{id}")
    }

    fn poll(&self, host: &str) {
        assert_eq!(self.server.request(&format!("GET {host}/instructions"), "").status, 200);
    }

    fn host_status(&self, host: &str) -> String {
        let answer = self.server.request(&format!("GET {host}"), "");
        answer.json()["status"].as_str().unwrap().to_owned()
    }

    /// Changes the image and returns the year of its `Last-Modified`.
    fn change_image(&self, label: &str) -> i32 {
        let body = json!({"kernel_arguments": json!([{"operation": "append", "value": label}]).to_string()})
            .to_string();
        let line = format!("PATCH {INFRA_ENVS}/{}", self.infra_env);
        let changed = Self::post_json(&self.server, &line, &body);
        assert_eq!(changed.status, 201, "{changed:?}");
        let at = changed.json()["updated_at"].as_str().unwrap().to_owned();
        at.split('-').next().unwrap().parse().unwrap()
    }
}

impl Drop for JumpingClock {
    /// Removes the shared memory of libfaketime, which remains after the process is killed.
    fn drop(&mut self) {
        let process = self.server.child.id();
        for file in [format!("faketime_shm_{process}"), format!("sem.faketime_sem_{process}")] {
            let _ = fs::remove_file(Path::new("/dev/shm").join(file));
        }
    }
}

#[test]
fn clock_jumps_do_not_break_downloads_or_conditions() {
    let Some(jumping) = JumpingClock::start() else { return };
    let first = jumping.get_image("");
    assert_eq!(first.status, 200);
    let etag = first.header("etag").unwrap().to_owned();

    // The clock jumps far ahead and then back during a download.
    let mut slow = jumping.server.connect();
    write!(slow, "GET /i/{}/full.iso HTTP/1.0\r\n\r\n", jumping.infra_env).unwrap();
    let mut head = vec![0; 1 << 16];
    slow.read_exact(&mut head).unwrap();
    for offset in ["+9y", "-9y", "+0d"] {
        jumping.set_offset(offset);
        let part = jumping.get_image(&format!("If-Range: {etag}\r\nRange: bytes=1000-70000"));
        assert_eq!(part.status, 206, "{offset}");
        assert!(part.body == first.body[1000..=70_000], "{offset}");
        assert_eq!(part.header("etag"), Some(etag.as_str()), "{offset}");
        assert_eq!(jumping.get_image(&format!("If-None-Match: {etag}")).status, 304, "{offset}");
    }
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    let bytes = [head, rest].concat();
    let start = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    assert!(bytes[start..] == first.body[..]);
}

#[test]
fn image_changed_while_the_clock_is_behind_gets_new_validators() {
    let Some(jumping) = JumpingClock::start() else { return };
    let before = jumping.get_image("");
    let dated = before.header("last-modified").unwrap().to_owned();
    let this_year = jumping.change_image("quiet");
    let dated = jumping.get_image("").header("last-modified").map_or(dated, str::to_owned);
    let before = jumping.get_image("");
    jumping.set_offset("-3y");
    assert!(jumping.change_image("debug") < this_year, "the clock does not jump");
    let changed = jumping.get_image(&format!("If-Modified-Since: {dated}"));
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), before.header("etag"));
    // `Last-Modified` is never in the future, so it is absent here.
    let year: i32 = changed.header("last-modified").unwrap().split(' ').nth(3).unwrap().parse().unwrap();
    assert!(year < this_year, "{}", changed.head);
    // A client that sends only the date gets the new image from its start, both now and when the clock is right again.
    for offset in ["-3y", "+1d"] {
        jumping.set_offset(offset);
        let resumed = jumping.get_image(&format!("If-Range: {dated}\r\nRange: bytes=5000-"));
        assert_eq!(resumed.status, 200, "{offset}");
        assert_eq!(jumping.get_image(&format!("If-Modified-Since: {dated}")).status, 200, "{offset}");
    }
}

#[test]
fn silent_hosts_are_disconnected_after_clock_jumps_of_a_day() {
    let Some(jumping) = JumpingClock::start() else { return };
    let host = jumping.register_host();
    for offset in ["+0d", "-1d", "-2d", "+0d"] {
        jumping.set_offset(offset);
        let began = Instant::now();
        while jumping.host_status(&host) != "disconnected-unbound" {
            assert!(began.elapsed() < MAX_DELAY, "the host stays connected at {offset}");
            std::thread::sleep(Duration::from_millis(50));
        }
        jumping.poll(&host);
        assert_eq!(jumping.host_status(&host), "discovering-unbound", "{offset}");
    }
    // A host that continues to poll stays connected.
    for offset in ["+1d", "-1d"] {
        jumping.set_offset(offset);
        for _ in 0..30 {
            jumping.poll(&host);
            assert_eq!(jumping.host_status(&host), "discovering-unbound", "{offset}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
