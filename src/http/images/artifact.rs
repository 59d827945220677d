//! The artifacts and boot files that URLs select.

use discovery::{Inputs, RenderedConfig};
use ignition::discovery::DiscoveryImage;
use ignition::network::{KeyfileCache, MacAddr};

use super::source_error::SourceError;
use inventory::catalogue::{CpuArchitecture, ImageType};
use inventory::id::InfraEnvId;

/// The name of the iPXE script in the URLs under `/i`.
pub(super) const SCRIPT: &str = "script.ipxe";

/// A file that is made for an infra-env.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Artifact {
    /// The full ISO.
    FullIso,
    /// The minimal ISO, which fetches its root file system over the network.
    MinimalIso,
    /// The ISO for an installation without network. It is made from a separate base image.
    DisconnectedIso,
    /// The initrd for hosts that boot over the network.
    Initrd,
    /// On s390x: the load address and the size of that initrd.
    InitrdAddrsize,
}

impl Artifact {
    /// Returns the artifacts that are available for an architecture.
    pub fn all(architecture: CpuArchitecture) -> impl Iterator<Item = Self> {
        let is_z = architecture == CpuArchitecture::S390x;
        [Self::FullIso, Self::MinimalIso, Self::Initrd]
            .into_iter()
            .chain(is_z.then_some(Self::InitrdAddrsize))
    }

    /// Returns the ISO with a file name at the end of a short URL of the Assisted Image Service.
    #[must_use]
    pub fn from_iso_file_name(name: &str) -> Option<Self> {
        let isos = [Self::FullIso, Self::MinimalIso, Self::DisconnectedIso];
        isos.into_iter().find(|artifact| artifact.name() == name)
    }

    /// Returns the artifact with a name at the end of a URL under `/i`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::FullIso, Self::MinimalIso, Self::Initrd, Self::InitrdAddrsize]
            .into_iter()
            .find(|artifact| artifact.name() == name)
    }

    /// Returns its name in the URLs under `/i`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FullIso => "full.iso",
            Self::MinimalIso => "minimal.iso",
            Self::DisconnectedIso => "disconnected.iso",
            Self::Initrd => "initrd",
            Self::InitrdAddrsize => "initrd.addrsize",
        }
    }

    /// Returns the ISO with a type in the query of a long URL.
    #[must_use]
    pub fn from_iso_type(name: &str) -> Option<Self> {
        match name {
            "full-iso" => Some(Self::FullIso),
            "minimal-iso" => Some(Self::MinimalIso),
            "disconnected-iso" => Some(Self::DisconnectedIso),
            _ => None,
        }
    }

    /// Returns the kind of discovery config. `None` for network boot: like the Assisted Service, it uses the config of
    /// the infra-env.
    #[must_use]
    pub fn discovery_image(self) -> Option<DiscoveryImage> {
        match self {
            Self::FullIso | Self::DisconnectedIso => Some(DiscoveryImage::Full),
            Self::MinimalIso => Some(DiscoveryImage::Minimal),
            Self::Initrd | Self::InitrdAddrsize => None,
        }
    }

    /// Renders the config of this artifact: with a MAC address, with the network of the host that has it only.
    /// Generates the network files, unless the cache has them, so call it on a blocking thread.
    ///
    /// # Errors
    ///
    /// Returns an error if no host has that MAC address, or if the inputs do not result in a valid config.
    pub fn render(
        self,
        inputs: &Inputs,
        machine: Option<MacAddr>,
        cache: &KeyfileCache,
    ) -> Result<RenderedConfig, SourceError> {
        let none = |mac| SourceError::not_found(format!("this infra-env has no static network for {mac}"));
        let of_machine = machine.map(|mac| inputs.clone().of_machine(mac).ok_or_else(|| none(mac)));
        let of_machine = of_machine.transpose()?;
        let inputs = of_machine.as_ref().unwrap_or(inputs);
        let networks = inputs.networks(cache)?;
        Ok(match self.discovery_image() {
            Some(kind) => inputs.rendered(kind, &networks)?,
            None => inputs.rendered_for_network(inputs.infra_env().image_type, &networks)?,
        })
    }

    /// Reports whether it is an ISO image.
    #[must_use]
    pub fn is_iso(self) -> bool {
        matches!(self, Self::FullIso | Self::MinimalIso | Self::DisconnectedIso)
    }

    /// Returns the type of its base images.
    #[must_use]
    pub fn base_image_type(self) -> ImageType {
        if self == Self::DisconnectedIso { ImageType::Disconnected } else { ImageType::Full }
    }

    /// Returns the name to save it under.
    #[must_use]
    pub fn file_name(self, infra_env: InfraEnvId, architecture: CpuArchitecture) -> String {
        match self {
            Self::FullIso | Self::MinimalIso => format!("{infra_env}-discovery.iso"),
            Self::DisconnectedIso => format!("agent-ove.{architecture}.iso"),
            Self::Initrd => format!("{infra_env}-initrd.img"),
            Self::InitrdAddrsize => format!("{infra_env}-initrd.addrsize"),
        }
    }

    /// Returns its media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        if self.is_iso() { "application/x-iso9660-image" } else { "application/octet-stream" }
    }
}

/// A file of a base image that is the same for all infra-envs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BaseImageFile {
    /// The kernel.
    Kernel,
    /// The root file system.
    Rootfs,
    /// On s390x: the list of files and addresses that the firmware loads.
    LoadList,
}

impl BaseImageFile {
    /// Returns the files that are available for an architecture.
    pub fn all(architecture: CpuArchitecture) -> impl Iterator<Item = Self> {
        let is_z = architecture == CpuArchitecture::S390x;
        [Self::Kernel, Self::Rootfs].into_iter().chain(is_z.then_some(Self::LoadList))
    }

    /// Returns the file with a name in a URL.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Kernel, Self::Rootfs, Self::LoadList].into_iter().find(|file| file.name() == name)
    }

    /// Returns its name in URLs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Rootfs => "rootfs",
            Self::LoadList => "ins-file",
        }
    }

    /// Returns the name to save it under.
    #[must_use]
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Kernel => "vmlinuz",
            Self::Rootfs => "rootfs.img",
            Self::LoadList => "generic.ins",
        }
    }
}
