//! The inputs of an infra-env's images, and the files that each image type takes from them.

use ignition::discovery::ipxe::{Credential, IpxeArchitecture, NetworkBoot};
use ignition::discovery::kernel_arguments::KernelArguments;
use ignition::discovery::{
    ComposedConfig, Discovery, DiscoveryImage, HttpUrl, InfraEnvSettings, InputError, InventoryService,
};
use ignition::network::{
    Cancel, EntryKind, HostNetwork, HostNetworkFiles, InitrdOptions, KeyfileCache, MacAddr, NetworkEntry,
    NetworkGeneration,
};
use ignition::spec::Spec;
use ignition::version::Version;
use isogen::initrd::ArchiveEntry;
use isogen::{Encoding, PackedArchive};

use super::DiscoveryError;
use crate::tar;

/// The inputs of all images of an infra-env.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The service that agents report to.
    pub service: InventoryService,
    /// The settings that are the same for all hosts.
    pub infra_env: InfraEnvSettings,
    /// The static networks of the hosts, if any.
    pub hosts: Vec<HostNetwork>,
    /// Changes of the kernel arguments.
    pub kernel_arguments: KernelArguments,
    /// The OpenShift version whose base image the hosts boot, such as `4.18`.
    pub version: String,
    /// The method by which that version sets up networks.
    pub generation: NetworkGeneration,
    /// The time in seconds that a host waits before it inspects its network.
    pub discovery_delay_seconds: u32,
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
    /// Returns the OpenShift version.
    ///
    /// # Errors
    ///
    /// Returns an error if `version` is not a version.
    pub fn parsed_version(&self) -> Result<Version, DiscoveryError> {
        Version::parse(&self.version).ok_or_else(|| DiscoveryError::Version { version: self.version.clone() })
    }

    /// Keeps only the network of the host with this MAC address. Returns `None` if no host has it.
    #[must_use]
    pub fn of_machine(mut self, mac: MacAddr) -> Option<Self> {
        let has_it = |host: &HostNetwork| {
            let interfaces = host.interfaces().unwrap_or_default();
            interfaces.iter().any(|interface| interface.mac_address.parse() == Ok(mac))
        };
        self.hosts.retain(has_it);
        (!self.hosts.is_empty()).then_some(self)
    }

    /// Generates the files of the hosts' networks. This takes most of the time, unless the cache has them.
    ///
    /// # Errors
    ///
    /// Returns an error if the network of a host cannot be converted to files.
    pub fn networks(&self, cache: &KeyfileCache) -> Result<HostNetworkFiles, DiscoveryError> {
        Ok(HostNetworkFiles::generate(&self.hosts, self.generation, cache)?)
    }

    /// Generates the files like [`networks`](Self::networks), until the work is cancelled.
    ///
    /// # Errors
    ///
    /// Returns an error if the network of a host cannot be converted to files, or if the work was cancelled.
    pub fn networks_until(
        &self,
        cache: &KeyfileCache,
        cancel: &Cancel,
    ) -> Result<HostNetworkFiles, DiscoveryError> {
        Ok(HostNetworkFiles::generate_cancellable(&self.hosts, self.generation, cache, cancel)?)
    }

    /// Composes the Ignition config of an image type. Only the config of a full image contains the networks.
    ///
    /// # Errors
    ///
    /// Returns an error that names the field if the inputs do not result in a valid config.
    pub fn config(
        &self,
        image_type: DiscoveryImage,
        networks: &HostNetworkFiles,
    ) -> Result<ComposedConfig, DiscoveryError> {
        let infra_env = InfraEnvSettings { image_type, ..self.infra_env.clone() };
        let mut discovery = Discovery::new(self.service.clone(), infra_env);
        if networks.host_count() > 0 {
            discovery.static_network = Some(networks.ignition_files());
        }
        discovery.newest_spec = newest_spec(&self.parsed_version()?);
        Ok(discovery.compose()?)
    }

    /// Packs the network archive, which minimal ISOs and hosts that boot over the network unpack before the root file
    /// system is available. It is empty if there is nothing to set up.
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

    /// Returns the files of the hosts' networks as a tar archive. It is empty if no host has a static network.
    ///
    /// # Errors
    ///
    /// Returns an error if the name of a file is too long for the archive.
    pub fn network_tar(networks: &HostNetworkFiles) -> Result<Vec<u8>, DiscoveryError> {
        let files = networks.ignition_files().files;
        let of_hosts = files.iter().filter(|file| file.path.starts_with("/etc/assisted/network/"));
        Ok(tar::archive(of_hosts.filter_map(|file| match &file.kind {
            EntryKind::File { contents, .. } => Some((file.path.as_str(), contents.as_ref())),
            EntryKind::Link { .. } => None,
        }))?)
    }

    /// Returns the settings for booting hosts over the network.
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
        let mut boot = NetworkBoot::new(images, self.infra_env.id.clone(), &self.version, architecture)?;
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
    use ignition::discovery::{ImageReference, InfraEnvId, PullSecret};

    use super::*;

    #[test]
    fn systems_read_newer_specs_over_time() {
        for (version, spec) in
            [("4.9", Spec::V3_2), ("4.10.3", Spec::V3_3), ("4.13.0-rc.1", Spec::V3_4), ("5.0", Spec::V3_4)]
        {
            assert_eq!(newest_spec(&Version::parse(version).unwrap()), spec, "{version}");
        }
    }

    #[test]
    fn inputs_with_an_invalid_version_have_no_config() {
        let url = HttpUrl::parse("url", "http://192.0.2.1").unwrap();
        let agent = ImageReference::parse("agent", "quay.io/agent:1").unwrap();
        let id = InfraEnvId::parse("6ba7b810-9dad-11d1-80b4-00c04fd430c8").unwrap();
        let secret = PullSecret::parse(r#"{"auths": {"r": {"auth": "dXNlcjpwYXNz"}}}"#).unwrap();
        let mut inputs = Inputs {
            service: InventoryService::new(url, agent),
            infra_env: InfraEnvSettings::new(id, secret),
            hosts: Vec::new(),
            kernel_arguments: KernelArguments::default(),
            version: "4.18".to_owned(),
            generation: NetworkGeneration::Nmstate,
            discovery_delay_seconds: 0,
        };
        let networks = inputs.networks(&KeyfileCache::default()).unwrap();
        inputs.config(DiscoveryImage::Full, &networks).unwrap();
        for version in ["", "latest", "4.18-a b"] {
            inputs.version = version.to_owned();
            let error = inputs.config(DiscoveryImage::Full, &networks).unwrap_err();
            assert_eq!(error.to_string(), format!("{version:?} is not an OpenShift version such as 4.18"));
        }
    }
}
