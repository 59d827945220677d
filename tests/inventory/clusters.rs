//! Clusters: creation, responses, and deletion.

use std::collections::BTreeSet;

use kindling::inventory::cluster::{ClusterRecord, ClusterStatus};
use kindling::inventory::store::{Change, Stored};
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::agent::{FakeAgent, create_infra_env, inventory_report};
use crate::service::{
    PULL_SECRET, TestService, on_each_database, on_each_database_with, send_request, with_status,
};

/// A cluster with default values, without times.
const FRESH: &str = r#"{
    "kind": "Cluster",
    "id": "<id>",
    "href": "/api/assisted-install/v2/clusters/<id>",
    "name": "demo",
    "status": "insufficient",
    "status_info": "Cluster is not ready for install",
    "user_name": "admin",
    "email_domain": "Unknown",
    "openshift_version": "4.18.3",
    "ocp_release_image": "quay.io/openshift-release-dev/ocp-release:4.18.3-x86_64",
    "cpu_architecture": "x86_64",
    "high_availability_mode": "Full",
    "control_plane_count": 3,
    "cluster_network_cidr": "10.128.0.0/14",
    "cluster_network_host_prefix": 23,
    "service_network_cidr": "172.30.0.0/16",
    "cluster_networks": [{"cluster_id": "<id>", "cidr": "10.128.0.0/14", "host_prefix": 23}],
    "service_networks": [{"cluster_id": "<id>", "cidr": "172.30.0.0/16"}],
    "machine_networks": [],
    "api_vips": [],
    "ingress_vips": [],
    "host_networks": [],
    "hosts": [],
    "platform": {"type": "baremetal"},
    "pull_secret_set": true,
    "vip_dhcp_allocation": false,
    "user_managed_networking": false,
    "schedulable_masters": false,
    "network_type": "OVNKubernetes",
    "hyperthreading": "all",
    "disk_encryption": {"enable_on": "none", "mode": "tpmv2"},
    "ignition_endpoint": {},
    "load_balancer": {"type": "cluster-managed"},
    "monitored_operators": [{
        "cluster_id": "<id>", "name": "console", "operator_type": "builtin", "timeout_seconds": 3600,
        "status_updated_at": "0001-01-01T00:00:00.000Z", "bundles": [], "source_bundles": []
    }],
    "operator_bundles": [],
    "progress": {},
    "last-installation-preparation": {"status": "not_started"},
    "validations_info": "{}",
    "image_info": {"created_at": "0001-01-01T00:00:00Z", "expires_at": "0001-01-01T00:00:00.000Z"},
    "controller_logs_collected_at": "0001-01-01T00:00:00.000Z",
    "controller_logs_started_at": "0001-01-01T00:00:00.000Z",
    "install_started_at": "0001-01-01T00:00:00.000Z",
    "install_completed_at": "0001-01-01T00:00:00.000Z",
    "deleted_at": null
}"#;

