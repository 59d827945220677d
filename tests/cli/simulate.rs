//! `kindling simulate` against `kindling serve` on SQLite: statuses, faults, seeds and errors.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use kindling::assisted::client::{ApiClient, ClientCredential};
use kindling::assisted::infra_env::InfraEnvCreateParams;
use kindling::assisted::{ClusterId, HostId, InfraEnvId, Secret};
use serde_json::{Value, json};

use crate::serve::{PATIENCE, ServeProcess};
use crate::support::Scratch;

/// A server, and the requests of its users.
pub(crate) struct SimulationSite {
    scratch: Scratch,
    pub(crate) server: ServeProcess,
}

/// Blocks until a request to the server ends.
pub(crate) fn wait<T>(request: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(request)
}

impl SimulationSite {
    pub(crate) fn start() -> Self {
        let scratch = Scratch::new();
        let images = json!([{
            "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94.1",
            "url": "http://127.0.0.1:1/base.iso",
        }]);
        let releases = json!([{
            "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "4.18.3",
            "url": "quay.io/openshift-release-dev/ocp-release:4.18.3-x86_64",
        }]);
        let (images, releases) = (images.to_string(), releases.to_string());
        let variables =
            [("OS_IMAGES", images.as_str()), ("RELEASE_IMAGES", &releases), ("LOG_LEVEL", "warn")];
        let server = ServeProcess::start(&scratch, &variables, &[]);
        Self { scratch, server }
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.addresses[0])
    }

    pub(crate) fn client(&self) -> ApiClient {
        ApiClient::new(&self.url()).unwrap()
    }

    fn create_infra_env(&self, name: &str) -> InfraEnvId {
        create_infra_env(&self.client(), name)
    }

    /// Returns the arguments of a simulation with short poll intervals.
    fn arguments(&self, infra_env: InfraEnvId, more: &[&str]) -> Vec<String> {
        let line = format!(
            "simulate --url {} --infra-env {infra_env} --poll-interval 200ms --report-interval 200ms --json",
            self.url()
        );
        line.split(' ').chain(more.iter().copied()).map(str::to_owned).collect()
    }

    pub(crate) fn simulate(&self, infra_env: InfraEnvId, more: &[&str]) -> RunningSimulation {
        let run = self.scratch.command(self.arguments(infra_env, more));
        RunningSimulation::spawn(run.command())
    }
}

/// Registers a cluster and returns its id.
fn create_cluster(client: &ApiClient) -> ClusterId {
    let params = serde_json::from_value(json!({
        "name": "edge", "openshift_version": "4.18", "base_dns_domain": "example.com",
        "pull_secret": r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#,
    }))
    .unwrap();
    wait(client.register_cluster(&params)).unwrap().id
}

fn create_infra_env(client: &ApiClient, name: &str) -> InfraEnvId {
    let params: InfraEnvCreateParams = serde_json::from_value(json!({
        "name": name, "pull_secret": r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#,
    }))
    .unwrap();
    wait(client.register_infra_env(&params)).unwrap().id
}

pub(crate) struct RunningSimulation {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl RunningSimulation {
    fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Reads reports until one fulfils the condition.
    #[track_caller]
    pub(crate) fn wait_until(&mut self, is_done: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for line in self.lines.by_ref() {
            last = serde_json::from_str(&line.unwrap()).unwrap();
            if is_done(&last) {
                return last;
            }
        }
        panic!("the simulation ended: {last}")
    }

    #[track_caller]
    fn wait_for_statuses(&mut self, expected: &[(&str, u64)]) -> Value {
        let expected: BTreeMap<_, _> = expected.iter().copied().collect();
        let expected = json!(expected);
        self.wait_until(|report| report["statuses"] == expected)
    }

