//! The commands of `docs/*.md`: shell blocks marked with `try` are run unchanged, page by page, against a service with
//! one infra-env. Only the address is replaced.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use fixtures::{Architecture, Era};
use serde_json::json;

use super::serve::ServeProcess;
use crate::support::{KINDLING, Scratch, fixture, require_tool};

/// The address of the service in the pages.
const ADDRESS: &str = "127.0.0.1:8090";
const INFRA_ENVS: &str = "/api/assisted-install/v2/infra-envs";

/// Returns the blocks of a page with the mark `try`.
fn tried_blocks(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while lines.any(|line| line == "```sh try") {
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push(block.join("\n"));
    }
    blocks
}

/// Starts a service with a base image. Returns the service and the id of its infra-env.
fn start_service(scratch: &Scratch) -> (ServeProcess, String) {
    let iso = scratch.write("live.iso", &fixture(Architecture::X86_64, Era::E2024_12).bytes);
    let images = json!([{
        "openshift_version": "4.14", "cpu_architecture": "x86_64", "version": "414.92.1",
        "url": format!("file://{}", iso.display()),
    }]);
    scratch.write("images.json", images.to_string());
    let server =
        ServeProcess::start(scratch, &[], &["--data-dir", "data", "--os-images-file", "images.json"]);
    let params = json!({
        "name": "tried", "openshift_version": "4.14", "cpu_architecture": "x86_64",
        "pull_secret": "{\"auths\": {\"quay.io\": {\"auth\": \"dXNlcjpwYXNz\"}}}",
    })
    .to_string();
    let headers = format!("Content-Type: application/json\r\nContent-Length: {}", params.len());
    let answer = server.request_with_body(&format!("POST {INFRA_ENVS}"), &headers, &params);
    assert_eq!(answer.status, 201, "{answer:?}");
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    (server, id)
}

#[test]
fn documented_commands_work() {
    if require_tool("curl").is_none() {
        return;
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let mut tried = Vec::new();
    for entry in fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        let blocks = match path.extension() {
            Some(extension) if extension == "md" => tried_blocks(&fs::read_to_string(&path).unwrap()),
            _ => continue,
        };
        if blocks.is_empty() {
            continue;
        }
        let (scratch, place) = (Scratch::new(), Scratch::new());
        let (mut server, id) = start_service(&scratch);
        let script = blocks.join("\n").replace(ADDRESS, &server.addresses[0]);
        let programs = Path::new(KINDLING).parent().unwrap().display();
        let output = Command::new("sh")
            .args(["-euxc", &script])
            .env("PATH", format!("{programs}:{}", env::var("PATH").unwrap()))
            .env("ID", &id)
            .current_dir(place.folder())
            .output()
            .unwrap();
        let _ = server.child.kill();
        let _ = server.child.wait();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}:\n{stdout}\n{stderr}", path.display());
        tried.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
    }
    tried.sort();
    assert_eq!(
        tried,
        [
            "air-gap",
            "api-compatibility",
            "bmc",
            "discovery",
            "doctor",
            "getting-started",
            "images",
            "infra-envs",
            "ipxe",
            "scripts",
            "simulate"
        ]
    );
}