/// Returns the smallest valid body, with additional keys.
pub(crate) fn create_body(more: &Value) -> Value {
    let mut body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

pub(crate) async fn create_cluster(service: &TestService, more: &Value) -> Value {
    service.post("/v2/clusters", &create_body(more)).await.json_with_status(201)
}

pub(crate) fn cluster_path(cluster: &Value) -> String {
    format!("/v2/clusters/{}", cluster["id"].as_str().unwrap())
}

/// Removes the times, which depend on the test.
fn without_times(mut cluster: Value) -> Value {
    for key in ["created_at", "updated_at", "status_updated_at"] {
        let time = cluster.as_object_mut().unwrap().remove(key).unwrap();
        assert!(time.as_str().unwrap().starts_with("20"), "{key} {time}");
    }
    cluster
}

async fn events_of_cluster(service: &TestService, cluster: &Value) -> Vec<(String, String)> {
    let id = cluster["id"].as_str().unwrap().parse().unwrap();
    let query = kindling::inventory::event::EventQuery { cluster: Some(id), ..Default::default() };
    let page = service.inventory.records().store().events(&query).await.unwrap();
    page.events.into_iter().map(|event| (event.name, event.message)).collect()
}

/// Changes the status of a cluster to a value that no request can set.
async fn set_status(service: &TestService, cluster: &Value, status: ClusterStatus) {
    let id = cluster["id"].as_str().unwrap().parse().unwrap();
    let records = service.inventory.records();
    let moved = records.change(|_| async {
        let stored: Stored<ClusterRecord> = service.inventory.stored_cluster(id).await?;
        let mut change = Change::new();
        change.replace(&with_status(&stored.record, status), stored.generation)?;
        Ok((change, ()))
    });
    moved.await.unwrap();
}

#[test]
fn new_resource_matches_the_api_document() {
    on_each_database(async |service| {
        let cluster = create_cluster(service, &json!({})).await;
        assert_eq!(service.get(&cluster_path(&cluster)).await.json_with_status(200), cluster);
        assert_eq!(service.get("/v2/clusters").await.json_with_status(200), json!([cluster]));
        let id = cluster["id"].as_str().unwrap().to_owned();
        let expected: Value = serde_json::from_str(&FRESH.replace("<id>", &id)).unwrap();
        assert_eq!(without_times(cluster.clone()), expected);
        let events =
            [("cluster_registration_succeeded".to_owned(), "Successfully registered cluster".to_owned())];
        assert_eq!(events_of_cluster(service, &cluster).await, events);
    });
}

/// Returns a body with every value that a client can send, and the values that a response returns in another form.
fn all_values() -> (Value, Value) {
    let body = json!({
        "name": "all",
        "base_dns_domain": "example.com",
        "control_plane_count": 5,
        "high_availability_mode": "Full",
        "cluster_networks": [{"cidr": "10.0.0.0/14", "host_prefix": 22}, {"cidr": "fd10::/48", "host_prefix": 64}],
        "service_networks": [{"cidr": "172.16.0.0/16"}],
        "machine_networks": [{"cidr": "192.0.2.0/24"}],
        "api_vips": [{"ip": "192.0.2.2", "verification": "succeeded"}],
        "ingress_vips": [{"ip": "192.0.2.3"}, {"ip": ""}],
        "network_type": "Calico",
        "platform": {"type": "vsphere"},
        "hyperthreading": "masters,workers",
        "schedulable_masters": true,
        "disk_encryption": {"enable_on": "all", "mode": "tang", "tang_servers": r#"[{"url":"http://t","thumbprint":"x"}]"#},
        "ignition_endpoint": {"url": "https://ign.example.com:22624/config", "ca_certificate": CERTIFICATE},
        "load_balancer": {"type": "user-managed"},
        "olm_operators": [{"name": "lvm", "properties": "{}"}],
        "operator_bundles": [{"id": "virtualization", "optional_operators": ["cnv"]}],
        "tags": "one,two words",
        "ssh_public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEj2tQSxYwQIcXsGZ6aHcKfoWiVBqVp3AmEFwqeFsTOO me\n",
        "http_proxy": "http://10.0.0.1:3128",
        "https_proxy": "http://10.0.0.1:3129",
        "no_proxy": ".example.com,10.0.0.0/8",
        "additional_ntp_source": "ntp.example.com",
    });
    let returned_forms = json!({
        "cluster_network_cidr": "10.0.0.0/14",
        "cluster_network_host_prefix": 22,
        "service_network_cidr": "172.16.0.0/16",
        "machine_network_cidr": "192.0.2.0/24",
        "ssh_public_key": body["ssh_public_key"].as_str().unwrap().trim(),
        "ingress_vips": [{"ip": "192.0.2.3"}],
    });
    (body, returned_forms)
}

/// A certificate as PEM in base64, which the service does not parse.
const CERTIFICATE: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=";

/// Asserts that `cluster` contains all values of `body`. `otherwise` contains the values that the service returns in
/// another form.
#[track_caller]
fn assert_shows(cluster: &Value, body: &Value, otherwise: &Value) {
    fn without_ids(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(without_ids).collect(),
            Value::Object(map) => {
                let rest = map.iter().filter(|(key, _)| *key != "cluster_id");
                rest.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>().into()
            }
            other => other.clone(),
        }
    }
    let mut expected = body.as_object().unwrap().clone();
    expected.extend(otherwise.as_object().unwrap().clone());
    for (key, value) in expected.into_iter().filter(|(key, _)| key != "olm_operators") {
        assert_eq!(without_ids(&cluster[&key]), value, "{key}");
    }
    if let Some(operators) = body["olm_operators"].as_array() {
        let name = |operator: &Value| (operator["name"].clone(), operator["properties"].clone());
        let (built_in, requested) = cluster["monitored_operators"].as_array().unwrap().split_at(1);
        assert_eq!(built_in[0]["name"], "console");
        let actual: Vec<_> = requested.iter().map(name).collect();
        assert_eq!(actual, operators.iter().map(name).collect::<Vec<_>>());
    }
}

/// Returns the names of a cluster's operators.
fn operator_names(cluster: &Value) -> Vec<&str> {
    let operators = cluster["monitored_operators"].as_array().unwrap();
    operators.iter().map(|operator| operator["name"].as_str().unwrap()).collect()
}

#[test]
fn every_sent_value_is_returned() {
    on_each_database(async |service| {
        let (body, returned_forms) = all_values();
        let cluster = create_cluster(service, &body).await;
        assert_shows(&cluster, &body, &returned_forms);
        assert_eq!(cluster["api_vips"][0]["cluster_id"], cluster["id"]);
        assert_eq!(service.get(&cluster_path(&cluster)).await.json_with_status(200), cluster);

        let plain = create_cluster(service, &json!({})).await;
        let mut body = body;
        body.as_object_mut().unwrap().shift_remove("high_availability_mode");
        body["api_vip_dns_name"] = json!("api.other.example.com");
        let changed = service.patch(&cluster_path(&plain), &body).await.json_with_status(201);
        assert_shows(&changed, &body, &returned_forms);
        assert_eq!(service.get(&cluster_path(&plain)).await.json_with_status(200), changed);
    });
}

#[test]
fn get_response_can_be_sent_back() {
    on_each_database(async |service| {
        let (body, _) = all_values();
        let imported = json!({"name": "there", "api_vip_dnsname": "api.there.example.com",
            "openshift_cluster_id": "3f3a0a3c-60b4-4c4b-8a3c-0d7c1b1d3c10"});
        for cluster in [
            create_cluster(service, &body).await,
            create_cluster(service, &json!({"high_availability_mode": "None"})).await,
            service.post("/v2/clusters/import", &imported).await.json_with_status(201),
        ] {
            let sent_back = service.patch(&cluster_path(&cluster), &cluster).await.json_with_status(201);
            assert_eq!(sent_back, cluster);
        }
    });
}

#[test]
fn immutable_values_accept_only_their_current_value() {
    on_each_database(async |service| {
        let cluster = create_cluster(service, &json!({})).await;
        for (key, value) in [
            ("openshift_version", json!("4.14.71")),
            ("ocp_release_image", json!("elsewhere")),
            ("cpu_architecture", json!("arm64")),
            ("high_availability_mode", json!("None")),
            ("id", json!("3f3a0a3c-60b4-4c4b-8a3c-0d7c1b1d3c10")),
        ] {
            service.patch(&cluster_path(&cluster), &json!({key: cluster[key]})).await.json_with_status(201);
            let reason =
                service.patch(&cluster_path(&cluster), &json!({key: value})).await.refusal_reason(400);
            assert_eq!(reason, format!("{key} in body cannot be changed"));
        }
        assert_eq!(service.get(&cluster_path(&cluster)).await.json_with_status(200), cluster);
    });
}

#[test]
fn null_and_absent_keys_change_nothing() {
    on_each_database(async |service| {
        let (body, _) = all_values();
        let cluster = create_cluster(service, &body).await;
        let keys = body.as_object().unwrap().keys().map(|key| (key.clone(), Value::Null));
        let nothing: Value = keys.collect::<Map<_, _>>().into();
        for body in [json!({}), nothing] {
            assert_eq!(service.patch(&cluster_path(&cluster), &body).await.json_with_status(201), cluster);
        }
    });
}

#[test]
fn empty_values_remove_settings() {
    on_each_database(async |service| {
        let (body, _) = all_values();
        let cluster = create_cluster(service, &body).await;
        let keys = [
            "base_dns_domain",
            "tags",
            "ssh_public_key",
            "http_proxy",
            "https_proxy",
            "no_proxy",
            "additional_ntp_source",
        ];
        let mut empty: Map<_, _> = keys.iter().map(|key| ((*key).to_owned(), json!(""))).collect();
        for list in ["api_vips", "ingress_vips", "machine_networks", "olm_operators", "operator_bundles"] {
            empty.insert(list.to_owned(), json!([]));
        }
        empty.insert("ignition_endpoint".to_owned(), json!({"ca_certificate": ""}));
        empty.insert("pull_secret".to_owned(), json!(""));
        let changed = service.patch(&cluster_path(&cluster), &empty.into()).await.json_with_status(201);
        for key in keys.iter().chain(&["machine_network_cidr"]) {
            assert_eq!(changed.get(key), None, "{key}");
        }
        assert_eq!(changed["api_vips"], json!([]));
        assert_eq!(operator_names(&changed), ["console"]);
        assert_eq!(changed["ignition_endpoint"], json!({"url": "https://ign.example.com:22624/config"}));
        assert_eq!(changed["pull_secret_set"], true);
    });
}

#[test]
fn defaults_follow_version_architecture_and_settings() {
    let settings = |settings: &mut kindling::inventory::Settings| {
        "ntp.example.com".clone_into(&mut settings.default_ntp_source);
        "10.4.0.0/14".clone_into(&mut settings.cluster_networks.cluster_cidr);
    };
    on_each_database_with(settings, async |service| {
        for (sent, expected) in [
            (
                json!({}),
                json!({"additional_ntp_source": "ntp.example.com", "cluster_network_cidr": "10.4.0.0/14"}),
            ),
            (
                json!({"openshift_version": "4.14"}),
                json!({"openshift_version": "4.14.71", "control_plane_count": 3}),
            ),
            (
                json!({"ntp_sources": "192.0.2.1"}),
                json!({"ntp_sources": "192.0.2.1", "additional_ntp_source": null}),
            ),
            (json!({"additional_ntp_source": ""}), json!({"additional_ntp_source": null})),
            (
                json!({"high_availability_mode": "None"}),
                json!({"control_plane_count": 1, "platform": {"type": "none"}, "user_managed_networking": true}),
            ),
            (json!({"control_plane_count": 1}), json!({"high_availability_mode": "None"})),
            (
                json!({"cpu_architecture": "s390x"}),
                json!({"platform": {"type": "none"}, "user_managed_networking": true, "cpu_architecture": "s390x"}),
            ),
            (
                json!({"cpu_architecture": "aarch64", "openshift_version": "4.18-multi"}),
                json!({"cpu_architecture": "multi", "openshift_version": "4.18.3-multi"}),
            ),
            (
                json!({"openshift_version": "any", "cpu_architecture": "multi",
                    "ocp_release_image": "quay.io/openshift-release-dev/ocp-release:4.18.3-multi"}),
                json!({"cpu_architecture": "multi", "openshift_version": "4.18.3-multi"}),
            ),
            (
                json!({"cluster_network_cidr": "10.8.0.0/16", "cluster_network_host_prefix": 24,
                    "service_network_cidr": "172.31.0.0/16"}),
                json!({"cluster_network_cidr": "10.8.0.0/16", "cluster_network_host_prefix": 24,
                    "service_network_cidr": "172.31.0.0/16"}),
            ),
            (json!({"user_managed_networking": true}), json!({"platform": {"type": "none"}})),
            (
                json!({"platform": {"type": "none"}, "name": "a.b"}),
                json!({"user_managed_networking": true, "name": "a.b"}),
            ),
        ] {
            let cluster = create_cluster(service, &sent).await;
            for (key, value) in expected.as_object().unwrap() {
                assert_eq!(&cluster[key], value, "{key} of {sent}");
            }
        }
    });
}

#[test]
fn deprecated_single_network_sets_the_first_list_entry() {
    on_each_database(async |service| {
        let cluster = create_cluster(service, &json!({})).await;
        let change = json!({"cluster_network_cidr": "10.8.0.0/14", "machine_network_cidr": "192.0.2.0/24"});
        let changed = service.patch(&cluster_path(&cluster), &change).await.json_with_status(201);
        let id = &cluster["id"];
        assert_eq!(
            changed["cluster_networks"],
            json!([{"cluster_id": id, "cidr": "10.8.0.0/14", "host_prefix": 23}])
        );
        assert_eq!(changed["machine_networks"], json!([{"cluster_id": id, "cidr": "192.0.2.0/24"}]));
    });
}

#[test]
fn vips_are_removed_when_others_provide_them() {
    on_each_database(async |service| {
        let vips = json!({"api_vips": [{"ip": "192.0.2.2"}], "ingress_vips": [{"ip": "192.0.2.3"}]});
        for change in [
            json!({"user_managed_networking": true}),
            json!({"vip_dhcp_allocation": true}),
            json!({"platform": {"type": "none"}}),
        ] {
            let cluster = create_cluster(service, &vips).await;
            let changed = service.patch(&cluster_path(&cluster), &change).await.json_with_status(201);
            assert_eq!(
                (&changed["api_vips"], &changed["ingress_vips"]),
                (&json!([]), &json!([])),
                "{change}"
            );
        }
    });
}

#[test]
fn defaults_are_listed() {
    on_each_database(async |service| {
        let defaults = service.get("/v2/clusters/default-config").await.json_with_status(200);
        let pods = json!({"cidr": "10.128.0.0/14", "host_prefix": 23});
        assert_eq!(
            defaults,
            json!({
                "cluster_network_cidr": "10.128.0.0/14",
                "cluster_network_host_prefix": 23,
                "service_network_cidr": "172.30.0.0/16",
                "inactive_deletion_hours": 480,
                "ntp_source": "",
                "cluster_networks_ipv4": [pods],
                "cluster_networks_dualstack": [pods, {"cidr": "fd01::/48", "host_prefix": 64}],
                "service_networks_ipv4": [{"cidr": "172.30.0.0/16"}],
                "service_networks_dualstack": [{"cidr": "172.30.0.0/16"}, {"cidr": "fd02::/112"}],
                "forbidden_hostnames": ["localhost", "localhost.localdomain", "localhost4", "localhost4.localdomain4",
                    "localhost6", "localhost6.localdomain6"],
            })
        );
    });
}

#[test]
fn existing_clusters_are_imported() {
    on_each_database(async |service| {
        let id = "3f3a0a3c-60b4-4c4b-8a3c-0d7c1b1d3c10";
        let import =
            json!({"name": "given", "api_vip_dnsname": "api.there.example.com", "openshift_cluster_id": id});
        let cluster = service.post("/v2/clusters/import", &import).await.json_with_status(201);
        for (key, value) in [
            ("kind", json!("AddHostsCluster")),
            ("status", json!("adding-hosts")),
            ("status_info", json!("cluster is adding hosts to existing OCP cluster")),
            ("imported", json!(true)),
            ("name", json!("there")),
            ("base_dns_domain", json!("example.com")),
            ("api_vip_dns_name", json!("api.there.example.com")),
            ("openshift_cluster_id", json!(id)),
            ("platform", json!({"type": "baremetal"})),
            ("cluster_networks", json!([])),
            ("load_balancer", json!({})),
            ("disk_encryption", json!({})),
        ] {
            assert_eq!(cluster[key], value, "{key}");
        }
        for absent in [
            "openshift_version",
            "cpu_architecture",
            "control_plane_count",
            "high_availability_mode",
            "pull_secret_set",
        ] {
            assert_eq!(cluster.get(absent), None, "{absent}");
        }
        let import = json!({"name": "Given", "api_vip_dnsname": "192.0.2.1", "openshift_cluster_id": id, "openshift_version": "4.14.1"});
        let other = service.post("/v2/clusters/import", &import).await.json_with_status(201);
        assert_eq!((&other["name"], &other["openshift_version"]), (&json!("Given"), &json!("4.14.1")));
        // An import keeps a name that this service would refuse.
        let changed =
            service.patch(&cluster_path(&other), &json!({"tags": "old"})).await.json_with_status(201);
        assert_eq!((&changed["name"], &changed["tags"]), (&json!("Given"), &json!("old")));
        let listed =
            service.get(&format!("/v2/clusters?openshift_cluster_id={id}")).await.json_with_status(200);
        assert_eq!(listed.as_array().unwrap().len(), 2);
        let import = json!({"name": "x", "api_vip_dnsname": "y", "openshift_cluster_id": "z"});
        let reason = service.post("/v2/clusters/import", &import).await.refusal_reason(400);
        assert_eq!(reason, "openshift_cluster_id in body must be of type uuid: \"z\"");
    });
}

#[test]
fn disconnected_clusters_are_read_only() {
    on_each_database(async |service| {
        let body = json!({"name": "far", "openshift_version": "4.19.1"});
        let cluster = service.post("/v2/clusters/disconnected", &body).await.json_with_status(201);
        assert_eq!(cluster["kind"], "DisconnectedCluster");
        assert_eq!(cluster["status"], "unmonitored");
        assert_eq!(cluster["status_info"], "Cluster created for offline installation");
        assert_eq!(cluster["openshift_version"], "4.19.1");
        assert_eq!(cluster["platform"], json!({}));
        let reason = service.patch(&cluster_path(&cluster), &json!({"tags": "x"})).await.refusal_reason(409);
        assert!(reason.ends_with("is in unmonitored state, it can be updated only in one of [insufficient ready pending-for-input adding-hosts]"), "{reason}");
        for (key, reason) in [
            ("name", "name in body should be at least 1 chars long"),
            ("openshift_version", "openshift_version in body should be at least 1 chars long"),
        ] {
            let mut body = body.clone();
            body[key] = json!("");
            assert_eq!(service.post("/v2/clusters/disconnected", &body).await.refusal_reason(400), reason);
        }
        service.delete(&cluster_path(&cluster)).await.json_with_status(204);
    });
}

#[test]
fn cluster_is_editable_only_in_some_states() {
    on_each_database(async |service| {
        let cluster = create_cluster(service, &json!({})).await;
        for status in [
            ClusterStatus::Ready,
            ClusterStatus::PendingForInput,
            ClusterStatus::AddingHosts,
            ClusterStatus::Insufficient,
        ] {
            set_status(service, &cluster, status).await;
            service.patch(&cluster_path(&cluster), &json!({"tags": "x"})).await.json_with_status(201);
        }
        for status in [
            ClusterStatus::Installing,
            ClusterStatus::Installed,
            ClusterStatus::Error,
            ClusterStatus::Cancelled,
        ] {
            set_status(service, &cluster, status).await;
            service.patch(&cluster_path(&cluster), &json!({"tags": "y"})).await.refusal_reason(409);
        }
        assert_eq!(service.get(&cluster_path(&cluster)).await.json_with_status(200)["tags"], "x");
    });
}

#[test]
fn deleted_cluster_is_listed_on_request() {
    on_each_database(async |service| {
        let (cluster, other) =
            (create_cluster(service, &json!({})).await, create_cluster(service, &json!({})).await);
        service.delete(&cluster_path(&cluster)).await.json_with_status(204);
        for method in [Method::GET, Method::DELETE, Method::PATCH] {
            let request = service.request(method, &cluster_path(&cluster)).json(&json!({}));
            assert_eq!(send_request(request).await.refusal_reason(404), "record not found");
        }
        assert_eq!(service.get("/v2/clusters").await.json_with_status(200), json!([other]));
        let asking = |path: &str, value: &str| {
            service.request(Method::GET, path).header("get_unregistered_clusters", value)
        };
        let deleted = send_request(asking(&cluster_path(&cluster), "true")).await.json_with_status(200);
        assert!(deleted["deleted_at"].as_str().unwrap().starts_with("20"), "{deleted}");
        assert_eq!((&deleted["cluster_networks"], &deleted["name"]), (&json!([]), &json!("demo")));
        let listed = send_request(asking("/v2/clusters", "true")).await.json_with_status(200);
        assert_eq!(listed, json!([deleted, other]));
        send_request(asking(&cluster_path(&cluster), "perhaps")).await.refusal_reason(404);
        let events = events_of_cluster(service, &cluster).await;
        assert_eq!(events.last().unwrap().0, "cluster_deregistered");
    });
}

/// Registers a host in an infra-env of a cluster.
async fn host_in_cluster<'a>(service: &'a TestService, cluster: &Value) -> FakeAgent<'a> {
    let infra_env = create_infra_env(service, &json!({"cluster_id": cluster["id"]})).await;
    let agent = FakeAgent::new(service, &infra_env);
    agent.register().await.json_with_status(201);
    agent.reply_to_step("inventory", &inventory_report("node-1")).await.json_with_status(204);
    agent
}

