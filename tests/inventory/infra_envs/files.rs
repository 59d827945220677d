//! The files of infra-envs, and their metadata.

use reqwest::Method;
use serde_json::{Value, json};

use super::{KEY, create_infra_env, host_network, infra_env_path};
use crate::service::{PULL_SECRET, ServiceAnswer, TestService, on_each_database, send_request};

pub(super) async fn get_file(service: &TestService, infra_env: &Value, query: &str) -> ServiceAnswer {
    service.get(&format!("{}/downloads/files?{query}", infra_env_path(infra_env))).await
}

#[test]
fn config_download_has_validators() {
    on_each_database(async |service| {
        let infra_env = create_infra_env(service, &json!({"ssh_authorized_key": KEY})).await;
        let config = get_file(service, &infra_env, "file_name=discovery.ign").await;
        assert_eq!(config.json_with_status(200)["ignition"]["version"], "3.1.0");
        assert_eq!(config.header("content-type"), Some("application/octet-stream"));
        assert_eq!(config.header("content-disposition"), Some("attachment; filename=\"discovery.ign\""));
        let (etag, changed_at) = (config.header("etag").unwrap(), config.header("last-modified").unwrap());
        for (header, value) in [("if-none-match", etag), ("if-modified-since", changed_at)] {
            let url = format!("{}/downloads/files?file_name=discovery.ign", infra_env_path(&infra_env));
            let answer = send_request(service.request(Method::GET, &url).header(header, value)).await;
            assert_eq!((answer.status, answer.text.as_str()), (304, ""), "{header}");
            assert_eq!(answer.header("etag"), Some(etag));
        }
        service
            .patch(
                &infra_env_path(&infra_env),
                &json!({"kernel_arguments": [{"operation": "append", "value": "quiet"}]}),
            )
            .await
            .json_with_status(201);
        let same = get_file(service, &infra_env, "file_name=discovery.ign").await;
        assert_eq!(same.header("etag"), Some(etag), "kernel arguments are not in the config");
        service
            .patch(&infra_env_path(&infra_env), &json!({"ssh_authorized_key": ""}))
            .await
            .json_with_status(201);
        let other = get_file(service, &infra_env, "file_name=discovery.ign").await;
        assert_ne!(other.header("etag"), Some(etag));
    });
}

#[test]
fn networks_are_only_in_the_config_of_full_images() {
    on_each_database(async |service| {
        let hosts = json!([host_network("52:54:00:00:00:01", "192.0.2.1")]);
        let infra_env =
            create_infra_env(service, &json!({"static_network_config": hosts, "openshift_version": "4.14"}))
                .await;
        let paths = |config: &Value| -> Vec<String> {
            config["storage"]["files"]
                .as_array()
                .unwrap()
                .iter()
                .map(|file| file["path"].as_str().unwrap().to_owned())
                .collect()
        };
        let keyfile = "/etc/assisted/network/host0/eth0.nmconnection".to_owned();
        let full = get_file(service, &infra_env, "file_name=discovery.ign").await.json_with_status(200);
        assert!(paths(&full).contains(&keyfile));
        let minimal = get_file(service, &infra_env, "file_name=discovery.ign&discovery_iso_type=minimal-iso")
            .await
            .json_with_status(200);
        assert!(!paths(&minimal).contains(&keyfile));
        let tar = get_file(service, &infra_env, "file_name=static-network-config").await;
        let name = format!(
            "attachment; filename=\"{}-static-network-config.tar\"",
            infra_env["id"].as_str().unwrap()
        );
        assert_eq!(tar.header("content-disposition"), Some(name.as_str()));
        assert!(tar.text.starts_with("/etc/assisted/network/host0/"), "{:?}", tar.text.get(..60));
        let initrd = service.get(&format!("{}/downloads/minimal-initrd", infra_env_path(&infra_env))).await;
        assert_eq!(initrd.status, 200);
        assert_eq!(initrd.header("content-disposition"), None);
    });
}

