//! The memory that remains in use after images with large configs.

use serde_json::{Value, json};

use crate::downloads::ServedImage;
use crate::support::private_memory;

const INFRA_ENVS: &str = "/api/assisted-install/v2/infra-envs";
/// Length of an override. All overrides together are much longer than all caches.
const OVERRIDE_LEN: usize = 3 << 20;
const INFRA_ENV_COUNT: usize = 48;
/// Extra memory that may remain while the infra-envs exist: 128 MiB for the records in memory, 16 MiB for plans, and
/// memory that the allocator does not return.
const MAX_MEMORY: u64 = 208 << 20;
/// Extra memory that may remain after the deletion of the infra-envs.
const MAX_MEMORY_AFTER_DELETION: u64 = 64 << 20;

/// Returns an Ignition config whose only file is either well compressible or incompressible.
fn large_config(is_compressible: bool, seed: u64) -> Value {
    let mut state = seed | 1;
    let mut next_character = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from_digit(u32::try_from(state % 36).unwrap(), 36).unwrap()
    };
    let contents: String = match is_compressible {
        true => "a".repeat(OVERRIDE_LEN),
        false => (0..OVERRIDE_LEN).map(|_| next_character()).collect(),
    };
    json!({
        "ignition": {"version": "3.1.0"},
        "storage": {"files": [{"path": "/etc/large", "contents": {"source": format!("data:,{contents}")}}]},
    })
}

/// Creates infra-envs with large overrides, requests their images, and deletes them. Checks the memory of the server.
fn check_memory_of_large_overrides(is_compressible: bool) {
    let ServedImage { server, .. } = &ServedImage::start(&[]);
    let before = private_memory(server.child.id());
    let mut paths = Vec::new();
    for number in 1..=INFRA_ENV_COUNT {
        let body = json!({
            "name": format!("large-{number}"),
            "pull_secret": r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#,
            "ignition_config_override": large_config(is_compressible, number as u64).to_string(),
        })
        .to_string();
        let headers = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
        let created = server.request_with_body(&format!("POST {INFRA_ENVS}"), &headers, &body);
        assert_eq!(created.status, 201, "{}", created.head);
        paths.push(created.json()["id"].as_str().unwrap().to_owned());
    }
    for file in ["full.iso", "minimal.iso"] {
        for id in &paths {
            let answer = server.request(&format!("GET /i/{id}/{file}"), "Range: bytes=0-2047");
            assert_eq!((answer.status, answer.body.len()), (206, 2048), "{}", answer.head);
        }
    }
    let after = private_memory(server.child.id());
    for id in &paths {
        assert_eq!(server.request(&format!("DELETE {INFRA_ENVS}/{id}"), "").status, 204);
    }
    let deleted = private_memory(server.child.id());
    println!(
        "compressible: {is_compressible}; private memory: {} KiB before, {} KiB after {INFRA_ENV_COUNT} infra-envs, {} KiB without them",
        before >> 10,
        after >> 10,
        deleted >> 10
    );
    assert!(after < before + MAX_MEMORY, "{before} before, {after} with images of large configs");
    assert!(deleted < before + MAX_MEMORY_AFTER_DELETION, "{before} before, {deleted} after the deletion");
}

#[test]
fn images_with_large_compressible_configs_leave_little_memory() {
    check_memory_of_large_overrides(true);
}

#[test]
fn images_with_large_incompressible_configs_leave_little_memory() {
    check_memory_of_large_overrides(false);
}
