//! The leader of two replicas is killed while the hosts of a cluster change. The other replica continues, and no status
//! change is lost or repeated.
//!
//! Both replicas use one PostgreSQL database. `KINDLING_KILLS` is the number of kills.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use agent::observer::{AgentEvent, AgentObserver};
use agent::session::HostSession;
use agent::simulated::{Fault, SimulatedMachine, SimulatedSite};
use agent::{Agent, Machine, StepFailure, StepOutcome};
use kindling::assisted::client::ApiClient;
use kindling::assisted::request::StepRequest;
use kindling::assisted::{HostId, InfraEnvId};
use kindling::simulation::read_profile;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use crate::database::{TestDatabase, postgres_url};
use crate::serve::{PATIENCE, ServeProcess};
use crate::support::Scratch;

/// Maximum time after a kill until the statuses reflect the state of the hosts. A replica takes over within 15 seconds,
/// and agents with a broken connection pause for up to 20 seconds.
const MAX_TAKEOVER: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(200);
const API: &str = "/api/assisted-install/v2";
const PULL_SECRET: &str = r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#;
const SEED: u64 = 1;

/// Returns the number of kills. `.ci/full` requests more.
fn kills() -> usize {
    std::env::var("KINDLING_KILLS").map_or(3, |kills| kills.parse().unwrap())
}

/// Pseudo-random numbers from a seed.
struct SeededNumbers(u64);

impl SeededNumbers {
    /// Returns a number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        // The constants of Knuth's MMIX. The high bits are the most random ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn millis(&mut self, end: u64) -> Duration {
        Duration::from_millis(self.below(end))
    }
}

/// A machine with an intermittent fault.
struct ChangingMachine {
    healthy: SimulatedMachine,
    faulty: SimulatedMachine,
    has_fault: Arc<AtomicBool>,
}

impl Machine for ChangingMachine {
    async fn host_id(&self) -> HostId {
        self.healthy.id()
    }

    async fn run_step(
        &self,
        request: StepRequest,
        session: &HostSession,
    ) -> Result<StepOutcome, StepFailure> {
        let has_fault = self.has_fault.load(Ordering::Relaxed);
        let machine = if has_fault { &self.faulty } else { &self.healthy };
        machine.run_step(request, session).await
    }
}

/// The failures of requests, except failures during the death of a replica.
#[derive(Default)]
struct RequestWatch {
    /// Whether a replica is dead. Then connections break, and the other replica may be overloaded.
    is_replica_dead: AtomicBool,
    requests: AtomicU64,
    excused: AtomicU64,
    failures: Mutex<Vec<String>>,
}

impl RequestWatch {
    fn record<E: Display>(&self, what: &str, result: Result<(), E>) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let Err(error) = result else { return };
        if self.is_replica_dead.load(Ordering::SeqCst) {
            self.excused.fetch_add(1, Ordering::Relaxed);
        } else {
            self.failures.lock().unwrap().push(format!("{what}: {error}"));
        }
    }
}

impl AgentObserver for RequestWatch {
    fn observe(&self, event: &AgentEvent<'_>) {
        if let AgentEvent::Request { kind, outcome, .. } = event {
            self.record(&format!("{kind:?}"), *outcome);
        }
    }
}

/// A load balancer, which forwards each connection to the next running replica.
#[derive(Default)]
struct LoadBalancer {
    replicas: Mutex<Vec<String>>,
    connections: AtomicUsize,
}

impl LoadBalancer {
    /// Accepts connections until the runtime ends.
    fn start(self: &Arc<Self>, runtime: &Runtime) -> SocketAddr {
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let balancer = Arc::clone(self);
        runtime.spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(Arc::clone(&balancer).forward(client));
            }
        });
        address
    }

    async fn forward(self: Arc<Self>, mut client: TcpStream) {
        let replica = {
            let replicas = self.replicas.lock().unwrap();
            replicas[self.connections.fetch_add(1, Ordering::Relaxed) % replicas.len()].clone()
        };
        // The death of a replica breaks its connections.
        if let Ok(mut replica) = TcpStream::connect(replica).await {
            let _ = tokio::io::copy_bidirectional(&mut client, &mut replica).await;
        }
    }
}

/// Two replicas behind a load balancer, and a compact cluster with simulated hosts.
struct ReplicatedSite {
    runtime: Runtime,
    scratch: Scratch,
    database: TestDatabase,
    replicas: [Option<ServeProcess>; 2],
    balancer: Arc<LoadBalancer>,
    watch: Arc<RequestWatch>,
    has_fault: Arc<AtomicBool>,
    cluster: String,
}

