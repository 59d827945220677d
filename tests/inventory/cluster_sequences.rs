//! Random sequences of changes to a cluster: the responses contain the values of the requests, and refused changes have
//! no effect.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use crate::clusters::{cluster_path, create_cluster};
use crate::service::{TestService, on_each_database};

/// Returns the keys that changes set, with their possible values.
fn possible_values() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        ("name", vec![json!("one"), json!("two")]),
        ("base_dns_domain", vec![json!(""), json!("example.com")]),
        ("api_vip_dns_name", vec![json!("api.one.example.com"), json!("api.two.example.com")]),
        ("control_plane_count", vec![json!(3), json!(4), json!(5)]),
        ("cluster_networks", vec![json!([]), json!([{"cidr": "10.0.0.0/14", "host_prefix": 23}])]),
        ("service_networks", vec![json!([]), json!([{"cidr": "172.30.0.0/16"}, {"cidr": "fd02::/112"}])]),
        ("machine_networks", vec![json!([]), json!([{"cidr": "192.0.2.0/24"}])]),
        ("network_type", vec![json!("OVNKubernetes"), json!("Cilium")]),
        ("hyperthreading", vec![json!("all"), json!("masters,workers")]),
        ("schedulable_masters", vec![json!(true), json!(false)]),
        ("load_balancer", vec![json!({"type": "user-managed"}), json!({"type": "cluster-managed"})]),
        ("operator_bundles", vec![json!([]), json!([{"id": "one", "optional_operators": []}])]),
        ("tags", vec![json!(""), json!("one,two")]),
        ("http_proxy", vec![json!(""), json!("http://10.0.0.1:3128")]),
        ("no_proxy", vec![json!(""), json!("*")]),
        ("additional_ntp_source", vec![json!(""), json!("a.example.com")]),
        ("platform", vec![json!({"type": "vsphere"}), json!({"type": "nutanix"})]),
        ("user_managed_networking", vec![json!(true), json!(false)]),
    ]
}

/// Values that every state of the cluster refuses.
fn refused_values() -> Vec<Value> {
    vec![
        json!({"tags": ","}),
        json!({"control_plane_count": 7}),
        json!({"machine_networks": [{"cidr": "192.0.2.1/24"}]}),
        json!({"http_proxy": "ftp://x"}),
        json!({"status": "ready", "unknown": 1}),
    ]
}

/// Generates a change: for each key an optional new value, and an optional refused value.
fn any_change() -> impl Strategy<Value = (Vec<Option<usize>>, Option<usize>)> {
    let picks: Vec<_> =
        possible_values().iter().map(|(_, values)| prop::option::weighted(0.3, 0..values.len())).collect();
    (picks, prop::option::weighted(0.2, 0..refused_values().len()))
}

/// Returns the current values of the keys that changes set, in the format of requests.
fn sent_form(cluster: &Value) -> Map<String, Value> {
    let id = &cluster["id"];
    let plain = |key: &str| match cluster.get(key) {
        None => json!(""),
        Some(Value::Array(items)) => {
            let mut items = items.clone();
            for item in items.iter_mut().filter_map(Value::as_object_mut) {
                let of = item.shift_remove("cluster_id");
                assert!(of.is_none_or(|of| of == *id));
            }
            items.into()
        }
        Some(value) => value.clone(),
    };
    possible_values().iter().map(|(key, _)| ((*key).to_owned(), plain(key))).collect()
}

async fn apply_changes(
    service: &TestService,
    changes: &[(Vec<Option<usize>>, Option<usize>)],
) -> Result<(), TestCaseError> {
    // A platform that allows both kinds of networking, so that keys are independent.
    let cluster = create_cluster(service, &json!({"platform": {"type": "vsphere"}})).await;
    let mut before = cluster.clone();
    for (picks, spoiled) in changes {
        let mut expected = sent_form(&before);
        let mut body = Map::new();
        for ((key, values), pick) in possible_values().iter().zip(picks) {
            let Some(pick) = pick else { continue };
            body.insert((*key).to_owned(), values[*pick].clone());
            expected.insert((*key).to_owned(), values[*pick].clone());
        }
        if let Some(spoiled) = spoiled {
            body.extend(refused_values()[*spoiled].as_object().unwrap().clone());
            service.patch(&cluster_path(&cluster), &body.into()).await.refusal_reason(400);
            prop_assert_eq!(&service.get(&cluster_path(&cluster)).await.json_with_status(200), &before);
            continue;
        }
        let answer = service.patch(&cluster_path(&cluster), &body.into()).await.json_with_status(201);
        prop_assert_eq!(sent_form(&answer), expected.clone());
        prop_assert_eq!(answer["updated_at"] == before["updated_at"], expected == sent_form(&before));
        before = service.get(&cluster_path(&cluster)).await.json_with_status(200);
        prop_assert_eq!(&answer, &before);
    }
    Ok(())
}

#[test]
fn random_changes_are_returned_as_sent() {
    on_each_database(async |service| {
        let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(40) });
        let handle = tokio::runtime::Handle::current();
        let outcome = tokio::task::block_in_place(|| {
            runner.run(&prop::collection::vec(any_change(), 1..8), |changes| {
                handle.block_on(apply_changes(service, &changes))
            })
        });
        outcome.unwrap();
    });
}
