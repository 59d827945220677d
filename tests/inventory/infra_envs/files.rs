//! The files of infra-envs, and what is known of them beforehand.

use reqwest::Method;
use serde_json::{Value, json};

use super::{KEY, host, path, register};
use crate::service::{Answer, Service, on_each_database, send};

pub(super) async fn file(service: &Service, infra_env: &Value, query: &str) -> Answer {
    service.get(&format!("{}/downloads/files?{query}", path(infra_env))).await
}

#[test]
fn the_config_is_downloaded_with_what_tells_its_state() {
    on_each_database(async |service| {
        let made = register(service, &json!({"ssh_authorized_key": KEY})).await;
        let config = file(service, &made, "file_name=discovery.ign").await;
        assert_eq!(config.expect(200)["ignition"]["version"], "3.1.0");
        assert_eq!(config.header("content-type"), Some("application/octet-stream"));
        assert_eq!(config.header("content-disposition"), Some("attachment; filename=\"discovery.ign\""));
        let (etag, changed_at) = (config.header("etag").unwrap(), config.header("last-modified").unwrap());
        for (header, value) in [("if-none-match", etag), ("if-modified-since", changed_at)] {
            let url = format!("{}/downloads/files?file_name=discovery.ign", path(&made));
            let answer = send(service.request(Method::GET, &url).header(header, value)).await;
            assert_eq!((answer.status, answer.text.as_str()), (304, ""), "{header}");
            assert_eq!(answer.header("etag"), Some(etag));
        }
        service
            .patch(&path(&made), &json!({"kernel_arguments": [{"operation": "append", "value": "quiet"}]}))
            .await
            .expect(201);
        let same = file(service, &made, "file_name=discovery.ign").await;
        assert_eq!(same.header("etag"), Some(etag), "kernel arguments are not in the config");
        service.patch(&path(&made), &json!({"ssh_authorized_key": ""})).await.expect(201);
        let other = file(service, &made, "file_name=discovery.ign").await;
        assert_ne!(other.header("etag"), Some(etag));
    });
}

#[test]
fn networks_are_in_the_config_of_a_full_image_only() {
    on_each_database(async |service| {
        let hosts = json!([host("52:54:00:00:00:01", "192.0.2.1")]);
        let made =
            register(service, &json!({"static_network_config": hosts, "openshift_version": "4.14"})).await;
        let paths = |config: &Value| -> Vec<String> {
            config["storage"]["files"]
                .as_array()
                .unwrap()
                .iter()
                .map(|file| file["path"].as_str().unwrap().to_owned())
                .collect()
        };
        let keyfile = "/etc/assisted/network/host0/eth0.nmconnection".to_owned();
        let full = file(service, &made, "file_name=discovery.ign").await.expect(200);
        assert!(paths(&full).contains(&keyfile));
        let minimal =
            file(service, &made, "file_name=discovery.ign&discovery_iso_type=minimal-iso").await.expect(200);
        assert!(!paths(&minimal).contains(&keyfile));
        let tar = file(service, &made, "file_name=static-network-config").await;
        let name =
            format!("attachment; filename=\"{}-static-network-config.tar\"", made["id"].as_str().unwrap());
        assert_eq!(tar.header("content-disposition"), Some(name.as_str()));
        assert!(tar.text.starts_with("/etc/assisted/network/host0/"), "{:?}", tar.text.get(..60));
        let initrd = service.get(&format!("{}/downloads/minimal-initrd", path(&made))).await;
        assert_eq!(initrd.status, 200);
        assert_eq!(initrd.header("content-disposition"), None);
    });
}

#[test]
fn without_networks_there_is_nothing_to_download() {
    on_each_database(async |service| {
        let made = register(service, &json!({})).await;
        let tar = file(service, &made, "file_name=static-network-config").await;
        assert_eq!((tar.status, tar.text.as_str()), (200, ""));
        assert_eq!(tar.header("content-disposition"), Some("attachment; filename=\"\""));
        for method in [Method::GET, Method::HEAD] {
            let initrd = service.request(method, &format!("{}/downloads/minimal-initrd", path(&made)));
            let initrd = send(initrd).await;
            assert_eq!((initrd.status, initrd.header("content-length")), (204, None));
        }
    });
}

#[test]
fn questions_that_have_no_answer_are_refused() {
    on_each_database(async |service| {
        let made = register(service, &json!({})).await;
        for (query, reason) in [
            ("", "file_name in query is required"),
            (
                "file_name=x",
                "file_name in query should be one of [discovery.ign ipxe-script static-network-config]",
            ),
            (
                "file_name=discovery.ign&discovery_iso_type=x",
                "discovery_iso_type in query should be one of [full-iso minimal-iso disconnected-iso]",
            ),
            (
                "file_name=ipxe-script&ipxe_script_type=x",
                "ipxe_script_type in query should be one of [discovery-image-always boot-order-control]",
            ),
            (
                "file_name=discovery.ign&ipxe_script_type=boot-order-control",
                "\"ipxe_script_type\" can be set only for \"ipxe-script\", not for \"discovery.ign\"",
            ),
            ("file_name=ipxe-script&mac=5254", "mac in query must be of type mac: \"5254\""),
        ] {
            assert_eq!(file(service, &made, query).await.refused(400), reason, "{query}");
        }
        let gone = json!({"id": "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11"});
        assert_eq!(file(service, &gone, "file_name=discovery.ign").await.refused(404), "record not found");
    });
}

