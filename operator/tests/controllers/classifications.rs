//! Tests the controller of AgentClassifications: labels on Agents, and counts in the status.

use std::time::Duration;

use inventory::id::HostId;
use kube::ResourceExt as _;
use operator::crds::{Agent, AgentClassification, AgentClassificationSpec, InfraEnv};
use tokio::time::{Instant, sleep};

use crate::machine::Machine;
use crate::site::{Site, hub};

const PREFIX: &str = "agentclassification.agent-install.openshift.io/";

async fn classify(site: &Site, name: &str, label_key: &str, query: &str) {
    let spec = AgentClassificationSpec {
        label_key: label_key.to_owned(),
        label_value: "x".to_owned(),
        query: query.to_owned(),
    };
    site.create(&AgentClassification::new(name, spec)).await;
}

async fn wait_for_counts(site: &Site, name: &str, expected: (i64, i64)) -> AgentClassification {
    let begin = Instant::now();
    loop {
        let object = site.api::<AgentClassification>().get(name).await.unwrap();
        let counts = object.status.as_ref().map(|status| (status.matched_count, status.error_count));
        if counts == Some(expected) && !object.status.as_ref().unwrap().conditions.is_empty() {
            return object;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{object:#?}");
        sleep(Duration::from_millis(50)).await;
    }
}

fn reason(object: &AgentClassification) -> &str {
    let [condition] = &object.status.as_ref().unwrap().conditions[..] else { panic!("{object:#?}") };
    &condition.reason
}

#[tokio::test]
async fn classifications_label_agents_and_count_them() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    site.create_pull_secret("pull-secret").await;
    site.create_infra_env("pool", |_| ()).await;
    let object: InfraEnv = site.wait_for_image("pool").await;
    let id = object.annotations()["infraenv.agent-install.openshift.io/infra-env-id"].parse().unwrap();
    let hosts = [HostId::fresh(), HostId::fresh()];
    for host in hosts {
        Machine::boot(&site.inventory, id, host).await.report(33_000_000_000).await;
    }
    classify(&site, "big", "size", ".cpu.count >= 4").await;
    classify(&site, "broken", "size2", ".cpu[").await;
    classify(&site, "odd", "size3", ".cpu.count").await;
    classify(&site, "endless", "size4", "def f: f; f").await;
    assert_eq!(reason(&wait_for_counts(&site, "big", (2, 0)).await), "NoQueryErrors");
    assert_eq!(reason(&wait_for_counts(&site, "broken", (0, 2)).await), "HasQueryErrors");
    assert_eq!(reason(&wait_for_counts(&site, "odd", (0, 0)).await), "NoQueryErrors");
    assert_eq!(reason(&wait_for_counts(&site, "endless", (0, 2)).await), "HasQueryErrors");
    let agent = site.api::<Agent>().get(&hosts[0].to_string()).await.unwrap();
    assert_eq!(agent.labels()[&format!("{PREFIX}size")], "x");
    assert_eq!(agent.labels()[&format!("{PREFIX}size2")], "QUERYERROR-x");
    for name in ["big", "broken"] {
        site.delete::<AgentClassification>(name).await;
        site.wait_until_gone::<AgentClassification>(name).await;
    }
    let agent = site.api::<Agent>().get(&hosts[0].to_string()).await.unwrap();
    assert!(!agent.labels().contains_key(&format!("{PREFIX}size")));
    assert!(!agent.labels().contains_key(&format!("{PREFIX}size2")));
}