    /// Interrupts the simulation like Ctrl-C, and returns its last report.
    pub(crate) fn interrupt(mut self) -> Value {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let last = self.wait_until(|report| report["event"] == "end");
        assert!(self.child.wait().unwrap().success());
        last
    }
}

impl Drop for RunningSimulation {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn simulated_hosts_become_known() {
    let site = SimulationSite::start();
    let infra_env = site.create_infra_env("known");
    let mut simulation = site.simulate(infra_env, &["--profile", "standard", "--hosts", "5"]);
    simulation.wait_for_statuses(&[("known-unbound", 5)]);
    // After the first polls, the server has the outputs of all steps.
    simulation.wait_until(|report| report["steps"]["replies_omitted"].as_u64() > Some(0));
    let report = simulation.interrupt();
    let total = json!({"total": 5, "started": 5, "registrations": 5, "ended": 0});
    assert_eq!(report["hosts"], total);
    assert_eq!(report["errors"], json!({}), "{report}");
    assert_eq!(report["requests"]["register"]["count"], 5);
    // Each host has sent its inventory report and its time servers once.
    assert_eq!(report["requests"]["reply"]["count"], 10, "{report}");
    let mut names: Vec<_> = wait(site.client().list_hosts(infra_env))
        .unwrap()
        .iter()
        .map(|host| host.requested_hostname.clone())
        .collect();
    names.sort();
    assert_eq!(names, ["master-1", "master-2", "master-3", "worker-1", "worker-2"]);
}

#[test]
fn faults_decide_statuses() {
    let site = SimulationSite::start();
    let infra_env = site.create_infra_env("faults");
    let profile = "groups:
- {name: good, count: 2}
- {name: little, count: 1, faults: [little-memory]}
- {name: small, count: 1, faults: [small-disk]}
- {name: nameless, count: 1, faults: [invalid-hostname]}
- {name: lost, count: 1, faults: [media-lost]}
- {name: mute, count: 1, faults: [invalid-report]}
- {name: long, count: 1, faults: [report-too-large]}
- {name: unplugged, faults: [unplugged-link]}
";
    site.scratch.write("profile.yaml", profile);
    let mut simulation = site.simulate(infra_env, &["--profile", "profile.yaml", "--hosts", "9"]);
    let report = simulation.wait_for_statuses(&[
        ("discovering-unbound", 2),
        ("disconnected-unbound", 1),
        ("insufficient-unbound", 3),
        ("known-unbound", 3),
    ]);
    assert!(report["steps"]["failed"].as_u64() > Some(0), "{report}");
    let report = simulation.interrupt();
    let errors = report["errors"].as_object().unwrap();
    let has_error = |part: &str| errors.keys().any(|error| error.contains(part));
    assert!(has_error("status 413") && has_error("status 400"), "{errors:?}");
}

#[test]
fn fault_options_affect_only_selected_hosts() {
    let site = SimulationSite::start();
    let infra_env = site.create_infra_env("options");
    let options = ["--hosts", "10", "--fault", "little-memory=30%", "--fault", "no-ntp"];
    let mut simulation = site.simulate(infra_env, &options);
    simulation.wait_for_statuses(&[("insufficient-unbound", 3), ("known-unbound", 7)]);
    simulation.interrupt();
    let hosts = wait(site.client().list_hosts(infra_env)).unwrap();
    let unsynced = hosts.iter().filter(|host| host.ntp_sources.contains("unreachable")).count();
    assert_eq!(unsynced, 1);
}

#[test]
fn faults_of_steps_decide_statuses() {
    let site = SimulationSite::start();
    let infra_env = site.create_infra_env("steps");
    let profile = "groups:
- {name: usual, count: 1}
- {name: slow, count: 1, faults: [step:inventory=timeout]}
- {name: garbled, count: 1, faults: ['step:inventory=invalid-output']}
- {name: empty, count: 1, faults: [step:inventory=empty-output]}
- {name: lost, count: 1, faults: [step:inventory=media-lost]}
- {name: unsynced, faults: [step:ntp-synchronizer=exit-1]}
";
    site.scratch.write("profile.yaml", profile);
    let options =
        ["--profile", "profile.yaml", "--hosts", "8", "--fault", "step:domain-resolution=timeout=50%"];
    let mut simulation = site.simulate(infra_env, &options);
    simulation.wait_for_statuses(&[
        ("discovering-unbound", 3),
        ("disconnected-unbound", 1),
        ("known-unbound", 4),
    ]);
    let report = simulation.interrupt();
    let errors = report["errors"].as_object().unwrap();
    assert!(errors.keys().all(|error| error.contains("status 400")) && !errors.is_empty(), "{errors:?}");
    let hosts = wait(site.client().list_hosts(infra_env)).unwrap();
    let unsynced = hosts.iter().filter(|host| host.requested_hostname.starts_with("unsynced"));
    assert!(unsynced.clone().count() == 3 && unsynced.clone().all(|host| host.ntp_sources.is_empty()));
}

/// Returns the ids, names and reports of the hosts for a seed.
fn hosts_of_seed(site: &SimulationSite, name: &str, seed: &str) -> BTreeMap<String, (String, String)> {
    let infra_env = site.create_infra_env(name);
    let mut simulation = site.simulate(infra_env, &["--hosts", "3", "--seed", seed]);
    simulation.wait_for_statuses(&[("known-unbound", 3)]);
    simulation.interrupt();
    let hosts = wait(site.client().list_hosts(infra_env)).unwrap();
    hosts.into_iter().map(|host| (host.id.to_string(), (host.requested_hostname, host.inventory))).collect()
}

#[test]
fn equal_seeds_generate_equal_hosts() {
    let site = SimulationSite::start();
    let first = hosts_of_seed(&site, "first", "7");
    assert_eq!(first, hosts_of_seed(&site, "second", "7"));
    let other = hosts_of_seed(&site, "third", "8");
    assert!(first.keys().all(|id| !other.contains_key(id)));
}

#[test]
fn bound_host_registers_again() {
    let site = SimulationSite::start();
    let infra_env = site.create_infra_env("bound");
    let cluster = create_cluster(&site.client());
    let mut simulation = site.simulate(infra_env, &["--hosts", "1"]);
    simulation.wait_for_statuses(&[("known-unbound", 1)]);
    let host = wait(site.client().list_hosts(infra_env)).unwrap().remove(0).id;
    wait(site.client().bind_host(infra_env, host, cluster)).unwrap();
    let is_bound = |report: &Value| {
        let statuses = report["statuses"].as_object().unwrap();
        statuses
            .keys()
            .any(|status| ["insufficient", "known", "pending-for-input"].contains(&status.as_str()))
    };
    let report = simulation.wait_until(|report| report["hosts"]["registrations"] == 2 && is_bound(report));
    assert_eq!(report["errors"], json!({}));
    simulation.interrupt();
}

#[test]
fn simulation_ends_after_its_duration() {
    let site = SimulationSite::start();
    let infra_env = site.create_infra_env("duration");
    let mut arguments = site.arguments(infra_env, &["--duration", "1s"]);
    arguments.retain(|argument| argument != "--json");
    let text = site.scratch.command(arguments).run().expect_text();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].contains("3 of 3 hosts started"), "{text}");
    assert!(lines.iter().any(|line| line.starts_with("register ")), "{text}");
}