#[test]
fn urls_of_files_say_how_long_they_are_good() {
    on_each_database(async |service| {
        let made =
            register(service, &json!({"openshift_version": "4.18", "image_type": "minimal-iso"})).await;
        let id = made["id"].as_str().unwrap();
        let image = service.get(&format!("{}/downloads/image-url", path(&made))).await.expect(200);
        assert_eq!(image, json!({"url": made["download_url"], "expires_at": "0001-01-01T00:00:00.000Z"}));
        let url = format!(
            "{}/downloads/files-presigned?file_name=ipxe-script&ipxe_script_type=boot-order-control",
            path(&made)
        );
        let file = service.get(&url).await.expect(200);
        let end = format!(
            "/v2/infra-envs/{id}/downloads/files?file_name=ipxe-script&ipxe_script_type=boot-order-control"
        );
        assert!(file["url"].as_str().unwrap().ends_with(&end), "{file}");
        let refused = service
            .get(&format!("{}/downloads/files-presigned?file_name=static-network-config", path(&made)))
            .await;
        refused.refused(400);
        assert_eq!(
            send(service.request(Method::POST, &format!("{}/regenerate-signing-key", path(&made))))
                .await
                .status,
            204
        );
    });
}

#[test]
fn preflight_lists_what_is_no_error() {
    on_each_database(async |service| {
        let config = json!({
            "ignition": {"version": "3.2.0"},
            "storage": {"files": [{"path": "/etc/a", "mode": 644, "contents": {"source": "data:,a"}}]},
        });
        let made = register(
            service,
            &json!({
                "static_network_config": [{
                    "network_yaml": "interfaces: [{name: eth0, type: ethernet, state: up}]\n",
                    "mac_interface_map": [
                        {"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"},
                        {"mac_address": "52:54:00:00:00:02", "logical_nic_name": "eth1"},
                    ],
                }],
                "ignition_config_override": config.to_string(),
            }),
        )
        .await;
        let found = service.get(&format!("{}/preflight", path(&made))).await.expect(200);
        assert_eq!(found["network"][0]["rule"], "unused-mac", "{found}");
        assert_eq!(found["network"][0]["severity"], "warning", "{found}");
        assert_eq!(found["ignition"][0]["pointer"], "/storage/files/0/mode", "{found}");
    });
}

#[test]
fn network_files_are_read_as_hosts() {
    on_each_database(async |service| {
        let manifest = "kind: NMStateConfig\nmetadata: {name: node-0}\nspec:\n  interfaces: [{name: eth0, macAddress: \
                        '52:54:00:00:00:01'}]\n  config: {interfaces: [{name: eth0, type: ethernet}]}\n";
        let plain = "interfaces:\n- {name: bond0, type: bond, link-aggregation: {port: [eth0, eth1]}}\n- {name: eth0, type: \
                     ethernet, mac-address: '52:54:00:00:00:02'}\n";
        let files = json!({"files": [
            {"name": "site.yaml", "text": format!("{manifest}---\nkind: NMStateConfig\nmetadata: {{name: node-1}}\n")},
            {"name": "plain.yaml", "text": plain},
            {"name": "list.json", "text": "[1]"},
        ]});
        let found = service.post("/v2/network-files", &files).await.expect(200);
        let entry = |mac: &str, name: &str| json!({"mac_address": mac, "logical_nic_name": name});
        assert_eq!(
            found["hosts"],
            json!([
                {
                    "file": 0, "name": "node-0", "interfaces": ["eth0"],
                    "mac_interface_map": [entry("52:54:00:00:00:01", "eth0")],
                    "network_yaml": "{\n  \"interfaces\": [\n    {\n      \"name\": \"eth0\",\n      \"type\": \"ethernet\"\n    }\n  ]\n}\n",
                },
                {
                    "file": 1, "name": "plain.yaml", "interfaces": ["bond0", "eth0", "eth1"],
                    "mac_interface_map": [entry("52:54:00:00:00:02", "eth0"), entry("", "eth1")],
                    "network_yaml": plain,
                },
            ])
        );
        assert_eq!(
            found["findings"],
            json!([
                {
                    "severity": "error", "file": "site.yaml", "line": 6, "path": "spec.config",
                    "message": "NMStateConfig node-1 has no spec.config",
                },
                {
                    "severity": "error", "file": "list.json", "line": 1, "path": "[0]",
                    "message": "is not a host with network_yaml and mac_interface_map",
                },
            ])
        );
        assert_eq!(service.get("/v2/infra-envs").await.expect(200), json!([]), "nothing is stored");
    });
}

