//! The form that makes an infra-env.

use serde_json::{Value, json};

use crate::browser::{Browser, key};
use crate::run;
use crate::service::{NMSTATE, PULL_SECRET, Service};

impl Browser {
    /// Opens the form and fills in what has to be.
    async fn begin_infra_env(&self, service: &Service, name: &str) {
        self.go(&service.url("/")).await;
        self.find("#new").await.click().await;
        self.until("return document.querySelector('[name=openshift_version]').value").await;
        self.find("#creation [name=name]").await.enter(name).await;
        self.find("[name=pull_secret]").await.enter(PULL_SECRET).await;
    }

    /// Uploads a document of a machine.
    async fn upload(&self, name: &str, text: &str) {
        self.upload_for(name, text, name).await;
    }

    /// Uploads a file, and waits for a host of this name.
    async fn upload_for(&self, name: &str, text: &str, host: &str) {
        let path = self.file(name, text);
        let fields = self.all("#nmstate").await;
        fields[0].enter(path.to_str().unwrap()).await;
        self.until(&format!("return document.querySelector('#machines').innerText.includes('{host}')")).await;
    }

    async fn create(&self) {
        self.find("#creation button.primary").await.click().await;
    }
}

#[test]
fn what_the_form_says_is_made() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        browser.begin_infra_env(&service, "rack-12").await;
        browser.find("[name=image_type] option[value=minimal-iso]").await.click().await;
        browser.find("[name=ssh_authorized_key]").await.enter(SSH_KEY).await;
        browser.find("#add-argument").await.click().await;
        browser.find("[name=value]").await.enter("console=ttyS0").await;
        browser.upload("node-a.yaml", NMSTATE).await;
        // Where keys go now is the first address.
        assert_eq!(browser.active().await.label().await, "MAC address");
        browser.press("52:54:00:00:00:01").await;
        browser.find("summary").await.click().await;
        browser.find("[name=http_proxy]").await.enter("http://proxy.example.com:3128").await;
        browser.find("[name=additional_ntp_sources]").await.enter("ntp.example.com").await;
        browser.create().await;
        browser.until("return document.getElementById('news').textContent === 'rack-12 was created.'").await;
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
        // It is open, its warnings are there, and the form is gone and empty.
        assert!(browser.find(".findings").await.text().await.contains("VLAN 0"));
        assert_eq!(browser.active().await.property("className").await, "opener");
        let gone = "const form = document.getElementById('creation'); \
                    return form.hidden && !form.elements.pull_secret.value && !document.querySelector('.machine')";
        assert_eq!(browser.script(gone).await, true);
        assert_eq!(browser.complaints().await, [""; 0]);
    });
}

const SSH_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl one@example";

#[test]
fn what_the_api_refuses_is_told_beside_the_form() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        browser.begin_infra_env(&service, "rack-12").await;
        let secret = browser.find("[name=pull_secret]").await;
        secret.enter("no JSON").await;
        browser.create().await;
        let problem = browser.find("#creation-problem").await;
        assert_eq!(problem.role().await, "alert");
        browser.until("return document.activeElement.id === 'creation-problem'").await;
        let told = problem.text().await;
        assert!(told.contains("pull secret"), "{told}");
        let marked =
            "return [...document.querySelectorAll('[aria-invalid=true]')].map((field) => field.name)";
        assert_eq!(browser.script(marked).await, json!(["pull_secret"]));
        assert_eq!(service.infra_envs().await.len(), 0);
        // Nothing is lost.
        assert_eq!(browser.find("#creation [name=name]").await.property("value").await, "rack-12");
    });
}

