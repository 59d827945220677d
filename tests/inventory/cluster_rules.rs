//! Which values a cluster may have: each rule with values that it lets pass and values that it refuses.

use serde_json::{Value, json};

use crate::clusters::{body, path, register};
use crate::service::{Service, on_each_database};

/// Each of the bodies is refused by both operations, for a reason that has this text in it.
pub(crate) async fn refused(service: &Service, cases: Vec<(Value, &str)>) {
    let made = register(service, &json!({})).await;
    for (change, text) in cases {
        refused_on_create(service, vec![(change.clone(), text)]).await;
        let reason = service.patch(&path(&made), &change).await.refused(400);
        assert!(reason.contains(text), "PATCH {change}: {reason}");
    }
    assert_eq!(service.get(&path(&made)).await.expect(200), made);
}

pub(crate) async fn refused_on_create(service: &Service, cases: Vec<(Value, &str)>) {
    for (change, text) in cases {
        let reason = service.post("/v2/clusters", &body(&change)).await.refused(400);
        assert!(reason.contains(text), "POST {change}: {reason}");
    }
}

/// Each of the bodies is good for both operations.
pub(crate) async fn accepted(service: &Service, changes: Vec<Value>) {
    for change in changes {
        let answer = service.post("/v2/clusters", &body(&change)).await;
        assert_eq!(answer.status, 201, "POST {change}: {}", answer.text);
        let made = register(service, &json!({})).await;
        let answer = service.patch(&path(&made), &change).await;
        assert_eq!(answer.status, 201, "PATCH {change}: {}", answer.text);
    }
}

