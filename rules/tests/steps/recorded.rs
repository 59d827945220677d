//! Recordings of steps that version 063b2579 of the Assisted Installer sent to simulated hosts.
//!
//! `data/steps.json` contains a list of texts and a list of clusters. Each cluster has its settings, its hosts, and the
//! steps for each status: seconds, action, and the first step of each type. A step has the number of its host and the
//! indexes of its arguments in the list of texts. Names and ids are placeholders.

use std::collections::{BTreeMap, BTreeSet};

use assisted::cluster::{ClusterKind, DiskEncryption};
use assisted::host::{HostKind, HostRole, HostStatus};
use assisted::step::{PostStepAction, StepType};
use rules::steps::{PlannedSteps, StepSettings};
use rules::view::{ClusterSettings, HostView};
use serde::Deserialize;
use serde_json::Value;

use crate::machines::{args, cluster, host, id, nic, plan, settings, view};

/// Recordings that this crate does not reproduce, because the status of the host changed between the reading of the
/// status and the poll.
const OUTDATED_STATUS: [(&str, HostStatus); 1] = [("faults", HostStatus::Discovering)];

/// Recordings that combine two polls. During the first poll, no other host could be checked, so the order of the steps
/// is unknown.
const SEVERAL_POLLS: [(&str, HostStatus); 1] = [("masters-few", HostStatus::PendingForInput)];

/// Types of steps without an implementation.
const NOT_AVAILABLE: [StepType; 3] =
    [StepType::Install, StepType::InstallationDiskSpeedCheck, StepType::ContainerImageAvailability];

#[derive(Deserialize)]
struct Recordings {
    texts: Vec<String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    cluster: RecordedCluster,
    hosts: BTreeMap<u128, RecordedHost>,
    steps: BTreeMap<HostStatus, (u32, PostStepAction, Vec<RecordedStep>)>,
}

#[derive(Deserialize)]
struct RecordedCluster {
    release_image: String,
    api_vips: Vec<std::net::IpAddr>,
    ingress_vips: Vec<std::net::IpAddr>,
    disk_encryption: DiskEncryption,
    additional_ntp_source: String,
}

#[derive(Deserialize)]
struct RecordedHost {
    kind: HostKind,
    role: HostRole,
    nics: Vec<(String, String, Vec<String>)>,
}

/// Type of the step, number of the host, and indexes of the arguments.
type RecordedStep = (StepType, u128, Vec<usize>);

impl Case {
    fn cluster(&self, joining: bool) -> ClusterSettings {
        let recorded = &self.cluster;
        ClusterSettings {
            kind: if joining { ClusterKind::AddHostsCluster } else { ClusterKind::Cluster },
            release_image: recorded.release_image.as_str().into(),
            api_vips: recorded.api_vips.clone(),
            ingress_vips: recorded.ingress_vips.clone(),
            disk_encryption: recorded.disk_encryption.clone(),
            additional_ntp_source: recorded.additional_ntp_source.as_str().into(),
            api_vip_dns_name: joining.then(|| "api.site.example.com".into()),
            ..cluster()
        }
    }

    /// Returns the hosts of the cluster. Host `number` has the given status, the hosts in `targets` are `known`, and
    /// all other hosts are disconnected.
    fn hosts(&self, number: u128, status: HostStatus, targets: &BTreeSet<u128>) -> Vec<HostView> {
        let status_of = |other: u128| match other {
            _ if other == number => status,
            _ if targets.contains(&other) => HostStatus::Known,
            _ => HostStatus::Disconnected,
        };
        let hosts = self.hosts.iter().map(|(other, recorded)| {
            let nics = recorded.nics.iter().map(|(name, mac, addresses)| {
                nic(name, mac, &addresses.iter().map(String::as_str).collect::<Vec<_>>())
            });
            HostView {
                kind: recorded.kind,
                role: recorded.role,
                status: status_of(*other),
                ..host(*other, nics.collect())
            }
        });
        hosts.collect()
    }
}

/// Replaces the placeholders in a text.
fn fill(text: &str) -> String {
    let mut text = text.replace("<name>", "site").replace("<cluster>", &cluster().id.to_string());
    text = text.replace("<infra-env>", &id(0xe).to_string());
    for number in 1..10 {
        text = text.replace(&format!("<host-{number}>"), &id(number).to_string());
    }
    text
}

/// Returns the numbers of the hosts in an argument of `connectivity-check`.
fn target_numbers(argument: &str) -> BTreeSet<u128> {
    let hosts: Vec<Value> = serde_json::from_str(argument).unwrap();
    hosts
        .iter()
        .map(|host| host["host_id"].as_str().unwrap().parse::<uuid::Uuid>().unwrap().as_u128())
        .collect()
}

