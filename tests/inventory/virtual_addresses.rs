//! Tests how the service uses reports of hosts to check that the virtual IP addresses of a cluster are free.

use std::time::Duration;

use kindling::inventory::Settings;
use serde_json::{Value, json};

use crate::agent::FakeAgent;
use crate::fleet::{Fleet, commits, poll, with_vips};
use crate::service::{
    TestService, on_each_database, on_each_database_with, on_each_database_with_clock, only_own_validations,
};

/// Replies to `verify-vips`.
async fn report(agent: &FakeAgent<'_>, vips: &[(&str, &str, &str)]) {
    let vips: Value = vips
        .iter()
        .map(|(vip, vip_type, result)| json!({"vip": vip, "vip_type": vip_type, "verification": result}))
        .collect();
    agent.reply_to_step("verify-vips", &vips).await.json_with_status(204);
}

/// Assesses the clusters. Returns the verification of the API address and of the Ingress address of one cluster.
async fn verified(service: &TestService, fleet: &Fleet<'_>) -> [Value; 2] {
    service.inventory.assess_clusters().await.unwrap();
    let response = fleet.get_cluster().await;
    let listed = service.get("/v2/clusters").await.json_with_status(200);
    let verification = |cluster: &Value, key: &str| cluster[key][0]["verification"].clone();
    ["api_vips", "ingress_vips"].map(|key| {
        assert_eq!(verification(&listed[0], key), verification(&response, key), "{listed}");
        verification(&response, key)
    })
}

#[test]
fn one_failed_check_of_a_connected_host_decides() {
    on_each_database_with_clock(
        |_| {},
        async |service, clock| {
            let fleet = Fleet::with_reports(service, 3, &with_vips()).await;
            let [one, two, three] = fleet.agents.as_slice() else { panic!("three hosts") };
            let unknown = verified(service, &fleet).await;
            assert!(unknown.iter().all(|it| it.is_null() || it == "unverified"), "{unknown:?}");

            report(one, &[("192.168.1.5", "api", "unverified"), ("192.168.1.6", "ingress", "succeeded")])
                .await;
            assert_eq!(verified(service, &fleet).await, ["unverified", "succeeded"]);
            report(one, &[("192.168.1.5", "api", "succeeded"), ("192.168.1.6", "ingress", "succeeded")])
                .await;
            report(two, &[("192.168.1.5", "api", "failed"), ("192.168.1.6", "ingress", "succeeded")]).await;
            report(three, &[("192.168.1.5", "api", "succeeded"), ("192.168.1.6", "ingress", "unverified")])
                .await;
            assert_eq!(verified(service, &fleet).await, ["failed", "succeeded"]);
            let before = commits(service);
            assert_eq!(verified(service, &fleet).await, ["failed", "succeeded"]);
            assert_eq!(commits(service), before);

            // Only the other two hosts check in, so the service disconnects the host that reported the address as used.
            clock.advance(Settings::MAX_SILENCE + Duration::from_secs(1));
            for agent in [one, three] {
                poll(agent).await;
            }
            assert_eq!(service.inventory.disconnect_silent_hosts().await.unwrap(), 1);
            assert_eq!(verified(service, &fleet).await, ["succeeded", "succeeded"]);
            poll(two).await;
            assert_eq!(verified(service, &fleet).await, ["failed", "succeeded"]);
            report(two, &[("192.168.1.5", "api", "succeeded"), ("192.168.1.6", "ingress", "succeeded")])
                .await;
            assert_eq!(verified(service, &fleet).await, ["succeeded", "succeeded"]);
            service.delete(&two.path()).await.json_with_status(204);
            service.delete(&three.path()).await.json_with_status(204);
            one.register().await.json_with_status(201);
            assert_eq!(verified(service, &fleet).await, unknown, "the host has booted again");
        },
    );
}

#[test]
fn replaced_addresses_are_not_verified() {
    on_each_database(async |service| {
        let fleet = Fleet::with_reports(service, 1, &with_vips()).await;
        let (agent, path) = (&fleet.agents[0], format!("/v2/clusters/{}", fleet.cluster));
        let unknown = verified(service, &fleet).await;
        // A reply about another type or address does not count.
        report(agent, &[("192.168.1.5", "ingress", "failed"), ("192.168.1.99", "api", "failed")]).await;
        assert_eq!(verified(service, &fleet).await, unknown);
        report(agent, &[("192.168.1.5", "api", "failed"), ("192.168.1.6", "ingress", "succeeded")]).await;
        assert_eq!(verified(service, &fleet).await, ["failed", "succeeded"]);

        let change =
            |api: &str, ingress: &str| json!({"api_vips": [{"ip": api}], "ingress_vips": [{"ip": ingress}]});
        service.patch(&path, &change("192.168.1.7", "192.168.1.6")).await.json_with_status(201);
        assert_eq!(verified(service, &fleet).await, [unknown[0].clone(), json!("succeeded")]);
        report(agent, &[("192.168.1.7", "api", "succeeded"), ("192.168.1.6", "ingress", "succeeded")]).await;
        assert_eq!(verified(service, &fleet).await, ["succeeded", "succeeded"]);
        service.patch(&path, &json!({"api_vips": [], "ingress_vips": []})).await.json_with_status(201);
        assert_eq!(verified(service, &fleet).await, [Value::Null, Value::Null]);
        service.patch(&path, &change("192.168.1.5", "192.168.1.8")).await.json_with_status(201);
        assert_eq!(verified(service, &fleet).await, unknown, "the result before is forgotten");
    });
}

#[test]
fn invalid_replies_about_addresses_are_refused() {
    on_each_database_with(only_own_validations, async |service| {
        let fleet = Fleet::with_reports(service, 1, &with_vips()).await;
        let agent = &fleet.agents[0];
        report(agent, &[("192.168.1.5", "api", "failed"), ("192.168.1.6", "ingress", "succeeded")]).await;
        for output in
            [json!({}), json!([{"vip": "api", "vip_type": "api", "verification": "failed"}]), json!([5])]
        {
            agent.reply_to_step("verify-vips", &output).await.refusal_reason(400);
        }
        assert_eq!(verified(service, &fleet).await, ["failed", "succeeded"]);
        assert_eq!(agent.host_status().await, "known");
    });
}
