//! Creates the records of new clusters from the parameters of API requests.

use assisted::cluster::{ClusterCreateParams, ClusterImportParams, DisconnectedClusterParams};
use chrono::{DateTime, Utc};
use rules::cluster::state::ClusterOrigin;
use rules::values::check_ssh_keys;

use super::defaults::{pod_network, service_network};
use super::networking::NetworkingContext;
use super::parts::{
    ClusterKind, ClusterNetwork, DiskEncryption, DiskEncryptionMode, IgnitionEndpoint, Network, NodeRoles,
    Platform, PlatformType, Vip, VipVerification,
};
use super::record::{ClusterRecord, ClusterSpec};
use super::rules::{check_credentials, check_spec, known_value};
use super::subnet::Subnet;
use super::topology::{PlatformRequest, control_plane_count, default_network_type};
use crate::catalogue::{Catalogue, ReleaseArchitecture, Version};
use crate::error::Error;
use crate::{Secret, Settings};

/// Returns the record of a new cluster to install.
pub(crate) fn create(
    params: ClusterCreateParams,
    catalogue: &Catalogue,
    settings: &Settings,
    now: DateTime<Utc>,
) -> Result<ClusterRecord, Error> {
    let requested = params.cpu_architecture.unwrap_or_default();
    let release = match params.ocp_release_image.as_deref().filter(|url| !url.is_empty()) {
        Some(url) => catalogue.release_at(url, requested),
        None => catalogue.release(&params.openshift_version, requested),
    };
    let release = release.map_err(|error| Error::invalid(error.to_string()))?;
    let architecture = if release.is_multi() { ReleaseArchitecture::Multi } else { requested };
    let pull_secret = params.pull_secret.reveal().trim();
    check_credentials("pull secret for new cluster is invalid: ", pull_secret, &release.url, settings)?;
    let version = release.parsed_version().clone();
    let masters =
        control_plane_count(params.high_availability_mode, params.control_plane_count, Some(&version))?;
    let base = ClusterBase { version, masters, architecture };
    let spec = requested_spec(&params, &base, settings)?;
    let context = NetworkingContext {
        version: Some(&base.version),
        is_single_node: masters == 1,
        requests_user_managed: params.user_managed_networking == Some(true),
    };
    check_spec(&spec, None, context, settings)?;
    let mut record = ClusterRecord::new(ClusterKind::Cluster, ClusterOrigin::Registered, spec, now);
    record.openshift_version.clone_from(&release.version);
    record.ocp_release_image.clone_from(&release.url);
    record.cpu_architecture = Some(architecture);
    record.control_plane_count = masters;
    Ok(record)
}

/// The facts about a new cluster that determine the defaults of its spec.
struct ClusterBase {
    version: Version,
    masters: i64,
    architecture: ReleaseArchitecture,
}

/// Returns the requested spec, with defaults for absent fields.
fn requested_spec(
    params: &ClusterCreateParams,
    base: &ClusterBase,
    settings: &Settings,
) -> Result<ClusterSpec, Error> {
    let platform = PlatformRequest {
        platform: params.platform.clone(),
        user_managed_networking: params.user_managed_networking,
        current: None,
        is_user_managed: false,
        is_single_node: base.masters == 1,
        architecture: Some(base.architecture),
    };
    let (platform, user_managed_networking) = platform.resolve()?;
    let load_balancer = params.load_balancer.as_ref().and_then(|it| it.balancer_type.as_ref());
    let ntp_sources = params.ntp_sources.clone().unwrap_or_default();
    let additional = match &params.additional_ntp_source {
        Some(sources) => sources.clone(),
        None if ntp_sources.is_empty() => settings.default_ntp_source.clone(),
        None => String::new(),
    };
    Ok(ClusterSpec {
        name: params.name.clone(),
        base_dns_domain: params.base_dns_domain.clone().unwrap_or_default(),
        api_vip_dns_name: None,
        platform: Some(platform),
        user_managed_networking,
        vip_dhcp_allocation: params.vip_dhcp_allocation.unwrap_or_default(),
        network_type: Some(
            params.network_type.unwrap_or_else(|| default_network_type(base.masters, &base.version)),
        ),
        cluster_networks: pod_networks(params, settings),
        service_networks: service_networks(params, settings),
        machine_networks: stored_subnets(params.machine_networks.clone().unwrap_or_default()),
        api_vips: stored_vips(params.api_vips.clone().unwrap_or_default()),
        ingress_vips: stored_vips(params.ingress_vips.clone().unwrap_or_default()),
        hyperthreading: Some(params.hyperthreading.unwrap_or(NodeRoles::All)),
        schedulable_masters: params.schedulable_masters.unwrap_or_default(),
        disk_encryption: disk_encryption_with_defaults(params.disk_encryption.clone().unwrap_or_default()),
        ignition_endpoint: changed_ignition_endpoint(
            IgnitionEndpoint::default(),
            params.ignition_endpoint.clone().unwrap_or_default(),
        ),
        load_balancer: Some(known_value("load_balancer.type", load_balancer)?.unwrap_or_default()),
        olm_operators: params.olm_operators.clone().unwrap_or_default(),
        operator_bundles: params.operator_bundles.clone().unwrap_or_default(),
        tags: params.tags.clone().unwrap_or_default(),
        ssh_public_key: check_ssh_keys(params.ssh_public_key.as_deref().unwrap_or_default())?,
        http_proxy: params.http_proxy.clone().unwrap_or_default(),
        https_proxy: params.https_proxy.clone().unwrap_or_default(),
        no_proxy: params.no_proxy.clone().unwrap_or_default(),
        additional_ntp_source: additional,
        ntp_sources,
        pull_secret: Secret::new(params.pull_secret.reveal().trim()),
    })
}

