//! Accepted and refused values of clusters, for each rule.

use serde_json::{Value, json};

use crate::clusters::{cluster_path, create_body, create_cluster};
use crate::service::{TestService, on_each_database};

/// Asserts that the creation and the update of a cluster refuse each body, for a reason that contains the given text.
pub(crate) async fn assert_refused(service: &TestService, cases: Vec<(Value, &str)>) {
    let cluster = create_cluster(service, &json!({})).await;
    for (change, text) in cases {
        assert_refused_on_create(service, vec![(change.clone(), text)]).await;
        let reason = service.patch(&cluster_path(&cluster), &change).await.refusal_reason(400);
        assert!(reason.contains(text), "PATCH {change}: {reason}");
    }
    assert_eq!(service.get(&cluster_path(&cluster)).await.json_with_status(200), cluster);
}

pub(crate) async fn assert_refused_on_create(service: &TestService, cases: Vec<(Value, &str)>) {
    for (change, text) in cases {
        let reason = service.post("/v2/clusters", &create_body(&change)).await.refusal_reason(400);
        assert!(reason.contains(text), "POST {change}: {reason}");
    }
}

/// Asserts that the creation and the update of a cluster accept each body.
pub(crate) async fn assert_accepted(service: &TestService, changes: Vec<Value>) {
    for change in changes {
        let answer = service.post("/v2/clusters", &create_body(&change)).await;
        assert_eq!(answer.status, 201, "POST {change}: {}", answer.text);
        let cluster = create_cluster(service, &json!({})).await;
        let answer = service.patch(&cluster_path(&cluster), &change).await;
        assert_eq!(answer.status, 201, "PATCH {change}: {}", answer.text);
    }
}

#[test]
fn cluster_names_are_checked() {
    on_each_database(async |service| {
        let long = "a".repeat(54);
        let (too_long, empty) = (json!({"name": format!("{long}a")}), json!({"name": ""}));
        assert_accepted(service, vec![json!({"name": "a"}), json!({"name": "0-a"}), json!({"name": long})])
            .await;
        assert_refused(
            service,
            vec![
                (json!({"name": "A"}), "Cluster name format is not valid: 'A'"),
                (json!({"name": "-a"}), "Cluster name format is not valid"),
                (json!({"name": "a-"}), "Cluster name format is not valid"),
                (json!({"name": "a_b"}), "Cluster name format is not valid"),
                (json!({"name": "a.b"}), "Cluster name format is not valid"),
                (too_long, "name in body should be at most 54 chars long"),
                (empty, "name in body should be at least 1 chars long"),
            ],
        )
        .await;
        // Without a platform, a name may contain dots. Such a cluster must not get a platform.
        let cluster = create_cluster(service, &json!({"platform": {"type": "none"}, "name": "a.b-c"})).await;
        service.patch(&cluster_path(&cluster), &json!({"name": "d.e"})).await.json_with_status(201);
        service.patch(&cluster_path(&cluster), &json!({"name": "d..e"})).await.refusal_reason(400);
        let reason = service
            .patch(&cluster_path(&cluster), &json!({"platform": {"type": "baremetal"}}))
            .await
            .refusal_reason(400);
        assert!(reason.contains("'d.e'"), "{reason}");
    });
}

#[test]
fn base_domains_are_checked() {
    on_each_database(async |service| {
        let domain = |text: &str| json!({"base_dns_domain": text});
        let label = "a".repeat(61);
        let long = [label.as_str(); 5].join(".");
        assert_accepted(
            service,
            vec![domain(""), domain("example.com"), domain("a.b-c.example"), domain("local")],
        )
        .await;
        let reason = "DNS format mismatch: ";
        assert_refused(
            service,
            vec![
                (domain("Example.com"), "DNS format mismatch: Example.com domain name is not valid"),
                (domain("example."), reason),
                (domain(".example"), reason),
                (domain("a b"), reason),
                (domain("-a.example"), reason),
                (domain("192.0.2.1"), reason),
                (domain("x"), reason),
                (domain(&long), reason),
            ],
        )
        .await;
    });
}