#[test]
fn deleted_hosts_are_returned_on_request() {
    on_each_database(async |service| {
        let (deleted, live) =
            (create_cluster(service, &json!({})).await, create_cluster(service, &json!({})).await);
        let of_deleted = host_in_cluster(service, &deleted).await;
        let (of_live, deleted_agent) =
            (host_in_cluster(service, &live).await, host_in_cluster(service, &live).await);
        service.delete(&cluster_path(&deleted)).await.json_with_status(204);
        service.delete(&deleted_agent.path()).await.json_with_status(204);
        let ask = async |path: &str| {
            let request = service.request(Method::GET, path).header("get_unregistered_clusters", "true");
            send_request(request).await.json_with_status(200)
        };
        let hosts = |cluster: &Value| -> Vec<(String, bool)> {
            let host =
                |host: &Value| (host["id"].as_str().unwrap().to_owned(), !host["deleted_at"].is_null());
            cluster["hosts"].as_array().unwrap().iter().map(host).collect()
        };
        let expected = [
            vec![(of_deleted.id.clone(), true)],
            vec![(of_live.id.clone(), false), (deleted_agent.id.clone(), true)],
        ];
        let listed = ask("/v2/clusters?with_hosts=true").await;
        assert_eq!([hosts(&listed[0]), hosts(&listed[1])], expected);
        assert_eq!(
            [hosts(&ask(&cluster_path(&deleted)).await), hosts(&ask(&cluster_path(&live)).await)],
            expected
        );
        // The counts include the deleted hosts, like the Assisted Service.
        for list in [&listed, &ask("/v2/clusters").await] {
            let counts = [&list[0], &list[1]].map(|cluster| cluster["total_host_count"].clone());
            assert_eq!(counts, [json!(1), json!(2)]);
        }
        let plain = service.get("/v2/clusters?with_hosts=true").await.json_with_status(200);
        assert_eq!(
            (plain.as_array().unwrap().len(), hosts(&plain[0])),
            (1, vec![(of_live.id.clone(), false)])
        );
        assert_eq!(plain[0]["total_host_count"], 1);
    });
}

