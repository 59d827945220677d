//! Runs the shell blocks of README.md and docs/getting-started.md one after another, in a folder that represents a
//! clone of the repository. Compares facts on the pages with the code.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod support;

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

use support::{KINDLING, ProgramRun, RunOutput, Scratch, require_tool};

/// Commands before the blocks. They replace the toolchain, because the programs are already built and the tests are
/// running.
const PRELUDE: &str = r#"set -ex
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
cargo() {
    case "$*" in
    "build --release" | "test --workspace") ;;
    "run --release -- demo") demo target/release/kindling ;;
    *) echo "cargo $* is not what a reader has done" >&2; exit 1 ;;
    esac
}
# It runs until it is stopped.
demo() { timeout --preserve-status -s INT 3 "$1" demo --listen 127.0.0.1:0; }
"#;

fn read_page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// Returns the shell blocks of a page, whether or not `tests/cli/documentation.rs` tries them too.
fn shell_blocks(text: &str) -> Vec<&str> {
    text.split("```sh")
        .skip(1)
        .map(|rest| rest.split_once('\n').unwrap().1.split("```").next().unwrap())
        .collect()
}

/// Returns a free port, because the default port may be in use.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A folder that represents a clone after a build.
struct Clone {
    scratch: Scratch,
    bash: PathBuf,
}

impl Clone {
    fn new() -> Option<Self> {
        let (Some(bash), Some(_)) = (require_tool("bash"), require_tool("curl")) else { return None };
        let scratch = Scratch::new();
        for directory in ["target/release", "examples"] {
            fs::create_dir_all(scratch.path(directory)).unwrap();
        }
        symlink(KINDLING, scratch.path("target/release/kindling")).unwrap();
        let site = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/site");
        symlink(site, scratch.path("examples/site")).unwrap();
        Some(Self { scratch, bash })
    }

    /// Runs blocks in one shell, as a reader pastes them. Each address on a page is replaced by a free loopback
    /// address.
    fn paste(&self, blocks: &[String]) -> RunOutput {
        let port = free_port();
        let script = format!("{PRELUDE}{}", blocks.join("\n"))
            .replace("0.0.0.0:8090", "127.0.0.1:8090")
            .replace("ADDRESS=192.0.2.1", "ADDRESS=127.0.0.1")
            .replace("kindling serve --data-dir", "kindling serve --listen 127.0.0.1:8090 --data-dir")
            .replace("\nkindling demo\n", "\ndemo kindling\n")
            .replace(":8090", &format!(":{port}"));
        ProgramRun::new(&self.bash, self.scratch.folder())
            .args(["-c", &script])
            .env("HOME", self.scratch.folder())
            .env("KINDLING_URL", format!("http://127.0.0.1:{port}"))
            .run()
    }

    #[track_caller]
    fn expect_pasted(&self, blocks: &[String]) -> RunOutput {
        let output = self.paste(blocks);
        assert!(output.status.success(), "{}\n{}", output.stdout_text(), output.stderr);
        output
    }
}

fn readme_blocks() -> Vec<String> {
    let readme = read_page("README.md");
    let blocks = shell_blocks(&readme);
    assert!(blocks.len() >= 6, "{blocks:?}");
    blocks.into_iter().map(str::to_owned).collect()
}

/// The notice is visible although the test passes, because the test harness does not capture it.
#[test]
fn skipped_test_prints_its_reason() {
    let output = std::process::Command::new(env::current_exe().unwrap())
        .args(["readme_works_as_pasted", "--exact"])
        .env("PATH", "")
        .env_remove("KINDLING_REQUIRE_TOOLS")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let notice = String::from_utf8(output.stderr).unwrap();
    assert!(notice.contains("SKIPPED tests of readme: bash is not installed\n"), "{notice}");
}

#[test]
fn readme_works_as_pasted() {
    let Some(clone) = Clone::new() else { return };
    let output = clone.expect_pasted(&readme_blocks());
    assert!(clone.scratch.has_file("try/discovery.iso") && clone.scratch.has_file("try/minimal.iso"));
    assert!(clone.scratch.path("bin/coreos-installer").is_file(), "the link is broken");
    let printed = output.stdout_text();
    assert!(printed.contains("Image URL:         http://127.0.0.1:"), "{printed}");
}

/// Changes a block of getting-started for one terminal. A reader has one terminal for the service and one for commands,
/// and boots an image that this test does not have.
fn in_one_terminal(block: &str) -> String {
    const STARTED: &str = "& until curl -sf http://127.0.0.1:8090/ready; do sleep 0.1; done";
    let mut script = if block.contains("auth keys") { "kill %1; wait\n".to_owned() } else { String::new() };
    for line in block.lines().filter(|line| !line.starts_with("kindling boot-test")) {
        script += line;
        script += if line.ends_with("--os-images-file os-images.json") { STARTED } else { "" };
        script += "\n";
    }
    script
}

/// Runs the commands of getting-started after the commands of the README in the same clone, as a reader may do.
#[test]
fn getting_started_works_as_pasted_after_the_readme() {
    let Some(clone) = Clone::new() else { return };
    let page = read_page("docs/getting-started.md");
    let blocks = shell_blocks(&page).into_iter().map(in_one_terminal);
    let blocks: Vec<String> = blocks.collect();
    clone.expect_pasted(&readme_blocks());
    let output = clone.expect_pasted(&[blocks, vec!["kill %1; wait".to_owned()]].concat());
    assert!(clone.scratch.has_file("started/site.iso"));
    let printed = output.stdout_text();
    assert!(printed.contains("known-unbound"), "{printed}");
}

#[test]
fn pages_name_the_toolchain() {
    let version = env!("CARGO_PKG_RUST_VERSION");
    for page in ["README.md", "docs/getting-started.md", "docs/install.md"] {
        assert!(read_page(page).contains(&format!("Rust {version} or newer")), "{page}");
    }
    assert!(read_page("packaging/Containerfile").contains(&format!("FROM rust:{version}-")));
}

#[test]
fn pages_count_unimplemented_operations() {
    let document: Value = serde_json::from_str(&read_page("docs/openapi.json")).unwrap();
    // Routes outside the API have their own server entry in the document.
    let paths = document["paths"].as_object().unwrap().values().filter(|path| path.get("servers").is_none());
    let operations: Vec<&Value> = paths
        .flat_map(|path| path.as_object().unwrap().values())
        .filter(|item| item.get("responses").is_some())
        .collect();
    let missing = operations.iter().filter(|operation| operation["responses"].get("501").is_some()).count();
    let count = format!("{missing} of the {} API operations", operations.len());
    for page in ["README.md", "docs/api-compatibility.md"] {
        let text = read_page(page).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&count), "{page} does not contain {count:?}");
    }
}
