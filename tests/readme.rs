//! What README.md tells to paste, pasted: every block of shell, one after the other, in a folder that stands for the clone.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code: what is not as expected must stop the test"
)]

mod support;

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;

use support::{KINDLING, Run, Scratch, require_tool};

/// What comes before each block. The toolchain has done its part: here are the programs, and these are the tests.
const PRELUDE: &str = r#"set -e
cargo() {
    case "$*" in
    "build --release --workspace" | "test --workspace" | "run --release -- serve --help") ;;
    *) echo "cargo $* is not what a reader has done" >&2; exit 1 ;;
    esac
}
"#;

fn blocks(text: &str) -> Vec<&str> {
    text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// A port that nobody listens on; the usual one may be taken.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn every_block_works_as_pasted() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let blocks = blocks(&readme);
    assert!(blocks.len() >= 6, "{blocks:?}");
    let (Some(bash), Some(_)) = (require_tool("bash"), require_tool("curl")) else { return };
    let scratch = Scratch::new();
    let programs = Path::new(KINDLING).parent().unwrap();
    for directory in ["target/release", "bin"] {
        std::fs::create_dir_all(scratch.path(directory)).unwrap();
    }
    for program in ["kindling", "fixtures"] {
        symlink(programs.join(program), scratch.path("target/release").join(program)).unwrap();
    }
    let port = port();
    for block in blocks {
        let block = block
            .replace("kindling serve ", &format!("kindling serve --listen 127.0.0.1:{port} "))
            .replace("127.0.0.1:8090", &format!("127.0.0.1:{port}"))
            // It runs until somebody has seen enough.
            .replace(
                "target/release/kindling demo",
                "timeout --preserve-status -s INT 3 target/release/kindling demo --listen 127.0.0.1:0",
            );
        let script = format!("{PRELUDE}{block}wait\n");
        let output =
            Run::new(&bash, scratch.folder()).args(["-c", &script]).env("HOME", scratch.folder()).output();
        assert!(output.status.success(), "{block}\n{}\n{}", output.text(), output.stderr);
    }
    assert!(scratch.has("discovery.iso") && scratch.has("minimal.iso"));
}