#[test]
fn built_in_operators_depend_on_kind_and_setting() {
    let check = |settings: &mut kindling::inventory::Settings| settings.check_cluster_version = true;
    on_each_database_with(check, async |service| {
        let requested = json!({"olm_operators": [{"name": "lvm"}, {"name": "console"}]});
        let cluster = create_cluster(service, &requested).await;
        assert_eq!(operator_names(&cluster), ["console", "cvo", "lvm"]);
        assert_eq!(cluster["monitored_operators"][1]["timeout_seconds"], 3600);
        assert_eq!(cluster["monitored_operators"][2].get("timeout_seconds"), None);
        let id = "3f3a0a3c-60b4-4c4b-8a3c-0d7c1b1d3c10";
        let import =
            json!({"name": "given", "api_vip_dnsname": "api.there.example.com", "openshift_cluster_id": id});
        let imported = service.post("/v2/clusters/import", &import).await.json_with_status(201);
        assert_eq!(imported["monitored_operators"], json!([]));
        service.delete(&cluster_path(&cluster)).await.json_with_status(204);
        let request =
            service.request(Method::GET, &cluster_path(&cluster)).header("get_unregistered_clusters", "true");
        let deleted = send_request(request).await.json_with_status(200);
        assert_eq!(deleted["monitored_operators"], json!([]));
    });
}

