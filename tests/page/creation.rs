//! Tests the form that creates an infra-env.

use serde_json::{Value, json};

use crate::browser::{Browser, key};
use crate::run_test;
use crate::service::{NMSTATE, PULL_SECRET, PageService};

impl Browser {
    /// Opens the form and fills in the required fields.
    pub(crate) async fn open_creation_form(&self, service: &PageService, name: &str) {
        self.open_url(&service.url("/")).await;
        self.find_visible("#new").await.click().await;
        self.wait_until("return document.querySelector('[name=openshift_version]').value").await;
        self.find_visible("#creation [name=name]").await.type_text(name).await;
        self.find_visible("[name=pull_secret]").await.type_text(PULL_SECRET).await;
    }

    /// Uploads a network document of a host.
    pub(crate) async fn upload_network(&self, name: &str, text: &str) {
        self.upload_and_wait_for_host(name, text, name).await;
    }

    /// Uploads a file, and waits for a host of this name.
    pub(crate) async fn upload_and_wait_for_host(&self, name: &str, text: &str, host: &str) {
        let path = self.file_to_upload(name, text);
        let fields = self.find_all("#nmstate").await;
        fields[0].type_text(path.to_str().unwrap()).await;
        self.wait_until(&format!("return document.querySelector('#machines').innerText.includes('{host}')"))
            .await;
    }

    pub(crate) async fn submit_form(&self) {
        self.find_visible("#creation button.primary").await.click().await;
    }
}

#[test]
fn form_creates_the_infra_env() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_creation_form(&service, "rack-12").await;
        browser.find_visible("[name=image_type] option[value=minimal-iso]").await.click().await;
        browser.find_visible("[name=ssh_authorized_key]").await.type_text(SSH_KEY).await;
        browser.find_visible("#add-argument").await.click().await;
        browser.find_visible("[name=value]").await.type_text("console=ttyS0").await;
        browser.upload_network("node-a.yaml", NMSTATE).await;
        // The input of the missing MAC address has the focus.
        assert_eq!(browser.focused_element().await.accessible_name().await, "MAC address");
        browser.press_keys("52:54:00:00:00:01").await;
        browser.find_visible("summary").await.click().await;
        browser.find_visible("[name=http_proxy]").await.type_text("http://proxy.example.com:3128").await;
        browser.find_visible("[name=additional_ntp_sources]").await.type_text("ntp.example.com").await;
        browser.submit_form().await;
        browser
            .wait_until("return document.getElementById('news').textContent === 'rack-12 was created.'")
            .await;
        let [made] = &service.infra_envs().await[..] else { panic!("not one") };
        assert_eq!(made["name"], "rack-12");
        assert_eq!((&made["openshift_version"], &made["type"]), (&json!("4.17"), &json!("minimal-iso")));
        assert_eq!((&made["pull_secret_set"], &made["cpu_architecture"]), (&json!(true), &json!("x86_64")));
        assert_eq!(made["ssh_authorized_key"], SSH_KEY);
        assert_eq!(made["proxy"], json!({"http_proxy": "http://proxy.example.com:3128"}));
        assert_eq!(made["additional_ntp_sources"], "ntp.example.com");
        let parsed = |name: &str| serde_json::from_str::<Value>(made[name].as_str().unwrap()).unwrap();
        assert_eq!(parsed("kernel_arguments"), json!([{"operation": "append", "value": "console=ttyS0"}]));
        let network = &parsed("static_network_config")[0];
        assert_eq!(network["network_yaml"], NMSTATE);
        let map = json!([{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}]);
        assert_eq!(network["mac_interface_map"], map);
        // The card is open and shows its warnings. The form is closed and empty.
        assert!(browser.find_visible(".findings").await.text().await.contains("VLAN 0"));
        assert_eq!(browser.focused_element().await.property("className").await, "opener");
        let is_form_closed = "const form = document.getElementById('creation'); \
                    return form.hidden && !form.elements.pull_secret.value && !document.querySelector('.machine')";
        assert_eq!(browser.run_script(is_form_closed).await, true);
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}

