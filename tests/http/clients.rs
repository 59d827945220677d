//! Programs with which users download images.

use std::fs;

use crate::server::{ETAG, MODES, MODIFIED, shared_server};
use crate::support::{ProgramRun, Scratch, report_missing, require_tool};

/// Runs curl, which must succeed, and returns its output.
fn curl_output(scratch: &Scratch, arguments: &str, path: &str) -> Vec<u8> {
    let url = shared_server().server.url(path);
    let arguments = arguments.split_whitespace().chain([url.as_str()]);
    ProgramRun::new("curl", scratch.folder())
        .args(["-q", "-sS", "--fail", "--noproxy", "*"])
        .args(arguments)
        .run()
        .expect_success()
}

#[test]
fn curl_downloads_ranges_and_resumes() {
    if require_tool("curl").is_none() {
        return;
    }
    let scratch = Scratch::new();
    for mode in MODES {
        for name in ["layered", "full", "minimal"] {
            let bytes = &shared_server().bytes[name];
            let path = format!("/{mode}/{name}");
            assert!(curl_output(&scratch, "", &path) == *bytes);
            assert!(curl_output(&scratch, "--http1.0", &path) == *bytes);
            assert!(curl_output(&scratch, "-r 5-70000", &path) == bytes[5..=70_000]);
            assert!(curl_output(&scratch, "-r -70000 --http1.0", &path) == bytes[bytes.len() - 70_000..]);
            let several = curl_output(&scratch, "-r 5-9,0-1", &path);
            assert!(several.windows(5).any(|window| window == &bytes[5..=9]));
            scratch.write("partial", &bytes[..100_000]);
            curl_output(&scratch, "-C - -o partial", &path);
            assert!(scratch.read("partial") == *bytes, "{path}");
        }
    }
}

#[test]
fn curl_keeps_names_times_and_tags() {
    if require_tool("curl").is_none() {
        return;
    }
    let scratch = Scratch::new();
    curl_output(&scratch, "-O -J -R --etag-save tag", "/mapped/small");
    assert!(scratch.read("image.iso") == shared_server().bytes["small"]);
    assert_eq!(scratch.read("tag").trim_ascii(), ETAG.as_bytes());
    let modified = fs::metadata(scratch.path("image.iso")).unwrap().modified().unwrap();
    let expected = chrono::DateTime::parse_from_rfc2822(MODIFIED).unwrap();
    assert_eq!(chrono::DateTime::<chrono::Utc>::from(modified), expected);
    let code = "-o again -w %{http_code}";
    assert_eq!(curl_output(&scratch, &format!("--etag-compare tag {code}"), "/mapped/small"), b"304");
    assert_eq!(curl_output(&scratch, &format!("-z image.iso {code}"), "/mapped/small"), b"304");
}

#[test]
fn wget_resumes() {
    if require_tool("wget").is_none() {
        return;
    }
    for mode in MODES {
        let scratch = Scratch::new();
        let bytes = &shared_server().bytes["full"];
        scratch.write("full", &bytes[..123_457]);
        let url = shared_server().server.url(&format!("/{mode}/full"));
        ProgramRun::new("wget", scratch.folder())
            .args(["--no-config", "--no-proxy", "-q", "-c", &url])
            .run()
            .expect_success();
        assert!(scratch.read("full") == *bytes, "{mode}");
    }
}

#[test]
fn aria2_downloads_in_sixteen_parts() {
    if require_tool("aria2c").is_none() {
        return;
    }
    for mode in MODES {
        let scratch = Scratch::new();
        let url = shared_server().server.url(&format!("/{mode}/full"));
        let arguments = ["--no-conf", "-q", "-x16", "-s16", "-k1M", "--all-proxy=", "-o", "image", &url];
        ProgramRun::new("aria2c", scratch.folder()).args(arguments).run().expect_success();
        assert!(scratch.read("image") == shared_server().bytes["full"], "{mode}");
    }
}

/// Returns a Python with the `requests` library.
fn python_with_requests() -> Option<&'static str> {
    let has_it = |python: &&str| {
        let output = std::process::Command::new(python).args(["-c", "import requests"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let python = ["python3", "/usr/bin/python3"].into_iter().find(has_it);
    if python.is_none() {
        report_missing("Python's module requests is not installed");
    }
    python
}

#[test]
fn python_requests_streams_and_resumes() {
    let Some(python) = python_with_requests() else { return };
    let script = r#"
import sys, requests
url, session = sys.argv[1], requests.Session()
session.trust_env = False
with session.get(url, stream=True) as whole:
    whole.raise_for_status()
    first = whole.raw.read(100_000)
    headers = {"Range": "bytes=100000-", "If-Range": whole.headers["ETag"]}
with session.get(url, headers=headers, stream=True) as rest:
    assert rest.status_code == 206, rest.status_code
    parts = b"".join(rest.iter_content(65_535))
assert session.get(url, headers={"If-None-Match": headers["If-Range"]}).status_code == 304
sys.stdout.buffer.write(first + parts)
"#;
    for mode in MODES {
        let scratch = Scratch::new();
        let url = shared_server().server.url(&format!("/{mode}/full"));
        let bytes =
            ProgramRun::new(python, scratch.folder()).args(["-c", script, &url]).run().expect_success();
        assert!(bytes == shared_server().bytes["full"], "{mode}");
    }
}
