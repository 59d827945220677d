//! Applies a change request to the settings of a cluster.

use assisted::cluster::ClusterUpdateParams;
use rules::cluster::state::{CHANGEABLE_STATUSES, ClusterOperation};
use rules::values::check_ssh_keys;

use super::create::{
    changed_disk_encryption, changed_ignition_endpoint, stored_cluster_networks, stored_subnets, stored_vips,
};
use super::defaults::pod_network;
use super::networking::NetworkingContext;
use super::parts::{ClusterNetwork, ClusterStatus};
use super::record::{ClusterRecord, ClusterSpec};
use super::rules::{check_credentials, check_spec, known_value};
use super::subnet::Subnet;
use super::topology::{PlatformRequest, control_plane_count};
use crate::error::Error;
use crate::time::Micros;
use crate::{Secret, Settings};

/// Returns the changed record of a cluster.
pub(crate) fn update(
    record: &ClusterRecord,
    params: ClusterUpdateParams,
    settings: &Settings,
    now: Micros,
) -> Result<ClusterRecord, Error> {
    if !ClusterOperation::Update.is_allowed(record.status()) {
        let allowed = CHANGEABLE_STATUSES.map(ClusterStatus::as_str);
        return Err(Error::conflict(format!(
            "Cluster {} is in {} state, it can be updated only in one of [{}]",
            record.id,
            record.status(),
            allowed.join(" ")
        )));
    }
    check_immutable(record, &params)?;
    let requests_user_managed = params.user_managed_networking == Some(true);
    let mut changed = record.clone();
    apply_topology(&mut changed, &params)?;
    let spec = &mut changed.spec;
    apply_secrets(spec, &params, &record.ocp_release_image, settings)?;
    apply_networks(spec, &params, settings);
    apply_other_settings(spec, params)?;
    let version = record.parsed_version()?;
    let context = NetworkingContext {
        version: version.as_ref(),
        is_single_node: changed.control_plane_count == 1,
        requests_user_managed,
    };
    check_spec(&changed.spec, Some(&record.spec), context, settings)?;
    if changed != *record {
        changed.updated_at = now;
    }
    Ok(changed)
}

/// Checks that immutable fields are absent or equal to their current value.
fn check_immutable(record: &ClusterRecord, params: &ClusterUpdateParams) -> Result<(), Error> {
    fn require_unchanged<T: PartialEq>(
        key: &str,
        requested: Option<&T>,
        current: Option<&T>,
    ) -> Result<(), Error> {
        match requested {
            Some(_) if requested != current => {
                Err(Error::malformed(format!("{key} in body cannot be changed")))
            }
            _ => Ok(()),
        }
    }
    require_unchanged("id", params.id.as_ref(), Some(&record.id))?;
    require_unchanged(
        "openshift_version",
        params.openshift_version.as_ref(),
        Some(&record.openshift_version),
    )?;
    require_unchanged(
        "ocp_release_image",
        params.ocp_release_image.as_ref(),
        Some(&record.ocp_release_image),
    )?;
    require_unchanged(
        "cpu_architecture",
        params.cpu_architecture.as_ref(),
        record.cpu_architecture.as_ref(),
    )?;
    let mode = record.high_availability_mode();
    require_unchanged("high_availability_mode", params.high_availability_mode.as_ref(), mode.as_ref())
}

fn apply_secrets(
    spec: &mut ClusterSpec,
    params: &ClusterUpdateParams,
    release: &str,
    settings: &Settings,
) -> Result<(), Error> {
    if let Some(pull_secret) =
        params.pull_secret.as_ref().map(|it| it.reveal().trim()).filter(|text| !text.is_empty())
    {
        check_credentials("", pull_secret, release, settings)?;
        spec.pull_secret = Secret::new(pull_secret);
    }
    if let Some(keys) = &params.ssh_public_key {
        spec.ssh_public_key = check_ssh_keys(keys)?;
    }
    Ok(())
}

fn apply_topology(record: &mut ClusterRecord, params: &ClusterUpdateParams) -> Result<(), Error> {
    if params.control_plane_count.is_some() {
        let version = record.parsed_version()?;
        let mode = record.high_availability_mode();
        record.control_plane_count = control_plane_count(mode, params.control_plane_count, version.as_ref())?;
    }
    if params.platform.is_none() && params.user_managed_networking.is_none() {
        return Ok(());
    }
    let request = PlatformRequest {
        platform: params.platform.clone(),
        user_managed_networking: params.user_managed_networking,
        current: record.spec.platform.clone(),
        is_user_managed: record.spec.user_managed_networking,
        is_single_node: record.control_plane_count == 1,
        architecture: record.cpu_architecture,
    };
    let (platform, user_managed_networking) = request.resolve()?;
    record.spec.platform = Some(platform);
    record.spec.user_managed_networking = user_managed_networking;
    Ok(())
}