/// Errors of networks name the file that was uploaded and the line in it, and lead there.
#[test]
fn errors_of_networks_lead_to_their_lines() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        browser.begin_infra_env(&service, "rack-12").await;
        let wrong = NMSTATE.replace("id: 0", "id: 4095").replace("eth0.0", "eth0.4095");
        let list = json!([{
            "network_yaml": NMSTATE.replace(".10\n", ".11\n"),
            "mac_interface_map": [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}],
        }]);
        browser.upload("hosts.json", &list.to_string()).await;
        browser.upload("node-b.yaml", &wrong).await;
        assert_eq!(browser.all(".machine").await.len(), 2);
        browser.press("52:54:00:00:00:02").await;
        browser.create().await;
        let told = browser.find("#creation-problem .findings").await.text().await;
        assert!(told.contains("VLAN 4095 is not within 1 to 4094"), "{told}");
        assert!(told.contains("Host 2: node-b.yaml, line 15") && told.contains("id: 4095"), "{told}");
        assert_eq!(service.infra_envs().await.len(), 0);
        browser.find("#creation-problem .findings button").await.click().await;
        let selected = browser
            .script("const area = document.activeElement; return area.value.slice(area.selectionStart, area.selectionEnd)")
            .await;
        assert_eq!(selected, "    id: 4095");
        // Set right, it is made.
        browser.press("    id: 7").await;
        browser.create().await;
        browser.until("return document.getElementById('news').textContent === 'rack-12 was created.'").await;
        assert_eq!(service.infra_envs().await.len(), 1);
    });
}

/// Two manifests and one document of two hosts, and what the form makes of them.
#[test]
fn manifests_and_documents_fill_the_form() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        browser.begin_infra_env(&service, "rack-12").await;
        let manifest = |name: &str, number: usize| {
            format!(
                "kind: NMStateConfig\nmetadata: {{name: {name}}}\nspec:\n  interfaces:\n  - {{name: eth0, macAddress: \
                 '52:54:00:00:0{number}:00'}}\n  - {{name: eth1, macAddress: '52:54:00:00:0{number}:01'}}\n  config:\n    interfaces:\n    \
                 - {{name: eth0, type: ethernet, state: up}}\n    - {{name: eth1, type: ethernet, state: up}}\n"
            )
        };
        let manifests = format!("{}---\nkind: Secret\n---\n{}", manifest("node-0", 1), manifest("node-1", 2));
        browser.upload_for("site.yaml", &manifests, "node-1").await;
        let second = "- {name: eno1, type: ethernet, state: up, mac-address: '52:54:00:00:03:00'}\n- {name: eno2, type: \
                      ethernet, state: up}\n";
        browser.upload("plain.yaml", &format!("interfaces:\n{second}")).await;
        let form = "return [...document.querySelectorAll('.machine')].map((machine) => \
                    [machine.querySelector('legend').textContent, ...[...machine.querySelectorAll('input')].map((it) => it.value)])";
        assert_eq!(
            browser.script(form).await,
            json!([
                ["Host 1: node-0", "52:54:00:00:01:00", "eth0", "52:54:00:00:01:01", "eth1"],
                ["Host 2: node-1", "52:54:00:00:02:00", "eth0", "52:54:00:00:02:01", "eth1"],
                ["Host 3: plain.yaml", "52:54:00:00:03:00", "eno1", "", "eno2"],
            ])
        );
        // Keys go to the address that is missing.
        browser.press("52:54:00:00:03:01").await;
        browser.create().await;
        browser.until("return document.getElementById('news').textContent === 'rack-12 was created.'").await;
        let made = &service.infra_envs().await[0];
        let networks: Value = serde_json::from_str(made["static_network_config"].as_str().unwrap()).unwrap();
        assert_eq!(networks.as_array().unwrap().len(), 3);
        assert_eq!(browser.complaints().await, [""; 0]);
    });
}

#[test]
fn rejects_map_with_an_interface_that_the_document_does_not_declare() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        browser.begin_infra_env(&service, "rack-12").await;
        let host = |number: usize, name: &str| {
            json!({
                "network_yaml": NMSTATE.replace(".10\n", &format!(".{number}\n")),
                "mac_interface_map": [{"mac_address": format!("52:54:00:00:00:{number}"), "logical_nic_name": name}],
            })
        };
        browser.upload("hosts.json", &json!([host(11, "eth0"), host(12, "eth7")]).to_string()).await;
        browser.create().await;
        let told = browser.find("#creation-problem").await.text().await;
        assert_eq!(
            told.split('\n').collect::<Vec<_>>().join(" "),
            "Nothing was created: the static networks have errors. error the document has no interface eth7 Host 2: hosts.json, \
             mac_interface_map[0].logical_nic_name Go there error eth0 has no MAC address Host 2: hosts.json, \
             mac_interface_map[1].mac_address Go there"
        );
        assert_eq!(service.infra_envs().await.len(), 0);
    });
}

