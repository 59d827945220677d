//! The networks of a cluster, from its `AgentClusterInstall`.

use std::net::IpAddr;

use ignition::network::check::{ClusterNetworks, Subnet, Vip};

use super::Object;
use crate::discovery::{Findings, Given, Text};

/// The fields of the specification of an `AgentClusterInstall`, and of its network.
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

/// Reads the virtual addresses and the machine networks.
pub(super) fn networks(install: &Object, findings: &mut Findings) -> ClusterNetworks {
    let is_sound = install.has_fields("spec", &FIELDS, findings)
        && install.has_fields("spec.networking", &NETWORKING_FIELDS, findings);
    if !is_sound {
        return ClusterNetworks::default();
    }
    let mut vips = Vec::new();
    for (what, list, single) in
        [("API", "spec.apiVIPs", "spec.apiVIP"), ("ingress", "spec.ingressVIPs", "spec.ingressVIP")]
    {
        let texts = items(install, list, findings).into_iter().chain(install.text(single, findings));
        for Given { value, place } in texts {
            match value.parse::<IpAddr>() {
                Ok(address) => {
                    vips.push(Vip { address, label: format!("the {what} VIP in {}", place.line()) });
                }
                Err(_) => findings.error(place, format!("{value:?} is not an IP address")),
            }
        }
    }
    ClusterNetworks { vips, machine_networks: machine_networks(install, findings) }
}

fn items(install: &Object, path: &str, findings: &mut Findings) -> Vec<Text> {
    let Some(texts) = install.texts(path, findings) else { return Vec::new() };
    let item = |(index, text)| Given::new(text, install.at(&format!("{path}[{index}]")));
    texts.value.into_iter().enumerate().map(item).collect()
}

fn machine_networks(install: &Object, findings: &mut Findings) -> Vec<Subnet> {
    const PATH: &str = "spec.networking.machineNetwork";
    let list = install.list(PATH, findings).unwrap_or_default();
    let mut networks = Vec::new();
    for (index, entry) in list.iter().enumerate() {
        let path = format!("{PATH}[{index}]");
        if !install.are_fields((&path, entry), &["cidr"], findings) {
            continue;
        }
        let Ok(Some(cidr)) = install.text_in((&path, entry), "cidr", findings) else { continue };
        match Subnet::parse(cidr) {
            Some(network) => {
                if network.trunc() != network {
                    let message =
                        format!("{cidr:?} has bits beyond its prefix; the network is {}", network.trunc());
                    findings.warning(install.at(&format!("{path}.cidr")), message);
                }
                networks.push(network);
            }
            None => {
                let message = format!("{cidr:?} is not a network such as 192.0.2.0/24");
                findings.error(install.at(&format!("{path}.cidr")), message);
            }
        }
    }
    networks
}