const SSH_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl one@example";

#[test]
fn api_refusals_are_shown_next_to_the_form() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_creation_form(&service, "rack-12").await;
        let secret = browser.find_visible("[name=pull_secret]").await;
        secret.type_text("no JSON").await;
        browser.submit_form().await;
        let problem = browser.find_visible("#creation-problem").await;
        assert_eq!(problem.role().await, "alert");
        browser.wait_until("return document.activeElement.id === 'creation-problem'").await;
        let text = problem.text().await;
        assert!(text.contains("pull secret"), "{text}");
        let marked =
            "return [...document.querySelectorAll('[aria-invalid=true]')].map((field) => field.name)";
        assert_eq!(browser.run_script(marked).await, json!(["pull_secret"]));
        assert_eq!(service.infra_envs().await.len(), 0);
        // The form keeps the input.
        assert_eq!(browser.find_visible("#creation [name=name]").await.property("value").await, "rack-12");
    });
}

/// Errors in network documents name the uploaded file and the line, and link to the line.
#[test]
fn network_errors_link_to_their_lines() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_creation_form(&service, "rack-12").await;
        let wrong = NMSTATE.replace("id: 0", "id: 4095").replace("eth0.0", "eth0.4095");
        let list = json!([{
            "network_yaml": NMSTATE.replace(".10\n", ".11\n"),
            "mac_interface_map": [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}],
        }]);
        browser.upload_network("hosts.json", &list.to_string()).await;
        browser.upload_network("node-b.yaml", &wrong).await;
        assert_eq!(browser.find_all(".machine").await.len(), 2);
        browser.press_keys("52:54:00:00:00:02").await;
        browser.submit_form().await;
        let text = browser.find_visible("#creation-problem .findings").await.text().await;
        assert!(text.contains("VLAN 4095 is not within 1 to 4094"), "{text}");
        assert!(text.contains("Host 2: node-b.yaml, line 15") && text.contains("id: 4095"), "{text}");
        assert_eq!(service.infra_envs().await.len(), 0);
        browser.find_visible("#creation-problem .findings button").await.click().await;
        let selected = browser
            .run_script("const area = document.activeElement; return area.value.slice(area.selectionStart, area.selectionEnd)")
            .await;
        assert_eq!(selected, "    id: 4095");
        // After the correction, the infra-env is created.
        browser.press_keys("    id: 7").await;
        browser.submit_form().await;
        browser
            .wait_until("return document.getElementById('news').textContent === 'rack-12 was created.'")
            .await;
        assert_eq!(service.infra_envs().await.len(), 1);
    });
}

/// Uploads two manifests and a document with two hosts, and checks the resulting form.
#[test]
fn manifests_and_documents_fill_the_form() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_creation_form(&service, "rack-12").await;
        let manifest = |name: &str, number: usize| {
            format!(
                "kind: NMStateConfig\nmetadata: {{name: {name}}}\nspec:\n  interfaces:\n  - {{name: eth0, macAddress: \
                 '52:54:00:00:0{number}:00'}}\n  - {{name: eth1, macAddress: '52:54:00:00:0{number}:01'}}\n  config:\n    interfaces:\n    \
                 - {{name: eth0, type: ethernet, state: up}}\n    - {{name: eth1, type: ethernet, state: up}}\n"
            )
        };
        let manifests = format!("{}---\nkind: Secret\n---\n{}", manifest("node-0", 1), manifest("node-1", 2));
        browser.upload_and_wait_for_host("site.yaml", &manifests, "node-1").await;
        let second = "- {name: eno1, type: ethernet, state: up, mac-address: '52:54:00:00:03:00'}\n- {name: eno2, type: \
                      ethernet, state: up}\n";
        browser.upload_network("plain.yaml", &format!("interfaces:\n{second}")).await;
        let form = "return [...document.querySelectorAll('.machine')].map((machine) => \
                    [machine.querySelector('legend').textContent, ...[...machine.querySelectorAll('input')].map((it) => it.value)])";
        assert_eq!(
            browser.run_script(form).await,
            json!([
                ["Host 1: node-0", "52:54:00:00:01:00", "eth0", "52:54:00:00:01:01", "eth1"],
                ["Host 2: node-1", "52:54:00:00:02:00", "eth0", "52:54:00:00:02:01", "eth1"],
                ["Host 3: plain.yaml", "52:54:00:00:03:00", "eno1", "", "eno2"],
            ])
        );
        // The input of the missing address has the focus.
        browser.press_keys("52:54:00:00:03:01").await;
        browser.submit_form().await;
        browser
            .wait_until("return document.getElementById('news').textContent === 'rack-12 was created.'")
            .await;
        let infra_env = &service.infra_envs().await[0];
        let networks: Value =
            serde_json::from_str(infra_env["static_network_config"].as_str().unwrap()).unwrap();
        assert_eq!(networks.as_array().unwrap().len(), 3);
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}

