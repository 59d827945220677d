//! The networks of a cluster, read from its `AgentClusterInstall`.

use std::net::IpAddr;

use ignition::network::check::{Cidr, ClusterNetworks, ClusterVip};

use super::Object;
use crate::{DiscoveryReport, Located, Text};

/// The known fields of `spec` and `spec.networking` in an `AgentClusterInstall`.
const FIELDS: [&str; 23] = [
    "apiVIP",
    "apiVIPs",
    "clusterDeploymentRef",
    "clusterMetadata",
    "compute",
    "controlPlane",
    "diskEncryption",
    "external",
    "holdInstallation",
    "ignitionEndpoint",
    "imageSetRef",
    "ingressVIP",
    "ingressVIPs",
    "loadBalancer",
    "manifestsConfigMapRef",
    "manifestsConfigMapRefs",
    "mastersSchedulable",
    "mirrorRegistryRef",
    "networking",
    "platformType",
    "provisionRequirements",
    "proxy",
    "sshPublicKey",
];
const NETWORKING_FIELDS: [&str; 5] =
    ["clusterNetwork", "machineNetwork", "networkType", "serviceNetwork", "userManagedNetworking"];

/// Reads the API VIPs, the ingress VIPs and the machine networks.
pub(super) fn networks(install: &Object, findings: &mut DiscoveryReport) -> ClusterNetworks {
    let is_sound = install.has_fields("spec", &FIELDS, findings)
        && install.has_fields("spec.networking", &NETWORKING_FIELDS, findings);
    if !is_sound {
        return ClusterNetworks::default();
    }
    let mut vips = Vec::new();
    for (what, list, single) in
        [("API", "spec.apiVIPs", "spec.apiVIP"), ("ingress", "spec.ingressVIPs", "spec.ingressVIP")]
    {
        let texts = located_items(install, list, findings).into_iter().chain(install.text(single, findings));
        for Located { value, place } in texts {
            match value.parse::<IpAddr>() {
                Ok(address) => {
                    vips.push(ClusterVip { address, label: format!("the {what} VIP in {}", place.line()) });
                }
                Err(_) => findings.error(place, format!("{value:?} is not an IP address")),
            }
        }
    }
    ClusterNetworks { vips, machine_networks: machine_networks(install, findings) }
}

fn located_items(install: &Object, path: &str, findings: &mut DiscoveryReport) -> Vec<Text> {
    let Some(texts) = install.texts(path, findings) else { return Vec::new() };
    let item = |(index, text)| Located::new(text, install.location_of(&format!("{path}[{index}]")));
    texts.value.into_iter().enumerate().map(item).collect()
}

fn machine_networks(install: &Object, findings: &mut DiscoveryReport) -> Vec<Cidr> {
    const PATH: &str = "spec.networking.machineNetwork";
    let list = install.list(PATH, findings).unwrap_or_default();
    let mut networks = Vec::new();
    for (index, entry) in list.iter().enumerate() {
        let path = format!("{PATH}[{index}]");
        if !install.are_fields((&path, entry), &["cidr"], findings) {
            continue;
        }
        let Ok(Some(cidr)) = install.text_in((&path, entry), "cidr", findings) else { continue };
        match Cidr::parse(cidr) {
            Some(network) => {
                if network.without_host_bits() != network {
                    let message = format!(
                        "{cidr:?} has bits beyond its prefix; the network is {}",
                        network.without_host_bits()
                    );
                    findings.warning(install.location_of(&format!("{path}.cidr")), message);
                }
                networks.push(network);
            }
            None => {
                let message = format!("{cidr:?} is not a network such as 192.0.2.0/24");
                findings.error(install.location_of(&format!("{path}.cidr")), message);
            }
        }
    }
    networks
}