#[test]
fn explanation_lists_failing_validations_with_remedies() {
    let site = SimulationSite::start();
    let infra_env = site.create_infra_env("explained");
    let options = ["--hosts", "3", "--fault", "little-memory", "--explain"];
    let mut simulation = site.simulate(infra_env, &options);
    let report = simulation.wait_for_statuses(&[("insufficient-unbound", 1), ("known-unbound", 2)]);
    assert!(report.get("explanation").is_none(), "{report}");
    let explanation = simulation.interrupt()["explanation"].take();
    assert_eq!(explanation["host_count"], 3, "{explanation}");
    let hosts = explanation["hosts"].as_array().unwrap();
    let host = hosts.iter().find(|host| host["status"] == "insufficient-unbound").unwrap();
    let little = |it: &&Value| it["id"] == "has-min-memory";
    let validation = host["validations"].as_array().unwrap().iter().find(little).unwrap();
    assert_eq!(validation["status"], "failure");
    assert!(validation["message"].as_str().unwrap().contains("found only 4.00 GiB"), "{validation}");
    assert!(validation["remedy"].as_str().unwrap().contains("more memory"), "{validation}");

    // If a host belongs to a cluster, the explanation also covers the cluster.
    let cluster = create_cluster(&site.client());
    let host = hosts.iter().find(|host| host["status"] == "known-unbound").unwrap();
    let id = host["id"].as_str().unwrap().parse().unwrap();
    wait(site.client().bind_host(infra_env, id, cluster)).unwrap();
    let mut arguments = site.arguments(infra_env, &options);
    arguments.retain(|argument| argument != "--json");
    arguments.extend(["--duration", "1s"].map(str::to_owned));
    let text = site.scratch.command(arguments).run().expect_text();
    assert!(text.lines().any(|line| line.starts_with(&format!("cluster edge ({cluster}): "))), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("host ")).count(), 3, "{text}");
}

