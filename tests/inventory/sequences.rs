//! Random sequences of changes: the responses contain the values of the requests, and the generation counts changes to
//! the image.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use crate::service::{PULL_SECRET, TestService, on_each_database};

/// Returns the keys that a change sets, with the possible values in responses. `null` stands for an absent key, for
/// which the request contains an empty text.
fn possible_values() -> Vec<(&'static str, Vec<Value>)> {
    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEj2tQSxYwQIcXsGZ6aHcKfoWiVBqVp3AmEFwqeFsTOO";
    vec![
        ("ssh_authorized_key", vec![Value::Null, json!(KEY)]),
        (
            "additional_ntp_sources",
            vec![Value::Null, json!("a.example.com"), json!("192.0.2.1,b.example.com")],
        ),
        ("type", vec![json!("full-iso"), json!("minimal-iso")]),
        ("ignition_config_override", vec![Value::Null, json!(r#"{"ignition": {"version": "3.2.0"}}"#)]),
        ("network_discovery_delay_seconds", vec![json!(0), json!(5)]),
        ("openshift_version", vec![json!("4.14"), json!("4.18")]),
        ("kernel_arguments", vec![Value::Null, json!(r#"[{"operation":"append","value":"quiet"}]"#)]),
        ("http_proxy", vec![Value::Null, json!("http://10.0.0.1:3128"), json!("http://10.0.0.2:3128")]),
        ("no_proxy", vec![Value::Null, json!("*"), json!("10.0.0.0/8")]),
    ]
}

/// Generates a change: for each key an optional new value.
fn any_change() -> impl Strategy<Value = Vec<Option<usize>>> {
    let picks: Vec<_> =
        possible_values().iter().map(|(_, values)| prop::option::weighted(0.3, 0..values.len())).collect();
    picks
}

/// Converts a change to a request body.
fn change_body(picks: &[Option<usize>]) -> Value {
    let mut body = Map::new();
    for ((key, values), pick) in possible_values().iter().zip(picks) {
        let Some(value) = pick.map(|pick| values[pick].clone()) else { continue };
        let value = if value.is_null() { json!("") } else { value };
        match *key {
            "type" => body.insert("image_type".to_owned(), value),
            "http_proxy" | "no_proxy" => {
                let proxy = body.entry("proxy").or_insert_with(|| json!({})).as_object_mut().unwrap();
                proxy.insert((*key).to_owned(), value)
            }
            "kernel_arguments" if value == "" => body.insert("kernel_arguments".to_owned(), json!([])),
            "kernel_arguments" => {
                let list = serde_json::from_str(value.as_str().unwrap()).unwrap();
                body.insert("kernel_arguments".to_owned(), list)
            }
            key => body.insert(key.to_owned(), value),
        };
    }
    body.into()
}

/// Returns the current values of the keys that changes set.
fn sent_form(infra_env: &Value) -> Map<String, Value> {
    let value = |key: &str| match key {
        "http_proxy" | "no_proxy" => infra_env["proxy"][key].clone(),
        key => infra_env[key].clone(),
    };
    possible_values().iter().map(|(key, _)| ((*key).to_owned(), value(key))).collect()
}

async fn apply_changes(service: &TestService, changes: &[Vec<Option<usize>>]) -> Result<(), TestCaseError> {
    let body = json!({"name": "sequence", "pull_secret": PULL_SECRET, "openshift_version": "4.14"});
    let infra_env = service.post("/v2/infra-envs", &body).await.json_with_status(201);
    let path = format!("/v2/infra-envs/{}", infra_env["id"].as_str().unwrap());
    let mut expected = sent_form(&infra_env);
    let mut generation = 1;
    for picks in changes {
        let before = expected.clone();
        for ((key, values), pick) in possible_values().iter().zip(picks) {
            if let Some(pick) = pick {
                expected.insert((*key).to_owned(), values[*pick].clone());
            }
        }
        let answer = service.patch(&path, &change_body(picks)).await.json_with_status(201);
        prop_assert_eq!(sent_form(&answer), expected.clone());
        let stored = service.get(&path).await.json_with_status(200);
        prop_assert_eq!(&stored, &answer);
        generation += u64::from(before != expected);
        let id = infra_env["id"].as_str().unwrap().parse().unwrap();
        let stored = service.inventory.stored_infra_env(id).await.unwrap().record;
        prop_assert_eq!(stored.image_generation, generation);
        prop_assert_eq!(stored.image_changed_at == stored.created_at, generation == 1);
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