#[test]
fn tags_are_checked() {
    on_each_database(async |service| {
        let tags = |text: &str| json!({"tags": text});
        assert_accepted(service, vec![tags("one"), tags("one,two_2,three words here"), tags("")]).await;
        assert_refused(
            service,
            vec![
                (tags("one,"), "Invalid format for Tags: one,"),
                (tags("one, two"), "Invalid format for Tags"),
                (tags("two  words"), "Invalid format for Tags"),
                (tags("a-b"), "Invalid format for Tags"),
            ],
        )
        .await;
    });
}

#[test]
fn versions_and_architectures_are_checked() {
    on_each_database(async |service| {
        for version in ["4.14", "4.14.71", "4.18", "4.18.3"] {
            create_cluster(service, &json!({"openshift_version": version})).await;
        }
        assert_refused_on_create(
            service,
            vec![
                (
                    json!({"openshift_version": "4.14.70"}),
                    "The requested release image for version (4.14.70) and CPU architecture (x86_64)",
                ),
                (json!({"openshift_version": "4"}), "invalid version"),
                (json!({"openshift_version": ""}), "invalid version"),
                (json!({"cpu_architecture": "arm64"}), "CPU architecture (arm64)"),
                (
                    json!({"cpu_architecture": "mips"}),
                    "cpu_architecture in body should be one of [x86_64 aarch64 arm64 ppc64le s390x multi]",
                ),
                (json!({"ocp_release_image": "quay.io/other"}), "No release image with URL quay.io/other"),
                (
                    json!({"ocp_release_image": "quay.io/openshift-release-dev/ocp-release:4.18.3-s390x"}),
                    "architecture x86_64",
                ),
                (json!({"openshift_version": null}), "openshift_version in body is required"),
                (json!({"pull_secret": null}), "pull_secret in body is required"),
                (json!({"name": null}), "name in body is required"),
            ],
        )
        .await;
    });
}

#[test]
fn control_plane_counts_are_checked() {
    on_each_database(async |service| {
        assert_accepted(service, vec![json!({"control_plane_count": 3}), json!({"control_plane_count": 5})])
            .await;
        assert_refused(
            service,
            vec![
                (json!({"control_plane_count": 2}), "3 to 5 dedicated control plane nodes"),
                (json!({"control_plane_count": 6}), "control_plane_count is 6"),
                (json!({"control_plane_count": "3"}), "control_plane_count must be a number, not a string"),
            ],
        )
        .await;
        assert_refused_on_create(
            service,
            vec![
                (json!({"control_plane_count": 4, "openshift_version": "4.14"}), "exactly 3"),
                (json!({"control_plane_count": 3, "high_availability_mode": "None"}), "exactly 1"),
                (json!({"control_plane_count": 1, "high_availability_mode": "Full"}), "3 to 5"),
                (json!({"high_availability_mode": "Half"}), "should be one of [Full None]"),
            ],
        )
        .await;
        let old = create_cluster(service, &json!({"openshift_version": "4.14"})).await;
        assert!(
            service
                .patch(&cluster_path(&old), &json!({"control_plane_count": 5}))
                .await
                .refusal_reason(400)
                .contains("exactly 3")
        );
        let single = create_cluster(service, &json!({"control_plane_count": 1})).await;
        assert!(
            service
                .patch(&cluster_path(&single), &json!({"control_plane_count": 3}))
                .await
                .refusal_reason(400)
                .contains("exactly 1")
        );
    });
}

