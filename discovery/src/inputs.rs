//! The checked inputs of an infra-env's images, and the files that each image type generates from them.

use ignition::discovery::ipxe::{Credential, IpxeArchitecture, NetworkBoot};
use ignition::discovery::kernel_arguments::KernelArguments;
use ignition::discovery::{
    ComposeError, ComposedConfig, Discovery, DiscoveryImage, HttpUrl, InfraEnvSettings, InputError,
    InventoryService,
};
use ignition::network::{
    Cancel, EntryKind, HostNetwork, HostNetworkFiles, InitrdOptions, KeyfileCache, MacAddr, NetworkEntry,
    NetworkGeneration,
};
use ignition::spec::Spec;
use ignition::version::Version;
use isogen::initrd::ArchiveEntry;
use isogen::{Encoding, PackedArchive};

use crate::error::DiscoveryError;
use crate::version::OpenshiftVersion;

/// The checked inputs for all images of an infra-env.
#[derive(Clone, Debug)]
pub struct Inputs {
    pub(crate) service: InventoryService,
    pub(crate) infra_env: InfraEnvSettings,
    pub(crate) hosts: Vec<HostNetwork>,
    pub(crate) kernel_arguments: KernelArguments,
    pub(crate) version: OpenshiftVersion,
    pub(crate) generation: NetworkGeneration,
    pub(crate) discovery_delay_seconds: u32,
}

/// Returns the newest Ignition spec that the live system of an OpenShift version supports.
#[must_use]
pub fn newest_spec(version: &Version) -> Spec {
    match version.minor() {
        minor if minor >= (4, 13) => Spec::V3_4,
        minor if minor >= (4, 10) => Spec::V3_3,
        _ => Spec::V3_2,
    }
}

impl Inputs {
    /// Returns the service that the agents report to.
    #[must_use]
    pub fn service(&self) -> &InventoryService {
        &self.service
    }

    /// Returns the settings shared by all hosts.
    #[must_use]
    pub fn infra_env(&self) -> &InfraEnvSettings {
        &self.infra_env
    }

    /// Returns the static networks of the hosts. Empty if the hosts use DHCP.
    #[must_use]
    pub fn hosts(&self) -> &[HostNetwork] {
        &self.hosts
    }

    /// Returns the changes to the kernel arguments.
    #[must_use]
    pub fn kernel_arguments(&self) -> &KernelArguments {
        &self.kernel_arguments
    }

    /// Returns the OpenShift version whose base image the hosts boot.
    #[must_use]
    pub fn version(&self) -> &OpenshiftVersion {
        &self.version
    }

    /// Returns how the live system of the base image sets up networks.
    #[must_use]
    pub fn generation(&self) -> NetworkGeneration {
        self.generation
    }

    /// Returns how long a host waits before it inspects its network, in seconds.
    #[must_use]
    pub fn discovery_delay_seconds(&self) -> u32 {
        self.discovery_delay_seconds
    }

    /// Keeps only the network of the host with this MAC address. Returns `None` if no host has the address.
    #[must_use]
    pub fn of_machine(mut self, mac: MacAddr) -> Option<Self> {
        let has_it = |host: &HostNetwork| {
            let interfaces = host.interfaces().unwrap_or_default();
            interfaces.iter().any(|interface| interface.mac_address.parse() == Ok(mac))
        };
        self.hosts.retain(has_it);
        (!self.hosts.is_empty()).then_some(self)
    }

    /// Generates the network files of the hosts, or takes them from the cache. Generating them takes most of the time.
    ///
    /// # Errors
    ///
    /// Returns an error if the network of a host cannot be converted to files.
    pub fn networks(&self, cache: &KeyfileCache) -> Result<HostNetworkFiles, DiscoveryError> {
        Ok(HostNetworkFiles::generate(&self.hosts, self.generation, cache)?)
    }

    /// Generates the network files like [`networks`](Self::networks), but can be cancelled.
    ///
    /// # Errors
    ///
    /// Returns an error if the network of a host cannot be converted to files, or if the work is cancelled.
    pub fn networks_until(
        &self,
        cache: &KeyfileCache,
        cancel: &Cancel,
    ) -> Result<HostNetworkFiles, DiscoveryError> {
        Ok(HostNetworkFiles::generate_cancellable(&self.hosts, self.generation, cache, cancel)?)
    }

    /// Composes the Ignition config of an image type. Only the config of a full image contains the network files.
    ///
    /// # Errors
    ///
    /// Returns an error that names the invalid field if the inputs do not result in a valid config.
    pub fn config(
        &self,
        image_type: DiscoveryImage,
        networks: &HostNetworkFiles,
    ) -> Result<ComposedConfig, DiscoveryError> {
        let mut discovery = self.discovery(image_type);
        if networks.host_count() > 0 {
            discovery.static_network = Some(networks.ignition_files());
        }
        Ok(discovery.compose()?)
    }

    /// Composes the Ignition config without the network files, to check that the override can be merged.
    pub(crate) fn config_without_networks(&self) -> Result<ComposedConfig, ComposeError> {
        self.discovery(self.infra_env.image_type).compose()
    }

    fn discovery(&self, image_type: DiscoveryImage) -> Discovery {
        let infra_env = InfraEnvSettings { image_type, ..self.infra_env.clone() };
        let mut discovery = Discovery::new(self.service.clone(), infra_env);
        discovery.newest_spec = newest_spec(self.version.parsed());
        discovery
    }

    /// Packs the network archive. Minimal ISOs and hosts that boot over the network unpack it before the root file
    /// system is available. The archive is empty if no networks need to be set up.
    ///
    /// # Errors
    ///
    /// Returns an error if the archive cannot be packed.
    pub fn initrd(&self, networks: &HostNetworkFiles) -> Result<PackedArchive, DiscoveryError> {
        let options = InitrdOptions {
            discovery_delay_seconds: self.discovery_delay_seconds,
            proxies: self.infra_env.proxies.clone(),
        };
        let entries = networks.initrd_entries(&options);
        Ok(PackedArchive::from_entries(entries.iter().map(archive_entry), Encoding::Gzip)?)
    }

    /// Returns the settings for booting hosts over the network. `images` is the base URL of the image server.
    ///
    /// # Errors
    ///
    /// Returns an error if the version is invalid.
    pub fn network_boot(
        &self,
        images: HttpUrl,
        architecture: IpxeArchitecture,
        credential: Option<Credential>,
    ) -> Result<NetworkBoot, InputError> {
        let mut boot =
            NetworkBoot::new(images, self.infra_env.id.clone(), self.version.as_str(), architecture)?;
        boot.credential = credential;
        boot.kernel_arguments = self.kernel_arguments.clone();
        Ok(boot)
    }
}

fn archive_entry(entry: &NetworkEntry) -> ArchiveEntry<'_> {
    match &entry.kind {
        EntryKind::File { mode, contents } => ArchiveEntry::file(&entry.path, *mode, contents),
        EntryKind::Link { target } => ArchiveEntry::link(&entry.path, target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_versions_support_newer_specs() {
        for (version, spec) in
            [("4.9", Spec::V3_2), ("4.10.3", Spec::V3_3), ("4.13.0-rc.1", Spec::V3_4), ("5.0", Spec::V3_4)]
        {
            assert_eq!(newest_spec(&Version::parse(version).unwrap()), spec, "{version}");
        }
    }
}
