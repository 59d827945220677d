//! Clusters: what is made of a body, what is shown, and how they end.

use std::collections::BTreeSet;

use kindling::inventory::cluster::{ClusterRecord, ClusterStatus};
use kindling::inventory::store::{Change, Stored};
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::agent::{Agent, machine};
use crate::service::{PULL_SECRET, Service, on_each_database, on_each_database_with, send};

/// A cluster of which nothing was said, without the times of the test.
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
    "monitored_operators": [],
    "operator_bundles": [],
    "progress": {},
    "last-installation-preparation": {"status": "not_started"},
    "image_info": {"created_at": "0001-01-01T00:00:00Z", "expires_at": "0001-01-01T00:00:00.000Z"},
    "controller_logs_collected_at": "0001-01-01T00:00:00.000Z",
    "controller_logs_started_at": "0001-01-01T00:00:00.000Z",
    "install_started_at": "0001-01-01T00:00:00.000Z",
    "install_completed_at": "0001-01-01T00:00:00.000Z",
    "deleted_at": null
}"#;

/// The smallest body, with more in it.
pub(crate) fn body(more: &Value) -> Value {
    let mut body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

pub(crate) async fn register(service: &Service, more: &Value) -> Value {
    service.post("/v2/clusters", &body(more)).await.expect(201)
}

pub(crate) fn path(cluster: &Value) -> String {
    format!("/v2/clusters/{}", cluster["id"].as_str().unwrap())
}

/// Takes out the times that are those of the test.
fn without_times(mut cluster: Value) -> Value {
    for key in ["created_at", "updated_at", "status_updated_at"] {
        let time = cluster.as_object_mut().unwrap().remove(key).unwrap();
        assert!(time.as_str().unwrap().starts_with("20"), "{key} {time}");
    }
    cluster
}

async fn events(service: &Service, cluster: &Value) -> Vec<(String, String)> {
    let id = cluster["id"].as_str().unwrap().parse().unwrap();
    let query = kindling::inventory::event::EventQuery { cluster: Some(id), ..Default::default() };
    let page = service.inventory.records().store().events(&query).await.unwrap();
    page.events.into_iter().map(|event| (event.name, event.message)).collect()
}

/// Puts a cluster into a state that no request brings it to.
async fn move_to(service: &Service, cluster: &Value, status: ClusterStatus) {
    let id = cluster["id"].as_str().unwrap().parse().unwrap();
    let records = service.inventory.records();
    let moved = records.change(|| async {
        let stored: Stored<ClusterRecord> = service.inventory.stored_cluster(id).await?;
        let mut change = Change::new();
        change.replace(&ClusterRecord { status, ..stored.record }, stored.generation);
        Ok((change, ()))
    });
    moved.await.unwrap();
}

#[test]
fn a_fresh_one_is_shown_as_clients_know_it() {
    on_each_database(async |service| {
        let made = register(service, &json!({})).await;
        assert_eq!(service.get(&path(&made)).await.expect(200), made);
        assert_eq!(service.get("/v2/clusters").await.expect(200), json!([made]));
        let id = made["id"].as_str().unwrap().to_owned();
        let expected: Value = serde_json::from_str(&FRESH.replace("<id>", &id)).unwrap();
        assert_eq!(without_times(made.clone()), expected);
        let told =
            [("cluster_registration_succeeded".to_owned(), "Successfully registered cluster".to_owned())];
        assert_eq!(events(service, &made).await, told);
    });
}

/// All that a client can say of a cluster, with how it is shown where that is otherwise.
fn everything() -> (Value, Value) {
    let sent = json!({
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
    let shown = json!({
        "cluster_network_cidr": "10.0.0.0/14",
        "cluster_network_host_prefix": 22,
        "service_network_cidr": "172.16.0.0/16",
        "machine_network_cidr": "192.0.2.0/24",
        "ssh_public_key": sent["ssh_public_key"].as_str().unwrap().trim(),
        "ingress_vips": [{"ip": "192.0.2.3", "verification": "unverified"}],
    });
    (sent, shown)
}

/// PEM in base64, of a certificate that nobody reads.
const CERTIFICATE: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=";

/// Checks that all that was sent is shown, whichever cluster it says that it is of.
#[track_caller]
fn assert_shows(shown: &Value, sent: &Value, otherwise: &Value) {
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
    let mut expected = sent.as_object().unwrap().clone();
    expected.extend(otherwise.as_object().unwrap().clone());
    for (key, value) in expected.into_iter().filter(|(key, _)| key != "olm_operators") {
        assert_eq!(without_ids(&shown[&key]), value, "{key}");
    }
    if let Some(operators) = sent["olm_operators"].as_array() {
        let name = |operator: &Value| (operator["name"].clone(), operator["properties"].clone());
        let found: Vec<_> = shown["monitored_operators"].as_array().unwrap().iter().map(name).collect();
        assert_eq!(found, operators.iter().map(name).collect::<Vec<_>>());
    }
}

#[test]
fn everything_that_was_sent_is_shown() {
    on_each_database(async |service| {
        let (sent, shown) = everything();
        let made = register(service, &sent).await;
        assert_shows(&made, &sent, &shown);
        assert_eq!(made["api_vips"][0]["cluster_id"], made["id"]);
        assert_eq!(service.get(&path(&made)).await.expect(200), made);

        let plain = register(service, &json!({})).await;
        let mut sent = sent;
        sent.as_object_mut().unwrap().shift_remove("high_availability_mode");
        sent["api_vip_dns_name"] = json!("api.other.example.com");
        let changed = service.patch(&path(&plain), &sent).await.expect(201);
        assert_shows(&changed, &sent, &shown);
        assert_eq!(service.get(&path(&plain)).await.expect(200), changed);
    });
}

#[test]
fn what_a_get_gave_may_be_sent_back() {
    on_each_database(async |service| {
        let (sent, _) = everything();
        let imported = json!({"name": "there", "api_vip_dnsname": "api.there.example.com",
            "openshift_cluster_id": "3f3a0a3c-60b4-4c4b-8a3c-0d7c1b1d3c10"});
        for made in [
            register(service, &sent).await,
            register(service, &json!({"high_availability_mode": "None"})).await,
            service.post("/v2/clusters/import", &imported).await.expect(201),
        ] {
            let sent_back = service.patch(&path(&made), &made).await.expect(201);
            assert_eq!(sent_back, made);
        }
    });
}

#[test]
fn what_cannot_change_may_only_be_said_again() {
    on_each_database(async |service| {
        let made = register(service, &json!({})).await;
        for (key, value) in [
            ("openshift_version", json!("4.14.71")),
            ("ocp_release_image", json!("elsewhere")),
            ("cpu_architecture", json!("arm64")),
            ("high_availability_mode", json!("None")),
            ("id", json!("3f3a0a3c-60b4-4c4b-8a3c-0d7c1b1d3c10")),
        ] {
            service.patch(&path(&made), &json!({key: made[key]})).await.expect(201);
            let reason = service.patch(&path(&made), &json!({key: value})).await.refused(400);
            assert_eq!(reason, format!("{key} in body cannot be changed"));
        }
        assert_eq!(service.get(&path(&made)).await.expect(200), made);
    });
}

#[test]
fn null_and_nothing_change_nothing() {
    on_each_database(async |service| {
        let (sent, _) = everything();
        let made = register(service, &sent).await;
        let keys = sent.as_object().unwrap().keys().map(|key| (key.clone(), Value::Null));
        let nothing: Value = keys.collect::<Map<_, _>>().into();
        for body in [json!({}), nothing] {
            assert_eq!(service.patch(&path(&made), &body).await.expect(201), made);
        }
    });
}

#[test]
fn what_is_empty_is_taken_away() {
    on_each_database(async |service| {
        let (sent, _) = everything();
        let made = register(service, &sent).await;
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
        let changed = service.patch(&path(&made), &empty.into()).await.expect(201);
        for key in keys.iter().chain(&["machine_network_cidr"]) {
            assert_eq!(changed.get(key), None, "{key}");
        }
        assert_eq!(changed["api_vips"], json!([]));
        assert_eq!(changed["monitored_operators"], json!([]));
        assert_eq!(changed["ignition_endpoint"], json!({"url": "https://ign.example.com:22624/config"}));
        assert_eq!(changed["pull_secret_set"], true);
    });
}

#[test]
fn defaults_follow_the_version_the_machines_and_the_settings() {
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
            let made = register(service, &sent).await;
            for (key, value) in expected.as_object().unwrap() {
                assert_eq!(&made[key], value, "{key} of {sent}");
            }
        }
    });
}

