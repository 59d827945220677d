//! The hosts with static networks in the form that creates an infra-env.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::run_test;
use crate::service::{NMSTATE, PageService};

/// Returns two manifests of hosts, in an order that the service changes.
fn two_manifests() -> String {
    let manifest = |name: &str, number: usize, vlan: usize| {
        format!(
            "kind: NMStateConfig\nmetadata: {{name: {name}}}\nspec:\n  interfaces:\n  - {{name: eth0, macAddress: \
             '52:54:00:00:0{number}:00'}}\n  config:\n    interfaces:\n    - {{name: eth0, type: ethernet, state: up}}\n    - \
             {{name: v0, type: vlan, state: up, vlan: {{id: {vlan}, base-iface: eth0}}}}\n"
        )
    };
    format!("{}---\n{}", manifest("zebra", 2, 7), manifest("apple", 1, 0))
}

/// The titles of the hosts in the form.
const TITLES: &str =
    "return [...document.querySelectorAll('.machine legend')].map((legend) => legend.textContent)";

/// The service limits the length of file names, but not of the names of manifests.
#[test]
fn manifest_with_a_long_name_is_accepted() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_creation_form(&service, "rack-12").await;
        let name = "a".repeat(253);
        browser.upload_and_wait_for_host("site.yaml", &two_manifests().replace("apple", &name), &name).await;
        browser.submit_form().await;
        browser
            .wait_until("return document.getElementById('news').textContent === 'rack-12 was created.'")
            .await;
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}

#[test]
fn names_and_order_of_manifests_are_kept_in_the_list_of_machines() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_creation_form(&service, "rack-12").await;
        browser.upload_and_wait_for_host("site.yaml", &two_manifests(), "apple").await;
        browser.submit_form().await;
        let options =
            "return [...document.querySelectorAll('[data-slot=machine] option')].map((it) => it.textContent)";
        browser.wait_until(&format!("{options}.length === 3")).await;
        let expected_options =
            json!(
                ["all machines", "Host 1: zebra · 52:54:00:00:02:00", "Host 2: apple · 52:54:00:00:01:00",]
            );
        assert_eq!(browser.run_script(options).await, expected_options);
        let findings = browser.find_visible("[data-slot=findings] .findings").await.text().await;
        assert!(findings.contains("Host 2: apple (52:54:00:00:01:00), line"), "{findings}");
        // The service has sorted the hosts.
        let infra_env = &service.infra_envs().await[0];
        let networks: Value =
            serde_json::from_str(infra_env["static_network_config"].as_str().unwrap()).unwrap();
        assert_eq!(networks[0]["mac_interface_map"][0]["mac_address"], "52:54:00:00:01:00");
        // This browser stores the names. They survive a reload, and the page deletes them with the infra-env.
        let open = service.url(&format!("/?reload#{}", infra_env["id"].as_str().unwrap()));
        browser.open_url(&open).await;
        browser.wait_until(&format!("{options}.length === 3")).await;
        assert_eq!(browser.run_script(options).await, expected_options);
        // The browser may also have stored names for an earlier service at the same address.
        browser.run_script("localStorage.setItem('kindling-hosts/another', '{}')").await;
        browser.open_url(&open).await;
        browser.find_visible("[data-slot=delete]").await.click().await;
        browser.find_visible("#delete").await.click().await;
        browser.wait_until("return document.getElementById('nothing').checkVisibility()").await;
        assert_eq!(
            browser.run_script("return Object.keys(localStorage)").await,
            json!(["kindling-hosts/another"])
        );
        let keep_many = "return (async () => {
            const { keepNames, forgetAll } = await import('/page/host-names.js');
            for (let number = 0; number < 205; number += 1) keepNames(`${number}`, []);
            const count = localStorage.length;
            forgetAll();
            return count;
            })()";
        assert_eq!(browser.run_script(keep_many).await, 200);
        assert_eq!(browser.run_script("return localStorage.length").await, 0);
        assert_eq!(browser.console_messages_after_deletion().await, [""; 0]);
    });
}