#[test]
fn installing_cluster_cannot_be_deleted() {
    on_each_database(async |service| {
        let cluster = create_cluster(service, &json!({})).await;
        set_status(service, &cluster, ClusterStatus::Installing).await;
        let reason = service.delete(&cluster_path(&cluster)).await.refusal_reason(409);
        assert!(reason.ends_with("can not be removed while being installed"), "{reason}");
        let (name, message) = events_of_cluster(service, &cluster).await.pop().unwrap();
        assert_eq!(name, "cluster_deregister_failed");
        assert_eq!(message, format!("Failed to deregister cluster. Error: {reason}"));
        service.get(&cluster_path(&cluster)).await.json_with_status(200);
    });
}

#[test]
fn lists_are_filtered() {
    on_each_database(async |service| {
        assert_eq!(service.get("/v2/clusters").await.json_with_status(200), json!([]));
        let cluster = create_cluster(service, &json!({})).await;
        for (query, expected) in [
            ("", 1),
            ("?owner=admin", 1),
            ("?owner=nobody", 0),
            ("?with_hosts=true", 1),
            ("?openshift_cluster_id=3f3a0a3c-60b4-4c4b-8a3c-0d7c1b1d3c10", 0),
            ("?ams_subscription_ids=3f3a0a3c-60b4-4c4b-8a3c-0d7c1b1d3c10", 0),
        ] {
            let listed = service.get(&format!("/v2/clusters{query}")).await.json_with_status(200);
            assert_eq!(listed.as_array().unwrap().len(), expected, "{query}");
        }
        let reason = service.get("/v2/clusters?openshift_cluster_id=1").await.refusal_reason(400);
        assert_eq!(reason, "openshift_cluster_id in query must be of type uuid: \"1\"");
        let excluded = service
            .get(&format!("{}?exclude-hosts=true", cluster_path(&cluster)))
            .await
            .json_with_status(200);
        assert_eq!(excluded["hosts"], json!([]));
    });
}