/// What cannot be used is said with its file and line; the rest fills the form.
#[test]
fn faults_of_uploaded_files_are_shown() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        browser.begin_infra_env(&service, "rack-12").await;
        let text =
            format!("kind: NMStateConfig\nmetadata: {{name: a}}\nspec: {{interfaces: []}}\n---\n{NMSTATE}");
        browser.upload("site.yaml", &text).await;
        let told = browser.find("#creation-problem").await.text().await;
        assert_eq!(
            told.split('\n').collect::<Vec<_>>().join(" "),
            "Not everything in the files can be used. error NMStateConfig a has no spec.config site.yaml, line 3, spec.config \
             Remove site.yaml"
        );
        assert_eq!(browser.all(".machine").await.len(), 1);
        // Nothing is created without what was left out.
        browser.create().await;
        browser.until("return document.activeElement.id === 'creation-problem'").await;
        let told = browser.find("#creation-problem").await.text().await;
        assert!(told.starts_with("Nothing was created: some network files cannot be used."), "{told}");
        assert!(told.contains("NMStateConfig a has no spec.config"), "{told}");
        assert_eq!(service.infra_envs().await.len(), 0);
        // A file of the same name replaces the rejected one with its host.
        browser.upload_for("site.yaml", NMSTATE, "Host 1: site.yaml").await;
        browser.until("return document.getElementById('creation-problem').hidden").await;
        assert_eq!(browser.all(".machine").await.len(), 1);
        browser.press("52:54:00:00:00:01").await;
        browser.create().await;
        browser.until("return document.getElementById('news').textContent === 'rack-12 was created.'").await;
        let made = &service.infra_envs().await[0];
        let networks: Value = serde_json::from_str(made["static_network_config"].as_str().unwrap()).unwrap();
        assert_eq!(networks[0]["network_yaml"], NMSTATE);
    });
}

#[test]
fn rejected_files_can_be_removed() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        browser.begin_infra_env(&service, "rack-12").await;
        for (name, text) in
            [("broken.yaml", "- name: [eth0\n"), ("hello.yaml", "hello\n"), ("empty.yaml", "")]
        {
            let path = browser.file(name, text);
            browser.all("#nmstate").await[0].enter(path.to_str().unwrap()).await;
            let told =
                format!("return document.getElementById('creation-problem').innerText.includes('{name}')");
            browser.until(&told).await;
        }
        browser.create().await;
        for name in ["broken.yaml", "hello.yaml", "empty.yaml"] {
            let buttons = browser.all("#creation-problem button").await;
            assert_eq!(buttons[0].text().await, format!("Remove {name}"));
            buttons[0].click().await;
        }
        browser.until("return document.getElementById('creation-problem').hidden").await;
        assert_eq!(service.infra_envs().await.len(), 0);
        browser.create().await;
        browser.until("return document.getElementById('news').textContent === 'rack-12 was created.'").await;
        assert_eq!(service.infra_envs().await[0]["static_network_config"], Value::Null);
        assert_eq!(browser.complaints().await, [""; 0]);
    });
}

/// A card that only the document has gets a row for its MAC address.
#[test]
fn cards_without_a_mac_address_get_a_row() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        browser.begin_infra_env(&service, "rack-12").await;
        let second = "- {name: eth1, type: ethernet, state: up}\n";
        let list = json!([{
            "network_yaml": format!("interfaces:\n- {{name: eth0, type: ethernet, state: up}}\n{second}"),
            "mac_interface_map": [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}],
        }]);
        browser.upload("hosts.json", &list.to_string()).await;
        assert_eq!(browser.find("#news").await.property("textContent").await, "hosts.json: 1 host in total.");
        let rows = "return [...document.querySelectorAll('.machine input')].map((it) => it.value)";
        assert_eq!(browser.script(rows).await, json!(["52:54:00:00:00:01", "eth0", "", "eth1"]));
    });
}