impl ReplicatedSite {
    fn start(server: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let (scratch, database) = (Scratch::new(), runtime.block_on(TestDatabase::create(server)));
        let replicas = [0, 1].map(|number| Some(start_replica(&scratch, &database.url, number)));
        let mut site = Self {
            runtime,
            scratch,
            database,
            replicas,
            balancer: Arc::default(),
            watch: Arc::default(),
            has_fault: Arc::default(),
            cluster: String::new(),
        };
        site.balance();
        let url = format!("http://{}", site.balancer.start(&site.runtime));
        let infra_env = site.create_cluster(&url);
        site.start_agents(&url, infra_env);
        site.start_reads(&url);
        site
    }

    /// Updates the load balancer to use the running replicas.
    fn balance(&self) {
        let running = self.replicas.iter().flatten().map(|replica| replica.addresses[0].clone());
        *self.balancer.replicas.lock().unwrap() = running.collect();
    }

    fn create_cluster(&mut self, url: &str) -> InfraEnvId {
        let client = ApiClient::new(url).unwrap();
        let params = json!({
            "name": "compact", "openshift_version": "4.18", "base_dns_domain": "example.com",
            "pull_secret": PULL_SECRET, "api_vips": [{"ip": "192.168.111.5"}],
            "ingress_vips": [{"ip": "192.168.111.6"}],
        });
        let params = serde_json::from_value(params).unwrap();
        let cluster = self.runtime.block_on(client.register_cluster(&params)).unwrap().id;
        let params = json!({"name": "compact", "pull_secret": PULL_SECRET, "cluster_id": cluster});
        let params = serde_json::from_value(params).unwrap();
        self.cluster = cluster.to_string();
        self.runtime.block_on(client.register_infra_env(&params)).unwrap().id
    }

    /// Starts the agents of three hosts, one of which loses its default route while `has_fault` is set.
    fn start_agents(&self, url: &str, infra_env: InfraEnvId) {
        let site = || SimulatedSite::new(read_profile("compact").unwrap(), 3, SEED).unwrap();
        let (healthy, faulty) = (Arc::new(site()), Arc::new(site().with_fault(Fault::NoDefaultRoute, 1)));
        for (healthy, faulty) in healthy.machines().zip(faulty.machines()) {
            let machine = ChangingMachine { healthy, faulty, has_fault: Arc::clone(&self.has_fault) };
            let version = "quay.io/edge-infrastructure/assisted-installer-agent:latest";
            let agent = Agent::new(ApiClient::new(url).unwrap(), infra_env, version, machine).unwrap();
            let agent = agent.observer(Arc::clone(&self.watch) as _).poll_interval(POLL_INTERVAL);
            self.runtime.spawn(async move { agent.run().await.map(drop).unwrap() });
        }
    }