#[test]
fn single_networks_of_older_clients_are_the_first_of_the_list() {
    on_each_database(async |service| {
        let made = register(service, &json!({})).await;
        let change = json!({"cluster_network_cidr": "10.8.0.0/14", "machine_network_cidr": "192.0.2.0/24"});
        let changed = service.patch(&path(&made), &change).await.expect(201);
        let id = &made["id"];
        assert_eq!(
            changed["cluster_networks"],
            json!([{"cluster_id": id, "cidr": "10.8.0.0/14", "host_prefix": 23}])
        );
        assert_eq!(changed["machine_networks"], json!([{"cluster_id": id, "cidr": "192.0.2.0/24"}]));
    });
}

#[test]
fn addresses_go_when_others_give_them() {
    on_each_database(async |service| {
        let vips = json!({"api_vips": [{"ip": "192.0.2.2"}], "ingress_vips": [{"ip": "192.0.2.3"}]});
        for change in [
            json!({"user_managed_networking": true}),
            json!({"vip_dhcp_allocation": true}),
            json!({"platform": {"type": "none"}}),
        ] {
            let made = register(service, &vips).await;
            let changed = service.patch(&path(&made), &change).await.expect(201);
            assert_eq!(
                (&changed["api_vips"], &changed["ingress_vips"]),
                (&json!([]), &json!([])),
                "{change}"
            );
        }
    });
}

