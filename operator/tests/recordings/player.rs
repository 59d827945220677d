//! Sends the requests of a recording, and waits for the recorded changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use inventory::id::HostId;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::comparison::{Comparison, KnownDifference};
use crate::hub::AuditEntry;
use crate::machine::Machine;
use crate::machines;
use crate::observer::{self, Observer};
use crate::recording::{Action, Entry, Fields, MachineStep, Recording};
use crate::site::{PULL_SECRET, Site};
use crate::words::{Words, line};

/// Maximum time until a recorded change appears.
const LIMIT: Duration = Duration::from_secs(60);
/// Duration for which an action without a recorded change must not change anything.
const QUIET: Duration = Duration::from_millis(300);
/// Duration for which polling machines must not cause writes.
const POLLING: Duration = Duration::from_millis(1500);

/// A player that sends the requests of one recording to this service.
pub(crate) struct Player {
    site: Site,
    admin: Client,
    recording: Recording,
    words: Words,
    observer: Observer,
    known: &'static [KnownDifference],
    host_ids: Vec<HostId>,
    machines: Vec<Machine>,
    responses: BTreeSet<String>,
}

/// The recorded changes up to the next request.
#[derive(Debug, Default)]
struct Settled {
    fields: Fields,
    gone: Vec<String>,
}

impl Player {
    pub(crate) fn new(
        site: Site,
        recording: Recording,
        known_differences: &'static [KnownDifference],
    ) -> Self {
        let words = Words::default();
        words.add(&site.namespace, "<namespace>");
        let host_ids: Vec<_> = (0..machines::COUNT).map(|_| HostId::fresh()).collect();
        for (id, number) in host_ids.iter().zip(1..) {
            words.add(id.to_string(), format!("<host-{number}>"));
        }
        let admin = site.hub.admin();
        let observer = Observer::start(&admin, &site.namespace, &words);
        let (machines, responses) = (Vec::new(), BTreeSet::new());
        Self {
            site,
            admin,
            recording,
            words,
            observer,
            known: known_differences,
            host_ids,
            machines,
            responses,
        }
    }

    /// Plays the recording, and returns the comparison.
    pub(crate) async fn run(mut self) -> Comparison {
        let start = self.site.hub.audit_mark().await;
        let timeline = std::mem::take(&mut self.recording.timeline);
        let mut recorded = BTreeSet::new();
        for (index, entry) in timeline.iter().enumerate() {
            match entry {
                Entry::Action(action) => {
                    recorded.insert(response_line(action, action.status, action.error.as_deref()));
                    self.send(action).await;
                }
                Entry::Machines { machines } => self.step(*machines).await,
                Entry::Change(change) => {
                    recorded.extend(change.fields().iter().map(|(field, value)| line(field, value)));
                    continue;
                }
                Entry::Gone { .. } => continue,
            }
            self.wait_for(&settled(&timeline[index + 1..])).await;
        }
        let user = self.site.user.name.clone();
        let is_write = |entry: &AuditEntry| {
            entry.user == user
                // Events are not counted, because upstream's service does not create any.
                && !["leases", "events"].contains(&entry.resource.as_str())
                && ["create", "update", "patch", "delete"].contains(&entry.verb.as_str())
        };
        let writes = self.site.hub.audit_since(start, is_write).await.len();
        let mut played = self.observer.lines();
        played.append(&mut self.responses);
        Comparison { recorded, played, known: self.known, writes }
    }