/// A list in the form of the API comes with its addresses; of many errors, the first are shown.
#[test]
fn hundreds_of_machines_come_in_one_file() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        browser.begin_infra_env(&service, "hall-3").await;
        let machine = |number: usize, vlan: u32| {
            let address = format!("10.0.{}.{}", number / 200, number % 200 + 1);
            let yaml = NMSTATE.replace("192.0.2.10", &address).replace("id: 0", &format!("id: {vlan}"));
            let mac = format!("52:54:00:00:{:02x}:{:02x}", number / 256, number % 256);
            json!({"network_yaml": yaml, "mac_interface_map": [{"mac_address": mac, "logical_nic_name": "eth0"}]})
        };
        let hall = |vlan| json!((0..300).map(|number| machine(number, vlan)).collect::<Vec<_>>()).to_string();
        browser.upload("wrong.json", &hall(4095)).await;
        browser.create().await;
        browser.find("#creation-problem .findings").await;
        let told = browser.all("#creation-problem .findings li").await;
        assert_eq!((told.len(), told[100].text().await), (101, "and 200 more".to_owned()));
        browser.find("#cancel").await.click().await;
        browser.begin_infra_env(&service, "hall-3").await;
        browser.upload("right.json", &hall(7)).await;
        assert_eq!(browser.all(".machine").await.len(), 300);
        browser.create().await;
        browser.until("return document.getElementById('news').textContent === 'hall-3 was created.'").await;
        let made = &service.infra_envs().await[0];
        let networks: Value = serde_json::from_str(made["static_network_config"].as_str().unwrap()).unwrap();
        assert_eq!(networks.as_array().unwrap().len(), 300);
        let told = browser.find("[data-slot=findings]").await.text().await;
        assert_eq!(told, "None, in 300 machines.");
    });
}

/// Everything can be reached and pressed without a mouse, in the order in which it is seen.
#[test]
fn the_keyboard_is_enough() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        browser.go(&service.url("/")).await;
        browser.find("#new").await;
        let tab_to = async |label: &str| {
            for _ in 0..40 {
                browser.press(key::TAB).await;
                let unseen = "const active = document.activeElement; const { outlineStyle } = getComputedStyle(active); \
                              return outlineStyle === 'solid' || active === document.body ? '' : active.outerHTML";
                assert_eq!(browser.script(unseen).await, "", "where keys go to is not seen");
                if browser.active().await.label().await == label {
                    return;
                }
            }
            panic!("{label} is not reached");
        };
        browser.press(key::TAB).await;
        assert_eq!(browser.active().await.label().await, "Skip to the infra-envs");
        tab_to("New infra-env").await;
        browser.press(key::ENTER).await;
        browser.until("return document.querySelector('[name=openshift_version]').value").await;
        assert_eq!(browser.active().await.label().await, "Name");
        browser.press("by-hand").await;
        tab_to("Pull secret").await;
        browser.press(PULL_SECRET).await;
        tab_to("Add an argument").await;
        browser.press(key::ENTER).await;
        tab_to("Kernel argument").await;
        browser.press("quiet").await;
        tab_to("Create").await;
        browser.press(key::ENTER).await;
        browser.until("return document.getElementById('news').textContent === 'by-hand was created.'").await;
        assert_eq!(service.infra_envs().await[0]["name"], "by-hand");
        assert!(browser.active().await.label().await.starts_with("by-hand"));
        tab_to("Delete by-hand").await;
        browser.press(key::ENTER).await;
        tab_to("Delete").await;
        browser.press(key::ENTER).await;
        browser.until("return document.getElementById('news').textContent === 'by-hand was deleted.'").await;
        assert_eq!(service.infra_envs().await.len(), 0);
    });
}