fn pod_networks(params: &ClusterCreateParams, settings: &Settings) -> Vec<ClusterNetwork> {
    let default = pod_network(&settings.cluster_networks);
    match &params.cluster_networks {
        Some(networks) => stored_cluster_networks(networks.clone()),
        None => vec![ClusterNetwork {
            cluster_id: None,
            cidr: params.cluster_network_cidr.clone().unwrap_or(default.cidr),
            host_prefix: params.cluster_network_host_prefix.unwrap_or(default.host_prefix),
        }],
    }
}

fn service_networks(params: &ClusterCreateParams, settings: &Settings) -> Vec<Subnet> {
    let default = service_network(&settings.cluster_networks);
    match &params.service_networks {
        Some(networks) => stored_subnets(networks.clone()),
        None => vec![params.service_network_cidr.clone().unwrap_or(default)],
    }
}

/// Converts cluster networks to their stored form, without the id of the cluster.
pub(super) fn stored_cluster_networks(networks: Vec<ClusterNetwork>) -> Vec<ClusterNetwork> {
    networks.into_iter().map(|network| ClusterNetwork { cluster_id: None, ..network }).collect()
}

/// Converts networks to their stored form.
pub(super) fn stored_subnets(networks: Vec<Network>) -> Vec<Subnet> {
    networks.into_iter().map(|network| network.cidr).collect()
}

/// Converts VIPs to their stored form. Empty addresses are dropped. The verification result `unverified` is dropped
/// too, because responses omit it, as upstream does.
pub(super) fn stored_vips(vips: Vec<Vip>) -> Vec<Vip> {
    let vips = vips.into_iter().filter(|vip| !vip.ip.is_empty());
    let stored = |vip: Vip| {
        let verification = vip.verification.filter(|result| *result != VipVerification::Unverified);
        Vip { cluster_id: None, ip: vip.ip, verification }
    };
    vips.map(stored).collect()
}

fn disk_encryption_with_defaults(requested: DiskEncryption) -> DiskEncryption {
    let default = DiskEncryption {
        enable_on: Some(NodeRoles::None.into()),
        mode: Some(DiskEncryptionMode::Tpmv2.into()),
        tang_servers: None,
    };
    changed_disk_encryption(default, requested)
}

/// Returns the settings with the requested changes. An empty text removes a setting.
pub(super) fn changed_disk_encryption(before: DiskEncryption, requested: DiskEncryption) -> DiskEncryption {
    DiskEncryption {
        enable_on: requested.enable_on.or(before.enable_on),
        mode: requested.mode.or(before.mode),
        tang_servers: requested.tang_servers.or(before.tang_servers).filter(|text| !text.is_empty()),
    }
}

/// Returns the settings with the requested changes. An empty text removes a setting.
pub(super) fn changed_ignition_endpoint(
    before: IgnitionEndpoint,
    requested: IgnitionEndpoint,
) -> IgnitionEndpoint {
    IgnitionEndpoint {
        url: requested.url.or(before.url).filter(|text| !text.is_empty()),
        ca_certificate: requested.ca_certificate.or(before.ca_certificate).filter(|text| !text.is_empty()),
    }
}

/// Returns the record of an existing cluster, to which hosts can be added.
pub(crate) fn import(params: ClusterImportParams, now: DateTime<Utc>) -> Result<ClusterRecord, Error> {
    let version = params.openshift_version.unwrap_or_default();
    require_version(&version)?;
    let mut spec = ClusterSpec {
        platform: Some(Platform::from_type(PlatformType::Baremetal)),
        ..ClusterSpec::default()
    };
    match api_name(&params.api_vip_dnsname) {
        Some((name, domain)) => {
            spec.name = name.to_owned();
            spec.base_dns_domain = domain.to_owned();
        }
        None => spec.name = params.name,
    }
    spec.api_vip_dns_name = Some(params.api_vip_dnsname);
    let mut record = ClusterRecord::new(ClusterKind::AddHostsCluster, ClusterOrigin::Imported, spec, now);
    record.openshift_version = version;
    record.openshift_cluster_id = Some(params.openshift_cluster_id);
    record.imported = true;
    Ok(record)
}

/// Splits the usual DNS name of a cluster's API, `api.<name>.<domain>`, into name and domain.
fn api_name(api: &str) -> Option<(&str, &str)> {
    let (name, domain) = api.strip_prefix("api.")?.split_once('.')?;
    (!name.is_empty() && !domain.is_empty()).then_some((name, domain))
}

/// Returns the record of a cluster to install without a connection to this service.
pub(crate) fn create_disconnected(
    params: DisconnectedClusterParams,
    now: DateTime<Utc>,
) -> Result<ClusterRecord, Error> {
    require_version(&params.openshift_version)?;
    let spec = ClusterSpec { name: params.name, ..ClusterSpec::default() };
    let mut record =
        ClusterRecord::new(ClusterKind::DisconnectedCluster, ClusterOrigin::Disconnected, spec, now);
    record.openshift_version = params.openshift_version;
    Ok(record)
}

fn require_version(version: &str) -> Result<(), Error> {
    if version.is_empty() || Version::parse(version).is_some() {
        return Ok(());
    }
    Err(Error::invalid(format!("Openshift version {version:?} is not valid")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_name_contains_name_and_domain() {
        assert_eq!(api_name("api.one.example.com"), Some(("one", "example.com")));
        for other in ["", "api.", "api.one", "api..example.com", "api.one.", "www.one.example.com"] {
            assert_eq!(api_name(other), None, "{other}");
        }
    }
}
