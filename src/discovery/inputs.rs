//! The inputs, and what each kind of image takes from them.

use ignition::discovery::ipxe::{Architecture, Credential, NetworkBoot};
use ignition::discovery::kernel_arguments::KernelArguments;
use ignition::discovery::{Composed, Discovery, HttpUrl, ImageType, InfraEnv, InputError, Service};
use ignition::network::{
    Cancel, EntryKind, Generation, HostNetwork, InitrdOptions, KeyfileCache, MacAddr, NetworkEntry, Networks,
};
use ignition::spec::Spec;
use isogen::initrd::Entry;
use isogen::{Encoding, Packed};

use super::{DiscoveryError, tar};

/// All that the images of an infra-env are made of.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The service that machines report to.
    pub service: Service,
    /// What is the same for all machines.
    pub infra_env: InfraEnv,
    /// The networks of the machines, if they are given.
    pub hosts: Vec<HostNetwork>,
    /// Changes of the kernel arguments.
    pub kernel_arguments: KernelArguments,
    /// The version of OpenShift whose live image machines boot, such as `4.18`.
    pub version: String,
    /// How that version sets up networks.
    pub generation: Generation,
    /// How long, in seconds, a machine waits before it looks at its network.
    pub discovery_delay_seconds: u32,
}

/// The newest spec that the live system of a version reads; of one that is no version, the oldest that all read.
#[must_use]
pub fn newest_spec(version: &str) -> Spec {
    let mut numbers = version.split(['.', '-']).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(4)), Some(Ok(minor))) if minor >= 13 => Spec::V3_4,
        (Some(Ok(4)), Some(Ok(minor))) if minor >= 10 => Spec::V3_3,
        (Some(Ok(major)), _) if major > 4 => Spec::V3_4,
        _ => Spec::V3_2,
    }
}

impl Inputs {
    /// The same for one machine alone: of the networks, only the one with that address. Nothing if none has it.
    #[must_use]
    pub fn of_machine(mut self, mac: MacAddr) -> Option<Self> {
        let has_it = |host: &HostNetwork| {
            let interfaces = host.interfaces().unwrap_or_default();
            interfaces.iter().any(|interface| interface.mac_address.parse() == Ok(mac))
        };
        self.hosts.retain(has_it);
        (!self.hosts.is_empty()).then_some(self)
    }

    /// The files of the machines' networks. They take most of the time, and none if the cache knows them.
    ///
    /// # Errors
    ///
    /// When the network of a host gives no files.
    pub fn networks(&self, cache: &KeyfileCache) -> Result<Networks, DiscoveryError> {
        self.networks_until(cache, &Cancel::new())
    }

    /// Makes the files as [`networks`](Self::networks) does, until the work is cancelled.
    ///
    /// # Errors
    ///
    /// Returns an error if the network of a host gives no files, or if the work was cancelled.
    pub fn networks_until(&self, cache: &KeyfileCache, cancel: &Cancel) -> Result<Networks, DiscoveryError> {
        Ok(Networks::generate_until(&self.hosts, self.generation, cache, cancel)?)
    }

    /// The Ignition config of a kind of image. Only that of a full one has the networks in it.
    ///
    /// # Errors
    ///
    /// When the inputs make no valid config; the error names the field.
    pub fn config(&self, image_type: ImageType, networks: &Networks) -> Result<Composed, DiscoveryError> {
        let infra_env = InfraEnv { image_type, ..self.infra_env.clone() };
        let mut discovery = Discovery::new(self.service.clone(), infra_env);
        if networks.hosts() > 0 {
            discovery.static_network = Some(networks.ignition());
        }
        discovery.newest_spec = newest_spec(&self.version);
        Ok(discovery.compose()?)
    }

    /// The archive that a minimal ISO or a machine that boots over the network unpacks before its root file system is
    /// there. Empty if it needs none.
    ///
    /// # Errors
    ///
    /// When the archive cannot be packed.
    pub fn initrd(&self, networks: &Networks) -> Result<Packed, DiscoveryError> {
        let options = InitrdOptions {
            discovery_delay_seconds: self.discovery_delay_seconds,
            proxies: self.infra_env.proxies.clone(),
        };
        let entries = networks.initrd(&options);
        Ok(Packed::of_entries(entries.iter().map(archive_entry), Encoding::Gzip)?)
    }

    /// The files of the machines' networks in a tar archive. Empty if there are none.
    #[must_use]
    pub fn network_tar(networks: &Networks) -> Vec<u8> {
        let files = networks.ignition().files;
        let of_hosts = files.iter().filter(|file| file.path.starts_with("/etc/assisted/network/"));
        tar::of_files(of_hosts.filter_map(|file| match &file.kind {
            EntryKind::File { contents, .. } => Some((file.path.as_str(), contents.as_ref())),
            EntryKind::Link { .. } => None,
        }))
    }

    /// How machines boot over the network.
    ///
    /// # Errors
    ///
    /// When the version is none.
    pub fn network_boot(
        &self,
        images: HttpUrl,
        architecture: Architecture,
        credential: Option<Credential>,
    ) -> Result<NetworkBoot, InputError> {
        let mut boot = NetworkBoot::new(images, self.infra_env.id.clone(), &self.version, architecture)?;
        boot.credential = credential;
        boot.kernel_arguments = self.kernel_arguments.clone();
        Ok(boot)
    }
}

fn archive_entry(entry: &NetworkEntry) -> Entry<'_> {
    match &entry.kind {
        EntryKind::File { mode, contents } => Entry::file(&entry.path, *mode, contents),
        EntryKind::Link { target } => Entry::link(&entry.path, target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_read_newer_specs_over_time() {
        for (version, spec) in [
            ("4.9", Spec::V3_2),
            ("4.10.3", Spec::V3_3),
            ("4.13.0-rc.1", Spec::V3_4),
            ("5.0", Spec::V3_4),
            ("", Spec::V3_2),
            ("latest", Spec::V3_2),
        ] {
            assert_eq!(newest_spec(version), spec, "{version}");
        }
    }
}
