//! A service on the hub, in a process whose cost is measured.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use fixtures::{Architecture, Era};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::hub::{AuditEntry, AuditMark, Hub, HubUser};
use crate::support::{KINDLING, Scratch, fixture, private_memory};

/// Clock ticks per second in `/proc/PID/stat`.
const TICKS: u64 = 100;
/// Duration without writes after which the work counts as done.
const QUIET: Duration = Duration::from_secs(6);

const ANY_PORT: &str = "127.0.0.1:0";
/// Options of a service with controllers.
const CONTROLLERS: [&str; 3] = ["--kube-api", "--kubeconfig", "kubeconfig"];

/// A service with one namespace. It ends when it is dropped.
pub(crate) struct Service<'hub> {
    hub: &'hub Hub,
    pub(crate) namespace: String,
    pub(crate) user: HubUser,
    scratch: Rc<Scratch>,
    child: Child,
    pub(crate) url: String,
}

/// The cost of a piece of work.
#[derive(Debug)]
pub(crate) struct Cost {
    /// Duration from the start to the last write.
    pub(crate) time: Duration,
    pub(crate) cpu: Duration,
    /// Number of requests that change objects, without leases.
    pub(crate) writes: BTreeMap<String, usize>,
}

impl Cost {
    pub(crate) fn total_writes(&self) -> usize {
        self.writes.values().sum()
    }
}

impl Drop for Service<'_> {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl<'hub> Service<'hub> {
    pub(crate) async fn start(hub: &'hub Hub) -> Self {
        Self::start_with(hub, &[]).await
    }

    /// Starts a service with further options.
    pub(crate) async fn start_with(hub: &'hub Hub, options: &[&str]) -> Self {
        let scratch = Scratch::new();
        let iso = scratch.write("live.iso", &fixture(Architecture::X86_64, Era::E2024_12).bytes);
        let images = json!([{
            "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94.1",
            "url": format!("file://{}", iso.display()),
        }]);
        scratch.write("images.json", images.to_string());
        let user = hub.new_user();
        hub.allow_everything(&user.name).await;
        scratch.write("kubeconfig", fs::read(hub.kubeconfig(&hub.url(), &user.token)).unwrap());
        let namespace = hub.namespace("large").await;
        let (child, url) = spawn(&scratch, "data", ANY_PORT, &controllers(&CONTROLLERS, &namespace, options));
        Self { hub, namespace, user, scratch: Rc::new(scratch), child, url }
    }

    /// Starts a replica: another user of the hub, with the same namespace, base images and database.
    pub(crate) async fn start_replica(&self, options: &[&str]) -> Self {
        let (hub, namespace, scratch) = (self.hub, self.namespace.clone(), Rc::clone(&self.scratch));
        let user = hub.new_user();
        hub.allow_everything(&user.name).await;
        scratch.write("replica", fs::read(hub.kubeconfig(&hub.url(), &user.token)).unwrap());
        let with_replica = ["--kube-api", "--kubeconfig", "replica"];
        let options = controllers(&with_replica, &namespace, options);
        let (child, url) = spawn(&scratch, "replica-data", ANY_PORT, &options);
        Self { hub, namespace, user, scratch, child, url }
    }

    /// Ends the process and starts it again with the same database and address, with or without the controllers. The
    /// address is part of the URLs in statuses.
    pub(crate) fn restart(&mut self, has_controllers: bool) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let options =
            if has_controllers { controllers(&CONTROLLERS, &self.namespace, &[]) } else { Vec::new() };
        let address = self.url.strip_prefix("http://").unwrap();
        (self.child, self.url) = spawn(&self.scratch, "data", address, &options);
    }

    /// Stops the process, like a paused machine.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Reads a resource of the REST API.
    pub(crate) async fn get(&self, path: &str) {
        let response = reqwest::get(format!("{}/api/assisted-install{path}", self.url)).await.unwrap();
        assert!(response.status().is_success(), "{path}: {}", response.status());
        response.bytes().await.unwrap();
    }

    /// Returns `true` if this replica reconciles.
    pub(crate) async fn is_leader(&self) -> bool {
        let response = reqwest::get(format!("{}/health", self.url)).await.unwrap();
        let health: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        health["kubernetes"]["leader"] == true
    }

    /// Runs another command of Kindling in the background.
    pub(crate) fn run(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(KINDLING);
        command.args(arguments).current_dir(self.scratch.folder());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
    }

    pub(crate) fn memory(&self) -> u64 {
        private_memory(self.child.id())
    }

    fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields = stat.rsplit_once(") ").unwrap().1.split(' ').collect::<Vec<_>>();
        let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 1000 / TICKS)
    }

    /// Returns the writes of the service since a mark.
    async fn writes_since(&self, mark: AuditMark) -> Vec<AuditEntry> {
        let is_write = |entry: &AuditEntry| {
            entry.user == self.user.name
                && entry.resource != "leases"
                && ["create", "patch", "update", "delete"].contains(&entry.verb.as_str())
        };
        self.hub.audit_since(mark, is_write).await
    }

    /// Returns the cost of work that ends when `count` objects of a kind have a status.
    pub(crate) async fn cost_until(
        &self,
        (resource, count): (&str, usize),
        limit: Duration,
        work: impl AsyncFnOnce(),
    ) -> Cost {
        let (mark, begin, cpu) = (self.hub.audit_mark().await, Instant::now(), self.cpu());
        work().await;
        let (mut number, mut last_write) = (0, begin);
        let writes = loop {
            let writes = self.writes_since(mark).await;
            if writes.len() != number {
                (number, last_write) = (writes.len(), Instant::now());
            }
            if last_write.elapsed() >= QUIET && objects_with_status(&writes, resource) >= count {
                break writes;
            }
            assert!(begin.elapsed() < limit, "{} {resource}", objects_with_status(&writes, resource));
            sleep(Duration::from_millis(500)).await;
        };
        Cost { time: last_write - begin, cpu: self.cpu() - cpu, writes: by_request(&writes) }
    }

    /// Returns the cost of a period.
    pub(crate) async fn cost_of(&self, duration: Duration) -> Cost {
        let (mark, cpu) = (self.hub.audit_mark().await, self.cpu());
        sleep(duration).await;
        let writes = by_request(&self.writes_since(mark).await);
        Cost { time: duration, cpu: self.cpu() - cpu, writes }
    }
}

