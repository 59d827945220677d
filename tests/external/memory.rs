//! The memory that remains in use after the images of an external inventory with large configs.

use serde_json::json;

use crate::go_service::GoService;
use crate::process::ServerProcess;
use crate::server::base_images;
use crate::support::Scratch;

const CONFIG_LEN: usize = 20 << 20;
const INFRA_ENV_COUNT: usize = 12;
/// Extra memory that may remain: 64 MiB of responses, 16 MiB of plans, and memory that the allocator does not return.
const MAX_MEMORY: u64 = 160 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn large_configs_leave_little_memory() {
    let (scratch, go) = (Scratch::new(), GoService::start().await);
    let list = base_images(scratch.folder()).to_string();
    let variables = [("KINDLING_INVENTORY_URL", go.peer.url()), ("OS_IMAGES", list)];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let process = ServerProcess::start(&scratch, "127.0.0.1:0", &variables);
    process.wait_for_health(|status, _| status == 200).await;
    let before = process.private_memory();
    for number in 0..INFRA_ENV_COUNT {
        let contents = "a".repeat(CONFIG_LEN);
        let config = json!({"ignition": {"version": "3.1.0"}, "number": number, "contents": contents});
        go.change(|record| record.config = config.to_string());
        let id = format!("7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c{number:02}");
        let image = process.get(&format!("/byid/{id}/4.14/x86_64/minimal.iso")).await;
        assert_eq!(image.status(), 200);
        assert!(!image.bytes().await.unwrap().is_empty());
    }
    let after = process.private_memory();
    println!("private memory: {} KiB before, {} KiB after {INFRA_ENV_COUNT}", before >> 10, after >> 10);
    assert!(after < before + MAX_MEMORY, "{before} before, {after} after images of large configs");
}