#[test]
fn hosts_do_not_wait_for_the_reader_of_reports() {
    let site = SimulationSite::start();
    let infra_env = site.create_infra_env("unread");
    let (reader, writer) = std::io::pipe().unwrap();
    // A pipe of minimum size is full after a few reports.
    let capacity = rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
    let run = site.scratch.command(site.arguments(infra_env, &["--duration", "120s"]));
    let mut child = run.command().stdin(Stdio::null()).stdout(writer).spawn().unwrap();
    let start = Instant::now();
    let wait_until = |is_done: &dyn Fn() -> bool| {
        while !is_done() {
            assert!(start.elapsed() < PATIENCE, "the hosts or their reports have stopped");
            thread::sleep(Duration::from_millis(20));
        }
    };
    wait_until(&|| rustix::io::ioctl_fionread(&reader).unwrap() + 1024 > u64::try_from(capacity).unwrap());
    let polls = || {
        let metrics = String::from_utf8(site.server.request("GET /metrics", "").body).unwrap();
        let polls = metrics.lines().find_map(|line| line.strip_prefix("kindling_host_check_ins_total "));
        polls.unwrap_or_else(|| panic!("{metrics}")).parse::<u64>().unwrap()
    };
    let enough = polls() + 30;
    wait_until(&|| polls() >= enough);
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let lines = std::io::read_to_string(reader).unwrap();
    assert!(child.wait().unwrap().success());
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(last["event"], "end", "{last}");
    assert!(last["requests"]["poll"]["count"].as_u64() >= Some(enough), "{last}");
}

#[test]
fn deleted_hosts_end_the_simulation() {
    let site = SimulationSite::start();
    let infra_env = site.create_infra_env("deleted");
    let mut simulation = site.simulate(infra_env, &["--hosts", "2"]);
    simulation.wait_for_statuses(&[("known-unbound", 2)]);
    for host in wait(site.client().list_hosts(infra_env)).unwrap() {
        wait(site.client().delete_host(infra_env, host.id)).unwrap();
    }
    let last = simulation.wait_until(|report| report["hosts"]["ended"] == 2);
    assert_eq!(last["statuses"], json!({"not registered": 2}));
    assert_eq!(simulation.child.wait().unwrap().code(), Some(1));
}

#[test]
fn missing_infra_env_and_unreachable_server_are_named() {
    let site = SimulationSite::start();
    let unknown = "4f630ba3-0297-4d99-a7c7-f62e7bca1332".parse().unwrap();
    let output = site.scratch.command(site.arguments(unknown, &[])).run();
    output.expect_failure(&format!("infra-env {unknown} does not exist on the server at {}", site.url()));
    let infra_env = site.create_infra_env("ended");
    let arguments = site.arguments(infra_env, &[]);
    let url = site.url();
    let scratch = Scratch::new();
    site.server.stop();
    scratch.command(arguments).run().expect_failure(&format!("cannot reach the server at {url}"));
}

#[test]
fn url_of_other_commands_is_not_used() {
    let site = SimulationSite::start();
    let infra_env = site.create_infra_env("other");
    let line = format!("simulate --infra-env {infra_env} --duration 1s --json");
    let output = site.scratch.command(line.split(' ')).env("KINDLING_URL", site.url()).run();
    output.expect_failure("http://127.0.0.1:8090");
}

#[test]
fn server_that_never_responds_is_an_error() {
    let scratch = Scratch::new();
    // The kernel accepts the connections, and no response follows.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let infra_env = "4f630ba3-0297-4d99-a7c7-f62e7bca1332";
    for json in ["", " --json"] {
        let line = format!("simulate --url {url} --infra-env {infra_env} --duration 300ms{json}");
        let phrase = format!("the simulation ended before the server at {url} responded");
        scratch.run_kindling(&line).expect_failure(&phrase);
    }
}

