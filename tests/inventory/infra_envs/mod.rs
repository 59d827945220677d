//! Infra-envs: creation, and the changes that affect the image.

mod boot;
mod files;
mod refusals;

use discovery::ImageRevision;
use serde_json::{Value, json};

use crate::service::{IMAGE_SERVICE, PULL_SECRET, TestService, on_each_database, on_each_database_with};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEj2tQSxYwQIcXsGZ6aHcKfoWiVBqVp3AmEFwqeFsTOO me@example";

/// Returns the smallest valid body, with additional keys.
fn create_body(more: &Value) -> Value {
    let mut body = json!({"name": "demo", "pull_secret": PULL_SECRET});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

async fn create_infra_env(service: &TestService, more: &Value) -> Value {
    service.post("/v2/infra-envs", &create_body(more)).await.json_with_status(201)
}

fn infra_env_path(infra_env: &Value) -> String {
    format!("/v2/infra-envs/{}", infra_env["id"].as_str().unwrap())
}

async fn generation(service: &TestService, infra_env: &Value) -> u64 {
    let id = infra_env["id"].as_str().unwrap().parse().unwrap();
    service.inventory.stored_infra_env(id).await.unwrap().record.image_generation
}

fn host_network(mac: &str, address: &str) -> Value {
    json!({
        "network_yaml": format!("interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  ipv4:\n    enabled: true\n    dhcp: false\n    address:\n    - ip: {address}\n      prefix-length: 24\n"),
        "mac_interface_map": [{"mac_address": mac, "logical_nic_name": "eth0"}],
    })
}

#[test]
fn new_resource_matches_the_api_document() {
    on_each_database(async |service| {
        let mut infra_env = create_infra_env(service, &json!({"openshift_version": "4.14.3"})).await;
        let id = infra_env["id"].as_str().unwrap().to_owned();
        for key in ["created_at", "updated_at"] {
            let time = infra_env.as_object_mut().unwrap().remove(key).unwrap();
            assert!(time.as_str().unwrap().starts_with("20"), "{time}");
        }
        let revision = infra_env["download_url"].as_str().unwrap().rsplit('/').nth(1).unwrap();
        assert!(revision.parse::<ImageRevision>().is_ok(), "{infra_env}");
        let expected = json!({
            "cpu_architecture": "x86_64",
            "download_url": format!("{IMAGE_SERVICE}/byid/{id}/4.14/x86_64/{revision}/full.iso"),
            "email_domain": "Unknown",
            "expires_at": "0001-01-01T00:00:00.000Z",
            "href": format!("/api/assisted-install/v2/infra-envs/{id}"),
            "id": id,
            "kind": "InfraEnv",
            "name": "demo",
            "openshift_version": "4.14",
            "proxy": {},
            "pull_secret_set": true,
            "type": "full-iso",
            "user_name": "admin",
        });
        assert_eq!(infra_env, expected);
        let response = service.get(&infra_env_path(&infra_env)).await.json_with_status(200);
        assert_eq!(response["download_url"], infra_env["download_url"]);
        assert_eq!(service.get("/v2/infra-envs").await.json_with_status(200), json!([response]));
    });
}

#[test]
fn every_sent_value_is_returned() {
    on_each_database(async |service| {
        let hosts =
            [host_network("52:54:00:00:00:02", "192.0.2.2"), host_network("52:54:00:00:00:01", "192.0.2.1")];
        let infra_env = create_infra_env(
            service,
            &json!({
                "openshift_version": "4.18",
                "cpu_architecture": "aarch64",
                "image_type": "minimal-iso",
                "ssh_authorized_key": format!("{KEY}\n"),
                "proxy": {"http_proxy": "http://10.0.0.1:3128", "no_proxy": "*"},
                "additional_ntp_sources": "ntp1.example.com,192.0.2.9",
                "ignition_config_override": r#"{"ignition": {"version": "3.1.0"}}"#,
                "kernel_arguments": [{"operation": "append", "value": "p1"}, {"operation": "append", "value": "p2=\"a b\""}],
                "static_network_config": hosts,
                "network_discovery_delay_seconds": 0,
            }),
        )
        .await;
        assert_eq!(infra_env["cpu_architecture"], "arm64");
        let url = infra_env["download_url"].as_str().unwrap();
        assert!(url.contains("/4.18/arm64/") && url.ends_with("/minimal.iso"), "{url}");
        assert_eq!(infra_env["ssh_authorized_key"], KEY);
        assert_eq!(infra_env["proxy"], json!({"http_proxy": "http://10.0.0.1:3128", "no_proxy": "*"}));
        assert_eq!(
            infra_env["kernel_arguments"],
            r#"[{"operation":"append","value":"p1"},{"operation":"append","value":"p2=\"a b\""}]"#
        );
        let networks: Value =
            serde_json::from_str(infra_env["static_network_config"].as_str().unwrap()).unwrap();
        assert_eq!(networks[0], hosts[1], "hosts are sorted");
        assert_eq!(networks[1], hosts[0]);
        assert_eq!(infra_env["network_discovery_delay_seconds"], 0);
    });
}

#[test]
fn macs_that_yaml_read_as_numbers_are_restored() {
    on_each_database(async |service| {
        // 52:54:00:00:00:01 and :02 as numbers in base 60, as YAML reads them.
        let document =
            "interfaces:\n- mac-address: 41135040001\n  name: eth0\n  type: ethernet\n  state: up\n";
        let host = |mac: Value| json!({"network_yaml": document, "mac_interface_map": [{"mac_address": mac, "logical_nic_name": "eth0"}]});
        let infra_env =
            create_infra_env(service, &json!({"static_network_config": [host(json!(41_135_040_001_u64))]}))
                .await;
        let stored = |infra_env: &Value| -> Value {
            serde_json::from_str(infra_env["static_network_config"].as_str().unwrap()).unwrap()
        };
        let networks = stored(&infra_env);
        assert_eq!(networks[0]["mac_interface_map"][0]["mac_address"], "52:54:00:00:00:01");
        let restored = document.replace("41135040001", "\"52:54:00:00:00:01\"");
        assert_eq!(networks[0]["network_yaml"], restored);
        let mut other = host(json!(41_135_040_002_u64));
        other["network_yaml"] = json!(document.replace("41135040001", "41135040002"));
        let body = json!({"static_network_config": [other]});
        let changed = service.patch(&infra_env_path(&infra_env), &body).await.json_with_status(201);
        assert_eq!(stored(&changed)[0]["mac_interface_map"][0]["mac_address"], "52:54:00:00:00:02");
        assert!(stored(&changed)[0]["network_yaml"].as_str().unwrap().contains("\"52:54:00:00:00:02\""));
        // The last number is 01:00:00:00:00:00.
        for number in [json!(525_400_000_001_u64), json!(-1), json!(1.5), json!(777_600_000)] {
            let body = create_body(&json!({"static_network_config": [host(number)]}));
            let reason = service.post("/v2/infra-envs", &body).await.refusal_reason(400);
            let expected = "static_network_config.0.mac_interface_map.0.mac_address must be a string, not a number; quote it";
            assert!(reason.contains(expected), "{reason}");
        }
    });
}

#[test]
fn get_response_is_accepted_by_patch() {
    on_each_database(async |service| {
        let infra_env = create_infra_env(
            service,
            &json!({
                "ssh_authorized_key": KEY,
                "kernel_arguments": [{"operation": "append", "value": "p1"}],
                "static_network_config": [host_network("52:54:00:00:00:01", "192.0.2.1")],
                "proxy": {"http_proxy": "http://10.0.0.1:3128"},
            }),
        )
        .await;
        let again = service.patch(&infra_env_path(&infra_env), &infra_env).await.json_with_status(201);
        assert_eq!(again, infra_env, "the PATCH changed something");
        assert_eq!(generation(service, &infra_env).await, 1);
        let other = service.patch(&infra_env_path(&infra_env), &json!({"name": "other"})).await;
        assert_eq!(other.refusal_reason(400), "name in body cannot be changed");
    });
}

#[test]
fn only_image_changes_increase_the_generation() {
    on_each_database(async |service| {
        let infra_env =
            create_infra_env(service, &json!({"openshift_version": "4.18", "ssh_authorized_key": KEY})).await;
        let url = infra_env_path(&infra_env);
        let changes = [
            json!({"image_type": "minimal-iso"}),
            json!({"ssh_authorized_key": ""}),
            json!({"kernel_arguments": [{"operation": "append", "value": "quiet"}]}),
            json!({"kernel_arguments": []}),
            json!({"proxy": {"http_proxy": "http://10.0.0.1:3128"}}),
            json!({"proxy": {"https_proxy": "http://10.0.0.1:3129"}}),
            json!({"proxy": {"http_proxy": ""}}),
            json!({"ignition_config_override": r#"{"ignition": {"version": "3.2.0"}}"#}),
            json!({"ignition_config_override": ""}),
            json!({"static_network_config": [host_network("52:54:00:00:00:01", "192.0.2.1"), host_network("52:54:00:00:00:02", "192.0.2.2")]}),
            json!({"additional_ntp_sources": "ntp.example.com"}),
            json!({"additional_ntp_sources": "", "ntp_sources": "ntp.example.com"}),
            json!({"pull_secret": r#"{"auths":{"quay.io":{"auth":"dXNlcjpvdGhlcg=="}}}"#}),
            json!({"network_discovery_delay_seconds": 7}),
            json!({"openshift_version": "4.14"}),
        ];
        let mut expected = 1;
        for change in &changes {
            let before = service.get(&url).await.json_with_status(200);
            service.patch(&url, change).await.json_with_status(201);
            expected += 1;
            assert_eq!(generation(service, &infra_env).await, expected, "{change}");
            let once = service.get(&url).await.json_with_status(200);
            assert_ne!(once["updated_at"], before["updated_at"]);
            service.patch(&url, change).await.json_with_status(201);
            assert_eq!(
                service.get(&url).await.json_with_status(200),
                once,
                "repeating {change} changes nothing"
            );
        }
        for nothing in [
            json!({}),
            json!({"pull_secret": "", "openshift_version": "", "proxy": {}, "ssh_authorized_key": null}),
            json!({"image_type": ""}),
            json!({"type": ""}),
            json!({"static_network_config": [host_network("52:54:00:00:00:02", "192.0.2.2"), host_network("52:54:00:00:00:01", "192.0.2.1")]}),
        ] {
            service.patch(&url, &nothing).await.json_with_status(201);
        }
        service.get(&format!("{url}/downloads/image-url")).await.json_with_status(200);
        service.get(&format!("{url}/downloads/files?file_name=discovery.ign")).await;
        assert_eq!(generation(service, &infra_env).await, expected);
    });
}

#[test]
fn override_without_a_version_may_use_the_spec_of_the_newest_image() {
    on_each_database(async |service| {
        let config = |spec: &str| json!({"ignition": {"version": spec}}).to_string();
        let infra_env =
            create_infra_env(service, &json!({"ignition_config_override": config("3.4.0")})).await;
        assert_eq!(infra_env["openshift_version"], "4.18");
        let newer = create_body(&json!({"ignition_config_override": config("3.5.0")}));
        let reason = service.post("/v2/infra-envs", &newer).await.refusal_reason(400);
        assert!(reason.starts_with("error parsing ignition: ignition_config_override"), "{reason}");
    });
}

#[test]
fn rejects_change_to_an_invalid_version() {
    on_each_database(async |service| {
        let infra_env = create_infra_env(service, &json!({"openshift_version": "4.18"})).await;
        for version in ["4.18-a b", "4.18.0.1", "latest"] {
            let reason = service
                .patch(&infra_env_path(&infra_env), &json!({"openshift_version": version}))
                .await
                .refusal_reason(400);
            assert!(reason.ends_with(": invalid version"), "{version}: {reason}");
        }
    });
}

#[test]
fn concurrent_changes_lose_nothing() {
    on_each_database(async |service| {
        let infra_env = create_infra_env(service, &json!({"openshift_version": "4.18"})).await;
        let url = infra_env_path(&infra_env);
        let changes = [
            json!({"ssh_authorized_key": KEY}),
            json!({"additional_ntp_sources": "ntp.example.com"}),
            json!({"image_type": "minimal-iso"}),
            json!({"network_discovery_delay_seconds": 7}),
            json!({"kernel_arguments": [{"operation": "append", "value": "quiet"}]}),
            json!({"proxy": {"http_proxy": "http://10.0.0.1:3128"}}),
            json!({"proxy": {"https_proxy": "http://10.0.0.1:3128"}}),
            json!({"proxy": {"no_proxy": "*"}}),
        ];
        let answers =
            futures_util::future::join_all(changes.iter().map(|change| service.patch(&url, change))).await;
        assert!(answers.iter().all(|answer| answer.status == 201), "{answers:?}");
        let response = service.get(&url).await.json_with_status(200);
        assert_eq!(response["ssh_authorized_key"], KEY);
        assert_eq!(response["additional_ntp_sources"], "ntp.example.com");
        assert_eq!(response["type"], "minimal-iso");
        assert_eq!(response["network_discovery_delay_seconds"], 7);
        assert!(response["kernel_arguments"].as_str().unwrap().contains("quiet"));
        assert_eq!(response["proxy"].as_object().unwrap().len(), 3, "{response}");
        assert_eq!(generation(service, &infra_env).await, 9);
    });
}

#[test]
fn deleted_infra_env_is_not_found() {
    on_each_database(async |service| {
        let infra_env = create_infra_env(service, &json!({})).await;
        assert_eq!(service.delete(&infra_env_path(&infra_env)).await.status, 204);
        for answer in [
            service.get(&infra_env_path(&infra_env)).await,
            service.delete(&infra_env_path(&infra_env)).await,
        ] {
            assert_eq!(answer.json()["kind"], "Error");
            assert_eq!(answer.refusal_reason(404), "record not found");
        }
        let answer = service.get("/v2/infra-envs/no-uuid").await;
        assert_eq!(answer.refusal_reason(400), "infra_env_id in path must be of type uuid: \"no-uuid\"");
    });
}

#[test]
fn configured_id_is_used_once() {
    on_each_database_with(
        |settings| settings.infra_env_id = Some("7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11".parse().unwrap()),
        async |service| {
            assert_eq!(
                create_infra_env(service, &json!({})).await["id"],
                "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11"
            );
            let answer = service.post("/v2/infra-envs", &create_body(&json!({}))).await;
            assert_eq!(
                answer.refusal_reason(409),
                "infra-env 7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11 already exists"
            );
        },
    );
}