/// Returns the options of a service that reconciles one namespace.
fn controllers<'a>(connection: &[&'a str], namespace: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    let namespaces = ["--kube-lease-namespace", namespace, "--kube-namespaces", namespace];
    [connection, &namespaces, options].concat()
}

/// Starts the service and returns its URL.
fn spawn(scratch: &Scratch, data: &str, address: &str, options: &[&str]) -> (Child, String) {
    let mut command = Command::new(KINDLING);
    command.args(["serve", "--listen", address, "--data-dir", data]);
    command.args(["--os-images-file", "images.json"]).args(options);
    command.current_dir(scratch.folder()).env("LOG_LEVEL", "warn");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("listening on ").unwrap().to_owned();
    (child, url)
}

/// Returns the number of objects with a written status.
fn objects_with_status(writes: &[AuditEntry], resource: &str) -> usize {
    let of_status = |entry: &&AuditEntry| {
        entry.resource == resource && entry.subresource == "status" && entry.code == 200
    };
    writes.iter().filter(of_status).map(|entry| &entry.name).collect::<BTreeSet<_>>().len()
}

/// Returns the number of requests by verb and resource.
fn by_request(writes: &[AuditEntry]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for entry in writes {
        let subresource = if entry.subresource.is_empty() { "" } else { "/status" };
        let failure = if entry.code >= 300 { format!(" {}", entry.code) } else { String::new() };
        *counts.entry(format!("{} {}{subresource}{failure}", entry.verb, entry.resource)).or_default() += 1;
    }
    counts
}
