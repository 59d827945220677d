//! Compares assessments with recordings of the Assisted Installer.
//!
//! Installed clusters were recorded just before their installation. The recording `day2` is not compared: it describes
//! a cluster to which hosts are added, which has no results.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use assisted::host::HostStatus;
use rules::validation::{ClusterValidationId, HostValidationId, ValidationId};
use rules::view::{ClusterView, HostView};
use serde_json::Value;

use crate::assess::{Assessment, Row, assess, assess_with, rows, status_of};
use crate::data::{Case, Recordings, Start};
use crate::model::{cluster_status, failing_gates, host_status};

/// Clusters whose user has set the machine networks.
const SETS_MACHINE_NETWORKS: [&str; 2] = ["dual", "lb-user"];

/// Clusters whose recorded roles depend on their history. In `faults`, one host had too little memory at first. In the
/// other clusters, the hosts are equal, so the roles depend on the order in which the service processed the hosts. The
/// test compares only the number of hosts with each role.
const STICKY_ROLES: [&str; 6] = ["faults", "isolated", "lb-user", "names", "operators-ai", "operators-mce"];

/// Clusters with operators whose requirements for control plane nodes no host meets. These requirements are not
/// implemented, so the test treats the recorded roles as chosen by the user.
const OPERATORS: [&str; 1] = ["operators-small"];

/// Clusters whose recorded groups are older than the recorded reports. The document was read before the Assisted
/// Installer had processed the last report.
const EARLIER_GROUPS: [&str; 1] = ["failing"];

/// Clusters whose recorded `schedulable_masters_forced_true` is older than the recorded roles. The user chose the role
/// of each host, and the Assisted Installer did not compute the value again.
const EARLIER_SCHEDULING: [&str; 1] = ["masters-many"];

/// Unimplemented validations that explain why the recorded status of a host differs. Ids with an implementation are
/// ignored.
const UNIMPLEMENTED: &[(&str, &[&str])] = &[
    ("baremetal-vmware", &["vsphere-disk-uuid-enabled"]),
    ("collision", &["no-ip-collisions-in-network"]),
    (
        "none-no-dns",
        &[
            "api-domain-name-resolved-correctly",
            "api-int-domain-name-resolved-correctly",
            "apps-domain-name-resolved-correctly",
        ],
    ),
    ("nutanix-other", &["compatible-with-cluster-platform"]),
    ("operators-lvm-one-disk", &["has-cpu-cores-for-role", "lvm-requirements-satisfied"]),
    (
        "operators-small",
        &[
            "cnv-requirements-satisfied",
            "has-cpu-cores-for-role",
            "has-memory-for-role",
            "odf-requirements-satisfied",
        ],
    ),
    ("sizes-sno", &["has-cpu-cores-for-role"]),
    ("sizes-sno-memory", &["has-memory-for-role"]),
    (
        "slow",
        &["sufficient-network-latency-requirement-for-role", "sufficient-packet-loss-requirement-for-role"],
    ),
    ("tpm", &["disk-encryption-requirements-satisfied"]),
    ("tpm-workers", &["disk-encryption-requirements-satisfied"]),
    ("vsphere-no-uuid", &["vsphere-disk-uuid-enabled"]),
];

fn implemented<Id: ValidationId>(rows: &[Row]) -> Vec<Row> {
    rows.iter().filter(|row| Id::find(&row.0).is_some()).cloned().collect()
}

/// The differences between assessments and recordings.
#[derive(Default)]
struct Comparison {
    differences: Vec<String>,
    /// For each cluster, the unimplemented validations that explain a different status of a host.
    explanations: BTreeMap<String, BTreeSet<String>>,
}

impl Comparison {
    fn equal<T: PartialEq + Debug>(&mut self, what: &str, actual: T, recorded: T) {
        if actual != recorded {
            self.differences.push(format!("{what}:\n  actual   {actual:?}\n  recorded {recorded:?}"));
        }
    }

    fn rows(&mut self, what: &str, actual: &[Row], recorded: &[Row]) {
        let only = |one: &[Row], other: &[Row]| -> Vec<Row> {
            one.iter().filter(|row| !other.contains(row)).cloned().collect()
        };
        self.equal(what, only(actual, recorded), only(recorded, actual));
    }

    fn hosts(&mut self, recordings: &Recordings, case: &Case, assessment: &Assessment, start: Start) {
        for (host, assessed) in case.hosts.iter().zip(&assessment.hosts) {
            let what = format!("{} host {} {start:?}", case.name, host.number);
            let recorded = recordings.rows(&host.validations);
            let expected = implemented::<HostValidationId>(&recorded);
            self.rows(&what, &rows(&assessed.evaluation.results), &expected);
            // The model must explain the recording.
            self.equal(&what, host_status(&recorded), (host.status, Some(host.status_info.clone())));
            let (status, info) = host_status(&expected);
            self.equal(&what, status_of(assessed), (status, info.as_deref()));
            if status != host.status {
                let failing = failing_gates(&recorded).filter(|id| HostValidationId::find(id).is_none());
                let failing: BTreeSet<_> = failing.map(str::to_owned).collect();
                assert!(!failing.is_empty(), "{what}");
                self.explanations.entry(case.name.clone()).or_default().extend(failing);
            }
        }
        let mut roles: Vec<_> = assessment.hosts.iter().map(|host| host.suggested_role).collect();
        let mut recorded: Vec<_> = case.hosts.iter().map(|host| host.suggested_role).collect();
        if start == Start::Scratch && STICKY_ROLES.contains(&case.name.as_str()) {
            roles.sort_unstable();
            recorded.sort_unstable();
        }
        self.equal(&format!("{} {start:?}", case.name), roles, recorded);
    }

