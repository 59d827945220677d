//! Several hosts of one cluster, whose agents compute their replies from the arguments of the steps.

use assisted::connectivity::ConnectivityCheckHost;
use assisted::request::StepRequest;
use assisted::step::{Step, Steps};
use kindling::inventory::Settings;
use kindling::inventory::auth::Policy;
use kindling::inventory::store::SqlStore;
use kindling::inventory::store::{
    Changes, Key, Kind, Operation, Outcome, ReportKind, ReportKinds, Row, Step as StoreStep,
};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agent::{FakeAgent, create_infra_env, inventory_report};
use crate::clusters::create_cluster;
use crate::database::{TestDatabase, postgres_url};
use crate::service::{ServiceAnswer, TestService, send_request};
use crate::store::block_on;

/// A cluster and the agents of its hosts.
pub(crate) struct Fleet<'a> {
    pub(crate) service: &'a TestService,
    pub(crate) cluster: String,
    pub(crate) agents: Vec<FakeAgent<'a>>,
}

/// Settings of a cluster of three hosts with virtual IP addresses.
pub(crate) fn with_vips() -> Value {
    json!({
        "base_dns_domain": "example.com",
        "machine_networks": [{"cidr": "192.168.1.0/24"}],
        "api_vips": [{"ip": "192.168.1.5"}],
        "ingress_vips": [{"ip": "192.168.1.6"}],
    })
}

/// Returns the inventory report of host `number`. All hosts are in the same network.
pub(crate) fn report_of(number: usize) -> Value {
    let mut report = inventory_report(&format!("node-{number}"));
    report["interfaces"][0]["mac_address"] =
        json!(format!("52:54:00:00:{:02x}:{:02x}", number / 256, number % 256));
    report["interfaces"][0]["ipv4_addresses"] = json!([format!("192.168.1.{}/24", 10 + number % 240)]);
    report
}

impl<'a> Fleet<'a> {
    /// Registers hosts in an infra-env of a new cluster.
    pub(crate) async fn register(service: &'a TestService, hosts: usize, settings: &Value) -> Self {
        let cluster = create_cluster(service, settings).await["id"].as_str().unwrap().to_owned();
        Self::register_in(service, hosts, cluster).await
    }

    /// Registers hosts in an infra-env of a cluster.
    pub(crate) async fn register_in(service: &'a TestService, hosts: usize, cluster: String) -> Self {
        let infra_env = create_infra_env(service, &json!({"cluster_id": cluster})).await;
        let agents: Vec<_> = (0..hosts).map(|_| FakeAgent::new(service, &infra_env)).collect();
        for agent in &agents {
            agent.register().await.json_with_status(201);
        }
        Self { service, cluster, agents }
    }

    /// Registers hosts and sends their inventory reports.
    pub(crate) async fn with_reports(service: &'a TestService, hosts: usize, settings: &Value) -> Self {
        let fleet = Self::register(service, hosts, settings).await;
        for (number, agent) in fleet.agents.iter().enumerate() {
            agent.reply_to_step("inventory", &report_of(number)).await.json_with_status(204);
        }
        fleet
    }

    /// Returns the cluster as users see it.
    pub(crate) async fn get_cluster(&self) -> Value {
        self.service.get(&format!("/v2/clusters/{}", self.cluster)).await.json_with_status(200)
    }
}

/// Checks in with the clock of the service after an assessment of the host's cluster, and returns the steps. No
/// background task runs in most tests.
pub(crate) async fn poll(agent: &FakeAgent<'_>) -> Steps {
    agent.service.inventory.assess_clusters().await.unwrap();
    let now = agent.service.inventory.clock().now().timestamp();
    serde_json::from_value(poll_at(agent, now).await.json_with_status(200)).unwrap()
}

/// Checks in with the given time of the agent's clock, in seconds since 1970.
pub(crate) async fn poll_at(agent: &FakeAgent<'_>, clock: i64) -> ServiceAnswer {
    let path = format!("{}/instructions?timestamp={clock}", agent.path());
    let request = agent.service.request(Method::GET, &path);
    send_request(request.header("discovery_agent_version", &agent.version)).await
}

/// Returns the types of steps.
pub(crate) fn types(steps: &Steps) -> Vec<&'static str> {
    steps.instructions.iter().map(type_of).collect()
}

/// Returns the type of a step, which must be a known type.
pub(crate) fn type_of(step: &Step) -> &'static str {
    step.step_type.known().unwrap().as_str()
}

/// Returns the hosts in the arguments of a connectivity check; `None` without such a step.
pub(crate) fn checked_hosts(steps: &Steps) -> Option<Vec<String>> {
    let step = steps.instructions.iter().find(|step| type_of(step) == "connectivity-check")?;
    let StepRequest::ConnectivityCheck(hosts) = StepRequest::parse(step).unwrap() else { panic!("{step:?}") };
    Some(hosts.iter().map(|host| host.host_id.to_string()).collect())
}