/// Responds to the request for the infra-env, and closes all other connections without a response.
fn serve_only_the_infra_env(listener: std::net::TcpListener, id: String) {
    let body = json!({"id": id, "kind": "InfraEnv", "href": "", "name": "x", "type": "full-iso"}).to_string();
    for connection in listener.incoming() {
        let mut reader = BufReader::new(connection.unwrap());
        let mut lines = std::iter::from_fn(|| {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|len| *len > 2).map(|_| line)
        });
        let Some(first) = lines.next() else { continue };
        lines.for_each(drop);
        if first.contains(&format!("GET /api/assisted-install/v2/infra-envs/{id} ")) {
            let len = body.len();
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len}\r\n\r\n");
            let _ = reader.get_mut().write_all(format!("{head}{body}").as_bytes());
        }
    }
}

#[test]
fn simulation_without_a_successful_request_is_an_error() {
    let scratch = Scratch::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let id = "4f630ba3-0297-4d99-a7c7-f62e7bca1332";
    thread::spawn(move || serve_only_the_infra_env(listener, id.to_owned()));
    let line = format!(
        "simulate --url {url} --infra-env {id} --agent-version quay.io/a/b:c --hosts 1 --report-interval 200ms --json"
    );
    let mut simulation = RunningSimulation::spawn(scratch.command(line.split(' ')).command());
    simulation.wait_until(|report| report["requests"]["register"]["failed"].as_u64() > Some(0));
    let process = simulation.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &process]).status().unwrap().success());
    simulation.lines.by_ref().for_each(drop);
    assert_eq!(simulation.child.wait().unwrap().code(), Some(1));
}

#[test]
fn tokens_are_required_and_checked() {
    let scratch = Scratch::new();
    scratch.run_kindling("auth keys --out keys").expect_success();
    let options = ["--auth-type", "local", "--ec-private-key-file", "keys/ec-private-key.pem"];
    let images = json!([{
        "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94.1",
        "url": "http://127.0.0.1:1/base.iso",
    }]);
    let server = ServeProcess::start(&scratch, &[("OS_IMAGES", &images.to_string())], &options);
    let url = format!("http://{}", server.addresses[0]);
    let token = |arguments: &str| {
        let line = format!("auth token --ec-private-key-file keys/ec-private-key.pem {arguments}");
        scratch.run_kindling(&line).expect_text().trim().to_owned()
    };
    let user = ClientCredential::Bearer(Secret::new(token("--user")));
    let client = ApiClient::builder(&url).credential(user).build().unwrap();
    let (infra_env, other) = (create_infra_env(&client, "one"), create_infra_env(&client, "other"));
    let simulate = |token: &str| {
        let line =
            format!("simulate --url {url} --infra-env {infra_env} --hosts 1 --report-interval 200ms --json");
        scratch.command(line.split(' ')).env("PULL_SECRET_TOKEN", token)
    };
    simulate("").run().expect_failure("the server does not accept the token (status 401)");
    let of_other = token(&format!("--infra-env {other}"));
    simulate(&of_other).run().expect_failure(&format!(
        "infra-env {infra_env} does not exist on the server at {url}, or the token is"
    ));
    let of_infra_env = token(&format!("--infra-env {infra_env}"));
    let mut simulation = RunningSimulation::spawn(simulate(&of_infra_env).command());
    simulation.wait_for_statuses(&[("known-unbound", 1)]);
    simulation.interrupt();
}

#[test]
fn rejects_invalid_options() {
    let scratch = Scratch::new();
    let id = HostId::fresh();
    for (line, phrase) in [
        ("simulate".to_owned(), "--infra-env <ID>"),
        ("simulate --infra-env x".to_owned(), "expected a UUID"),
        (format!("simulate --infra-env {id} --hosts 0"), "0 is not in"),
        (format!("simulate --infra-env {id} --fault no-power"), "expected one of slow-disk"),
        (format!("simulate --infra-env {id} --fault no-ntp=many"), "such as 3 or 10%"),
        (format!("simulate --infra-env {id} --fault step:ntp=exit-1"), "expected one of inventory, "),
        (format!("simulate --infra-env {id} --poll-interval 1ms"), "expected at least 100ms"),
    ] {
        scratch.run_kindling(&line).expect_usage_error(phrase);
    }
    let output = scratch.run_kindling(&format!("simulate --infra-env {id} --profile missing"));
    output.expect_failure("cannot read profile missing; built-in profiles are sno, compact");
    scratch.write("profile.yaml", "groups: [{name: a, ram: 3}]");
    let output = scratch.run_kindling(&format!("simulate --infra-env {id} --profile profile.yaml"));
    output.expect_failure("unknown field `ram`");
}