#[test]
fn disconnected_images_have_no_config() {
    on_each_database(async |service| {
        let query = "file_name=discovery.ign&discovery_iso_type=disconnected-iso";
        let unbound = create_infra_env(service, &json!({})).await;
        let reason = get_file(service, &unbound, query).await.refusal_reason(404);
        assert_eq!(reason, "a disconnected image requires a cluster, and the infra-env has none");
        let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
        let cluster = service.post("/v2/clusters", &body).await.json_with_status(201);
        let bound = create_infra_env(service, &json!({"cluster_id": cluster["id"]})).await;
        let reason = get_file(service, &bound, query).await.refusal_reason(501);
        assert_eq!(reason, "configs of disconnected images are not made by this service yet");
    });
}

#[test]
fn infra_env_without_networks_has_no_network_download() {
    on_each_database(async |service| {
        let infra_env = create_infra_env(service, &json!({})).await;
        let tar = get_file(service, &infra_env, "file_name=static-network-config").await;
        assert_eq!((tar.status, tar.text.as_str()), (200, ""));
        assert_eq!(tar.header("content-disposition"), Some("attachment; filename=\"\""));
        for method in [Method::GET, Method::HEAD] {
            let initrd =
                service.request(method, &format!("{}/downloads/minimal-initrd", infra_env_path(&infra_env)));
            let initrd = send_request(initrd).await;
            assert_eq!((initrd.status, initrd.header("content-length")), (204, None));
        }
    });
}

#[test]
fn rejects_invalid_file_queries() {
    on_each_database(async |service| {
        let infra_env = create_infra_env(service, &json!({})).await;
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
            assert_eq!(get_file(service, &infra_env, query).await.refusal_reason(400), reason, "{query}");
        }
        let missing = json!({"id": "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11"});
        assert_eq!(
            get_file(service, &missing, "file_name=discovery.ign").await.refusal_reason(404),
            "record not found"
        );
    });
}

#[test]
fn file_urls_include_their_expiry() {
    on_each_database(async |service| {
        let infra_env =
            create_infra_env(service, &json!({"openshift_version": "4.18", "image_type": "minimal-iso"}))
                .await;
        let id = infra_env["id"].as_str().unwrap();
        let image = service
            .get(&format!("{}/downloads/image-url", infra_env_path(&infra_env)))
            .await
            .json_with_status(200);
        assert_eq!(
            image,
            json!({"url": infra_env["download_url"], "expires_at": "0001-01-01T00:00:00.000Z"})
        );
        let url = format!(
            "{}/downloads/files-presigned?file_name=ipxe-script&ipxe_script_type=boot-order-control",
            infra_env_path(&infra_env)
        );
        let file = service.get(&url).await.json_with_status(200);
        let end = format!(
            "/v2/infra-envs/{id}/downloads/files?file_name=ipxe-script&ipxe_script_type=boot-order-control"
        );
        assert!(file["url"].as_str().unwrap().ends_with(&end), "{file}");
        let refused = service
            .get(&format!(
                "{}/downloads/files-presigned?file_name=static-network-config",
                infra_env_path(&infra_env)
            ))
            .await;
        refused.refusal_reason(400);
        assert_eq!(
            send_request(
                service
                    .request(Method::POST, &format!("{}/regenerate-signing-key", infra_env_path(&infra_env)))
            )
            .await
            .status,
            204
        );
    });
}