fn apply_networks(spec: &mut ClusterSpec, params: &ClusterUpdateParams, settings: &Settings) {
    set_if_given(&mut spec.vip_dhcp_allocation, params.vip_dhcp_allocation);
    if spec.user_managed_networking && !params.vip_dhcp_allocation.unwrap_or(false) {
        spec.vip_dhcp_allocation = false;
    }
    // User-managed networking and DHCP allocation remove the stored VIPs. A later check refuses VIPs in the same
    // request.
    if spec.user_managed_networking || spec.vip_dhcp_allocation {
        spec.api_vips.clear();
        spec.ingress_vips.clear();
    }
    set_if_given(&mut spec.api_vips, params.api_vips.clone().map(stored_vips));
    set_if_given(&mut spec.ingress_vips, params.ingress_vips.clone().map(stored_vips));
    match &params.cluster_networks {
        Some(networks) => spec.cluster_networks = stored_cluster_networks(networks.clone()),
        None => apply_first_pod_network(&mut spec.cluster_networks, params, settings),
    }
    let service =
        first_or_all(params.service_networks.clone().map(stored_subnets), &params.service_network_cidr);
    service(&mut spec.service_networks);
    let machine =
        first_or_all(params.machine_networks.clone().map(stored_subnets), &params.machine_network_cidr);
    machine(&mut spec.machine_networks);
}

fn apply_first_pod_network(
    networks: &mut Vec<ClusterNetwork>,
    params: &ClusterUpdateParams,
    settings: &Settings,
) {
    if params.cluster_network_cidr.is_none() && params.cluster_network_host_prefix.is_none() {
        return;
    }
    if networks.is_empty() {
        networks.push(pod_network(&settings.cluster_networks));
    }
    if let Some(first) = networks.first_mut() {
        set_if_given(&mut first.cidr, params.cluster_network_cidr.clone());
        set_if_given(&mut first.host_prefix, params.cluster_network_host_prefix);
    }
}

/// Returns a function that replaces the whole list if `all` is set, and otherwise only the first network of the list.
fn first_or_all(all: Option<Vec<Subnet>>, first: &Option<Subnet>) -> impl FnOnce(&mut Vec<Subnet>) {
    let first = first.clone();
    move |networks| match (all, first) {
        (Some(all), _) => *networks = all,
        (None, Some(cidr)) => match networks.first_mut() {
            Some(network) => *network = cidr,
            None => networks.push(cidr),
        },
        (None, None) => {}
    }
}

fn apply_other_settings(spec: &mut ClusterSpec, params: ClusterUpdateParams) -> Result<(), Error> {
    set_if_given(&mut spec.name, params.name);
    set_if_given(&mut spec.base_dns_domain, params.base_dns_domain);
    if params.api_vip_dns_name.is_some() {
        spec.api_vip_dns_name = params.api_vip_dns_name;
    }
    spec.network_type = params.network_type.or(spec.network_type);
    spec.hyperthreading = params.hyperthreading.or(spec.hyperthreading);
    set_if_given(&mut spec.schedulable_masters, params.schedulable_masters);
    if let Some(requested) = params.disk_encryption {
        spec.disk_encryption = changed_disk_encryption(std::mem::take(&mut spec.disk_encryption), requested);
    }
    if let Some(requested) = params.ignition_endpoint {
        spec.ignition_endpoint =
            changed_ignition_endpoint(std::mem::take(&mut spec.ignition_endpoint), requested);
    }
    let load_balancer = params.load_balancer.and_then(|load_balancer| load_balancer.balancer_type);
    let load_balancer = known_value("load_balancer.type", load_balancer.as_ref())?;
    spec.load_balancer = load_balancer.or(spec.load_balancer);
    set_if_given(&mut spec.olm_operators, params.olm_operators);
    set_if_given(&mut spec.operator_bundles, params.operator_bundles);
    set_if_given(&mut spec.tags, params.tags);
    set_if_given(&mut spec.http_proxy, params.http_proxy);
    set_if_given(&mut spec.https_proxy, params.https_proxy);
    set_if_given(&mut spec.no_proxy, params.no_proxy);
    set_if_given(&mut spec.additional_ntp_source, params.additional_ntp_source);
    set_if_given(&mut spec.ntp_sources, params.ntp_sources);
    Ok(())
}

fn set_if_given<T>(setting: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *setting = value;
    }
}