#[test]
fn names() {
    on_each_database(async |service| {
        let long = "a".repeat(54);
        let (too_long, empty) = (json!({"name": format!("{long}a")}), json!({"name": ""}));
        accepted(service, vec![json!({"name": "a"}), json!({"name": "0-a"}), json!({"name": long})]).await;
        refused(
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
        // Without a platform, a name may have dots; with one it may not come to be one.
        let made = register(service, &json!({"platform": {"type": "none"}, "name": "a.b-c"})).await;
        service.patch(&path(&made), &json!({"name": "d.e"})).await.expect(201);
        service.patch(&path(&made), &json!({"name": "d..e"})).await.refused(400);
        let reason =
            service.patch(&path(&made), &json!({"platform": {"type": "baremetal"}})).await.refused(400);
        assert!(reason.contains("'d.e'"), "{reason}");
    });
}

#[test]
fn domains() {
    on_each_database(async |service| {
        let domain = |text: &str| json!({"base_dns_domain": text});
        let label = "a".repeat(61);
        let long = [label.as_str(); 5].join(".");
        accepted(service, vec![domain(""), domain("example.com"), domain("a.b-c.example"), domain("local")])
            .await;
        let reason = "DNS format mismatch: ";
        refused(
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
fn tags() {
    on_each_database(async |service| {
        let tags = |text: &str| json!({"tags": text});
        accepted(service, vec![tags("one"), tags("one,two_2,three words here"), tags("")]).await;
        refused(
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
fn versions_and_machines() {
    on_each_database(async |service| {
        for version in ["4.14", "4.14.71", "4.18", "4.18.3"] {
            register(service, &json!({"openshift_version": version})).await;
        }
        refused_on_create(
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
fn control_planes() {
    on_each_database(async |service| {
        accepted(service, vec![json!({"control_plane_count": 3}), json!({"control_plane_count": 5})]).await;
        refused(
            service,
            vec![
                (json!({"control_plane_count": 2}), "3 to 5 dedicated control plane nodes"),
                (json!({"control_plane_count": 6}), "control_plane_count is 6"),
                (json!({"control_plane_count": "3"}), "control_plane_count must be a number, not a string"),
            ],
        )
        .await;
        refused_on_create(
            service,
            vec![
                (json!({"control_plane_count": 4, "openshift_version": "4.14"}), "exactly 3"),
                (json!({"control_plane_count": 3, "high_availability_mode": "None"}), "exactly 1"),
                (json!({"control_plane_count": 1, "high_availability_mode": "Full"}), "3 to 5"),
                (json!({"high_availability_mode": "Half"}), "should be one of [Full None]"),
            ],
        )
        .await;
        let old = register(service, &json!({"openshift_version": "4.14"})).await;
        assert!(
            service
                .patch(&path(&old), &json!({"control_plane_count": 5}))
                .await
                .refused(400)
                .contains("exactly 3")
        );
        let single = register(service, &json!({"control_plane_count": 1})).await;
        assert!(
            service
                .patch(&path(&single), &json!({"control_plane_count": 3}))
                .await
                .refused(400)
                .contains("exactly 1")
        );
    });
}

#[test]
fn platforms() {
    on_each_database(async |service| {
        let platform = |name: &str, managed: bool| json!({"platform": {"type": name}, "user_managed_networking": managed});
        accepted(service, vec![
            platform("baremetal", false),
            platform("none", true),
            platform("external", true),
            platform("vsphere", true),
            platform("nutanix", false),
            json!({"platform": {"type": "external", "external": {"platform_name": "oci", "cloud_controller_manager": "External"}}}),
            json!({"platform": {"type": "external", "external": {"cloud_controller_manager": ""}}}),
        ])
        .await;
        refused(
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
        refused_on_create(
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
fn choices() {
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
        accepted(service, good).await;
        refused(service, vec![
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
fn disks_and_ignition() {
    on_each_database(async |service| {
        let tang = |servers: &str| json!({"disk_encryption": {"enable_on": "all", "mode": "tang", "tang_servers": servers}});
        accepted(
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
        refused(
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
fn values_that_infra_envs_have_too() {
    on_each_database(async |service| {
        refused(
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
        let reason = service.post("/v2/clusters", &body(&json!({"pull_secret": "{"}))).await.refused(400);
        assert_eq!(reason, "pull secret for new cluster is invalid: pull secret must be a well-formed JSON");
    });
}

#[test]
fn keys_of_bodies_are_read_without_regard_to_case() {
    on_each_database(async |service| {
        let made = register(service, &json!({"NAME": "folded", "Base_DNS_Domain": "folded.example"})).await;
        assert_eq!((&made["name"], &made["base_dns_domain"]), (&json!("folded"), &json!("folded.example")));
        let servers = r#"[{"URL": "http://tang.example", "Thumbprint": "x"}]"#;
        let encryption = json!({"Enable_On": "all", "mode": "tang", "tang_servers": servers});
        let made = register(service, &json!({"disk_encryption": encryption})).await;
        assert_eq!(made["disk_encryption"]["tang_servers"], servers);
        assert_eq!(made["disk_encryption"]["enable_on"], "all");
    });
}

#[test]
fn a_single_node_may_be_created_with_vips() {
    on_each_database(async |service| {
        let vips = json!({"api_vips": [{"ip": "192.0.2.2"}], "ingress_vips": [{"ip": "192.0.2.3"}]});
        let mut single = vips.clone();
        single["control_plane_count"] = json!(1);
        let made = register(service, &single).await;
        assert_eq!(made["user_managed_networking"], true);
        assert_eq!(made["api_vips"][0]["ip"], "192.0.2.2");
        service.patch(&path(&made), &json!({"name": "renamed"})).await.expect(201);
        let other = json!({"api_vips": [{"ip": "192.0.2.4"}], "ingress_vips": [{"ip": "192.0.2.3"}]});
        let reason = service.patch(&path(&made), &other).await.refused(400);
        assert_eq!(reason, "API VIP cannot be set with User Managed Networking");
        let asked =
            json!({"control_plane_count": 1, "user_managed_networking": true, "api_vips": vips["api_vips"]});
        refused_on_create(service, vec![(asked, "API VIP cannot be set with User Managed Networking")]).await;
    });
}