#[test]
fn unknown_and_invalid_ids_have_different_errors() {
    on_each_database(async |service| {
        let unknown = "/v2/clusters/3f3a0a3c-60b4-4c4b-8a3c-0d7c1b1d3c10";
        assert_eq!(
            service.get(unknown).await.json_with_status(404),
            json!({"code": "404", "href": "", "id": 404, "kind": "Error", "reason": "record not found"})
        );
        assert_eq!(service.delete(unknown).await.refusal_reason(404), "record not found");
        assert_eq!(service.patch(unknown, &json!({})).await.refusal_reason(404), "record not found");
        let reason = service.get("/v2/clusters/1").await.refusal_reason(400);
        assert_eq!(reason, "cluster_id in path must be of type uuid: \"1\"");
    });
}

#[test]
fn proxy_change_is_an_event() {
    on_each_database(async |service| {
        let cluster = create_cluster(service, &json!({})).await;
        for http in ["http://10.0.0.1:3128", "http://10.0.0.1:3128", ""] {
            service.patch(&cluster_path(&cluster), &json!({"http_proxy": http})).await.json_with_status(201);
        }
        let names = events_of_cluster(service, &cluster).await.into_iter().map(|(name, _)| name);
        // The first change also causes the first assessment of the cluster.
        let names: Vec<_> = names.filter(|name| name != "cluster_status_updated").collect();
        assert_eq!(
            names,
            ["cluster_registration_succeeded", "proxy_settings_changed", "proxy_settings_changed"]
        );
    });
}

