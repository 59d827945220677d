//! Conversion of cluster records into their API representation.

use std::net::IpAddr;

use assisted::Extensible;
use assisted::cluster::{Cluster, ClusterProgress, ImageInfo, LastInstallationPreparation, LoadBalancer};
use assisted::host::LogsState;
use assisted::step::VipType;
use rules::cluster::connectivity_groups::ConnectivityGroups;
use rules::summary::VerifiedVip;
use rules::validation::ClusterResults;

use super::hosts::Hosts;
use super::operators::monitored_operators;
use crate::Settings;
use crate::cluster::{ClusterNetwork, ClusterRecord, Network, Subnet, Vip};
use crate::error::Error;
use crate::id::ClusterId;
use crate::json::to_json_text;
use crate::time::Millis;

/// Returns the response for a cluster, with an empty list of hosts.
///
/// # Errors
///
/// Returns an error if the validation results of the cluster cannot be written as JSON.
#[expect(clippy::too_many_lines, reason = "a line for each member of the document")]
pub(super) fn cluster_from_record(
    record: ClusterRecord,
    hosts: Hosts,
    results: &ClusterResults,
    settings: &Settings,
) -> Result<Cluster, Error> {
    let monitored_operators = monitored_operators(&record, settings);
    let high_availability_mode = record.high_availability_mode().map(Extensible::from);
    let (status, info, changed_at) = (record.status(), record.status_info(), record.status_updated_at());
    let (status_info, id, spec) = (info.to_owned(), record.id, record.spec);
    let first = spec.cluster_networks.first();
    let validations_info = to_json_text("validations_info", &results.outcomes.shown())?;
    Ok(Cluster {
        kind: record.kind.into(),
        id,
        href: format!("{}/v2/clusters/{id}", Settings::API),
        status: status.into(),
        status_info,
        status_updated_at: changed_at,
        user_name: record.user_name,
        org_id: String::new(),
        email_domain: record.email_domain,
        openshift_version: record.openshift_version,
        ocp_release_image: record.ocp_release_image,
        openshift_cluster_id: record.openshift_cluster_id,
        cpu_architecture: record.cpu_architecture.map(Extensible::from),
        api_vip_dns_name: spec.api_vip_dns_name.clone(),
        high_availability_mode,
        control_plane_count: record.control_plane_count,
        cluster_network_cidr: first.map(|network| network.cidr.clone()),
        cluster_network_host_prefix: first.map(|network| network.host_prefix),
        service_network_cidr: spec.service_networks.first().cloned(),
        machine_network_cidr: spec.machine_networks.first().cloned(),
        monitored_operators,
        cluster_networks: cluster_networks_of(id, spec.cluster_networks),
        service_networks: networks_of(id, spec.service_networks),
        machine_networks: networks_of(id, spec.machine_networks),
        api_vips: vips_of(id, VipType::Api, spec.api_vips, results),
        ingress_vips: vips_of(id, VipType::Ingress, spec.ingress_vips, results),
        host_networks: hosts.networks,
        hosts: Vec::new(),
        ready_host_count: hosts.counts.ready,
        enabled_host_count: hosts.counts.enabled,
        total_host_count: hosts.counts.total,
        name: spec.name,
        base_dns_domain: spec.base_dns_domain,
        platform: spec.platform.into(),
        ssh_public_key: spec.ssh_public_key,
        http_proxy: spec.http_proxy,
        https_proxy: spec.https_proxy,
        no_proxy: spec.no_proxy,
        additional_ntp_source: spec.additional_ntp_source,
        ntp_sources: spec.ntp_sources,
        pull_secret_set: !spec.pull_secret.is_empty(),
        vip_dhcp_allocation: spec.vip_dhcp_allocation,
        user_managed_networking: spec.user_managed_networking,
        schedulable_masters: spec.schedulable_masters,
        schedulable_masters_forced_true: results.forces_schedulable_masters,
        imported: record.imported.then_some(true),
        org_soft_timeouts_enabled: false,
        network_type: spec.network_type.map(Extensible::from),
        hyperthreading: spec.hyperthreading.map(Extensible::from),
        disk_encryption: spec.disk_encryption,
        ignition_endpoint: spec.ignition_endpoint,
        load_balancer: LoadBalancer { balancer_type: spec.load_balancer.map(Extensible::from) },
        operator_bundles: spec.operator_bundles,
        progress: ClusterProgress::default(),
        last_installation_preparation: LastInstallationPreparation::default(),
        validations_info,
        connectivity_majority_groups: groups_text(results),
        ip_collisions: String::new(),
        feature_usage: String::new(),
        install_config_overrides: String::new(),
        ignored_host_validations: String::new(),
        ignored_cluster_validations: String::new(),
        ams_subscription_id: None,
        tags: spec.tags,
        image_info: ImageInfo::default(),
        logs_info: logs_state(record.logs_info),
        controller_logs_collected_at: record.controller_logs_collected_at,
        controller_logs_started_at: record.controller_logs_started_at,
        install_started_at: Millis::default(),
        install_completed_at: Millis::default(),
        created_at: record.created_at,
        updated_at: record.updated_at,
        deleted_at: record.deleted_at,
    })
}

/// Returns the groups of hosts that can reach each other. The text is empty before the first assessment.
fn groups_text(results: &ClusterResults) -> String {
    results.groups.as_ref().map(ConnectivityGroups::to_json).unwrap_or_default()
}

/// Returns the stored state of the controller's log upload. A later release may have stored a state unknown to this
/// release.
fn logs_state(stored: String) -> Extensible<LogsState> {
    let state_in_api = LogsState::ALL.into_iter().find(|state| state.as_str() == stored);
    state_in_api.map_or(Extensible::Unknown(stored), Extensible::Known)
}

fn cluster_networks_of(id: ClusterId, networks: Vec<ClusterNetwork>) -> Vec<ClusterNetwork> {
    networks.into_iter().map(|network| ClusterNetwork { cluster_id: Some(id), ..network }).collect()
}

fn networks_of(id: ClusterId, subnets: Vec<Subnet>) -> Vec<Network> {
    subnets.into_iter().map(|cidr| Network { cluster_id: Some(id), cidr }).collect()
}

/// Returns virtual IP addresses with the verification results of the hosts.
fn vips_of(id: ClusterId, vip_type: VipType, vips: Vec<Vip>, results: &ClusterResults) -> Vec<Vip> {
    let vips = vips.into_iter().map(|vip| {
        let is_same = |verified: &&VerifiedVip| {
            verified.vip_type == vip_type
                && vip.ip.parse().is_ok_and(|address: IpAddr| address == verified.address)
        };
        let verification = results.vips.iter().find(is_same).map(|verified| verified.verification.into());
        Vip { cluster_id: Some(id), verification: verification.or(vip.verification), ..vip }
    });
    vips.collect()
}