/// The machine ignores the entry, so both the page and the service report a warning.
#[test]
fn map_with_an_interface_that_the_document_does_not_declare_is_a_warning() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_creation_form(&service, "rack-12").await;
        let map = json!([
            {"mac_address": "52:54:00:00:00:11", "logical_nic_name": "eth0"},
            {"mac_address": "52:54:00:00:00:12", "logical_nic_name": "eth7"},
        ]);
        let hosts = json!([{"network_yaml": NMSTATE, "mac_interface_map": map}]);
        browser.upload_network("hosts.json", &hosts.to_string()).await;
        browser.submit_form().await;
        browser
            .wait_until("return document.getElementById('news').textContent === 'rack-12 was created.'")
            .await;
        browser
            .wait_until("return document.body.innerText.includes('the document has no interface eth7')")
            .await;
        let severities = "return [...document.querySelectorAll('.findings li')].map((it) => it.textContent)";
        let text = browser.run_script(severities).await.to_string();
        assert!(text.contains("warning") && !text.contains("error"), "{text}");
        assert_eq!(service.infra_envs().await.len(), 1);
    });
}

#[test]
fn rejects_map_without_a_mac_address() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_creation_form(&service, "rack-12").await;
        let host = |number: usize, name: &str| {
            json!({
                "network_yaml": NMSTATE.replace(".10\n", &format!(".{number}\n")),
                "mac_interface_map": [{"mac_address": format!("52:54:00:00:00:{number}"), "logical_nic_name": name}],
            })
        };
        browser.upload_network("hosts.json", &json!([host(11, "eth0"), host(12, "eth7")]).to_string()).await;
        browser.submit_form().await;
        let text = browser.find_visible("#creation-problem").await.text().await;
        assert_eq!(
            text.split('\n').collect::<Vec<_>>().join(" "),
            "Nothing was created: the static networks have errors. error eth0 has no MAC address Host 2: hosts.json, \
             mac_interface_map[1].mac_address Go there warning VLAN 0 is not a VLAN: it only marks the priority of packets Host 1: \
             hosts.json, line 15, interfaces[1].vlan.id id: 0 Go there warning VLAN 0 is not a VLAN: it only marks the priority of \
             packets Host 2: hosts.json, line 15, interfaces[1].vlan.id id: 0 Go there warning the document has no interface eth7 \
             Host 2: hosts.json, mac_interface_map[0].logical_nic_name Go there"
        );
        assert_eq!(service.infra_envs().await.len(), 0);
    });
}