#[test]
fn pull_secret_is_stored_and_never_returned() {
    on_each_database(async |service| {
        let response = service.post("/v2/clusters", &create_body(&json!({}))).await;
        assert!(!response.text.contains("dXNlcjpwYXNz"), "{}", response.text);
        let cluster = response.json_with_status(201);
        let id = cluster["id"].as_str().unwrap().parse().unwrap();
        let stored = service.inventory.stored_cluster(id).await.unwrap().record;
        assert_eq!(stored.spec.pull_secret.reveal(), PULL_SECRET);
        assert!(!format!("{stored:?}").contains("dXNlcjpwYXNz"));
        let other = r#"{"auths":{"quay.io":{"auth":"b3RoZXI6cGFzcw=="}}}"#;
        service
            .patch(&cluster_path(&cluster), &json!({"pull_secret": format!(" {other}\n")}))
            .await
            .json_with_status(201);
        let stored = service.inventory.stored_cluster(id).await.unwrap().record;
        assert_eq!(stored.spec.pull_secret.reveal(), other);
    });
}

#[test]
fn concurrent_changes_lose_nothing() {
    on_each_database(async |service| {
        let cluster = create_cluster(service, &json!({})).await;
        let changes = [
            json!({"name": "other"}),
            json!({"tags": "one"}),
            json!({"base_dns_domain": "example.com"}),
            json!({"http_proxy": "http://10.0.0.1:3128"}),
            json!({"no_proxy": "*"}),
            json!({"additional_ntp_source": "ntp.example.com"}),
            json!({"schedulable_masters": true}),
            json!({"hyperthreading": "none"}),
            json!({"network_type": "Cilium"}),
            json!({"api_vip_dns_name": "api.x.example.com"}),
            json!({"control_plane_count": 4}),
            json!({"machine_networks": [{"cidr": "192.0.2.0/24"}]}),
        ];
        let place = cluster_path(&cluster);
        let running = changes.iter().map(|change| async {
            service.patch(&place, change).await.json_with_status(201);
        });
        futures_util::future::join_all(running).await;
        let changed = service.get(&place).await.json_with_status(200);
        for change in &changes {
            assert_shows(&changed, change, &json!({}));
        }
    });
}