#[test]
fn platforms_are_checked() {
    on_each_database(async |service| {
        let platform = |name: &str, managed: bool| json!({"platform": {"type": name}, "user_managed_networking": managed});
        assert_accepted(service, vec![
            platform("baremetal", false),
            platform("none", true),
            platform("external", true),
            platform("vsphere", true),
            platform("nutanix", false),
            json!({"platform": {"type": "external", "external": {"platform_name": "oci", "cloud_controller_manager": "External"}}}),
            json!({"platform": {"type": "external", "external": {"cloud_controller_manager": ""}}}),
        ])
        .await;
        assert_refused(
            service,
            vec![
                (
                    platform("baremetal", true),
                    "Can't set baremetal platform with user-managed-networking enabled",
                ),
                (platform("none", false), "Can't set none platform with user-managed-networking disabled"),
                (
                    platform("external", false),
                    "Can't set external platform with user-managed-networking disabled",
                ),
                (
                    json!({"platform": {"type": "ovirt"}}),
                    "platform.type in body should be one of [baremetal nutanix vsphere none external]",
                ),
                (
                    json!({"platform": {"type": "external", "external": {"platform_name": ""}}}),
                    "should be at least 1 chars long",
                ),
                (json!({"platform": {"type": "none", "more": 1}}), "unknown field \"more\""),
            ],
        )
        .await;
        assert_refused_on_create(
            service,
            vec![
                (json!({"platform": {}}), "platform.type in body is required"),
                (
                    json!({"platform": {"type": "baremetal"}, "control_plane_count": 1}),
                    "Can't set baremetal platform on single node OpenShift",
                ),
            ],
        )
        .await;
    });
}

#[test]
fn enum_values_are_checked() {
    on_each_database(async |service| {
        const ROLES: [&str; 9] = [
            "none",
            "masters",
            "arbiters",
            "workers",
            "masters,arbiters",
            "masters,workers",
            "arbiters,workers",
            "masters,arbiters,workers",
            "all",
        ];
        let mut good: Vec<_> = ROLES.iter().map(|roles| json!({"hyperthreading": roles})).collect();
        good.extend(ROLES.map(|roles| json!({"disk_encryption": {"enable_on": roles}})));
        for network_type in ["OVNKubernetes", "CiscoACI", "Cilium", "Calico", "None"] {
            good.push(json!({"network_type": network_type}));
        }
        assert_accepted(service, good).await;
        assert_refused(service, vec![
            (json!({"hyperthreading": "workers,masters"}), "hyperthreading in body should be one of [none masters"),
            (json!({"network_type": "Flannel"}), "network_type in body should be one of [OpenShiftSDN OVNKubernetes CiscoACI Cilium Calico None]"),
            (json!({"load_balancer": {"type": "both"}}), "load_balancer.type in body should be one of [cluster-managed user-managed]"),
            (json!({"schedulable_masters": "yes"}), "schedulable_masters must be a boolean, not a string"),
            (json!({"unknown": 1}), "json: unknown field \"unknown\""),
        ])
        .await;
    });
}