/// Returns a result of a connectivity check with this round-trip time.
pub(crate) fn connectivity_to<'h>(
    hosts: impl IntoIterator<Item = &'h ConnectivityCheckHost>,
    rtt_ms: f64,
) -> Value {
    let of_nic = |nic: &assisted::connectivity::ConnectivityCheckNic| {
        let entry = |address: &String| {
            let l2 = json!({
                "outgoing_nic": "eth0", "remote_ip_address": address, "remote_mac": nic.mac, "successful": true,
            });
            let l3 = json!({
                "remote_ip_address": address, "successful": true, "average_rtt_ms": rtt_ms,
                "packet_loss_percentage": 0,
            });
            (l2, l3)
        };
        nic.ip_addresses.iter().map(entry).collect::<Vec<_>>()
    };
    let remote = hosts.into_iter().map(|host| {
        let (l2, l3): (Vec<_>, Vec<_>) = host.nics.iter().flat_map(of_nic).unzip();
        json!({"host_id": host.host_id, "l2_connectivity": l2, "l3_connectivity": l3, "mtu_report": null})
    });
    json!({"remote_hosts": remote.collect::<Vec<_>>()})
}

/// Computes the output of a step from its arguments. `number` is the number of the host.
pub(crate) fn output_of(step: &Step, number: usize) -> Value {
    match StepRequest::parse(step).unwrap() {
        StepRequest::Inventory(_) => report_of(number),
        StepRequest::ConnectivityCheck(hosts) => connectivity_to(hosts.iter(), 1.0),
        StepRequest::FreeAddresses(networks) => networks
            .iter()
            .map(|network| json!({"network": network, "free_addresses": ["192.168.1.5", "192.168.1.6"]}))
            .collect(),
        StepRequest::Ntp(_) => json!({"ntp_sources": [{"source_name": "ntp.sim", "source_state": "synced"}]}),
        StepRequest::Domains(request) => {
            let resolution = |name: &str| {
                let is_wildcard = name.starts_with("validateNoWildcardDNS");
                let addresses = if is_wildcard { vec![] } else { vec!["192.168.1.5"] };
                json!({"domain_name": name, "ipv4_addresses": addresses, "ipv6_addresses": [], "cnames": null})
            };
            let names = request.domains.iter().map(|domain| resolution(&domain.domain_name));
            json!({"resolutions": names.collect::<Vec<_>>()})
        }
        StepRequest::Vips(vips) => {
            let verified = |vip: &assisted::request::VipToVerify| json!({"vip": vip.vip, "vip_type": vip.vip_type, "verification": "succeeded"});
            vips.iter().map(verified).collect()
        }
        StepRequest::ApiVip(request) => {
            json!({"is_success": true, "ignition": r#"{"ignition":{"version":"3.2.0"}}"#, "url": request.url})
        }
        request => panic!("no reply to {request:?}"),
    }
}

/// Replies to all steps, as the agent of host `number`.
pub(crate) async fn reply_to_all(agent: &FakeAgent<'_>, steps: &Steps, number: usize) {
    for step in &steps.instructions {
        let reply = json!({
            "step_type": type_of(step), "step_id": step.step_id, "exit_code": 0,
            "output": output_of(step, number).to_string(), "error": "",
        });
        agent.send_reply(&reply).await.json_with_status(204);
    }
}

pub(crate) fn host_key(agent: &FakeAgent<'_>) -> Key {
    Key { kind: Kind::Host, parent: Some(agent.infra_env.parse().unwrap()), id: agent.id.parse().unwrap() }
}

pub(crate) async fn stored_host(agent: &FakeAgent<'_>) -> Row {
    agent.service.inventory.records().store().get(host_key(agent)).await.unwrap().unwrap()
}

pub(crate) async fn stored_report(agent: &FakeAgent<'_>, kind: ReportKind) -> Option<String> {
    let records = agent.service.inventory.records();
    let reports = records.reports(host_key(agent), ReportKinds::new(ReportKind::ALL)).await.unwrap();
    reports.get(kind).map(str::to_owned)
}

/// Returns the number of commits so far.
pub(crate) fn commits(service: &TestService) -> u64 {
    service.inventory.records().store().metrics().durations(Operation::Commit).count()
}

/// Changes the database in a way that no operation does.
pub(crate) async fn commit_step(service: &TestService, step: StoreStep) {
    let changes = Changes { steps: vec![step], events: Vec::new() };
    assert_eq!(service.inventory.records().store().commit(changes).await.unwrap(), Outcome::Done);
}

/// Runs a test with the URL of each database, for services that stop and start again.
pub(crate) fn on_each_url(test: impl AsyncFn(&str)) {
    let on_sqlite = async {
        let directory = TempDir::new().unwrap();
        test(&format!("sqlite://{}", directory.path().join("kindling.db").display())).await;
    };
    let on_postgres = async {
        let Some(server) = postgres_url() else { return };
        let database = TestDatabase::create(&server).await;
        test(&database.url).await;
        database.drop().await;
    };
    block_on(async {
        tokio::join!(on_sqlite, on_postgres);
    });
}

/// Starts a service on a database.
pub(crate) async fn start(url: &str, change: impl FnOnce(&mut Settings)) -> TestService {
    TestService::start_on_store(SqlStore::open(url).await.unwrap(), None, Policy::Open, change).await
}

/// The identity of a host, for an agent that uses a later process of the service.
#[derive(Clone)]
pub(crate) struct HostIdentity {
    infra_env: String,
    id: String,
}

impl HostIdentity {
    pub(crate) fn of(agent: &FakeAgent<'_>) -> Self {
        Self { infra_env: agent.infra_env.clone(), id: agent.id.clone() }
    }

    pub(crate) fn agent<'a>(&self, service: &'a TestService) -> FakeAgent<'a> {
        FakeAgent { id: self.id.clone(), ..FakeAgent::new(service, &self.infra_env) }
    }
}
