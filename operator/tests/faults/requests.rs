//! Tests API server faults in writes, lists and watches.

use std::future::pending;
use std::time::Duration;

use futures_util::future::join_all;
use inventory::id::HostId;
use kube::ResourceExt as _;
use kube::api::ListParams;
use operator::crds::{Agent, InfraEnv};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::hub::{Fault, FaultProxy, Hub, Rule};
use crate::machine::Machine;
use crate::pool::{
    create_pool, edit_agent, id_of, is_list_or_watch, open_site, state, wait_for_agent, wait_until,
};
use crate::site::{Site, hub, image_created, iso_url};

/// Duration of a fault.
const DURATION: Duration = Duration::from_secs(4);
const DELAY: Fault = Fault::Delay(Duration::from_millis(1_500));
/// Maximum number of requests per second for one object or watch, after the first four requests.
const MAX_RATE: f64 = 2.5;

const WRITE_FAULTS: [Fault; 6] = [
    Fault::Conflict,
    Fault::TooManyRequests(1),
    Fault::InternalError,
    DELAY,
    Fault::CutBeforeRequest,
    Fault::LoseResponse,
];
const WATCH_FAULTS: [Fault; 9] = [
    Fault::Gone,
    Fault::WatchGone,
    Fault::WatchEnd,
    Fault::TooManyRequests(1),
    Fault::InternalError,
    DELAY,
    Fault::CutBeforeRequest,
    Fault::LoseResponse,
    Fault::CutDuringResponse(Duration::from_millis(300)),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_faults_of_one_object_do_not_delay_others() {
    let Some(hub) = hub().await else { return };
    join_all(WRITE_FAULTS.map(|fault| fail_requests(hub, fault))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_writes_of_agents_create_one_agent() {
    let Some(hub) = hub().await else { return };
    join_all(WRITE_FAULTS.map(|fault| fail_agents(hub, fault))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_and_watch_faults_delay_only_their_events() {
    let Some(hub) = hub().await else { return };
    join_all(WATCH_FAULTS.map(|fault| fail_watches(hub, fault))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_the_lease_do_not_stop_the_leader_before_it_expires() {
    let Some(hub) = hub().await else { return };
    join_all(WRITE_FAULTS.map(|fault| fail_lease(hub, fault))).await;
}

/// Returns the maximum number of requests since `begin` for `count` objects or watches.
fn limit(begin: Instant, count: u32) -> f64 {
    f64::from(count) * (4.0 + MAX_RATE * begin.elapsed().as_secs_f64())
}

fn assert_is_at_most(requests: usize, limit: f64, fault: Fault) {
    let requests = u32::try_from(requests).unwrap();
    assert!(requests > 0 && f64::from(requests) <= limit, "{fault:?}: {requests} requests, limit {limit}");
}

async fn open_proxied(hub: &'static Hub) -> (Site, FaultProxy) {
    let (mut site, proxy) = (open_site(hub).await, hub.fault_proxy());
    site.start_operator("replica", proxy.client(&site.user.token));
    (site, proxy)
}

/// Injects a fault into all requests for one InfraEnv and its Secret for some time. Requires that another InfraEnv is
/// not affected.
async fn fail_requests(hub: &'static Hub, fault: Fault) {
    let (site, proxy) = open_proxied(hub).await;
    let rule = proxy.add(Rule::new(fault).path("/faulty").watches(false));
    let begin = Instant::now();
    for name in ["faulty", "good"] {
        site.create_pull_secret(name).await;
        site.create_infra_env(name, |spec| name.clone_into(&mut spec.pull_secret_ref.name)).await;
    }
    site.wait_for_image("good").await;
    if fault != DELAY {
        let object = site.api::<InfraEnv>().get("faulty").await.unwrap();
        assert_eq!(image_created(&object), None, "{fault:?}");
    }
    sleep_until(begin + DURATION).await;
    assert_is_at_most(proxy.counts(rule).faults, limit(begin, 1), fault);
    proxy.remove(rule);
    let object = site.wait_for_image("faulty").await;
    assert_eq!(id_of(&object).to_string(), object.uid().unwrap(), "{fault:?}");
    assert_eq!(object.finalizers().len(), 1, "{fault:?}");

    let (begin, rule) = (Instant::now(), proxy.add(Rule::new(fault).path("/faulty").watches(false).times(2)));
    site.delete::<InfraEnv>("faulty").await;
    site.wait_until_gone::<InfraEnv>("faulty").await;
    assert_is_at_most(proxy.counts(rule).matches, limit(begin, 1), fault);
    site.wait_for_image("good").await;
}

/// Injects a fault into the first requests for an Agent.
async fn fail_agents(hub: &'static Hub, fault: Fault) {
    let (site, proxy) = open_proxied(hub).await;
    let id = create_pool(&site).await;
    let rule = proxy.add(Rule::new(fault).path("/agents").watches(false).times(3));
    let (begin, host) = (Instant::now(), HostId::fresh());
    let machine = Machine::boot(&site.inventory, id, host).await;
    machine.report(33_000_000_000).await;
    machine.synchronize_clock().await;
    let agent = wait_for_agent(&site, host, |agent| state(agent) == "known-unbound").await;
    edit_agent(&site, host, json!({"approved": true})).await;
    wait_until("approval", async || site.inventory.host(machine.key).await.unwrap().choices.approved).await;
    assert_is_at_most(proxy.counts(rule).matches, limit(begin, 1), fault);
    let agents = site.api::<Agent>().list(&ListParams::default()).await.unwrap().items;
    let uids: Vec<_> = agents.iter().map(|agent| agent.uid()).collect();
    assert_eq!(uids, [agent.uid()], "{fault:?}");
}

/// Injects a fault into all renewals of the lease for some time.
async fn fail_lease(hub: &'static Hub, fault: Fault) {
    let (site, proxy) = (open_site(hub).await, hub.fault_proxy());
    let operator = site.operator("replica", proxy.client(&site.user.token));
    let leadership = operator.leadership();
    let mut tasks = JoinSet::new();
    tasks.spawn(operator.run(pending()));
    create_pool(&site).await;
    let (begin, rule) = (Instant::now(), proxy.add(Rule::new(fault).path("/leases").method("PATCH")));
    wait_until("a renewal", async || proxy.counts(rule).faults > 0).await;
    site.create_infra_env("other", |_| ()).await;
    site.wait_for_image("other").await;
    sleep_until(begin + DURATION).await;
    assert!(leadership.is_valid(), "{fault:?}");
    assert_is_at_most(proxy.counts(rule).faults, limit(begin, 1), fault);
}

/// Injects a fault into all lists and watches for some time.
async fn fail_watches(hub: &'static Hub, fault: Fault) {
    let (site, proxy) = open_proxied(hub).await;
    let id = create_pool(&site).await;
    let first = iso_url(&site.wait_for_image("pool").await);
    let rule = Rule::new(fault).filter(is_list_or_watch);
    // These faults apply only to watches, because the operator sees the missed changes in the list between two watches.
    let is_for_watches = [Fault::WatchGone, Fault::WatchEnd].contains(&fault);
    let rule = proxy.add(if is_for_watches { rule.watches(true) } else { rule });
    proxy.cut_all();
    let (begin, host) = (Instant::now(), HostId::fresh());
    let machine = Machine::boot(&site.inventory, id, host).await;
    wait_for_agent(&site, host, |agent| agent.status.is_some()).await;
    site.patch_spec("pool", json!({"additionalNTPSources": ["a.example.com"]})).await;
    edit_agent(&site, host, json!({"approved": true})).await;
    sleep_until(begin + DURATION).await;
    // The operator watches six kinds.
    assert_is_at_most(proxy.counts(rule).faults, limit(begin, 6), fault);
    proxy.remove(rule);
    site.wait_for("pool", |object| iso_url(object) != first).await;
    wait_until("approval", async || site.inventory.host(machine.key).await.unwrap().choices.approved).await;
    site.delete::<InfraEnv>("pool").await;
    site.wait_until_gone::<InfraEnv>("pool").await;
    site.wait_until_gone::<Agent>(&host.to_string()).await;
}