#[test]
fn api_document_names_every_returned_key() {
    on_each_database(async |service| {
        let document = serde_json::to_value(kindling::http::openapi()).unwrap();
        let described = document["components"]["schemas"]["cluster"]["properties"].as_object().unwrap();
        let (body, _) = all_values();
        let returned_cluster = create_cluster(service, &body).await;
        let unknown: BTreeSet<_> = returned_cluster
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| !described.contains_key(*key))
            .collect();
        assert_eq!(unknown, BTreeSet::new());
    });
}

#[test]
fn hosts_are_returned_in_full_listed_or_counted() {
    on_each_database(async |service| {
        let cluster = create_cluster(service, &json!({})).await;
        let agents = [
            FakeAgent::register_with_report(service, "node-1").await,
            FakeAgent::register_with_report(service, "node-2").await,
        ];
        let mut ids: Vec<_> = agents.iter().map(|agent| agent.id.clone()).collect();
        ids.sort();
        for agent in &agents {
            let bind = format!("{}/actions/bind", agent.path());
            service.post(&bind, &json!({"cluster_id": cluster["id"]})).await.json_with_status(200);
            agent.register().await.json_with_status(201);
            agent.reply_to_step("inventory", &inventory_report("node")).await.json_with_status(204);
        }
        let full = service.get(&cluster_path(&cluster)).await.json_with_status(200);
        assert_eq!(full["host_networks"], json!([{"cidr": "192.168.1.0/24", "host_ids": ids}]));
        assert_eq!((&full["total_host_count"], &full["enabled_host_count"]), (&json!(2), &json!(2)));
        assert!(full["hosts"][0]["progress_stages"].is_array(), "{}", full["hosts"][0]);
        let patched = service.patch(&cluster_path(&cluster), &full).await.json_with_status(201);
        assert_eq!(patched["hosts"].as_array().unwrap().len(), 2);

        let counted = service
            .get(&format!("{}?exclude-hosts=true", cluster_path(&cluster)))
            .await
            .json_with_status(200);
        assert_eq!((&counted["hosts"], &counted["total_host_count"]), (&json!([]), &json!(2)));
        let listed = service.get("/v2/clusters").await.json_with_status(200);
        assert_eq!((&listed[0]["hosts"], &listed[0]["total_host_count"]), (&json!([]), &json!(2)));
        let listed = service.get("/v2/clusters?with_hosts=true").await.json_with_status(200);
        assert_eq!(listed[0]["hosts"].as_array().unwrap().len(), 2);
        assert_eq!(listed[0]["hosts"][0]["progress_stages"], Value::Null);
    });
}

#[test]
fn interface_without_addresses_hides_no_network() {
    on_each_database(async |service| {
        let cluster = create_cluster(service, &json!({})).await;
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let bind = format!("{}/actions/bind", agent.path());
        service.post(&bind, &json!({"cluster_id": cluster["id"]})).await.json_with_status(200);
        agent.register().await.json_with_status(201);
        let mut machine = inventory_report("node-1");
        let cards = machine["interfaces"].as_array_mut().unwrap();
        cards[0].as_object_mut().unwrap().remove("ipv6_addresses");
        cards.push(json!({"name": "eth1", "type": "physical", "mac_address": "52:54:00:00:00:02"}));
        agent.reply_to_step("inventory", &machine).await.json_with_status(204);
        let response = service.get(&cluster_path(&cluster)).await.json_with_status(200);
        assert_eq!(response["host_networks"], json!([{"cidr": "192.168.1.0/24", "host_ids": [agent.id]}]));
        agent.reply_to_step("inventory", &json!({"hostname": "node-1"})).await.json_with_status(204);
        let response = service.get(&cluster_path(&cluster)).await.json_with_status(200);
        assert_eq!(response["host_networks"], json!([]));
    });
}

#[test]
fn deleted_cluster_keeps_no_secrets() {
    on_each_database(async |service| {
        let proxies =
            json!({"http_proxy": "http://me:hidden@10.0.0.1:3128", "https_proxy": "http://10.0.0.1:3128"});
        let cluster = create_cluster(service, &proxies).await;
        service.delete(&cluster_path(&cluster)).await.json_with_status(204);
        let id = cluster["id"].as_str().unwrap().parse().unwrap();
        let stored: Option<Stored<ClusterRecord>> = service.inventory.records().find(None, id).await.unwrap();
        let document = serde_json::to_string(&stored.unwrap().record).unwrap();
        for secret in ["dXNlcjpwYXNz", "hidden"] {
            assert!(!document.contains(secret), "{document}");
        }
        let request =
            service.request(Method::GET, &cluster_path(&cluster)).header("get_unregistered_clusters", "true");
        let deleted = send_request(request).await.json_with_status(200);
        assert_eq!((&deleted["name"], &deleted["https_proxy"]), (&cluster["name"], &cluster["https_proxy"]));
        assert_eq!(deleted["http_proxy"], "http://*****@10.0.0.1:3128");
    });
}