#[test]
fn defaults_are_told() {
    on_each_database(async |service| {
        let defaults = service.get("/v2/clusters/default-config").await.expect(200);
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
fn clusters_of_elsewhere_are_added() {
    on_each_database(async |service| {
        let id = "3f3a0a3c-60b4-4c4b-8a3c-0d7c1b1d3c10";
        let import =
            json!({"name": "given", "api_vip_dnsname": "api.there.example.com", "openshift_cluster_id": id});
        let made = service.post("/v2/clusters/import", &import).await.expect(201);
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
            assert_eq!(made[key], value, "{key}");
        }
        for absent in [
            "openshift_version",
            "cpu_architecture",
            "control_plane_count",
            "high_availability_mode",
            "pull_secret_set",
        ] {
            assert_eq!(made.get(absent), None, "{absent}");
        }
        let import = json!({"name": "Given", "api_vip_dnsname": "192.0.2.1", "openshift_cluster_id": id, "openshift_version": "4.14.1"});
        let other = service.post("/v2/clusters/import", &import).await.expect(201);
        assert_eq!((&other["name"], &other["openshift_version"]), (&json!("Given"), &json!("4.14.1")));
        // A name that this service would not give may stay.
        let changed = service.patch(&path(&other), &json!({"tags": "old"})).await.expect(201);
        assert_eq!((&changed["name"], &changed["tags"]), (&json!("Given"), &json!("old")));
        let listed = service.get(&format!("/v2/clusters?openshift_cluster_id={id}")).await.expect(200);
        assert_eq!(listed.as_array().unwrap().len(), 2);
        let import = json!({"name": "x", "api_vip_dnsname": "y", "openshift_cluster_id": "z"});
        let reason = service.post("/v2/clusters/import", &import).await.refused(400);
        assert_eq!(reason, "openshift_cluster_id in body must be of type uuid: \"z\"");
    });
}

#[test]
fn disconnected_clusters_are_only_known() {
    on_each_database(async |service| {
        let body = json!({"name": "far", "openshift_version": "4.19.1"});
        let made = service.post("/v2/clusters/disconnected", &body).await.expect(201);
        assert_eq!(made["kind"], "DisconnectedCluster");
        assert_eq!(made["status"], "unmonitored");
        assert_eq!(made["status_info"], "Cluster created for offline installation");
        assert_eq!(made["openshift_version"], "4.19.1");
        assert_eq!(made["platform"], json!({}));
        let reason = service.patch(&path(&made), &json!({"tags": "x"})).await.refused(409);
        assert!(reason.ends_with("is in unmonitored state, it can be updated only in one of [insufficient ready pending-for-input adding-hosts]"), "{reason}");
        for (key, reason) in [
            ("name", "name in body should be at least 1 chars long"),
            ("openshift_version", "openshift_version in body should be at least 1 chars long"),
        ] {
            let mut body = body.clone();
            body[key] = json!("");
            assert_eq!(service.post("/v2/clusters/disconnected", &body).await.refused(400), reason);
        }
        service.delete(&path(&made)).await.expect(204);
    });
}

#[test]
fn a_cluster_changes_in_some_states_only() {
    on_each_database(async |service| {
        let made = register(service, &json!({})).await;
        for status in [
            ClusterStatus::Ready,
            ClusterStatus::PendingForInput,
            ClusterStatus::AddingHosts,
            ClusterStatus::Insufficient,
        ] {
            move_to(service, &made, status).await;
            service.patch(&path(&made), &json!({"tags": "x"})).await.expect(201);
        }
        for status in [
            ClusterStatus::Installing,
            ClusterStatus::Installed,
            ClusterStatus::Error,
            ClusterStatus::Cancelled,
        ] {
            move_to(service, &made, status).await;
            service.patch(&path(&made), &json!({"tags": "y"})).await.refused(409);
        }
        assert_eq!(service.get(&path(&made)).await.expect(200)["tags"], "x");
    });
}

#[test]
fn a_deleted_one_is_seen_by_who_asks_for_it() {
    on_each_database(async |service| {
        let (made, other) = (register(service, &json!({})).await, register(service, &json!({})).await);
        service.delete(&path(&made)).await.expect(204);
        for method in [Method::GET, Method::DELETE, Method::PATCH] {
            let request = service.request(method, &path(&made)).json(&json!({}));
            assert_eq!(send(request).await.refused(404), "record not found");
        }
        assert_eq!(service.get("/v2/clusters").await.expect(200), json!([other]));
        let asking = |path: &str, value: &str| {
            service.request(Method::GET, path).header("get_unregistered_clusters", value)
        };
        let shown = send(asking(&path(&made), "true")).await.expect(200);
        assert!(shown["deleted_at"].as_str().unwrap().starts_with("20"), "{shown}");
        assert_eq!((&shown["cluster_networks"], &shown["name"]), (&json!([]), &json!("demo")));
        let listed = send(asking("/v2/clusters", "true")).await.expect(200);
        assert_eq!(listed, json!([shown, other]));
        send(asking(&path(&made), "perhaps")).await.refused(404);
        let told = events(service, &made).await;
        assert_eq!(told.last().unwrap().0, "cluster_deregistered");
    });
}

#[test]
fn one_that_is_being_installed_stays() {
    on_each_database(async |service| {
        let made = register(service, &json!({})).await;
        move_to(service, &made, ClusterStatus::Installing).await;
        let reason = service.delete(&path(&made)).await.refused(409);
        assert!(reason.ends_with("can not be removed while being installed"), "{reason}");
        let (name, message) = events(service, &made).await.pop().unwrap();
        assert_eq!(name, "cluster_deregister_failed");
        assert_eq!(message, format!("Failed to deregister cluster. Error: {reason}"));
        service.get(&path(&made)).await.expect(200);
    });
}

#[test]
fn lists_are_filtered() {
    on_each_database(async |service| {
        assert_eq!(service.get("/v2/clusters").await.expect(200), json!([]));
        let made = register(service, &json!({})).await;
        for (query, expected) in [
            ("", 1),
            ("?owner=admin", 1),
            ("?owner=nobody", 0),
            ("?with_hosts=true", 1),
            ("?openshift_cluster_id=3f3a0a3c-60b4-4c4b-8a3c-0d7c1b1d3c10", 0),
            ("?ams_subscription_ids=3f3a0a3c-60b4-4c4b-8a3c-0d7c1b1d3c10", 0),
        ] {
            let listed = service.get(&format!("/v2/clusters{query}")).await.expect(200);
            assert_eq!(listed.as_array().unwrap().len(), expected, "{query}");
        }
        let reason = service.get("/v2/clusters?openshift_cluster_id=1").await.refused(400);
        assert_eq!(reason, "openshift_cluster_id in query must be of type uuid: \"1\"");
        let excluded = service.get(&format!("{}?exclude-hosts=true", path(&made))).await.expect(200);
        assert_eq!(excluded["hosts"], json!([]));
    });
}

#[test]
fn unknown_ids_and_no_ids_are_told_apart() {
    on_each_database(async |service| {
        let unknown = "/v2/clusters/3f3a0a3c-60b4-4c4b-8a3c-0d7c1b1d3c10";
        assert_eq!(
            service.get(unknown).await.expect(404),
            json!({"code": "404", "href": "", "id": 404, "kind": "Error", "reason": "record not found"})
        );
        assert_eq!(service.delete(unknown).await.refused(404), "record not found");
        assert_eq!(service.patch(unknown, &json!({})).await.refused(404), "record not found");
        let reason = service.get("/v2/clusters/1").await.refused(400);
        assert_eq!(reason, "cluster_id in path must be of type uuid: \"1\"");
    });
}

#[test]
fn a_change_of_proxies_is_told() {
    on_each_database(async |service| {
        let made = register(service, &json!({})).await;
        for http in ["http://10.0.0.1:3128", "http://10.0.0.1:3128", ""] {
            service.patch(&path(&made), &json!({"http_proxy": http})).await.expect(201);
        }
        let told: Vec<_> = events(service, &made).await.into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            told,
            ["cluster_registration_succeeded", "proxy_settings_changed", "proxy_settings_changed"]
        );
    });
}

#[test]
fn a_pull_secret_is_kept_and_never_shown() {
    on_each_database(async |service| {
        let made = service.post("/v2/clusters", &body(&json!({}))).await;
        assert!(!made.text.contains("dXNlcjpwYXNz"), "{}", made.text);
        let made = made.expect(201);
        let id = made["id"].as_str().unwrap().parse().unwrap();
        let stored = service.inventory.stored_cluster(id).await.unwrap().record;
        assert_eq!(stored.spec.pull_secret.reveal(), PULL_SECRET);
        assert!(!format!("{stored:?}").contains("dXNlcjpwYXNz"));
        let other = r#"{"auths":{"quay.io":{"auth":"b3RoZXI6cGFzcw=="}}}"#;
        service.patch(&path(&made), &json!({"pull_secret": format!(" {other}\n")})).await.expect(201);
        let stored = service.inventory.stored_cluster(id).await.unwrap().record;
        assert_eq!(stored.spec.pull_secret.reveal(), other);
    });
}

#[test]
fn changes_at_the_same_time_lose_nothing() {
    on_each_database(async |service| {
        let made = register(service, &json!({})).await;
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
        let place = path(&made);
        let running = changes.iter().map(|change| async {
            service.patch(&place, change).await.expect(201);
        });
        futures_util::future::join_all(running).await;
        let found = service.get(&place).await.expect(200);
        for change in &changes {
            assert_shows(&found, change, &json!({}));
        }
    });
}

#[test]
fn the_document_names_every_key_that_is_shown() {
    on_each_database(async |service| {
        let document = serde_json::to_value(kindling::inventory::Inventory::openapi()).unwrap();
        let described = document["components"]["schemas"]["cluster"]["properties"].as_object().unwrap();
        let (sent, _) = everything();
        let shown = register(service, &sent).await;
        let unknown: BTreeSet<_> =
            shown.as_object().unwrap().keys().filter(|key| !described.contains_key(*key)).collect();
        assert_eq!(unknown, BTreeSet::new());
    });
}

#[test]
fn hosts_are_shown_in_full_listed_or_counted() {
    on_each_database(async |service| {
        let made = register(service, &json!({})).await;
        let agents = [Agent::known(service, "node-1").await, Agent::known(service, "node-2").await];
        let mut ids: Vec<_> = agents.iter().map(|agent| agent.id.clone()).collect();
        ids.sort();
        for agent in &agents {
            let bind = format!("{}/actions/bind", agent.path());
            service.post(&bind, &json!({"cluster_id": made["id"]})).await.expect(200);
            agent.register().await.expect(201);
            agent.reply("inventory", &machine("node")).await.expect(204);
        }
        let shown = service.get(&path(&made)).await.expect(200);
        assert_eq!(shown["host_networks"], json!([{"cidr": "192.168.1.0/24", "host_ids": ids}]));
        assert_eq!((&shown["total_host_count"], &shown["enabled_host_count"]), (&json!(2), &json!(2)));
        assert!(shown["hosts"][0]["progress_stages"].is_array(), "{}", shown["hosts"][0]);
        let patched = service.patch(&path(&made), &shown).await.expect(201);
        assert_eq!(patched["hosts"].as_array().unwrap().len(), 2);

        let counted = service.get(&format!("{}?exclude-hosts=true", path(&made))).await.expect(200);
        assert_eq!((&counted["hosts"], &counted["total_host_count"]), (&json!([]), &json!(2)));
        let listed = service.get("/v2/clusters").await.expect(200);
        assert_eq!((&listed[0]["hosts"], &listed[0]["total_host_count"]), (&json!([]), &json!(2)));
        let listed = service.get("/v2/clusters?with_hosts=true").await.expect(200);
        assert_eq!(listed[0]["hosts"].as_array().unwrap().len(), 2);
        assert_eq!(listed[0]["hosts"][0]["progress_stages"], Value::Null);
    });
}

#[test]
fn a_card_without_addresses_hides_no_network() {
    on_each_database(async |service| {
        let made = register(service, &json!({})).await;
        let agent = Agent::known(service, "node-1").await;
        let bind = format!("{}/actions/bind", agent.path());
        service.post(&bind, &json!({"cluster_id": made["id"]})).await.expect(200);
        agent.register().await.expect(201);
        let mut machine = machine("node-1");
        let cards = machine["interfaces"].as_array_mut().unwrap();
        cards[0].as_object_mut().unwrap().remove("ipv6_addresses");
        cards.push(json!({"name": "eth1", "type": "physical", "mac_address": "52:54:00:00:00:02"}));
        agent.reply("inventory", &machine).await.expect(204);
        let shown = service.get(&path(&made)).await.expect(200);
        assert_eq!(shown["host_networks"], json!([{"cidr": "192.168.1.0/24", "host_ids": [agent.id]}]));
        agent.reply("inventory", &json!({"hostname": "node-1"})).await.expect(204);
        let shown = service.get(&path(&made)).await.expect(200);
        assert_eq!(shown["host_networks"], json!([]));
    });
}

#[test]
fn secrets_end_with_their_cluster() {
    on_each_database(async |service| {
        let proxies =
            json!({"http_proxy": "http://me:hidden@10.0.0.1:3128", "https_proxy": "http://10.0.0.1:3128"});
        let made = register(service, &proxies).await;
        service.delete(&path(&made)).await.expect(204);
        let id = made["id"].as_str().unwrap().parse().unwrap();
        let stored: Option<Stored<ClusterRecord>> = service.inventory.records().find(None, id).await.unwrap();
        let document = serde_json::to_string(&stored.unwrap().record).unwrap();
        for secret in ["dXNlcjpwYXNz", "hidden"] {
            assert!(!document.contains(secret), "{document}");
        }
        let request = service.request(Method::GET, &path(&made)).header("get_unregistered_clusters", "true");
        let shown = send(request).await.expect(200);
        assert_eq!((&shown["name"], &shown["https_proxy"]), (&made["name"], &made["https_proxy"]));
        assert_eq!(shown["http_proxy"], "http://*****@10.0.0.1:3128");
    });
}