#[test]
fn pasted_manifests_and_dropped_files_become_hosts() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_creation_form(&service, "rack-12").await;
        browser.find_visible("#add-machine").await.click().await;
        browser.find_visible("#add-machine").await.click().await;
        let paste = format!(
            "const area = document.querySelector('[name=network_yaml]'); area.value = {}; \
             area.dispatchEvent(new InputEvent('input', {{bubbles: true, inputType: 'insertFromPaste'}}))",
            json!(two_manifests())
        );
        browser.run_script(&paste).await;
        browser.wait_until(&format!("{TITLES}.length === 3")).await;
        assert_eq!(browser.run_script(TITLES).await, json!(["Host 1: zebra", "Host 2: apple", "Host 3"]));
        let drop = format!(
            "const data = new DataTransfer(); data.items.add(new File([{}], 'node-c.yaml')); \
             document.getElementById('machines').dispatchEvent(new DragEvent('drop', {{bubbles: true, cancelable: true, dataTransfer: data}}))",
            json!(NMSTATE)
        );
        browser.run_script(&drop).await;
        browser.wait_until(&format!("{TITLES}.length === 4")).await;
        assert_eq!(browser.run_script(&format!("{TITLES}[3]")).await, "Host 4: node-c.yaml");
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}

/// The hosts of a corrected file replace the hosts of the rejected file, and stay before later hosts.
#[test]
fn replaced_file_keeps_its_place() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_creation_form(&service, "rack-12").await;
        let broken = format!("{}---\nkind: NMStateConfig\nmetadata: {{name: a}}\n", two_manifests());
        browser.upload_and_wait_for_host("site.yaml", &broken, "apple").await;
        browser.upload_network("last.yaml", NMSTATE).await;
        let path = browser.file_to_upload("site.yaml", &two_manifests().replace("apple", "pear"));
        browser.find_all("#nmstate").await[0].type_text(path.to_str().unwrap()).await;
        browser.wait_until("return document.querySelector('#machines').innerText.includes('pear')").await;
        assert_eq!(
            browser.run_script(TITLES).await,
            json!(["Host 1: zebra", "Host 2: pear", "Host 3: last.yaml"])
        );
    });
}

/// One list contains the errors that only the page detects, the errors from the service, and the errors in files.
#[test]
fn findings_of_the_form_and_of_the_service_appear_together() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_creation_form(&service, "rack-12").await;
        let host = |number: usize, name: &str, vlan: usize| {
            json!({
                "network_yaml": NMSTATE.replace(".10\n", &format!(".{number}\n")).replace("id: 0", &format!("id: {vlan}")),
                "mac_interface_map": [
                    {"mac_address": format!("52:54:00:00:00:{number}"), "logical_nic_name": "eth0"},
                    {"mac_address": format!("52:54:00:00:01:{number}"), "logical_nic_name": name},
                ],
            })
        };
        let hosts = json!([host(11, "eth7", 7), host(12, "eth0.0", 4095)]).to_string();
        browser.upload_network("hosts.json", &hosts).await;
        browser
            .upload_and_wait_for_host(
                "site.yaml",
                &format!("{}---\nkind: NMStateConfig\nmetadata: {{name: a}}\n", two_manifests()),
                "apple",
            )
            .await;
        browser.submit_form().await;
        browser.wait_until("return document.activeElement.id === 'creation-problem'").await;
        let text = browser.find_visible("#creation-problem").await.text().await;
        for part in [
            "Nothing was created: some network files cannot be used. Replace them, or remove them. Also, the static networks have errors.",
            "NMStateConfig a has no spec.config",
            "the document has no interface eth7",
            "VLAN 4095 is not within 1 to 4094",
            "Host 2: hosts.json, line 15",
            "Remove site.yaml",
        ] {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
        assert_eq!(service.infra_envs().await.len(), 0);
    });
}