    /// Reads the cluster and its list of events all the time. Each read goes to the next replica.
    fn start_reads(&self, url: &str) {
        let client = reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap();
        let paths = [format!("clusters/{}", self.cluster), format!("events?cluster_id={}", self.cluster)];
        let urls = paths.map(|path| format!("{url}{API}/{path}"));
        let watch = Arc::clone(&self.watch);
        self.runtime.spawn(async move {
            for url in urls.iter().cycle() {
                let response = client.get(url).send().await.and_then(reqwest::Response::error_for_status);
                watch.record("read", response.map(drop));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
    }

    fn replica(&self, number: usize) -> &ServeProcess {
        self.replicas[number].as_ref().unwrap()
    }

    /// Waits until a replica is the leader, and returns its number.
    fn leader(&self) -> usize {
        let start = Instant::now();
        loop {
            let is_leader = |number: &usize| {
                self.replica(*number).request("GET /health", "").json()["monitor"] == "active"
            };
            if let Some(leader) = [0, 1].iter().copied().find(is_leader) {
                return leader;
            }
            assert!(start.elapsed() < PATIENCE, "no replica is the leader");
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn kill(&mut self, number: usize) {
        self.watch.is_replica_dead.store(true, Ordering::SeqCst);
        let mut killed = self.replicas[number].take().unwrap();
        killed.child.kill().unwrap();
        killed.child.wait().unwrap();
        self.balance();
    }

    fn restart(&mut self, number: usize) {
        self.replicas[number] = Some(start_replica(&self.scratch, &self.database.url, number));
        self.balance();
    }

    /// Switches the fault of the host on and off for the duration `time`.
    fn change_for(&self, time: Duration, numbers: &mut SeededNumbers) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.has_fault.fetch_not(Ordering::Relaxed);
            let left = end.saturating_duration_since(Instant::now());
            thread::sleep(numbers.millis(600).min(left));
        }
    }

    /// Reads a path of the API from a replica.
    #[track_caller]
    fn read(&self, number: usize, path: &str) -> Value {
        let url = format!("http://{}{API}/{path}", self.replica(number).addresses[0]);
        let (status, body) = self.runtime.block_on(async {
            let response = reqwest::get(&url).await.unwrap();
            (response.status(), response.text().await.unwrap())
        });
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    fn statuses(&self, number: usize) -> BTreeMap<String, String> {
        let cluster = self.read(number, &format!("clusters/{}", self.cluster));
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let hosts = cluster["hosts"].as_array().unwrap().iter();
        let hosts = hosts.map(|host| (text(&host["id"]), text(&host["status"])));
        hosts.chain([(String::from("cluster"), text(&cluster["status"]))]).collect()
    }

    /// Sets the fault, and waits until a replica shows the resulting statuses. Returns the duration.
    fn wait_for_fault(&self, number: usize, has_fault: bool) -> Duration {
        self.has_fault.store(has_fault, Ordering::Relaxed);
        // The statuses of the cluster and of one host change, or no status does.
        let insufficient = ["insufficient", "insufficient", "known", "known"];
        let expected = if has_fault { insufficient } else { ["known", "known", "known", "ready"] };
        let start = Instant::now();
        loop {
            let statuses = self.statuses(number);
            let mut values: Vec<_> = statuses.values().map(String::as_str).collect();
            values.sort_unstable();
            if values == expected {
                return start.elapsed();
            }
            assert!(start.elapsed() < MAX_TAKEOVER, "fault {has_fault}: {statuses:?}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Checks that the events of status changes lead from the first status to the current one.
    fn check_events(&self, number: usize) -> usize {
        let path = format!("events?cluster_id={}&limit=-1&order=ascending", self.cluster);
        let events = self.read(number, &path);
        let pattern = regex::Regex::new("updated status from ([a-z-]+) to ([a-z-]+)").unwrap();
        let mut statuses = BTreeMap::<String, String>::new();
        let mut changes = 0;
        for event in events.as_array().unwrap() {
            let message = event["message"].as_str().unwrap();
            let (subject, from, to) = match event["name"].as_str().unwrap() {
                "host_status_updated" => {
                    let (_, [from, to]) = pattern.captures(message).unwrap().extract();
                    (event["host_id"].as_str().unwrap(), Some(from), to)
                }
                "cluster_status_updated" => ("cluster", None, message.rsplit(' ').next().unwrap()),
                _ => continue,
            };
            let before = statuses.insert(subject.to_owned(), to.to_owned());
            let before = before.as_deref().unwrap_or("discovering");
            assert_eq!(from.unwrap_or(before), before, "a gap before {event}");
            assert_ne!(to, before, "repeated: {event}");
            changes += 1;
        }
        assert_eq!(statuses, self.statuses(number), "the last events and the statuses differ");
        changes
    }

    #[track_caller]
    fn check_requests(&self) {
        let failures = self.watch.failures.lock().unwrap();
        assert!(failures.is_empty(), "{} requests failed: {failures:#?}", failures.len());
    }
}

fn start_replica(scratch: &Scratch, database: &str, number: usize) -> ServeProcess {
    let images = json!([{
        "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94.1",
        "url": "http://127.0.0.1:1/base.iso",
    }]);
    let releases = json!([{
        "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "4.18.3",
        "url": "quay.io/openshift-release-dev/ocp-release:4.18.3-x86_64",
    }]);
    let (images, releases, data) = (images.to_string(), releases.to_string(), format!("data-{number}"));
    let variables = [
        ("OS_IMAGES", images.as_str()),
        ("RELEASE_IMAGES", &releases),
        ("LOG_LEVEL", "warn"),
        ("KINDLING_DATABASE_URL", database),
    ];
    let options = ["--data-dir", &data, "--files", "files"];
    ServeProcess::start(scratch, &variables, &options)
}

#[test]
fn killed_leaders_are_replaced_and_no_status_change_is_lost() {
    let Some(server) = postgres_url() else { return };
    let mut site = ReplicatedSite::start(&server);
    let mut numbers = SeededNumbers(SEED);
    site.wait_for_fault(0, false);
    let (mut longest, mut changes) = (Duration::ZERO, 0);
    for kill in 1..=kills() {
        let leader = site.leader();
        let survivor = 1 - leader;
        site.change_for(numbers.millis(3000), &mut numbers);
        site.kill(leader);
        let killed = Instant::now();
        site.change_for(numbers.millis(2000), &mut numbers);
        // At least one of the two statuses is new.
        let first = numbers.below(2) == 0;
        site.wait_for_fault(survivor, first);
        site.wait_for_fault(survivor, !first);
        longest = longest.max(killed.elapsed());
        changes = site.check_events(survivor);
        site.restart(leader);
        site.watch.is_replica_dead.store(false, Ordering::SeqCst);
        site.check_requests();
        println!("kill {kill}: {} ms, {changes} changes", killed.elapsed().as_millis());
    }
    let ReplicatedSite { runtime, database, replicas, watch, .. } = site;
    let requests = [&watch.requests, &watch.excused].map(|count| count.load(Ordering::Relaxed));
    println!(
        "longest {} ms, {changes} changes, requests and excused failures {requests:?}",
        longest.as_millis()
    );
    // The agents must end before the server.
    runtime.shutdown_background();
    drop(replicas);
    Runtime::new().unwrap().block_on(database.drop());
}
