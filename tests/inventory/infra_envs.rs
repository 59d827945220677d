//! Infra-envs: what is made of a body, what is refused, what counts as a change.

use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{
    Answer, IMAGE_SERVICE, PULL_SECRET, Service, on_each_database, on_each_database_with, send,
};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEj2tQSxYwQIcXsGZ6aHcKfoWiVBqVp3AmEFwqeFsTOO me@example";

/// The smallest body, with more in it.
fn body(more: &Value) -> Value {
    let mut body = json!({"name": "demo", "pull_secret": PULL_SECRET});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

async fn register(service: &Service, more: &Value) -> Value {
    service.post("/v2/infra-envs", &body(more)).await.expect(201)
}

fn path(infra_env: &Value) -> String {
    format!("/v2/infra-envs/{}", infra_env["id"].as_str().unwrap())
}

async fn generation(service: &Service, infra_env: &Value) -> u64 {
    let id = infra_env["id"].as_str().unwrap().parse().unwrap();
    service.inventory.stored_infra_env(id).await.unwrap().record.image_generation
}

fn host(mac: &str, address: &str) -> Value {
    json!({
        "network_yaml": format!("interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  ipv4:\n    enabled: true\n    dhcp: false\n    address:\n    - ip: {address}\n      prefix-length: 24\n"),
        "mac_interface_map": [{"mac_address": mac, "logical_nic_name": "eth0"}],
    })
}

#[test]
fn a_fresh_one_is_shown_as_clients_know_it() {
    on_each_database(async |service| {
        let mut made = register(service, &json!({"openshift_version": "4.14.3"})).await;
        let id = made["id"].as_str().unwrap().to_owned();
        for key in ["created_at", "updated_at"] {
            let time = made.as_object_mut().unwrap().remove(key).unwrap();
            assert!(time.as_str().unwrap().starts_with("20"), "{time}");
        }
        let expected = json!({
            "cpu_architecture": "x86_64",
            "download_url": format!("{IMAGE_SERVICE}/byid/{id}/4.14/x86_64/full.iso"),
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
        assert_eq!(made, expected);
        let shown = service.get(&path(&made)).await.expect(200);
        assert_eq!(shown["download_url"], made["download_url"]);
        assert_eq!(service.get("/v2/infra-envs").await.expect(200), json!([shown]));
    });
}

#[test]
fn everything_that_was_sent_is_shown() {
    on_each_database(async |service| {
        let hosts = [host("52:54:00:00:00:02", "192.0.2.2"), host("52:54:00:00:00:01", "192.0.2.1")];
        let made = register(
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
        assert_eq!(made["cpu_architecture"], "arm64");
        assert!(made["download_url"].as_str().unwrap().ends_with("/4.18/arm64/minimal.iso"));
        assert_eq!(made["ssh_authorized_key"], KEY);
        assert_eq!(made["proxy"], json!({"http_proxy": "http://10.0.0.1:3128", "no_proxy": "*"}));
        assert_eq!(
            made["kernel_arguments"],
            r#"[{"operation":"append","value":"p1"},{"operation":"append","value":"p2=\"a b\""}]"#
        );
        let shown: Value = serde_json::from_str(made["static_network_config"].as_str().unwrap()).unwrap();
        assert_eq!(shown[0], hosts[1], "hosts are in an order of their own");
        assert_eq!(shown[1], hosts[0]);
        assert_eq!(made["network_discovery_delay_seconds"], 0);
    });
}

#[test]
fn what_a_get_shows_a_patch_takes() {
    on_each_database(async |service| {
        let made = register(
            service,
            &json!({
                "ssh_authorized_key": KEY,
                "kernel_arguments": [{"operation": "append", "value": "p1"}],
                "static_network_config": [host("52:54:00:00:00:01", "192.0.2.1")],
                "proxy": {"http_proxy": "http://10.0.0.1:3128"},
            }),
        )
        .await;
        let again = service.patch(&path(&made), &made).await.expect(201);
        assert_eq!(again, made, "nothing changed");
        assert_eq!(generation(service, &made).await, 1);
        let other = service.patch(&path(&made), &json!({"name": "other"})).await;
        assert_eq!(other.refused(400), "name in body cannot be changed");
    });
}

/// Each body, with the status and how the reason begins.
const REFUSED: [(&str, &str); 40] = [
    (
        r#"{"pull_secret": " "}"#,
        "pull secret for new infraEnv is invalid: pull secret must be a well-formed JSON",
    ),
    (r#"{"name": null}"#, "name in body is required"),
    (
        r#"{"pull_secret": "{"}"#,
        "pull secret for new infraEnv is invalid: pull secret must be a well-formed JSON",
    ),
    (
        r#"{"pull_secret": "{}"}"#,
        "pull secret for new infraEnv is invalid: pull secret must contain 'auths' JSON-object field",
    ),
    (
        r#"{"unheard": 1}"#,
        r#"parsing infraenvCreateParams body from "" failed, because json: unknown field "unheard""#,
    ),
    (
        r#"{"proxy": {"ftp_proxy": ""}}"#,
        r#"parsing infraenvCreateParams body from "" failed, because json: unknown field "ftp_proxy""#,
    ),
    (
        r#"{"name": 5}"#,
        r#"parsing infraenvCreateParams body from "" failed, because name must be a string, not a number"#,
    ),
    (
        r#"{"kernel_arguments": [null]}"#,
        r#"parsing infraenvCreateParams body from "" failed, because kernel_arguments.0 must be an object, not null"#,
    ),
    (
        r#"{"kernel_arguments": {}}"#,
        r#"parsing infraenvCreateParams body from "" failed, because kernel_arguments must be an array, not an object"#,
    ),
    (
        r#"{"network_discovery_delay_seconds": 1.5}"#,
        r#"parsing infraenvCreateParams body from "" failed, because network_discovery_delay_seconds must be an integer"#,
    ),
    (
        r#"{"network_discovery_delay_seconds": -1}"#,
        "network_discovery_delay_seconds in body should be greater than or equal to 0",
    ),
    (
        r#"{"network_discovery_delay_seconds": 4294967296}"#,
        "network_discovery_delay_seconds in body should be less than or equal to 4294967295",
    ),
    (
        r#"{"image_type": "iso"}"#,
        "image_type in body should be one of [full-iso minimal-iso disconnected-iso]",
    ),
    (
        r#"{"cpu_architecture": "multi"}"#,
        "cpu_architecture in body should be one of [x86_64 aarch64 arm64 ppc64le s390x]",
    ),
    (
        r#"{"kernel_arguments": [{"operation": "append", "value": "a b"}]}"#,
        "kernel_arguments.0.value in body should match '",
    ),
    (
        r#"{"kernel_arguments": [{"operation": "insert", "value": "a"}]}"#,
        "kernel_arguments.0.operation in body should be one of [append replace delete]",
    ),
    (
        r#"{"kernel_arguments": [{"operation": "delete", "value": "a"}]}"#,
        "Only kernel argument operation append is supported.  Got delete",
    ),
    (
        r#"{"kernel_arguments": [{"value": "a"}]}"#,
        "Only kernel argument operation append is supported.  Got ",
    ),
    (
        r#"{"static_network_config": [{"network_yaml": "", "mac_interface_map": [{"mac_address": "52-54-00-00-00-01"}]}]}"#,
        "static_network_config.0.mac_interface_map.0.mac_address in body should match '",
    ),
    (
        r#"{"static_network_config": [{"mac_interface_map": [{"logical_nic_name": "eth0"}]}]}"#,
        "static_network_config.0.mac_interface_map.0.mac_address in body is required",
    ),
    (
        r#"{"static_network_config": [{"network_yaml": "interfaces: []"}]}"#,
        "1 error occurred:\n\t* at least one interface for host 0 must be provided\n",
    ),
    (
        r#"{"static_network_config": [{"network_yaml": "x", "mac_interface_map": [{"mac_address": "52:54:00:00:00:0a", "logical_nic_name": "a"}, {"mac_address": "52:54:00:00:00:0A", "logical_nic_name": "b"}]}]}"#,
        "1 error occurred:\n\t* MACs and Interfaces for host 0 must be unique\n",
    ),
    (
        r#"{"static_network_config": [{"network_yaml": "interfaces: 5", "mac_interface_map": [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}]}]}"#,
        "1 error occurred:\n\t* host 0:1: interfaces:",
    ),
    (r#"{"ssh_authorized_key": "ssh-foo AAAA"}"#, "SSH key: ssh-foo AAAA does not match any supported type"),
    (r#"{"additional_ntp_sources": "a.b, c.d"}"#, "Invalid NTP source: a.b, c.d"),
    (
        r#"{"additional_ntp_sources": "aa", "ntp_sources": "bb"}"#,
        "ntp_sources and additional_ntp_sources are mutually exclusive",
    ),
    (r#"{"proxy": {"http_proxy": "https://p"}}"#, "Failed to validate HTTP Proxy: "),
    (r#"{"proxy": {"https_proxy": "ftp://p"}}"#, "Failed to validate HTTPS Proxy: "),
    (r#"{"proxy": {"no_proxy": "a.example,a.example"}}"#, "proxy.no_proxy"),
    (r#"{"ignition_config_override": "{"}"#, "error parsing ignition: ignition_config_override: "),
    (
        r#"{"ignition_config_override": "{\"ignition\": {\"version\": \"9.9.9\"}}"}"#,
        "error parsing ignition: ignition_config_override: ",
    ),
    (
        r#"{"ignition_config_override": "{\"ignition\": {\"version\": \"3.1.0\"}, \"storage\": {\"files\": [{\"path\": \"relative\"}]}}"}"#,
        "error parsing ignition: ignition_config_override: ",
    ),
    (r#"{"additional_trust_bundle": "no certificate"}"#, "additional_trust_bundle"),
    (r#"{"rendezvous_ip": "192.0.2.1"}"#, "RendezvousIP is only supported for disconnected ISO infra-envs"),
    (
        r#"{"image_type": "disconnected-iso", "rendezvous_ip": "here"}"#,
        "Invalid rendezvous IP: here (must be a valid IPv4 or IPv6 address)",
    ),
    (
        r#"{"openshift_version": "4.99"}"#,
        "No OS image for Openshift version 4.99 and architecture x86_64: The requested OS image for version",
    ),
    (
        r#"{"openshift_version": "4"}"#,
        "No OS image for Openshift version 4 and architecture x86_64: invalid version",
    ),
    (
        r#"{"cpu_architecture": "ppc64le", "openshift_version": "4.18"}"#,
        "No OS image for Openshift version 4.18 and architecture ppc64le: The requested CPU architecture (ppc64le) isn't specified in OS images list",
    ),
    (
        r#"{"cpu_architecture": "ppc64le"}"#,
        "Failed to get latest OS image for architecture ppc64le: No OS images are available",
    ),
    (r#"{"cluster_id": "no uuid"}"#, "cluster_id in body must be of type uuid: \"no uuid\""),
];

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    on_each_database(async |service| {
        for (more, reason) in REFUSED {
            let answer = service.post("/v2/infra-envs", &body(&serde_json::from_str(more).unwrap())).await;
            let found = answer.refused(400);
            assert!(found.starts_with(reason), "{more}:\n{found:?} instead of\n{reason:?}");
        }
        assert_eq!(service.get("/v2/infra-envs").await.expect(200), json!([]), "nothing was made");
        let unknown = json!({"cluster_id": "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11"});
        let answer = service.post("/v2/infra-envs", &body(&unknown)).await;
        assert_eq!(answer.refused(404), "Cluster ID 7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11 does not exist");
    });
}

#[test]
fn two_hosts_cannot_have_one_address() {
    on_each_database(async |service| {
        let hosts = json!([host("52:54:00:00:00:0a", "192.0.2.1"), host("52:54:00:00:00:0A", "192.0.2.2")]);
        let answer = service.post("/v2/infra-envs", &body(&json!({"static_network_config": hosts}))).await;
        let refusal = answer.expect(400);
        assert!(
            refusal["reason"]
                .as_str()
                .unwrap()
                .contains("52:54:00:00:00:0A is the address of eth0 in host 0 too"),
            "{refusal}"
        );
        let rules: Vec<&str> =
            refusal["findings"].as_array().unwrap().iter().map(|one| one["rule"].as_str().unwrap()).collect();
        assert_eq!(rules, ["duplicate-mac"]);
    });
}

#[test]
fn bodies_that_are_none_are_refused() {
    on_each_database(async |service| {
        let request = |content_type: Option<&str>, bytes: Vec<u8>| {
            let request = service.request(Method::POST, "/v2/infra-envs").body(bytes);
            match content_type {
                Some(kind) => request.header("content-type", kind),
                None => request,
            }
        };
        let json = Some("application/json");
        let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
        let wide = [b"[".as_slice(), &b"[],".repeat(2 << 20), b"[]]"].concat();
        let cases: [(Option<&str>, Vec<u8>, &str); 8] = [
            (None, b"{}".to_vec(), "unsupported media type \"\", only [application/json] are allowed"),
            (
                Some("text/plain"),
                b"{}".to_vec(),
                "unsupported media type \"text/plain\", only [application/json] are allowed",
            ),
            (json, b"".to_vec(), "infraenvCreateParams in body is required"),
            (json, b"null".to_vec(), "infraenvCreateParams in body is required"),
            (
                json,
                b"{\"name\": \"\xff\"}".to_vec(),
                "parsing infraenvCreateParams body from \"\" failed, because ",
            ),
            (
                json,
                wide,
                "parsing infraenvCreateParams body from \"\" failed, because it has more than 1048576 values",
            ),
            (
                json,
                deep,
                "parsing infraenvCreateParams body from \"\" failed, because recursion limit exceeded",
            ),
            (
                json,
                b"[]".to_vec(),
                "parsing infraenvCreateParams body from \"\" failed, because the value must be an object, not an array",
            ),
        ];
        for (kind, bytes, reason) in cases {
            let found = send(request(kind, bytes)).await.refused(400);
            assert!(found.starts_with(reason), "{found:?} instead of {reason:?}");
        }
        let trailing = format!("{}garbage", body(&json!({})));
        send(request(Some("Application/JSON; charset=utf-8"), trailing.into_bytes())).await.expect(201);
    });
}

#[test]
fn unknown_keys_may_be_let_pass() {
    on_each_database_with(
        |settings| settings.reject_unknown_fields = false,
        async |service| {
            let made = register(service, &json!({"unheard": [1], "proxy": {"ftp_proxy": "x"}})).await;
            assert_eq!(made["proxy"], json!({}));
        },
    );
}

#[test]
fn a_change_of_the_image_counts_and_nothing_else_does() {
    on_each_database(async |service| {
        let made = register(service, &json!({"openshift_version": "4.18", "ssh_authorized_key": KEY})).await;
        let url = path(&made);
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
            json!({"static_network_config": [host("52:54:00:00:00:01", "192.0.2.1"), host("52:54:00:00:00:02", "192.0.2.2")]}),
            json!({"additional_ntp_sources": "ntp.example.com"}),
            json!({"additional_ntp_sources": "", "ntp_sources": "ntp.example.com"}),
            json!({"pull_secret": r#"{"auths":{"quay.io":{"auth":"dXNlcjpvdGhlcg=="}}}"#}),
            json!({"network_discovery_delay_seconds": 7}),
            json!({"openshift_version": "4.14"}),
        ];
        let mut expected = 1;
        for change in &changes {
            let before = service.get(&url).await.expect(200);
            service.patch(&url, change).await.expect(201);
            expected += 1;
            assert_eq!(generation(service, &made).await, expected, "{change}");
            let once = service.get(&url).await.expect(200);
            assert_ne!(once["updated_at"], before["updated_at"]);
            service.patch(&url, change).await.expect(201);
            assert_eq!(service.get(&url).await.expect(200), once, "{change} again is no change");
        }
        for nothing in [
            json!({}),
            json!({"pull_secret": "", "openshift_version": "", "proxy": {}, "ssh_authorized_key": null}),
            json!({"image_type": ""}),
            json!({"type": ""}),
            json!({"static_network_config": [host("52:54:00:00:00:02", "192.0.2.2"), host("52:54:00:00:00:01", "192.0.2.1")]}),
        ] {
            service.patch(&url, &nothing).await.expect(201);
        }
        service.get(&format!("{url}/downloads/image-url")).await.expect(200);
        service.get(&format!("{url}/downloads/files?file_name=discovery.ign")).await;
        assert_eq!(generation(service, &made).await, expected);
    });
}

#[test]
fn concurrent_changes_lose_nothing() {
    on_each_database(async |service| {
        let made = register(service, &json!({"openshift_version": "4.18"})).await;
        let url = path(&made);
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
        let shown = service.get(&url).await.expect(200);
        assert_eq!(shown["ssh_authorized_key"], KEY);
        assert_eq!(shown["additional_ntp_sources"], "ntp.example.com");
        assert_eq!(shown["type"], "minimal-iso");
        assert_eq!(shown["network_discovery_delay_seconds"], 7);
        assert!(shown["kernel_arguments"].as_str().unwrap().contains("quiet"));
        assert_eq!(shown["proxy"].as_object().unwrap().len(), 3, "{shown}");
        assert_eq!(generation(service, &made).await, 9);
    });
}

#[test]
fn one_that_is_gone_is_gone() {
    on_each_database(async |service| {
        let made = register(service, &json!({})).await;
        assert_eq!(service.delete(&path(&made)).await.status, 204);
        for answer in [service.get(&path(&made)).await, service.delete(&path(&made)).await] {
            assert_eq!(answer.json()["kind"], "Error");
            assert_eq!(answer.refused(404), "record not found");
        }
        let answer = service.get("/v2/infra-envs/no-uuid").await;
        assert_eq!(answer.refused(400), "infra_env_id in path must be of type uuid: \"no-uuid\"");
    });
}

async fn file(service: &Service, infra_env: &Value, query: &str) -> Answer {
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
fn machines_boot_over_the_network_with_a_script() {
    on_each_database(async |service| {
        let arguments =
            json!([{"operation": "append", "value": "p1"}, {"operation": "append", "value": "p2"}]);
        let made =
            register(service, &json!({"openshift_version": "4.14.9", "kernel_arguments": arguments})).await;
        let id = made["id"].as_str().unwrap();
        let script = file(service, &made, "file_name=ipxe-script").await;
        assert_eq!(
            script.text,
            format!(
                "#!ipxe\n\
                 initrd --name initrd {IMAGE_SERVICE}/images/{id}/pxe-initrd?arch=x86_64&version=4.14\n\
                 kernel {IMAGE_SERVICE}/boot-artifacts/kernel?arch=x86_64&version=4.14 initrd=initrd \
                 coreos.live.rootfs_url={IMAGE_SERVICE}/boot-artifacts/rootfs?arch=x86_64&version=4.14 \
                 random.trust_cpu=on rd.luks.options=discard ignition.firstboot ignition.platform.id=metal \
                 console=tty1 console=ttyS1,115200n8 \
                 coreos.inst.persistent-kargs=\"console=tty1 console=ttyS1,115200n8\" p1 p2\nboot\n"
            )
        );
        assert_eq!(
            script.header("content-disposition").unwrap(),
            format!("attachment; filename=\"{id}-ipxe-script\"")
        );
        let redirect =
            file(service, &made, "file_name=ipxe-script&ipxe_script_type=boot-order-control").await.text;
        let place = format!(
            "/api/assisted-install/v2/infra-envs/{id}/downloads/files?file_name=ipxe-script&mac=${{net0/mac}}\n"
        );
        assert!(
            redirect.starts_with("#!ipxe\nchain http://127.0.0.1:") && redirect.ends_with(&place),
            "{redirect}"
        );
        let known = file(
            service,
            &made,
            "file_name=ipxe-script&ipxe_script_type=boot-order-control&mac=52:54:00:00:00:01",
        )
        .await;
        assert_eq!(known.text, script.text);
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
fn an_installed_machine_does_not_boot_the_discovery_image_again() {
    on_each_database(async |service| {
        use kindling::inventory::host::{HostRecord, HostStage, HostStatus};
        use kindling::inventory::store::{Change, Stored};

        let made = register(service, &json!({"openshift_version": "4.18"})).await;
        let host = json!({"host_id": "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11"});
        service.post(&format!("{}/hosts", path(&made)), &host).await.expect(201);
        let inventory =
            json!({"interfaces": [{"name": "eth0", "mac_address": "52:54:00:00:00:0A"}]}).to_string();
        let reply =
            json!({"step_type": "inventory", "step_id": "inventory-1", "exit_code": 0, "output": inventory});
        let steps = format!("{}/hosts/7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11/instructions", path(&made));
        assert_eq!(service.post(&steps, &reply).await.status, 204);
        for (status, stage, boots) in [
            (HostStatus::KnownUnbound, None, true),
            (HostStatus::InstallingInProgress, Some(HostStage::Installing), true),
            (HostStatus::InstallingInProgress, Some(HostStage::Rebooting), false),
            (HostStatus::Installed, Some(HostStage::Done), false),
        ] {
            let records = service.inventory.records();
            let parent = Some(made["id"].as_str().unwrap().parse().unwrap());
            let id = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11".parse().unwrap();
            let change = async || {
                let stored: Stored<HostRecord> = records.find(parent, id).await?.unwrap();
                let mut record = stored.record.clone();
                (record.status, record.progress.stage) = (status, stage);
                let mut change = Change::new();
                change.replace(&record, stored.generation);
                Ok((change, ()))
            };
            records.change(change).await.unwrap();
            for mac in ["52:54:00:00:00:0a", "52-54-00-00-00-0A"] {
                let answer = file(service, &made, &format!("file_name=ipxe-script&mac={mac}")).await;
                assert_eq!(
                    answer.status,
                    if boots { 200 } else { 404 },
                    "{status:?} {stage:?} {mac}: {}",
                    answer.text
                );
            }
            let other = file(service, &made, "file_name=ipxe-script&mac=52:54:00:00:00:0b").await;
            assert_eq!(other.status, 200);
        }
    });
}

#[test]
fn an_id_that_is_set_is_given_once() {
    on_each_database_with(
        |settings| settings.infra_env_id = Some("7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11".parse().unwrap()),
        async |service| {
            assert_eq!(register(service, &json!({})).await["id"], "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11");
            let answer = service.post("/v2/infra-envs", &body(&json!({}))).await;
            assert_eq!(answer.refused(409), "there is an infra-env 7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11");
        },
    );
}

#[test]
fn a_delay_has_bounds_and_is_kept_up_to_them() {
    on_each_database(async |service| {
        let made = register(service, &json!({"network_discovery_delay_seconds": u32::MAX})).await;
        assert_eq!(made["network_discovery_delay_seconds"], u32::MAX);
        for (delay, bound) in [
            (i64::from(u32::MAX) + 1, "less than or equal to 4294967295"),
            (-1, "greater than or equal to 0"),
        ] {
            let answer =
                service.patch(&path(&made), &json!({"network_discovery_delay_seconds": delay})).await;
            assert_eq!(
                answer.refused(400),
                format!("network_discovery_delay_seconds in body should be {bound}")
            );
        }
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

#[test]
fn a_nul_is_in_no_text() {
    on_each_database(async |service| {
        let reason = |place: &str| format!("{place} in body must not have a NUL");
        let made = register(service, &json!({})).await;
        let answer = service.post("/v2/infra-envs", &body(&json!({"name": "a\0b"}))).await;
        assert_eq!(answer.refused(400), reason("name"));
        let arguments = json!({"kernel_arguments": [{"operation": "append", "value": "a"}, {"operation": "append", "value": "a\0"}]});
        let answer = service.patch(&path(&made), &arguments).await;
        assert_eq!(answer.refused(400), reason("kernel_arguments.1.value"));
        let answer =
            service.post("/v2/clusters", &body(&json!({"name": "a\0b", "openshift_version": "4.18"}))).await;
        assert!(answer.refused(400).starts_with("name in body "), "{}", answer.text);
        let cluster = body(&json!({"openshift_version": "4.18", "tags": "a\0b"}));
        assert_eq!(service.post("/v2/clusters", &cluster).await.refused(400), reason("tags"));
        let hosts = format!("{}/hosts", path(&made));
        let host =
            json!({"host_id": "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11", "discovery_agent_version": "\0"});
        assert_eq!(service.post(&hosts, &host).await.refused(400), reason("discovery_agent_version"));
        let request =
            service.request(Method::POST, "/v2/infra-envs").header("content-type", "application/json");
        let behind = format!("{} \"\\u0000\"", body(&json!({"name": "\\u0000"})));
        let made = send(request.body(behind)).await.expect(201);
        assert_eq!(made["name"], "\\u0000", "only what is read counts, and a backslash may be one");
    });
}