/// What is found in one network file.
async fn network_file(service: &Service, name: &str, text: &str) -> Value {
    let files = json!({"files": [{"name": name, "text": text}]});
    service.post("/v2/network-files", &files).await.expect(200)
}

#[test]
fn network_files_without_hosts_give_findings() {
    on_each_database(async |service| {
        let yaml = "is not valid YAML: did not find expected ',' or ']' while parsing a flow sequence";
        let kind = "is not an nmstate document, an NMStateConfig or a list of hosts";
        for (text, line, path, message) in [
            ("- name: [eth0\n", 2, None, yaml),
            ("interfaces:\n- name: [eth0\n", 3, None, yaml),
            ("hello\n", 1, None, kind),
            ("", 0, None, "has no hosts"),
            ("# nothing\n---\n", 0, None, "has no hosts"),
            ("[{\"network_yaml\": 3}]", 1, Some("[0].network_yaml"), "has to be a string"),
            ("kind: Secret\n", 0, None, "has no NMStateConfig"),
        ] {
            let found = network_file(service, "a.yaml", text).await;
            let mut finding = json!({"severity": "error", "file": "a.yaml", "message": message});
            if line > 0 {
                finding["line"] = line.into();
            }
            if let Some(path) = path {
                finding["path"] = path.into();
            }
            assert_eq!(found, json!({"hosts": [], "findings": [finding]}), "{text:?}");
        }
    });
}

#[test]
fn network_files_keep_the_text_of_manifests_and_have_a_row_for_each_card() {
    on_each_database(async |service| {
        let config = "# NICs\ninterfaces:\n- name: eth0\n  type: ethernet\n  mtu: 0x5dc\n- {name: eth1, type: ethernet}\n";
        let manifest = format!(
            "kind: NMStateConfig\nmetadata: {{name: node-0}}\nspec:\n  config:\n    {}\n  interfaces: [{{name: eth0, \
             macAddress: '52:54:00:00:00:01'}}]\n",
            config.trim_end().replace('\n', "\n    ")
        );
        let map = json!([
            {"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"},
            {"mac_address": "", "logical_nic_name": "eth1"},
        ]);
        let host = &network_file(service, "a.yaml", &manifest).await["hosts"][0];
        assert_eq!((&host["network_yaml"], &host["mac_interface_map"]), (&json!(config), &map));
        let list = json!([{"network_yaml": config, "mac_interface_map": [map[0]]}]).to_string();
        let host = &network_file(service, "a.json", &list).await["hosts"][0];
        assert_eq!((&host["network_yaml"], &host["mac_interface_map"]), (&json!(config), &map));
    });
}

#[test]
fn an_argument_without_a_value_adds_nothing() {
    on_each_database(async |service| {
        let arguments =
            json!([{"operation": "append"}, {"operation": "append", "value": "p1"}, {"operation": "append"}]);
        let made = register(service, &json!({"kernel_arguments": arguments})).await;
        let shown: Value = serde_json::from_str(made["kernel_arguments"].as_str().unwrap()).unwrap();
        assert_eq!(shown, arguments);
        let script = file(service, &made, "file_name=ipxe-script").await;
        assert_eq!(script.status, 200, "{}", script.text);
        assert!(script.text.contains(" p1\nboot\n"), "{}", script.text);
        assert_eq!(service.patch(&path(&made), &made).await.expect(201), made);
        let only = json!({"kernel_arguments": [{"operation": "append"}]});
        service.patch(&path(&made), &only).await.expect(201);
        let script = file(service, &made, "file_name=ipxe-script").await;
        assert!(!script.text.contains(" \nboot") && !script.text.contains("p1"), "{}", script.text);
    });
}

#[test]
fn no_file_tells_of_a_change_that_is_still_to_come() {
    on_each_database(async |service| {
        let hosts = json!([host("52:54:00:00:00:01", "192.0.2.1")]);
        let made = register(service, &json!({"static_network_config": hosts})).await;
        for key in [KEY, "", KEY, ""] {
            service.patch(&path(&made), &json!({"ssh_authorized_key": key})).await.expect(201);
        }
        for place in ["downloads/files?file_name=discovery.ign", "downloads/minimal-initrd"] {
            let url = format!("{}/{place}", path(&made));
            let answer = service.get(&url).await;
            assert_eq!(answer.status, 200);
            let time =
                |name: &str| chrono::DateTime::parse_from_rfc2822(answer.header(name).unwrap()).unwrap();
            assert!(time("last-modified") <= time("date"), "{:?}", answer.headers);
            // What is told is not yet the time of the change, and so no proof of having its result.
            let known = service.request(Method::GET, &url);
            let known =
                send(known.header("if-modified-since", answer.header("last-modified").unwrap())).await;
            assert_eq!(known.status, 200);
        }
    });
}
