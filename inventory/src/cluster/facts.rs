//! Converts the stored settings of a cluster for the validation rules.

use std::net::IpAddr;

use ignition::Cidr;
use rules::view::{ClusterSettings, PodNetwork};

use super::record::ClusterRecord;
use super::subnet::Subnet;
use crate::error::Error;
use crate::infra_env::InfraEnvRecord;

/// Returns the settings of a cluster, including the settings of its infra-envs.
///
/// # Errors
///
/// Returns an internal error if the stored record has an invalid version, network or address.
pub(crate) fn cluster_settings(
    cluster: &ClusterRecord,
    infra_envs: &[InfraEnvRecord],
) -> Result<ClusterSettings, Error> {
    let spec = &cluster.spec;
    let networks = |networks: &mut dyn Iterator<Item = &Subnet>| -> Result<Vec<Cidr>, Error> {
        networks.map(|network| network_of(cluster, network)).collect()
    };
    let vips = |vips: &[super::Vip]| -> Result<Vec<IpAddr>, Error> {
        let set = vips.iter().filter(|vip| !vip.ip.is_empty());
        set.map(|vip| address_of(cluster, &vip.ip)).collect()
    };
    let pod_networks = spec.cluster_networks.iter().map(|network| {
        let cidr = network_of(cluster, &network.cidr)?;
        Ok::<_, Error>(PodNetwork { cidr, host_prefix: network.host_prefix })
    });
    Ok(ClusterSettings {
        id: cluster.id,
        kind: cluster.kind,
        status: cluster.status(),
        imported: cluster.imported,
        name: spec.name.as_str().into(),
        base_dns_domain: spec.base_dns_domain.as_str().into(),
        api_vip_dns_name: spec.api_vip_dns_name.as_deref().map(Into::into),
        version: cluster.parsed_version()?,
        release_image: cluster.ocp_release_image.as_str().into(),
        platform: spec.platform.as_ref().map(|platform| platform.platform_type),
        control_plane_count: cluster.control_plane_count,
        user_managed_networking: spec.user_managed_networking,
        load_balancer: spec.load_balancer,
        vip_dhcp_allocation: spec.vip_dhcp_allocation,
        network_type: spec.network_type,
        machine_networks: networks(&mut spec.machine_networks.iter())?,
        cluster_networks: pod_networks.collect::<Result<_, _>>()?,
        service_networks: networks(&mut spec.service_networks.iter())?,
        api_vips: vips(&spec.api_vips)?,
        ingress_vips: vips(&spec.ingress_vips)?,
        api_vip_lease: "".into(),
        ingress_vip_lease: "".into(),
        ntp_sources: spec.ntp_sources.as_str().into(),
        additional_ntp_source: spec.additional_ntp_source.as_str().into(),
        infra_env_ntp_sources: time_servers(infra_envs),
        disk_encryption: spec.disk_encryption.clone(),
        ignition_endpoint: spec.ignition_endpoint.clone(),
        has_pull_secret: !spec.pull_secret.is_empty(),
        ignored_host_validations: "".into(),
        ignored_cluster_validations: "".into(),
    })
}

fn network_of(cluster: &ClusterRecord, network: &Subnet) -> Result<Cidr, Error> {
    Cidr::parse(&network.0).ok_or_else(|| {
        Error::broken(format_args!("cluster {} has the invalid network {:?}", cluster.id, network.0))
    })
}

fn address_of(cluster: &ClusterRecord, address: &str) -> Result<IpAddr, Error> {
    address.parse().map_err(|_| {
        Error::broken(format_args!("cluster {} has the invalid virtual IP address {address:?}", cluster.id))
    })
}

/// Returns the additional time servers of infra-envs, without duplicates.
fn time_servers(infra_envs: &[InfraEnvRecord]) -> Vec<Box<str>> {
    let mut servers = Vec::<Box<str>>::new();
    let lists = infra_envs.iter().map(|infra_env| &infra_env.image.additional_ntp_sources);
    for server in lists.flat_map(|list| list.split(',')).map(str::trim).filter(|server| !server.is_empty()) {
        if !servers.iter().any(|existing| **existing == *server) {
            servers.push(server.into());
        }
    }
    servers
}
