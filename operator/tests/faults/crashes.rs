//! Tests crashes of the operator before and after each request in the life cycle of an object.

use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::hub::{Fault, FaultProxy, Hub, Rule, RuleId};
use crate::lives::Life;
use crate::pool::{create_pool, is_of_controller, open_site, summary};
use crate::site::{Site, hub};

/// Number of concurrent life cycles.
const PARALLEL: usize = 8;
/// Time in which the fault of the last request is noticed after the end of the life cycle.
const LAST_FAULT: Duration = Duration::from_secs(2);

/// A life cycle of an object, and the crash of the operator during the life cycle.
#[derive(Clone, Copy, Debug)]
struct Case {
    has_agent: bool,
    /// The number of requests before the crash, and the fault that holds the next request. `None` without a crash.
    crash: Option<(usize, Fault)>,
}

/// The observations during one life cycle.
#[derive(Debug)]
struct Record {
    case: Case,
    /// The requests of the controllers, in order.
    requests: Vec<String>,
    /// The writes that the API server accepted.
    writes: Vec<String>,
    /// The request during which the operator was killed.
    held: Option<String>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn infra_env_survives_a_crash_at_each_request() {
    let Some(hub) = hub().await else { return };
    let plain = live(hub, Case { has_agent: false, crash: None }).await;
    let expected = [
        "PATCH infraenvs",
        "GET secrets",
        "PATCH secrets",
        "PATCH infraenvs/status",
        "PATCH infraenvs/status",
        "PATCH infraenvs/status",
        "PATCH infraenvs",
    ];
    assert_eq!(plain.requests, expected);
    for record in crash_at_each(hub, &plain).await {
        let (index, _) = record.case.crash.unwrap();
        assert_eq!(record.held.as_deref(), Some(expected[index]), "{record:#?}");
        // After the crash, only reads and the request without a response are repeated.
        assert_eq!(record.writes, plain.writes, "{record:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_survives_a_crash_at_each_request() {
    let Some(hub) = hub().await else { return };
    let plain = live(hub, Case { has_agent: true, crash: None }).await;
    assert_eq!(plain.requests[..2], ["POST agents", "PATCH agents/status"]);
    assert_eq!(plain.requests.last().unwrap(), "PATCH agents");
    let mut held_requests = BTreeSet::new();
    for record in crash_at_each(hub, &plain).await {
        // An edit during a write causes an additional write, so the number of requests differs between life cycles. A
        // life cycle with too few requests has no crash.
        let (index, _) = record.case.crash.unwrap();
        assert!(record.held.is_some() || record.requests.len() <= index, "{plain:#?} {record:#?}");
        held_requests.extend(record.held.clone());
        let creations = record.writes.iter().filter(|write| *write == "create agents").count();
        assert_eq!(creations, 1, "{record:#?}");
        // Two reports can cause one write or two, so the number of writes differs between life cycles.
        assert!(record.writes.len() <= plain.writes.len() + 2, "{plain:#?} {record:#?}");
    }
    for request in ["POST agents", "PATCH agents/status", "PATCH agents"] {
        assert!(held_requests.contains(request), "{held_requests:?}");
    }
}

/// Repeats a life cycle, with a crash before and after each of its requests.
async fn crash_at_each(hub: &'static Hub, plain: &Record) -> Vec<Record> {
    let faults = [Fault::BlackHole, Fault::WithholdResponse];
    let indexes = 0..plain.requests.len();
    let cases =
        indexes.flat_map(|index| faults.map(|fault| Case { crash: Some((index, fault)), ..plain.case }));
    stream::iter(cases).map(|case| live(hub, case)).buffer_unordered(PARALLEL).collect().await
}

async fn live(hub: &'static Hub, case: Case) -> Record {
    let site = open_site(hub).await;
    let proxy = hub.fault_proxy();
    let operator = start(&site, &proxy);
    let life = if case.has_agent { Life::Agent(create_pool(&site).await) } else { Life::InfraEnv };
    let (mark, before) = (hub.audit_mark().await, proxy.requests().len());
    let mut request_in_crash = None;
    let operator = if let Some((skip, fault)) = case.crash {
        let rule = proxy.add(Rule::new(fault).filter(is_of_controller).skip(skip).times(1));
        let life = life.run(&site);
        tokio::pin!(life);
        let restart = restart(&site, &proxy, (operator, rule, fault));
        tokio::pin!(restart);
        let restarted = tokio::select! {
            // The last request can end the life cycle before its fault is noticed.
            () = &mut life => timeout(LAST_FAULT, &mut restart).await.ok(),
            operator = &mut restart => {
                life.await;
                Some(operator)
            }
        };
        let held_request = proxy.requests().into_iter().find(|request| request.fault.is_some());
        request_in_crash = held_request.map(|request| summary(&request.method, &request.uri));
        restarted
    } else {
        life.run(&site).await;
        Some(operator)
    };
    operator.iter().for_each(JoinHandle::abort);
    let requests = proxy.requests().into_iter().skip(before);
    let requests = requests.filter(|request| is_of_controller(&request.method, &request.uri));
    let requests = requests.map(|request| summary(&request.method, &request.uri)).collect();
    Record { case, requests, writes: site.accepted_writes_since(mark).await, held: request_in_crash }
}

fn start(site: &Site, proxy: &FaultProxy) -> JoinHandle<()> {
    let operator = site.operator("replica", proxy.client(&site.user.token));
    tokio::spawn(operator.run(pending()))
}

/// Kills the operator when the rule holds a request. Starts another operator with the same database.
async fn restart(
    site: &Site,
    proxy: &FaultProxy,
    (operator, rule, fault): (JoinHandle<()>, RuleId, Fault),
) -> JoinHandle<()> {
    let is_held = || match fault {
        Fault::WithholdResponse => !proxy.held_responses().is_empty(),
        _ => proxy.counts(rule).faults > 0,
    };
    while !is_held() {
        sleep(Duration::from_millis(5)).await;
    }
    operator.abort();
    let _ = operator.await;
    proxy.cut_all();
    start(site, proxy)
}
