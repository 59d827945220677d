//! Runs every shell block of README.md, one after the other, in a folder that represents the clone.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code: what is not as expected must stop the test"
)]

mod support;

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;

use support::{KINDLING, ProgramRun, Scratch, require_tool};

/// Prepended to each block. The toolchain is replaced: the programs are built, and the tests are running.
const PRELUDE: &str = r#"set -e
cargo() {
    case "$*" in
    "build --release" | "test --workspace") ;;
    # The server runs until it is stopped.
    "run --release -- demo") timeout --preserve-status -s INT 3 target/release/kindling demo --listen 127.0.0.1:0 ;;
    *) echo "cargo $* is not what a reader has done" >&2; exit 1 ;;
    esac
}
"#;

fn shell_blocks(text: &str) -> Vec<&str> {
    text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// A free port, because the default one may be in use.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn every_block_works_as_pasted() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let blocks = shell_blocks(&readme);
    assert!(blocks.len() >= 6, "{blocks:?}");
    let (Some(bash), Some(_)) = (require_tool("bash"), require_tool("curl")) else { return };
    let scratch = Scratch::new();
    let programs = Path::new(KINDLING).parent().unwrap();
    for directory in ["target/release", "bin"] {
        std::fs::create_dir_all(scratch.path(directory)).unwrap();
    }
    symlink(programs.join("kindling"), scratch.path("target/release/kindling")).unwrap();
    let port = free_port();
    for block in blocks {
        let block = block
            .replace("kindling serve ", &format!("kindling serve --listen 127.0.0.1:{port} "))
            .replace("127.0.0.1:8090", &format!("127.0.0.1:{port}"));
        let script = format!("{PRELUDE}{block}wait\n");
        let output = ProgramRun::new(&bash, scratch.folder())
            .args(["-c", &script])
            .env("HOME", scratch.folder())
            .run();
        assert!(output.status.success(), "{block}\n{}\n{}", output.stdout_text(), output.stderr);
    }
    assert!(scratch.has_file("discovery.iso") && scratch.has_file("minimal.iso"));
}
