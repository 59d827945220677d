//! Bodies that the creation or change of an infra-env refuses.

use reqwest::Method;
use serde_json::json;

use super::{create_body, create_infra_env, host_network, infra_env_path};
use crate::service::{on_each_database, on_each_database_with, send_request};

/// Each body, with the status and the start of the reason.
const REFUSED: [(&str, &str); 42] = [
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
        r#"parsing infraenvCreateParams body from "" failed, because name must be a string, not a number; quote it: YAML tools read some unquoted values as numbers"#,
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
        r#"parsing infraenvCreateParams body from "" failed, because network_discovery_delay_seconds must be a 64-bit integer"#,
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
        "1 error occurred:\n\t* host 1:1: interfaces:",
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
        r#"{"openshift_version": "4.18-a b"}"#,
        "No OS image for Openshift version 4.18-a b and architecture x86_64: invalid version",
    ),
    (
        r#"{"openshift_version": "4.18-a b", "ignition_config_override": "{\"ignition\": {\"version\": \"3.2.0\"}}"}"#,
        "Openshift version \"4.18-a b\" is not valid",
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
fn invalid_values_are_refused_with_a_reason() {
    on_each_database(async |service| {
        for (more, reason) in REFUSED {
            let answer =
                service.post("/v2/infra-envs", &create_body(&serde_json::from_str(more).unwrap())).await;
            let actual = answer.refusal_reason(400);
            assert!(actual.starts_with(reason), "{more}:\n{actual:?}, expected\n{reason:?}");
        }
        assert_eq!(
            service.get("/v2/infra-envs").await.json_with_status(200),
            json!([]),
            "no infra-env was created"
        );
        let unknown = json!({"cluster_id": "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11"});
        let answer = service.post("/v2/infra-envs", &create_body(&unknown)).await;
        assert_eq!(
            answer.refusal_reason(404),
            "Cluster ID 7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11 does not exist"
        );
    });
}

#[test]
fn rejects_hosts_with_the_same_address() {
    on_each_database(async |service| {
        let hosts = json!([
            host_network("52:54:00:00:00:0a", "192.0.2.1"),
            host_network("52:54:00:00:00:0A", "192.0.2.2")
        ]);
        let answer =
            service.post("/v2/infra-envs", &create_body(&json!({"static_network_config": hosts}))).await;
        let refusal = answer.json_with_status(400);
        assert!(
            refusal["reason"]
                .as_str()
                .unwrap()
                .contains("52:54:00:00:00:0A is also the address of eth0 in host 1"),
            "{refusal}"
        );
        let rules: Vec<&str> =
            refusal["findings"].as_array().unwrap().iter().map(|one| one["rule"].as_str().unwrap()).collect();
        assert_eq!(rules, ["duplicate-mac"]);
    });
}

#[test]
fn rejects_invalid_bodies() {
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
            let actual = send_request(request(kind, bytes)).await.refusal_reason(400);
            assert!(actual.starts_with(reason), "{actual:?} instead of {reason:?}");
        }
        let trailing = format!("{}garbage", create_body(&json!({})));
        send_request(request(Some("Application/JSON; charset=utf-8"), trailing.into_bytes()))
            .await
            .json_with_status(201);
    });
}

#[test]
fn unknown_keys_may_be_ignored() {
    on_each_database_with(
        |settings| settings.reject_unknown_fields = false,
        async |service| {
            let infra_env =
                create_infra_env(service, &json!({"unheard": [1], "proxy": {"ftp_proxy": "x"}})).await;
            assert_eq!(infra_env["proxy"], json!({}));
        },
    );
}

#[test]
fn network_discovery_delay_is_limited() {
    on_each_database(async |service| {
        let infra_env =
            create_infra_env(service, &json!({"network_discovery_delay_seconds": u32::MAX})).await;
        assert_eq!(infra_env["network_discovery_delay_seconds"], u32::MAX);
        for (delay, bound) in [
            (i64::from(u32::MAX) + 1, "less than or equal to 4294967295"),
            (-1, "greater than or equal to 0"),
        ] {
            let answer = service
                .patch(&infra_env_path(&infra_env), &json!({"network_discovery_delay_seconds": delay}))
                .await;
            assert_eq!(
                answer.refusal_reason(400),
                format!("network_discovery_delay_seconds in body should be {bound}")
            );
        }
    });
}

#[test]
fn rejects_nul_in_text() {
    on_each_database(async |service| {
        let reason = |place: &str| format!("{place} in body must not contain a NUL character");
        let infra_env = create_infra_env(service, &json!({})).await;
        let answer = service.post("/v2/infra-envs", &create_body(&json!({"name": "a\0b"}))).await;
        assert_eq!(answer.refusal_reason(400), reason("name"));
        let arguments = json!({"kernel_arguments": [{"operation": "append", "value": "a"}, {"operation": "append", "value": "a\0"}]});
        let answer = service.patch(&infra_env_path(&infra_env), &arguments).await;
        assert_eq!(answer.refusal_reason(400), reason("kernel_arguments.1.value"));
        let answer = service
            .post("/v2/clusters", &create_body(&json!({"name": "a\0b", "openshift_version": "4.18"})))
            .await;
        assert!(answer.refusal_reason(400).starts_with("name in body "), "{}", answer.text);
        let cluster = create_body(&json!({"openshift_version": "4.18", "tags": "a\0b"}));
        assert_eq!(service.post("/v2/clusters", &cluster).await.refusal_reason(400), reason("tags"));
        let hosts = format!("{}/hosts", infra_env_path(&infra_env));
        let host =
            json!({"host_id": "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11", "discovery_agent_version": "\0"});
        assert_eq!(service.post(&hosts, &host).await.refusal_reason(400), reason("discovery_agent_version"));
        let request =
            service.request(Method::POST, "/v2/infra-envs").header("content-type", "application/json");
        let behind = format!("{} \"\\u0000\"", create_body(&json!({"name": "\\u0000"})));
        let infra_env = send_request(request.body(behind)).await.json_with_status(201);
        assert_eq!(infra_env["name"], "\\u0000", "only decoded NULs count; an escaped backslash is allowed");
    });
}
