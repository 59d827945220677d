use std::sync::Arc;

use assisted::cluster::{ClusterKind, ClusterStatus};
use assisted::host::{HostRole, HostStatus};
use assisted::{ClusterId, HostId};
use chrono::{DateTime, Utc};
use ignition::Cidr;
use uuid::Uuid;

use super::*;
use crate::cluster::connectivity_groups::ConnectivityGroups;
use crate::requirements::HardwareRequirements;
use crate::summary::{DiskSummary, HostSummary, InventorySummary, NicSummary};
use crate::validation::ValidationSettings;
use crate::view::{ClusterSettings, ClusterView, HostView};

const NOW: DateTime<Utc> = DateTime::<Utc>::UNIX_EPOCH;

/// Returns a host with sufficient hardware and the given status.
fn host(number: u128, status: HostStatus) -> HostView {
    let address = Cidr::parse(&format!("192.0.2.{number}/24")).unwrap();
    let nic = NicSummary { name: "eth0".into(), addresses: vec![address], ..NicSummary::default() };
    let disk = DiskSummary { drive_type: "HDD".into(), size_bytes: 120 << 30, ..DiskSummary::default() };
    let inventory = InventorySummary {
        hostname: format!("node-{number}").into(),
        cpus: Some(8),
        physical_bytes: Some(32 << 30),
        usable_bytes: 32 << 30,
        nics: vec![nic],
        disks: vec![disk],
        ..InventorySummary::default()
    };
    let summary = HostSummary { inventory: Some(Box::new(inventory)), ..HostSummary::default() };
    let host = HostView::new(HostId(Uuid::from_u128(number)), Uuid::nil().into());
    HostView { status, summary: Arc::new(summary), ..host }
}

fn view(status: ClusterStatus, hosts: Vec<HostView>) -> ClusterView {
    let cluster = ClusterSettings {
        status,
        control_plane_count: 3,
        api_vips: vec!["192.0.2.100".parse().unwrap()],
        ..ClusterSettings::new(ClusterId(Uuid::nil()))
    };
    ClusterView { cluster: Arc::new(cluster), hosts: hosts.into_iter().map(Arc::new).collect() }
}

fn assess(view: &ClusterView, role_assignment: RoleAssignment) -> HostsAssessment {
    let hardware = HardwareRequirements::default();
    let settings = EvaluationSettings { hardware: &hardware, validations: &ValidationSettings::default() };
    assess_hosts(view, |_| None, settings, role_assignment, NOW).unwrap()
}

fn assess_only_cluster(view: &ClusterView) -> Option<AssessedCluster> {
    let hardware = HardwareRequirements::default();
    let settings = EvaluationSettings { hardware: &hardware, validations: &ValidationSettings::default() };
    assess_cluster(view, ConnectivityGroups::new(view), settings, NOW).unwrap()
}

fn statuses(view: &ClusterView) -> Vec<HostStatus> {
    view.hosts.iter().map(|host| host.status).collect()
}

fn roles(view: &ClusterView) -> Vec<HostRole> {
    view.hosts.iter().map(|host| host.suggested_role).collect()
}

#[test]
fn unstored_hosts_stay_unchanged() {
    let hosts = [1, 2, 3].map(|number| host(number, HostStatus::Discovering));
    let view = view(ClusterStatus::Insufficient, hosts.to_vec());
    let assessment = assess(&view, RoleAssignment::Automatic);
    let applied = assessment.applied_to(&view, |index| index != 1);
    assert_eq!(
        statuses(&applied),
        [HostStatus::Insufficient, HostStatus::Discovering, HostStatus::Insufficient]
    );
    assert_eq!(roles(&applied), [HostRole::Master, HostRole::AutoAssign, HostRole::Master]);
    assert!(Arc::ptr_eq(&applied.hosts[1], &view.hosts[1]));
    // The machine networks change even if no host is stored.
    assert_eq!(applied.cluster.machine_networks, [Cidr::parse("192.0.2.0/24").unwrap()]);
}

#[test]
fn unchanged_hosts_are_shared() {
    let mut hosts = [1, 2].map(|number| host(number, HostStatus::Insufficient));
    hosts[0].suggested_role = HostRole::Master;
    let view = view(ClusterStatus::Insufficient, hosts.to_vec());
    let applied = assess(&view, RoleAssignment::Manual).applied_to(&view, |_| true);
    assert!(view.hosts.iter().zip(&applied.hosts).all(|(before, after)| Arc::ptr_eq(before, after)));
}

#[test]
fn hosts_in_other_statuses_keep_their_status() {
    for status in HostStatus::ALL.iter().copied() {
        let view = view(ClusterStatus::Insufficient, vec![host(1, status)]);
        let assessment = assess(&view, RoleAssignment::Automatic);
        let is_decided = matches!(
            status.as_str(),
            "discovering" | "insufficient" | "known" | "pending-for-input" | "disconnected"
        );
        assert_eq!(assessment.hosts[0].transition.is_some(), is_decided, "{status}");
        let applied = assessment.applied_to(&view, |_| true);
        let expected = if is_decided { HostStatus::Insufficient } else { status };
        assert_eq!(statuses(&applied), [expected], "{status}");
    }
}

#[test]
fn manual_role_assignment_suggests_nothing() {
    let mut hosts = [1, 2].map(|number| host(number, HostStatus::Discovering));
    hosts[1].suggested_role = HostRole::Worker;
    let view = view(ClusterStatus::Insufficient, hosts.to_vec());
    let suggested = |assignment| roles(&assess(&view, assignment).applied_to(&view, |_| true));
    assert_eq!(suggested(RoleAssignment::Manual), [HostRole::AutoAssign, HostRole::Worker]);
    assert_eq!(suggested(RoleAssignment::Automatic), [HostRole::Master, HostRole::Master]);
}

#[test]
fn only_clusters_before_installation_get_results() {
    for status in ClusterStatus::ALL.iter().copied() {
        let kind = match status {
            ClusterStatus::AddingHosts => ClusterKind::AddHostsCluster,
            _ => ClusterKind::Cluster,
        };
        let mut view = view(status, vec![host(1, HostStatus::Known)]);
        Arc::make_mut(&mut view.cluster).kind = kind;
        let assessed = assess_only_cluster(&view);
        let has_results = matches!(
            status.as_str(),
            "insufficient" | "pending-for-input" | "ready" | "preparing-for-installation"
        );
        assert_eq!(assessed.is_some(), has_results, "{status}");
        // Status `preparing-for-installation` has no rules yet, so the cluster has no transition.
        let has_transition = assessed.is_some_and(|assessed| assessed.transition.is_some());
        let is_decided = has_results && status != ClusterStatus::PreparingForInstallation;
        assert_eq!(has_transition, is_decided, "{status}");
    }
}

#[test]
fn malformed_list_of_ignored_validations_is_an_error() {
    let mut view = view(ClusterStatus::Insufficient, vec![host(1, HostStatus::Known)]);
    let cluster = Arc::make_mut(&mut view.cluster);
    cluster.ignored_host_validations = "x".into();
    cluster.ignored_cluster_validations = "x".into();
    let hardware = HardwareRequirements::default();
    let settings = EvaluationSettings { hardware: &hardware, validations: &ValidationSettings::default() };
    assert!(assess_hosts(&view, |_| None, settings, RoleAssignment::Automatic, NOW).is_err());
    assert!(assess_cluster(&view, ConnectivityGroups::default(), settings, NOW).is_err());
}