/// Errors about unusable files name the file and the line. The other files fill the form.
#[test]
fn errors_of_uploaded_files_are_shown() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_creation_form(&service, "rack-12").await;
        let text =
            format!("kind: NMStateConfig\nmetadata: {{name: a}}\nspec: {{interfaces: []}}\n---\n{NMSTATE}");
        browser.upload_network("site.yaml", &text).await;
        let text = browser.find_visible("#creation-problem").await.text().await;
        assert_eq!(
            text.split('\n').collect::<Vec<_>>().join(" "),
            "Some content of the files cannot be used. error NMStateConfig a has no spec.config site.yaml, line 3, spec.config \
             Remove site.yaml"
        );
        assert_eq!(browser.find_all(".machine").await.len(), 1);
        // The form creates nothing until the rejected files are replaced or removed.
        browser.submit_form().await;
        browser.wait_until("return document.activeElement.id === 'creation-problem'").await;
        let text = browser.find_visible("#creation-problem").await.text().await;
        assert!(text.starts_with("Nothing was created: some network files cannot be used."), "{text}");
        assert!(text.contains("NMStateConfig a has no spec.config"), "{text}");
        assert_eq!(service.infra_envs().await.len(), 0);
        // A file with the same name replaces the rejected file and adds its host.
        browser.upload_and_wait_for_host("site.yaml", NMSTATE, "Host 1: site.yaml").await;
        // The accepted host replaces the rejected host, whose title has a line number.
        browser
            .wait_until(
                "return document.querySelector('.machine legend')?.textContent === 'Host 1: site.yaml'",
            )
            .await;
        assert_eq!(
            browser.run_script("return document.getElementById('creation-problem').hidden").await,
            true
        );
        assert_eq!(browser.find_all(".machine").await.len(), 1);
        browser.press_keys("52:54:00:00:00:01").await;
        browser.submit_form().await;
        browser
            .wait_until("return document.getElementById('news').textContent === 'rack-12 was created.'")
            .await;
        let infra_env = &service.infra_envs().await[0];
        let networks: Value =
            serde_json::from_str(infra_env["static_network_config"].as_str().unwrap()).unwrap();
        assert_eq!(networks[0]["network_yaml"], NMSTATE);
    });
}

#[test]
fn rejected_files_can_be_removed() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_creation_form(&service, "rack-12").await;
        for (name, text) in
            [("broken.yaml", "- name: [eth0\n"), ("hello.yaml", "hello\n"), ("empty.yaml", "")]
        {
            let path = browser.file_to_upload(name, text);
            browser.find_all("#nmstate").await[0].type_text(path.to_str().unwrap()).await;
            let condition =
                format!("return document.getElementById('creation-problem').innerText.includes('{name}')");
            browser.wait_until(&condition).await;
        }
        browser.submit_form().await;
        for name in ["broken.yaml", "hello.yaml", "empty.yaml"] {
            let buttons = browser.find_all("#creation-problem button").await;
            assert_eq!(buttons[0].text().await, format!("Remove {name}"));
            buttons[0].click().await;
        }
        browser.wait_until("return document.getElementById('creation-problem').hidden").await;
        assert_eq!(service.infra_envs().await.len(), 0);
        browser.submit_form().await;
        browser
            .wait_until("return document.getElementById('news').textContent === 'rack-12 was created.'")
            .await;
        assert_eq!(service.infra_envs().await[0]["static_network_config"], Value::Null);
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}

/// An interface without a MAC address in the document gets a row for its address.
#[test]
fn interfaces_without_a_mac_address_get_a_row() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_creation_form(&service, "rack-12").await;
        let second = "- {name: eth1, type: ethernet, state: up}\n";
        let list = json!([{
            "network_yaml": format!("interfaces:\n- {{name: eth0, type: ethernet, state: up}}\n{second}"),
            "mac_interface_map": [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}],
        }]);
        browser.upload_network("hosts.json", &list.to_string()).await;
        assert_eq!(
            browser.find_visible("#news").await.property("textContent").await,
            "hosts.json: 1 host in total."
        );
        let rows = "return [...document.querySelectorAll('.machine input')].map((it) => it.value)";
        assert_eq!(browser.run_script(rows).await, json!(["52:54:00:00:00:01", "eth0", "", "eth1"]));
    });
}

