//! Clusters of simulated hosts. They become ready, unless a host or the network has a fault.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use kindling::assisted::infra_env::InfraEnvCreateParams;
use kindling::assisted::{ClusterId, InfraEnvId};
use serde_json::{Value, json};

use crate::serve::PATIENCE;
use crate::simulate::{RunningSimulation, SimulationSite, wait};

const PULL_SECRET: &str = r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#;

/// A cluster, and the infra-env in which its hosts register.
struct SimulatedCluster {
    id: ClusterId,
    infra_env: InfraEnvId,
}

impl SimulatedCluster {
    /// Registers a cluster with these parameters in addition to the required ones.
    fn create(site: &SimulationSite, name: &str, parameters: Value) -> Self {
        let mut cluster = json!({
            "name": name, "openshift_version": "4.18", "base_dns_domain": "example.com",
            "pull_secret": PULL_SECRET,
        });
        cluster.as_object_mut().unwrap().extend(parameters.as_object().unwrap().clone());
        let id = wait(site.client().register_cluster(&serde_json::from_value(cluster).unwrap())).unwrap().id;
        let infra_env = json!({"name": name, "pull_secret": PULL_SECRET, "cluster_id": id});
        let infra_env: InfraEnvCreateParams = serde_json::from_value(infra_env).unwrap();
        let infra_env = wait(site.client().register_infra_env(&infra_env)).unwrap().id;
        Self { id, infra_env }
    }

    /// Registers a cluster with virtual IP addresses that no simulated host uses.
    fn with_vips(site: &SimulationSite, name: &str) -> Self {
        let vips = json!({"api_vips": [{"ip": "192.168.111.5"}], "ingress_vips": [{"ip": "192.168.111.6"}]});
        Self::create(site, name, vips)
    }

    fn get(&self, site: &SimulationSite) -> Value {
        let answer = site.server.request(&format!("GET /api/assisted-install/v2/clusters/{}", self.id), "");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Waits until the cluster fulfils the condition.
    #[track_caller]
    fn wait_until(&self, site: &SimulationSite, is_done: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let cluster = self.get(site);
            if is_done(&cluster) {
                return cluster;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "{}: {}, {:?}",
                cluster["name"],
                cluster["status"],
                all_unsatisfied(&cluster)
            );
            thread::sleep(Duration::from_millis(50));
        }
    }

    #[track_caller]
    fn wait_until_ready(&self, site: &SimulationSite) -> Value {
        let cluster = self.wait_until(site, |cluster| cluster["status"] == "ready");
        assert_eq!(cluster["status_info"], "Cluster ready to be installed");
        assert_eq!(all_unsatisfied(&cluster), BTreeSet::new());
        cluster
    }
}

/// Returns the ids of the unsatisfied validations of a cluster or host.
fn unsatisfied(document: &Value) -> BTreeSet<String> {
    let Some(text) = document["validations_info"].as_str().filter(|text| !text.is_empty()) else {
        return BTreeSet::from(["no validations".to_owned()]);
    };
    let categories: Value = serde_json::from_str(text).unwrap();
    let results = categories.as_object().unwrap().values().flat_map(|list| list.as_array().unwrap());
    let failed = results.filter(|result| result["status"] != "success");
    failed.map(|result| result["id"].as_str().unwrap().to_owned()).collect()
}

/// Returns the ids of the unsatisfied validations of a cluster and of its hosts.
fn all_unsatisfied(cluster: &Value) -> BTreeSet<String> {
    let hosts = cluster["hosts"].as_array().unwrap();
    hosts.iter().flat_map(unsatisfied).chain(unsatisfied(cluster)).collect()
}

/// Returns the names of the hosts with a role, either assigned by the user or suggested by the service.
fn names_with_role<'a>(cluster: &'a Value, role: &str) -> BTreeSet<&'a str> {
    let hosts = cluster["hosts"].as_array().unwrap().iter();
    let has_role = |host: &&Value| match &host["role"] {
        chosen if chosen == "auto-assign" => host["suggested_role"] == role,
        chosen => chosen == role,
    };
    hosts.filter(has_role).map(|host| host["requested_hostname"].as_str().unwrap()).collect()
}

#[track_caller]
fn assert_has_known_hosts(cluster: &Value, masters: &[&str], workers: &[&str]) {
    let hosts = cluster["hosts"].as_array().unwrap();
    assert!(hosts.iter().all(|host| host["status"] == "known"), "{hosts:?}");
    assert_eq!(names_with_role(cluster, "master"), masters.iter().copied().collect());
    assert_eq!(names_with_role(cluster, "worker"), workers.iter().copied().collect());
}

#[test]
fn single_node_cluster_of_a_simulated_host_becomes_ready() {
    let site = SimulationSite::start();
    let parameters = json!({"control_plane_count": 1, "high_availability_mode": "None"});
    let cluster = SimulatedCluster::create(&site, "single", parameters);
    let simulation = site.simulate(cluster.infra_env, &["--profile", "sno"]);
    let ready = cluster.wait_until_ready(&site);
    simulation.interrupt();
    assert_has_known_hosts(&ready, &["node-1"], &[]);
    assert_eq!(ready["machine_networks"][0]["cidr"], "192.168.111.0/24");
}

