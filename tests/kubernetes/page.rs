//! The commands of `docs/kubernetes.md`, from the manifest to the Agent of a machine.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::Path;
use std::{env, fs};

use fixtures::{Architecture, Era};
use serde_json::json;

use crate::hub::Hub;
use crate::support::{KINDLING, ProgramRun, Scratch, fixture, require_tool};

/// The address of the service in the page.
const ADDRESS: &str = "127.0.0.1:8090";
/// Shell commands that precede the commands of the page.
const PRELUDE: &str = "set -exo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n";

/// Returns the blocks of one language in the section that leads from a manifest to a machine.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let section = page.split("\n## ").find(|section| section.starts_with("From a manifest")).unwrap();
    let fence = format!("```{language}\n");
    section.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Joins the commands for one terminal. The service and the machine run in the background, and the script waits for
/// each.
fn in_one_terminal(blocks: &[String]) -> String {
    let wait_for_service = format!("& until curl -sf http://{ADDRESS}/ready; do sleep 0.1; done");
    let wait_for_agent = "& until kubectl get -n site1 agents -o name | grep agent; do sleep 0.1; done";
    let mut script = PRELUDE.to_owned();
    for line in blocks.iter().flat_map(|block| block.lines()) {
        script += line;
        if line.starts_with("kindling serve") {
            script += &wait_for_service;
        } else if line.starts_with("kindling simulate") {
            script += wait_for_agent;
        }
        script += "\n";
    }
    script + "kubectl get -n site1 agents -o yaml\n"
}

/// Returns `PATH`, with the programs of the hub and the program under test first.
fn path_with_programs(hub: &Hub) -> OsString {
    let own = Path::new(KINDLING).parent().unwrap();
    let path = env::var_os("PATH").unwrap();
    let others = env::split_paths(&path);
    env::join_paths([own.to_owned(), hub.programs().to_owned()].into_iter().chain(others)).unwrap()
}

/// Prepares a reader's folder: a home directory with the kubeconfig of the hub, the programs, and a base image.
fn prepare(hub: &Hub) -> Scratch {
    let scratch = Scratch::new();
    let iso = scratch.write("live.iso", &fixture(Architecture::X86_64, Era::E2024_12).bytes);
    let images = json!([{
        "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94.1",
        "url": format!("file://{}", iso.display()),
    }]);
    scratch.write("images.json", images.to_string());
    let kubeconfig = hub.kubeconfig(&hub.url(), &hub.token_of_user("admin"));
    scratch.write(".kube/config", fs::read(kubeconfig).unwrap());
    scratch
}

#[test]
fn page_leads_from_a_manifest_to_an_agent() {
    let (Some(bash), Some(_)) = (require_tool("bash"), require_tool("curl")) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(hub) = runtime.block_on(Hub::shared()) else { return };
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/kubernetes.md")).unwrap();
    let scratch = prepare(hub);
    let [manifest] = &blocks(&page, "yaml")[..] else { panic!("one manifest") };
    scratch.write("site1.yaml", manifest);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let script = in_one_terminal(&blocks(&page, "sh")).replace(ADDRESS, &address);
    let output = ProgramRun::new(bash, scratch.folder())
        .args(["-c", &script])
        .env("HOME", scratch.folder())
        .env("PATH", path_with_programs(hub))
        .env("KINDLING_LISTEN", &address)
        .env("KINDLING_DATA_DIR", scratch.path("data"))
        .run();
    let (printed, log) = (output.stdout_text(), &output.stderr);
    assert!(output.status.success(), "{printed}\n{log}");
    let config = scratch.command(["iso", "ignition", "show", "machine.iso"]).run().expect_text();
    assert!(config.contains("/etc/assisted/network/host0/ymlFile0.yml"), "{config}");
    assert!(config.contains("192.0.2.11"), "{config}");
    for expected in ["hostname: node-a", "approved: true"] {
        assert!(printed.contains(expected), "no {expected:?} in: {printed}\n{log}");
    }
}
