//! A model of the statuses before an installation: the validations on which each status depends, and the order of the
//! rules.
//!
//! The model does not use the tables of the crate. It includes validations that the crate does not implement.

use assisted::cluster::ClusterStatus;
use assisted::host::HostStatus;

use crate::assess::Row;

const VALID_INVENTORY: &[&str] = &["has-inventory", "inventory-not-fully-truncated"];

const MINIMUM_HARDWARE: &[&str] = &[
    "has-min-valid-disks",
    "has-min-cpu-cores",
    "has-min-memory",
    "compatible-with-cluster-platform",
    "disk-encryption-requirements-satisfied",
];

const SUFFICIENT: &[&str] = &[
    "vsphere-disk-uuid-enabled",
    "has-memory-for-role",
    "has-cpu-cores-for-role",
    "belongs-to-machine-cidr",
    "hostname-unique",
    "hostname-valid",
    "ignition-downloadable",
    "belongs-to-majority-group",
    "sufficient-installation-disk-speed",
    "sufficient-network-latency-requirement-for-role",
    "sufficient-packet-loss-requirement-for-role",
    "has-default-route",
    "api-domain-name-resolved-correctly",
    "api-int-domain-name-resolved-correctly",
    "apps-domain-name-resolved-correctly",
    "dns-wildcard-not-configured",
    "valid-platform-network-settings",
    "non-overlapping-subnets",
    "compatible-agent",
    "time-synced-between-host-and-service",
    "no-skip-installation-disk",
    "no-skip-missing-disk",
    "no-ip-collisions-in-network",
    "no-iscsi-nic-belongs-to-machine-cidr",
];

const PENDING_CONDITIONS: &[&str] = &[
    "machine-cidr-defined",
    "cluster-cidr-defined",
    "service-cidr-defined",
    "dns-domain-defined",
    "pull-secret-set",
];

const VIPS_DEFINED: &[&str] = &["api-vips-defined", "ingress-vips-defined"];

const REQUIRED_FOR_INSTALL: &[&str] = &[
    "machine-cidr-equals-to-calculated-cidr",
    "api-vips-valid",
    "ingress-vips-valid",
    "all-hosts-are-ready-to-install",
    "sufficient-masters-count",
    "network-prefix-valid",
    "no-cidrs-overlapping",
    "networks-same-address-families",
    "ntp-server-configured",
    "network-type-valid",
    "custom-manifests-requirements-satisfied",
];

/// Operators whose requirements are reported but do not affect the status.
const REPORTED_ONLY: &[&str] =
    &["platform-requirements-satisfied", "openshift-ai-gpu-requirements-satisfied"];

/// Validations whose ids end like operator validations, but which belong to no operator.
const NOT_OF_OPERATORS: &[&str] =
    &["custom-manifests-requirements-satisfied", "disk-encryption-requirements-satisfied"];

fn is_of_operator(id: &str) -> bool {
    id.ends_with("-requirements-satisfied") && !NOT_OF_OPERATORS.contains(&id) && !REPORTED_ONLY.contains(&id)
}

fn fails(row: &Row) -> bool {
    !matches!(row.1.as_str(), "success" | "disabled")
}

/// Returns `true` if none of these validations fails. Validations that do not apply are absent from `rows`.
fn passes(rows: &[Row], ids: &[&str]) -> bool {
    !rows.iter().any(|row| ids.contains(&row.0.as_str()) && fails(row))
}

fn operators_pass(rows: &[Row]) -> bool {
    !rows.iter().any(|row| is_of_operator(&row.0) && fails(row))
}

/// Returns the failed validations on which a status depends.
pub(crate) fn failing_gates(rows: &[Row]) -> impl Iterator<Item = &str> {
    let lists = [
        VALID_INVENTORY,
        MINIMUM_HARDWARE,
        SUFFICIENT,
        PENDING_CONDITIONS,
        VIPS_DEFINED,
        REQUIRED_FOR_INSTALL,
    ];
    let gates = lists.concat();
    let failing = rows.iter().filter(|row| fails(row)).map(|row| row.0.as_str());
    failing.filter(move |id| gates.contains(id) || is_of_operator(id))
}

/// Returns the status and the status text of a host with these validations. The text is `None` if it stays unchanged.
pub(crate) fn host_status(rows: &[Row]) -> (HostStatus, Option<String>) {
    let with_messages = |text: &str| {
        let mut messages: Vec<_> =
            rows.iter().filter(|row| row.1 == "failure").map(|row| row.2.as_str()).collect();
        messages.sort_unstable();
        Some(format!("{text}{}", messages.join(" ; ")))
    };
    if !passes(rows, &["media-connected"]) {
        (HostStatus::Disconnected, None)
    } else if !passes(rows, &["connected"]) {
        let text = "Host has stopped communicating with the installation service";
        (HostStatus::Disconnected, Some(text.to_owned()))
    } else if !passes(rows, VALID_INVENTORY) {
        (HostStatus::Discovering, Some("Waiting for host to send hardware details".to_owned()))
    } else if !passes(rows, MINIMUM_HARDWARE) {
        let text = "Host does not meet the minimum hardware requirements: ";
        (HostStatus::Insufficient, with_messages(text))
    } else if !passes(rows, &["machine-cidr-defined"]) && passes(rows, &["vsphere-disk-uuid-enabled"]) {
        (HostStatus::PendingForInput, with_messages("Waiting for user input: "))
    } else if !passes(rows, SUFFICIENT) || !operators_pass(rows) {
        let text = "Host cannot be installed due to following failing validation(s): ";
        (HostStatus::Insufficient, with_messages(text))
    } else {
        (HostStatus::Known, Some("Host is ready to be installed".to_owned()))
    }
}

/// Returns the status and the status text of a cluster with these validations.
pub(crate) fn cluster_status(rows: &[Row], vip_dhcp_allocation: bool) -> (ClusterStatus, &'static str) {
    let has_vips = passes(rows, VIPS_DEFINED);
    if !passes(rows, PENDING_CONDITIONS) || !(has_vips || vip_dhcp_allocation) {
        (ClusterStatus::PendingForInput, "User input required")
    } else if !has_vips || !passes(rows, REQUIRED_FOR_INSTALL) || !operators_pass(rows) {
        (ClusterStatus::Insufficient, "Cluster is not ready for install")
    } else {
        (ClusterStatus::Ready, "Cluster ready to be installed")
    }
}