#[test]
fn compact_cluster_of_simulated_hosts_becomes_ready() {
    let site = SimulationSite::start();
    let cluster = SimulatedCluster::with_vips(&site, "compact");
    let simulation = site.simulate(cluster.infra_env, &["--profile", "compact"]);
    let ready = cluster.wait_until_ready(&site);
    simulation.interrupt();
    assert_has_known_hosts(&ready, &["node-1", "node-2", "node-3"], &[]);
    assert_eq!(ready["machine_networks"][0]["cidr"], "192.168.111.0/24");
}

#[test]
fn cluster_of_simulated_hosts_with_workers_becomes_ready() {
    let site = SimulationSite::start();
    let cluster = SimulatedCluster::with_vips(&site, "standard");
    let simulation = site.simulate(cluster.infra_env, &["--profile", "standard", "--hosts", "5"]);
    let has_all_hosts = |cluster: &Value| {
        cluster["status"] == "ready" && cluster["hosts"].as_array().is_some_and(|hosts| hosts.len() == 5)
    };
    cluster.wait_until(&site, has_all_hosts);
    let ready = cluster.wait_until_ready(&site);
    simulation.interrupt();
    assert_has_known_hosts(&ready, &["master-1", "master-2", "master-3"], &["worker-1", "worker-2"]);
}

/// Faults that keep a compact cluster insufficient, and the resulting failed validations. docs/simulate.md lists them
/// too.
const FAULTS: [(&str, &[&str]); 9] = [
    ("little-memory", &["has-min-memory", "all-hosts-are-ready-to-install", "sufficient-masters-count"]),
    ("small-disk", &["has-min-valid-disks", "all-hosts-are-ready-to-install"]),
    ("invalid-hostname", &["hostname-valid", "all-hosts-are-ready-to-install"]),
    ("duplicate-hostname", &["hostname-unique", "all-hosts-are-ready-to-install"]),
    ("no-default-route", &["has-default-route", "all-hosts-are-ready-to-install"]),
    ("isolated", &["belongs-to-majority-group", "all-hosts-are-ready-to-install"]),
    (
        "unplugged-link",
        &[
            "belongs-to-machine-cidr",
            "belongs-to-majority-group",
            "has-default-route",
            "all-hosts-are-ready-to-install",
        ],
    ),
    ("wrong-clock", &["ntp-server-configured"]),
    ("vips-in-use", &["api-vips-valid", "ingress-vips-valid"]),
];

/// Faults that no validation detects yet. docs/simulate.md lists them: change both with a new validation.
const FAULTS_WITHOUT_VALIDATION: [&str; 9] = [
    "no-ntp",
    "packet-loss",
    "high-latency",
    "address-collision",
    "no-dns",
    "wildcard-dns",
    "slow-disk",
    "broken-disk",
    "no-images",
];

/// Starts a compact cluster with these faults. Equal seeds generate equal hosts.
fn simulate_faults(
    site: &SimulationSite,
    cluster: &SimulatedCluster,
    number: usize,
    faults: &[&str],
) -> RunningSimulation {
    let seed = (number + 1).to_string();
    let faults = faults.iter().flat_map(|fault| ["--fault", fault]);
    let options: Vec<_> = ["--profile", "compact", "--seed", &seed].into_iter().chain(faults).collect();
    site.simulate(cluster.infra_env, &options)
}

#[test]
fn faults_keep_clusters_insufficient_until_they_end() {
    let site = SimulationSite::start();
    let clusters = FAULTS.map(|(fault, _)| SimulatedCluster::with_vips(&site, fault));
    let simulations: Vec<_> = (clusters.iter().zip(FAULTS).enumerate())
        .map(|(number, (cluster, (fault, _)))| simulate_faults(&site, cluster, number, &[fault]))
        .collect();
    for (cluster, (_, validations)) in clusters.iter().zip(FAULTS) {
        let expected: BTreeSet<_> = validations.iter().map(|id| (*id).to_owned()).collect();
        let has_fault = |cluster: &Value| {
            let hosts = cluster["hosts"].as_array().unwrap().len();
            cluster["status"] == "insufficient" && hosts == 3 && all_unsatisfied(cluster) == expected
        };
        cluster.wait_until(&site, has_fault);
    }
    drop(simulations);
    let restart = |(number, cluster)| simulate_faults(&site, cluster, number, &[]);
    let simulations: Vec<_> = clusters.iter().enumerate().map(restart).collect();
    for cluster in &clusters {
        let ready = cluster.wait_until_ready(&site);
        assert_has_known_hosts(&ready, &["node-1", "node-2", "node-3"], &[]);
    }
    simulations.into_iter().for_each(|simulation| drop(simulation.interrupt()));
}

#[test]
fn faults_without_a_validation_leave_clusters_ready() {
    let site = SimulationSite::start();
    let cluster = SimulatedCluster::with_vips(&site, "gaps");
    let simulation = simulate_faults(&site, &cluster, 0, &FAULTS_WITHOUT_VALIDATION);
    cluster.wait_until_ready(&site);
    simulation.interrupt();
}