    fn cluster(&mut self, recordings: &Recordings, case: &Case, assessment: &Assessment, start: Start) {
        let what = format!("{} {start:?}", case.name);
        let recorded = recordings.rows(&case.cluster.validations);
        let expected = implemented::<ClusterValidationId>(&recorded);
        let results = &assessment.cluster.results;
        self.rows(&what, &rows(&results.outcomes), &expected);
        let dhcp = case.cluster.vip_dhcp_allocation;
        let recorded_status = (case.cluster.status, case.cluster.status_info.as_str());
        self.equal(&what, cluster_status(&recorded, dhcp), recorded_status);
        let (status, info) = cluster_status(&expected, dhcp);
        let transition = assessment.cluster.transition.as_ref().unwrap();
        self.equal(&what, (transition.status(), transition.info()), (Some(status), Some(info)));
        if status != case.cluster.status {
            let failing = failing_gates(&recorded).filter(|id| ClusterValidationId::find(id).is_none());
            assert_ne!(failing.count(), 0, "{what}");
        }
        let networks: Vec<_> =
            assessment.view.cluster.machine_networks.iter().map(ToString::to_string).collect();
        self.equal(&what, &networks, &case.cluster.machine_networks);
        if !EARLIER_GROUPS.contains(&case.name.as_str()) {
            let groups: Value = serde_json::from_str(&results.groups.as_ref().unwrap().to_json()).unwrap();
            self.equal(&what, Some(groups), case.cluster.groups.clone().map(in_order));
        }
        if !EARLIER_SCHEDULING.contains(&case.name.as_str()) {
            let forces = case.cluster.forces_schedulable_masters;
            self.equal(&what, results.forces_schedulable_masters, forces);
        }
    }
}

fn with_recorded_roles(case: &Case, view: ClusterView) -> ClusterView {
    let roles = case.hosts.iter().map(|host| host.suggested_role);
    let hosts = view.hosts.iter().zip(roles);
    let hosts =
        hosts.map(|(host, role)| Arc::new(HostView { role, suggested_role: role, ..HostView::clone(host) }));
    ClusterView { hosts: hosts.collect(), ..view }
}

/// Returns the hosts with their recorded statuses, because assessed statuses lack the unimplemented validations.
fn with_recorded_statuses(case: &Case, view: ClusterView) -> ClusterView {
    let statuses = case.hosts.iter().map(|host| host.status);
    let hosts = view.hosts.iter().zip(statuses);
    let hosts = hosts.map(|(host, status)| Arc::new(HostView { status, ..HostView::clone(host) }));
    ClusterView { hosts: hosts.collect(), ..view }
}

/// Sorts the lists of hosts and addresses, whose order is arbitrary.
fn in_order(mut groups: Value) -> Value {
    for member in groups.as_object_mut().unwrap().values_mut() {
        for list in member.as_object_mut().unwrap().values_mut() {
            list.as_array_mut().unwrap().sort_by_key(ToString::to_string);
        }
    }
    groups
}

fn compare_all(start: Start) {
    let recordings = Recordings::read();
    let mut comparison = Comparison::default();
    for case in &recordings.cases {
        let sets_networks = SETS_MACHINE_NETWORKS.contains(&case.name.as_str());
        let mut view = recordings.view(case, start, sets_networks);
        if OPERATORS.contains(&case.name.as_str()) {
            view = with_recorded_roles(case, view);
        }
        comparison.hosts(&recordings, case, &assess(&view), start);
        let assessment = assess_with(&view, |view| with_recorded_statuses(case, view));
        comparison.cluster(&recordings, case, &assessment, start);
    }
    assert!(comparison.differences.is_empty(), "{}", comparison.differences.join("\n"));
    let expected = UNIMPLEMENTED.iter().map(|(case, ids)| {
        let ids = ids.iter().filter(|id| HostValidationId::find(id).is_none());
        ((*case).to_owned(), ids.map(|id| (*id).to_owned()).collect::<BTreeSet<_>>())
    });
    let expected: BTreeMap<_, _> = expected.filter(|(_, ids)| !ids.is_empty()).collect();
    assert_eq!(comparison.explanations, expected);
    // Make sure that the test has compared something.
    let known_hosts =
        recordings.cases.iter().flat_map(|case| &case.hosts).filter(|host| host.status == HostStatus::Known);
    assert!(recordings.cases.len() > 40 && known_hosts.count() > 80);
}

#[test]
fn assessment_with_stored_decisions_matches_the_recording() {
    compare_all(Start::Recorded);
}

#[test]
fn assessment_from_scratch_matches_the_recording() {
    compare_all(Start::Scratch);
}