    /// Sends one recorded request of the client.
    async fn send(&mut self, action: &Action) {
        let mut words = action.action.split(' ');
        let (verb, kind, name) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let (group, version, plural) = observer::kind(kind);
        let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        let base = format!("{root}/{version}/namespaces/{}/{plural}", self.site.namespace);
        let path = format!("{base}/{}", self.words.text_of(name));
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let (method, path, body) = match verb {
            "create" => ("POST", base, created(&api_version, kind, name, action.spec.clone())),
            "patch" => ("PATCH", path, json!({"spec": action.patch})),
            "delete" => ("DELETE", path, Value::Null),
            other => panic!("{other}"),
        };
        let content_type = if verb == "patch" { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { String::new() } else { self.words.restore(&body.to_string()) };
        let request = http::Request::builder().method(method).uri(path).header("Content-Type", content_type);
        let request = request.body(body.into_bytes()).unwrap();
        let (status, error) = match self.admin.request::<Value>(request).await {
            Ok(_) if verb == "create" => (201, None),
            Ok(_) => (200, None),
            Err(kube::Error::Api(status)) => (status.code, Some(self.words.replace(&status.message))),
            Err(error) => panic!("{error}"),
        };
        self.responses.insert(response_line(action, status, error.as_deref()));
    }

    async fn step(&mut self, step: MachineStep) {
        match step {
            MachineStep::Boot => self.boot().await,
            MachineStep::Report => self.report().await,
            MachineStep::Poll => self.poll().await,
            MachineStep::Gone => {
                let last = "AgentClassification broken condition QueryErrors";
                self.until("no Agent fails any more", || {
                    self.observer.value(last).is_some_and(|value| value.contains("NoQueryErrors"))
                })
                .await;
            }
        }
    }

    async fn boot(&mut self) {
        let mut infra_envs = self.site.inventory.infra_envs(inventory::service::InfraEnvQuery::default());
        let infra_env = futures_util::TryStreamExt::try_next(&mut infra_envs).await.unwrap().unwrap();
        self.machines = machines::boot(&self.site, infra_env.id, &self.host_ids).await;
        for number in 1..=machines::COUNT {
            let state = format!("Agent <host-{number}> status debugInfo.state");
            self.until("an Agent shows its host", || {
                self.observer.value(&state).as_deref() == Some("discovering-unbound")
            })
            .await;
        }
    }

    /// Sends the hardware reports of the machines, after their Agents have been classified for the first time.
    async fn report(&mut self) {
        for (machine, number) in self.machines.iter().zip(1..) {
            let label =
                format!("Agent <host-{number}> label agentclassification.agent-install.openshift.io/size2");
            self.until("an Agent is classified", || self.observer.value(&label).is_some()).await;
            machines::report(machine, number).await;
        }
    }

    async fn poll(&mut self) {
        let mark = self.site.hub.audit_mark().await;
        let begin = Instant::now();
        while begin.elapsed() < POLLING {
            for (machine, number) in self.machines.iter().zip(1..) {
                machine.poll().await;
                machines::report(machine, number).await;
            }
            sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(self.site.requests_since(mark).await, [""; 0]);
    }

    /// Waits until the objects have the recorded values. For known differences, waits for the value of this service.
    async fn wait_for(&self, settled: &Settled) {
        if settled.fields.is_empty() && settled.gone.is_empty() {
            sleep(QUIET).await;
        }
        let expected: BTreeMap<_, _> = settled
            .fields
            .iter()
            .filter_map(|(field, value)| {
                let difference = self.known.iter().find(|it| it.is_recorded(field, value));
                let value = difference.map_or(Some(value.as_str()), |difference| difference.played);
                Some((field, value?))
            })
            .collect();
        let missing = || {
            let is_shown = |(field, value): &(&&String, &&str)| {
                self.observer.value(field).is_some_and(|played| is_recorded(field, &played, value))
            };
            let fields = expected.iter().filter(|it| !is_shown(it));
            let fields = fields.map(|(field, value)| {
                format!("{field}: expected {value:?}, not {:?}", self.observer.value(field))
            });
            let present = settled.gone.iter().filter(|object| self.observer.exists(object));
            fields.chain(present.map(|object| format!("{object} exists"))).collect::<Vec<_>>()
        };
        let begin = Instant::now();
        while !missing().is_empty() {
            assert!(begin.elapsed() < LIMIT, "{:#?}", missing());
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn until(&self, what: &str, is_met: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_met() {
            assert!(begin.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Returns `true` if a value equals the recorded value. Counts of Agents must be equal here; comparisons of lines
/// ignore them.
fn is_recorded(field: &str, played: &str, recorded: &str) -> bool {
    let is_count = recorded.contains("Agents failed") || field.ends_with("Count");
    played == recorded || !is_count && line(field, played) == line(field, recorded)
}

fn created(api_version: &str, kind: &str, name: &str, spec: Option<Value>) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if let Some(spec) = spec {
        object["spec"] = spec;
    } else {
        object["type"] = "kubernetes.io/dockerconfigjson".into();
        object["stringData"] = json!({".dockerconfigjson": PULL_SECRET});
    }
    object
}

/// Returns the final values of the recorded changes up to the next request.
fn settled(rest: &[Entry]) -> Settled {
    let mut settled = Settled::default();
    for entry in rest {
        match entry {
            Entry::Change(change) => settled.fields.extend(change.fields()),
            Entry::Gone { gone } => {
                settled.fields.retain(|field, _| !field.starts_with(&format!("{gone} ")));
                settled.gone.push(gone.clone());
            }
            Entry::Action(_) | Entry::Machines { .. } => break,
        }
    }
    settled.fields.retain(|_, value| value != crate::recording::REMOVED);
    settled
}

fn response_line(action: &Action, status: u16, error: Option<&str>) -> String {
    let patch = action.patch.as_ref().map(|patch| format!(" {patch}")).unwrap_or_default();
    line(&format!("response {}{patch}", action.action), &format!("{status} {}", error.unwrap_or_default()))
}