#[test]
fn disk_encryption_and_ignition_endpoints_are_checked() {
    on_each_database(async |service| {
        let tang = |servers: &str| json!({"disk_encryption": {"enable_on": "all", "mode": "tang", "tang_servers": servers}});
        assert_accepted(
            service,
            vec![
                tang(r#"[{"url": "http://tang.example", "thumbprint": "abc"}]"#),
                json!({"disk_encryption": {"enable_on": "workers"}}),
                json!({"disk_encryption": {"mode": "tang"}}),
                json!({"ignition_endpoint": {"url": "http://10.0.0.1:22624/config/worker"}}),
            ],
        )
        .await;
        let reason = "disk_encryption.tang_servers must be a JSON list";
        assert_refused(
            service,
            vec![
                (tang(""), reason),
                (tang("[]"), reason),
                (tang("{}"), reason),
                (tang(r#"[{"url": "http://tang.example"}]"#), reason),
                (json!({"disk_encryption": {"mode": "tpmv3"}}), "should be one of [tpmv2 tang]"),
                (json!({"ignition_endpoint": {"url": "ftp://x"}}), "Invalid Ignition endpoint URL: "),
                (
                    json!({"ignition_endpoint": {"ca_certificate": "?"}}),
                    "ignition_endpoint.ca_certificate must be PEM in base64",
                ),
                (
                    json!({"ignition_endpoint": {"ca_certificate": "aGVsbG8="}}),
                    "ignition_endpoint.ca_certificate must be PEM in base64",
                ),
            ],
        )
        .await;
    });
}

#[test]
fn values_shared_with_infra_envs_are_checked() {
    on_each_database(async |service| {
        assert_refused(
            service,
            vec![
                (json!({"http_proxy": "https://10.0.0.1"}), "Failed to validate HTTP Proxy: "),
                (json!({"https_proxy": "10.0.0.1"}), "Failed to validate HTTPS Proxy: "),
                (json!({"no_proxy": "a b"}), "no_proxy"),
                (json!({"additional_ntp_source": "a, b"}), "Invalid NTP source: a, b"),
                (json!({"ntp_sources": "X.example"}), "Invalid NTP source: X.example"),
                (
                    json!({"additional_ntp_source": "one.example", "ntp_sources": "two.example"}),
                    "ntp_sources and additional_ntp_sources are mutually exclusive",
                ),
                (
                    json!({"ssh_public_key": "ssh-foo AAAA"}),
                    "SSH key: ssh-foo AAAA does not match any supported type",
                ),
                (json!({"pull_secret": "{"}), "pull secret must be a well-formed JSON"),
                (
                    json!({"pull_secret": r#"{"auths":{"other.example":{"auth":"dXNlcjpwYXNz"}}}"#}),
                    "pull secret must contain auth for \"quay.io/",
                ),
            ],
        )
        .await;
        let reason = service
            .post("/v2/clusters", &create_body(&json!({"pull_secret": "{"})))
            .await
            .refusal_reason(400);
        assert_eq!(reason, "pull secret for new cluster is invalid: pull secret must be a well-formed JSON");
    });
}

#[test]
fn body_keys_are_case_insensitive() {
    on_each_database(async |service| {
        let cluster =
            create_cluster(service, &json!({"NAME": "folded", "Base_DNS_Domain": "folded.example"})).await;
        assert_eq!(
            (&cluster["name"], &cluster["base_dns_domain"]),
            (&json!("folded"), &json!("folded.example"))
        );
        let servers = r#"[{"URL": "http://tang.example", "Thumbprint": "x"}]"#;
        let encryption = json!({"Enable_On": "all", "mode": "tang", "tang_servers": servers});
        let cluster = create_cluster(service, &json!({"disk_encryption": encryption})).await;
        assert_eq!(cluster["disk_encryption"]["tang_servers"], servers);
        assert_eq!(cluster["disk_encryption"]["enable_on"], "all");
    });
}

#[test]
fn single_node_cluster_may_be_created_with_vips() {
    on_each_database(async |service| {
        let vips = json!({"api_vips": [{"ip": "192.0.2.2"}], "ingress_vips": [{"ip": "192.0.2.3"}]});
        let mut single = vips.clone();
        single["control_plane_count"] = json!(1);
        let cluster = create_cluster(service, &single).await;
        assert_eq!(cluster["user_managed_networking"], true);
        assert_eq!(cluster["api_vips"][0]["ip"], "192.0.2.2");
        service.patch(&cluster_path(&cluster), &json!({"name": "renamed"})).await.json_with_status(201);
        let other = json!({"api_vips": [{"ip": "192.0.2.4"}], "ingress_vips": [{"ip": "192.0.2.3"}]});
        let reason = service.patch(&cluster_path(&cluster), &other).await.refusal_reason(400);
        assert_eq!(reason, "API VIP cannot be set with User Managed Networking");
        let vips =
            json!({"control_plane_count": 1, "user_managed_networking": true, "api_vips": vips["api_vips"]});
        assert_refused_on_create(service, vec![(vips, "API VIP cannot be set with User Managed Networking")])
            .await;
    });
}
