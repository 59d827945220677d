//! The hosts of an infra-env on the page.

use reqwest::Method;
use serde_json::json;

use crate::browser::Browser;
use crate::run_test;
use crate::service::PageService;

/// The cells of the rows of all hosts.
const HOSTS: &str = "
    const rows = [...document.querySelectorAll('[data-slot=hosts] tr')].filter((row) => row.offsetParent);
    return rows.map((row) => [...row.children].map((cell) => cell.innerText.replaceAll('\\n', ' ')))";

/// Hosts appear and change without reloading the page.
#[test]
fn hosts_are_listed_with_their_current_status() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        let made = service.create_infra_env("demo").await;
        let id = made["id"].as_str().unwrap();
        browser.open_url(&service.url(&format!("/#{id}"))).await;
        browser.find_visible("[data-slot=noHosts]").await;
        let host = "0f2a5d3c-1111-4222-8333-444455556666";
        let hosts = format!("/infra-envs/{id}/hosts");
        service.api_json(Method::POST, &hosts, &json!({"host_id": host})).await;
        let row = browser
            .wait_until(&format!("{HOSTS}.find((row) => row[1].startsWith('discovering-unbound'))"))
            .await;
        assert_eq!(row[0], host);
        let inventory = json!({
            "hostname": "node-1", "cpu": {"count": 1, "architecture": "x86_64"},
            "memory": {"physical_bytes": 1 << 30, "usable_bytes": 1 << 30},
            "interfaces": [{"name": "eth0", "ipv4_addresses": ["192.0.2.7/24"], "ipv6_addresses": ["2001:db8::7/64"]}],
        });
        let reply = json!({"step_type": "inventory", "step_id": "1", "output": inventory.to_string()});
        let url = service.url(&format!("{}{hosts}/{host}/instructions", crate::service::API));
        assert_eq!(service.client.post(url).json(&reply).send().await.unwrap().status(), 204);
        let row = browser.wait_until(&format!("{HOSTS}.find((row) => row[0].startsWith('node-1'))")).await;
        assert_eq!(row[0], format!("node-1 {host}"));
        assert!(row[1].as_str().unwrap().starts_with("insufficient-unbound Host does not meet"), "{row}");
        assert_eq!((&row[2], &row[3]), (&json!("auto-assign"), &json!("192.0.2.7, 2001:db8::7")));
        assert_eq!(
            browser.find_visible("[data-slot=hosts] .badge").await.text().await,
            "insufficient-unbound"
        );
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}
