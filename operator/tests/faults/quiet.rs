//! Tests that many reports in which only measurements differ cause no writes.

use std::time::Duration;

use futures_util::future::join_all;
use inventory::id::HostId;
use kube::api::ListParams;
use operator::crds::Agent;
use tokio::time::{Instant, sleep, sleep_until};

use crate::hub::AuditEntry;
use crate::machine::Machine;
use crate::pool::{create_pool, open_site, state, wait_until};
use crate::site::hub;

/// Interval at which each host sends its reports.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time after which the Agents show the latest reports of their hosts.
const SETTLED: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_with_different_measurements_cause_no_writes() {
    report_all_the_time(20, Duration::from_secs(8)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes more than a minute; .ci/full runs it"]
async fn reports_of_many_hosts_cause_no_writes_for_long() {
    report_all_the_time(200, Duration::from_secs(60)).await;
}

/// Requires that two replicas write nothing except leases, while hosts send reports in which only measurements differ.
async fn report_all_the_time(hosts: usize, duration: Duration) {
    let Some(hub) = hub().await else { return };
    let mut site = open_site(hub).await;
    site.start_operator("first", site.client());
    site.start_operator("second", site.client());
    let id = create_pool(&site).await;
    let boot = |_| Machine::boot(&site.inventory, id, HostId::fresh());
    let machines: Vec<Machine> = join_all((0..hosts).map(boot)).await;
    report(&machines, 0).await;
    wait_until("all hosts are known", async || {
        let agents = site.api::<Agent>().list(&ListParams::default()).await.unwrap().items;
        agents.iter().filter(|agent| state(agent) == "known-unbound").count() == hosts
    })
    .await;
    sleep(SETTLED).await;

    let (mark, begin) = (hub.audit_mark().await, Instant::now());
    let mut round = 0;
    while begin.elapsed() < duration || round < 3 {
        round += 1;
        let next = Instant::now() + INTERVAL;
        report(&machines, round).await;
        sleep_until(next).await;
    }
    sleep(SETTLED).await;
    assert_eq!(site.requests_since(mark).await, [""; 0]);
    let is_renewal = |entry: &AuditEntry| {
        (entry.namespace.as_str(), entry.resource.as_str()) == (site.namespace.as_str(), "leases")
            && entry.verb == "patch"
    };
    assert!(!hub.audit_since(mark, is_renewal).await.is_empty());
}

async fn report(machines: &[Machine], round: u32) {
    join_all((0..).zip(machines).map(async |(number, machine)| {
        machine.poll().await;
        machine.report(33_000_000_000 + u64::from(round) * 4096 + number).await;
        machine.synchronize_clock().await;
    }))
    .await;
}