/// A list in the format of the API includes the addresses. The page shows only the first of many errors.
#[test]
fn hundreds_of_hosts_are_uploaded_in_one_file() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_creation_form(&service, "hall-3").await;
        let machine = |number: usize, vlan: u32| {
            let address = format!("10.0.{}.{}", number / 200, number % 200 + 1);
            let yaml = NMSTATE.replace("192.0.2.10", &address).replace("id: 0", &format!("id: {vlan}"));
            let mac = format!("52:54:00:00:{:02x}:{:02x}", number / 256, number % 256);
            json!({"network_yaml": yaml, "mac_interface_map": [{"mac_address": mac, "logical_nic_name": "eth0"}]})
        };
        let hall = |vlan| json!((0..300).map(|number| machine(number, vlan)).collect::<Vec<_>>()).to_string();
        browser.upload_network("wrong.json", &hall(4095)).await;
        browser.submit_form().await;
        browser.find_visible("#creation-problem .findings").await;
        let items = browser.find_all("#creation-problem .findings li").await;
        assert_eq!((items.len(), items[100].text().await), (101, "and 200 more".to_owned()));
        browser.find_visible("#cancel").await.click().await;
        browser.open_creation_form(&service, "hall-3").await;
        browser.upload_network("right.json", &hall(7)).await;
        assert_eq!(browser.find_all(".machine").await.len(), 300);
        browser.submit_form().await;
        browser
            .wait_until("return document.getElementById('news').textContent === 'hall-3 was created.'")
            .await;
        let infra_env = &service.infra_envs().await[0];
        let networks: Value =
            serde_json::from_str(infra_env["static_network_config"].as_str().unwrap()).unwrap();
        assert_eq!(networks.as_array().unwrap().len(), 300);
        let text = browser.find_visible("[data-slot=findings]").await.text().await;
        assert_eq!(text, "None, in 300 machines.");
    });
}

/// All controls can be reached and activated without a mouse, in visual order.
#[test]
fn form_works_with_the_keyboard_only() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_url(&service.url("/")).await;
        browser.find_visible("#new").await;
        let tab_to = async |label: &str| {
            for _ in 0..40 {
                browser.press_keys(key::TAB).await;
                let unseen = "const active = document.activeElement; const { outlineStyle } = getComputedStyle(active); \
                              return outlineStyle === 'solid' || active === document.body ? '' : active.outerHTML";
                assert_eq!(browser.run_script(unseen).await, "", "the focused element is not visible");
                if browser.focused_element().await.accessible_name().await == label {
                    return;
                }
            }
            panic!("{label} is not reached");
        };
        browser.press_keys(key::TAB).await;
        assert_eq!(browser.focused_element().await.accessible_name().await, "Skip to the infra-envs");
        tab_to("New infra-env").await;
        browser.press_keys(key::ENTER).await;
        browser.wait_until("return document.querySelector('[name=openshift_version]').value").await;
        assert_eq!(browser.focused_element().await.accessible_name().await, "Name");
        browser.press_keys("by-hand").await;
        tab_to("Pull secret").await;
        browser.press_keys(PULL_SECRET).await;
        tab_to("Add an argument").await;
        browser.press_keys(key::ENTER).await;
        tab_to("Kernel argument").await;
        browser.press_keys("quiet").await;
        tab_to("Create").await;
        browser.press_keys(key::ENTER).await;
        browser
            .wait_until("return document.getElementById('news').textContent === 'by-hand was created.'")
            .await;
        assert_eq!(service.infra_envs().await[0]["name"], "by-hand");
        assert!(browser.focused_element().await.accessible_name().await.starts_with("by-hand"));
        tab_to("Delete by-hand").await;
        browser.press_keys(key::ENTER).await;
        tab_to("Delete").await;
        browser.press_keys(key::ENTER).await;
        browser
            .wait_until("return document.getElementById('news').textContent === 'by-hand was deleted.'")
            .await;
        assert_eq!(service.infra_envs().await.len(), 0);
    });
}