#[test]
fn preflight_lists_warnings() {
    on_each_database(async |service| {
        let config = json!({
            "ignition": {"version": "3.2.0"},
            "storage": {"files": [{"path": "/etc/a", "mode": 644, "contents": {"source": "data:,a"}}]},
        });
        let infra_env = create_infra_env(
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
        let response =
            service.get(&format!("{}/preflight", infra_env_path(&infra_env))).await.json_with_status(200);
        assert_eq!(response["network"][0]["rule"], "unused-mac", "{response}");
        assert_eq!(response["network"][0]["severity"], "warning", "{response}");
        assert_eq!(response["ignition"][0]["pointer"], "/storage/files/0/mode", "{response}");
        // `addresses` contains a warning, because the test service listens on a loopback address.
        let addresses = response["addresses"].as_array().unwrap();
        assert_eq!(addresses.len(), 1, "{response}");
        assert_eq!(addresses[0]["severity"], "warning", "{response}");
        assert!(addresses[0]["url"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{response}");
    });
}

#[test]
fn preflight_checks_the_service_url_of_the_override() {
    on_each_database(async |service| {
        let preflight = async |url: &str| {
            let unit = format!("[Service]\nExecStart=/usr/local/bin/agent --url {url}");
            let config = json!({
                "ignition": {"version": "3.1.0"},
                "systemd": {"units": [{"name": "agent.service", "contents": unit}]},
            });
            let infra_env =
                create_infra_env(service, &json!({"ignition_config_override": config.to_string()})).await;
            service.get(&format!("{}/preflight", infra_env_path(&infra_env))).await.json_with_status(200)
        };
        let response = preflight("http://192.0.2.1:8090").await;
        assert_eq!(response["addresses"], json!([]), "{response}");
        let response = preflight("http://localhost:8090").await;
        assert_eq!(response["addresses"].as_array().unwrap().len(), 1, "{response}");
        let message = response["addresses"][0]["message"].as_str().unwrap();
        let advice = "; correct `--url` of agent.service in the Ignition config override";
        assert!(message.contains("http://localhost:8090") && message.ends_with(advice), "{message}");
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
        let response = service.post("/v2/network-files", &files).await.json_with_status(200);
        let entry = |mac: &str, name: &str| json!({"mac_address": mac, "logical_nic_name": name});
        assert_eq!(
            response["hosts"],
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
            response["findings"],
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
        assert_eq!(service.get("/v2/infra-envs").await.json_with_status(200), json!([]), "nothing is stored");
    });
}

#[test]
fn networks_in_files_are_checked_on_request() {
    on_each_database(async |service| {
        let host = |name: &str, mac: &str, network: &str| {
            let map = [json!({"mac_address": mac, "logical_nic_name": "eth0"})];
            let list = json!([{"network_yaml": network, "mac_interface_map": map}]);
            json!({"name": name, "text": list.to_string()})
        };
        let network = |vlan: usize| {
            format!(
                "interfaces:\n- {{name: eth0, type: ethernet}}\n- {{name: v0, type: vlan, vlan: {{id: {vlan}, base-iface: eth0}}}}\n"
            )
        };
        let same = "52:54:00:00:00:01";
        let files = [
            host("Host 1", same, &network(7)),
            host("Host 2: b", "", "interfaces: ["),
            host("Host 3", same, &network(5000)),
        ];
        let request = json!({"files": files, "check": true});
        let response = service.post("/v2/network-files", &request).await.json_with_status(200);
        assert_eq!(response["hosts"].as_array().unwrap().len(), 2);
        let network = response["network"].as_array().unwrap();
        let has = |host: usize, text: &str| {
            network.iter().any(|it| it["host"] == host && it["message"].as_str().unwrap().contains(text))
        };
        assert!(has(2, "VLAN 5000 is not within 1 to 4094"), "{response}");
        assert!(has(2, "52:54:00:00:00:01 is also the address of eth0 in Host 1"), "{response}");
        assert!(
            network.iter().any(|it| it["host"] == 1 && it["path"] == "mac_interface_map[0].mac_address"),
            "{response}"
        );
        let unchecked =
            service.post("/v2/network-files", &json!({"files": files})).await.json_with_status(200);
        assert_eq!(unchecked["network"], Value::Null);
    });
}

/// Returns the findings about one network file.
async fn network_file_findings(service: &TestService, name: &str, text: &str) -> Value {
    let files = json!({"files": [{"name": name, "text": text}]});
    service.post("/v2/network-files", &files).await.json_with_status(200)
}

#[test]
fn network_files_without_hosts_have_findings() {
    on_each_database(async |service| {
        let yaml = "is not valid YAML: did not find expected ',' or ']' while parsing a flow sequence";
        let kind = "is not an nmstate document, an NMStateConfig or a list of hosts";
        for (text, line, path, message) in [
            ("- name: [eth0\n", 1, None, yaml),
            ("interfaces:\n- name: [eth0\n", 2, None, yaml),
            ("hello\n", 1, None, kind),
            ("", 0, None, "has no hosts"),
            ("# nothing\n---\n", 0, None, "has no hosts"),
            ("[{\"network_yaml\": 3}]", 1, Some("[0].network_yaml"), "has to be a string"),
            ("kind: Secret\n", 0, None, "has no NMStateConfig"),
        ] {
            let response = network_file_findings(service, "a.yaml", text).await;
            let mut finding = json!({"severity": "error", "file": "a.yaml", "message": message});
            if line > 0 {
                finding["line"] = line.into();
            }
            if let Some(path) = path {
                finding["path"] = path.into();
            }
            assert_eq!(response, json!({"hosts": [], "findings": [finding]}), "{text:?}");
        }
    });
}

#[test]
fn network_files_keep_manifest_text_and_list_every_interface() {
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
        let host = &network_file_findings(service, "a.yaml", &manifest).await["hosts"][0];
        assert_eq!((&host["network_yaml"], &host["mac_interface_map"]), (&json!(config), &map));
        let list = json!([{"network_yaml": config, "mac_interface_map": [map[0]]}]).to_string();
        let host = &network_file_findings(service, "a.json", &list).await["hosts"][0];
        assert_eq!((&host["network_yaml"], &host["mac_interface_map"]), (&json!(config), &map));
    });
}

#[test]
fn kernel_argument_without_a_value_adds_nothing() {
    on_each_database(async |service| {
        let arguments =
            json!([{"operation": "append"}, {"operation": "append", "value": "p1"}, {"operation": "append"}]);
        let infra_env = create_infra_env(service, &json!({"kernel_arguments": arguments})).await;
        let stored_arguments: Value =
            serde_json::from_str(infra_env["kernel_arguments"].as_str().unwrap()).unwrap();
        assert_eq!(stored_arguments, arguments);
        let script = get_file(service, &infra_env, "file_name=ipxe-script").await;
        assert_eq!(script.status, 200, "{}", script.text);
        assert!(script.text.contains(" p1\nboot\n"), "{}", script.text);
        assert_eq!(
            service.patch(&infra_env_path(&infra_env), &infra_env).await.json_with_status(201),
            infra_env
        );
        let only = json!({"kernel_arguments": [{"operation": "append"}]});
        service.patch(&infra_env_path(&infra_env), &only).await.json_with_status(201);
        let script = get_file(service, &infra_env, "file_name=ipxe-script").await;
        assert!(!script.text.contains(" \nboot") && !script.text.contains("p1"), "{}", script.text);
    });
}

#[test]
fn last_modified_of_files_is_never_in_the_future() {
    on_each_database(async |service| {
        let hosts = json!([host_network("52:54:00:00:00:01", "192.0.2.1")]);
        let infra_env = create_infra_env(service, &json!({"static_network_config": hosts})).await;
        for key in [KEY, "", KEY, ""] {
            service
                .patch(&infra_env_path(&infra_env), &json!({"ssh_authorized_key": key}))
                .await
                .json_with_status(201);
        }
        for place in ["downloads/files?file_name=discovery.ign", "downloads/minimal-initrd"] {
            let url = format!("{}/{place}", infra_env_path(&infra_env));
            let answer = service.get(&url).await;
            assert_eq!(answer.status, 200);
            let time =
                |name: &str| chrono::DateTime::parse_from_rfc2822(answer.header(name).unwrap()).unwrap();
            assert!(time("last-modified") <= time("date"), "{:?}", answer.headers);
            // `Last-Modified` is earlier than the change, so it does not prove that a client has the new content.
            let conditional = service.request(Method::GET, &url);
            let conditional = send_request(
                conditional.header("if-modified-since", answer.header("last-modified").unwrap()),
            )
            .await;
            assert_eq!(conditional.status, 200);
        }
    });
}