/// Sorts the hosts in an argument of `connectivity-check` by id. In the Assisted Installer, their order changes between
/// calls.
fn in_order(argument: &str) -> String {
    let mut hosts: Vec<Value> = serde_json::from_str(argument).unwrap();
    hosts.sort_by_key(|host| host["host_id"].to_string());
    serde_json::to_string(&hosts).unwrap()
}

/// The recorded steps for one status in a cluster.
struct Recorded<'a> {
    case: &'a Case,
    status: HostStatus,
    steps: &'a [RecordedStep],
    texts: &'a [String],
}

impl Recorded<'_> {
    /// Returns the steps that this crate plans for a host.
    fn plan(&self, number: u128) -> PlannedSteps {
        let check = |step: &&RecordedStep| step.0 == StepType::ConnectivityCheck && step.1 == number;
        let check = self.steps.iter().find(check);
        let targets = check.map(|(_, _, args)| target_numbers(&self.texts[args[0]])).unwrap_or_default();
        let hosts = self.case.hosts(number, self.status, &targets);
        let host = hosts.iter().find(|host| host.id.0 == id(number)).unwrap();
        let view = view(self.case.cluster(host.joins()), &hosts);
        let is_in_pool = self.status.as_str().ends_with("-unbound") || self.status == HostStatus::Unbinding;
        plan(host, (!is_in_pool).then_some(&view), &StepSettings { upgrade_agents: false, ..settings() })
    }

    /// Compares the recorded arguments of a step with the arguments of this crate. Returns `true` if the step is
    /// implemented.
    fn compare(&self, planned: &PlannedSteps, (step_type, _, indexes): &RecordedStep) -> bool {
        let what = format!("{} {} {step_type}", self.case.name, self.status);
        if NOT_AVAILABLE.contains(step_type) {
            assert!(planned.skipped.contains(&(*step_type, "not available yet".to_owned())), "{what}");
            return false;
        }
        let expected = indexes.iter().map(|index| match step_type {
            StepType::ConnectivityCheck => in_order(&self.texts[*index]),
            _ => self.texts[*index].clone(),
        });
        let expected: Vec<_> = expected.collect();
        assert_eq!(args(&planned.steps, *step_type), Some(&*expected), "{what}");
        true
    }
}

#[test]
fn steps_equal_the_recorded_steps() {
    let Recordings { texts, cases } = serde_json::from_str(include_str!("../data/steps.json")).unwrap();
    let texts: Vec<_> = texts.iter().map(|text| fill(text)).collect();
    let mut compared = BTreeMap::new();
    let statuses =
        cases.iter().flat_map(|case| case.steps.iter().map(move |(status, row)| (case, *status, row)));
    for (case, status, (seconds, action, steps)) in statuses {
        let what = (case.name.as_str(), status);
        if OUTDATED_STATUS.contains(&what) {
            continue;
        }
        let recorded = Recorded { case, status, steps, texts: &texts };
        let mut polled: BTreeSet<u128> = steps.iter().map(|(_, host, _)| *host).collect();
        if polled.is_empty() {
            // A recording without steps does not name its host. The host with the highest number is used: in `day2`,
            // the joining host.
            polled.extend(case.hosts.keys().next_back());
        }
        let mut types = Vec::new();
        for number in &polled {
            let planned = recorded.plan(*number);
            assert_eq!(planned.steps.next_instruction_seconds, *seconds, "{what:?}");
            assert_eq!(planned.steps.post_step_action, *action, "{what:?}");
            types.extend(planned.steps.instructions.iter().map(|step| step.step_type.known().unwrap()));
            types.extend(planned.skipped.iter().map(|(step_type, _)| *step_type));
            for step in steps.iter().filter(|(_, host, _)| host == number) {
                if recorded.compare(&planned, step) {
                    *compared.entry(step.0).or_insert(0) += 1;
                }
            }
        }
        let mut expected: Vec<_> = steps.iter().map(|(step_type, ..)| *step_type).collect();
        if polled.len() > 1 || SEVERAL_POLLS.contains(&what) {
            types.sort_unstable();
            types.dedup();
            expected.sort_unstable();
        }
        assert_eq!(types, expected, "{what:?}");
    }
    // Make sure that the test has compared something.
    assert_eq!(compared.len(), 10, "{compared:?}");
    assert!(compared.values().sum::<i32>() > 300, "{compared:?}");
}
