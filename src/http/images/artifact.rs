//! The artifacts and boot files that a URL can select.

use discovery::{Inputs, RenderedConfig};
use ignition::discovery::DiscoveryImage;
use ignition::network::{KeyfileCache, MacAddr};

use super::source_error::SourceError;
use inventory::catalogue::{CpuArchitecture, ImageType};
use inventory::id::InfraEnvId;

/// The name of the iPXE script in URLs under `/i`.
pub(super) const SCRIPT: &str = "script.ipxe";

/// A file generated for one infra-env, except for the iPXE script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Artifact {
    /// The full ISO, which contains the root file system.
    FullIso,
    /// The minimal ISO, which downloads its root file system from the server.
    MinimalIso,
    /// The ISO for an installation without network, generated from a separate base image.
    DisconnectedIso,
    /// The initrd for hosts that boot over the network.
    Initrd,
    /// On s390x: the load address and the size of the initrd.
    InitrdAddrsize,
}

impl Artifact {
    /// Returns the artifacts available for an architecture.
    pub fn all(architecture: CpuArchitecture) -> impl Iterator<Item = Self> {
        let is_z = architecture == CpuArchitecture::S390x;
        [Self::FullIso, Self::MinimalIso, Self::Initrd]
            .into_iter()
            .chain(is_z.then_some(Self::InitrdAddrsize))
    }

    /// Returns the ISO with this file name in a short URL of the Assisted Image Service.
    #[must_use]
    pub fn from_iso_file_name(name: &str) -> Option<Self> {
        let isos = [Self::FullIso, Self::MinimalIso, Self::DisconnectedIso];
        isos.into_iter().find(|artifact| artifact.name() == name)
    }

    /// Returns the artifact with this name in a URL under `/i`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::FullIso, Self::MinimalIso, Self::Initrd, Self::InitrdAddrsize]
            .into_iter()
            .find(|artifact| artifact.name() == name)
    }

    /// Returns the name in URLs under `/i`, such as `full.iso`.
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

    /// Returns the ISO for the `type` in the query of a long URL, such as `minimal-iso`.
    #[must_use]
    pub fn from_iso_type(name: &str) -> Option<Self> {
        match name {
            "full-iso" => Some(Self::FullIso),
            "minimal-iso" => Some(Self::MinimalIso),
            "disconnected-iso" => Some(Self::DisconnectedIso),
            _ => None,
        }
    }

    /// Returns the kind of discovery config. `None` for network boot, which uses the kind of the infra-env, as in the
    /// Assisted Service.
    #[must_use]
    pub fn discovery_image(self) -> Option<DiscoveryImage> {
        match self {
            Self::FullIso | Self::DisconnectedIso => Some(DiscoveryImage::Full),
            Self::MinimalIso => Some(DiscoveryImage::Minimal),
            Self::Initrd | Self::InitrdAddrsize => None,
        }
    }

    /// Renders the config of this artifact. With a MAC address, the config contains the network of that host only. Call
    /// this on a blocking thread, because it generates network files that are not in `cache`.
    ///
    /// # Errors
    ///
    /// Returns an error if no host has this MAC address, or if the inputs do not result in a valid config.
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

    /// Returns `true` if the artifact is an ISO image.
    #[must_use]
    pub fn is_iso(self) -> bool {
        matches!(self, Self::FullIso | Self::MinimalIso | Self::DisconnectedIso)
    }

    /// Returns the type of the base images from which the artifact is generated.
    #[must_use]
    pub fn base_image_type(self) -> ImageType {
        if self == Self::DisconnectedIso { ImageType::Disconnected } else { ImageType::Full }
    }

    /// Returns the file name that the response suggests to the client.
    #[must_use]
    pub fn file_name(self, infra_env: InfraEnvId, architecture: CpuArchitecture) -> String {
        match self {
            Self::FullIso | Self::MinimalIso => format!("{infra_env}-discovery.iso"),
            Self::DisconnectedIso => format!("agent-ove.{architecture}.iso"),
            Self::Initrd => format!("{infra_env}-initrd.img"),
            Self::InitrdAddrsize => format!("{infra_env}-initrd.addrsize"),
        }
    }

    /// Returns the media type, for `Content-Type`.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        if self.is_iso() { "application/x-iso9660-image" } else { "application/octet-stream" }
    }
}

/// A file extracted from a base image. It is the same for all infra-envs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BaseImageFile {
    /// The kernel, for network boot.
    Kernel,
    /// The root file system image, for the minimal ISO and network boot.
    Rootfs,
    /// On s390x: the list of files and load addresses for the firmware (`ins-file`).
    LoadList,
}

impl BaseImageFile {
    /// Returns the files available for an architecture.
    pub fn all(architecture: CpuArchitecture) -> impl Iterator<Item = Self> {
        let is_z = architecture == CpuArchitecture::S390x;
        [Self::Kernel, Self::Rootfs].into_iter().chain(is_z.then_some(Self::LoadList))
    }

    /// Returns the file with this name in a URL.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Kernel, Self::Rootfs, Self::LoadList].into_iter().find(|file| file.name() == name)
    }

    /// Returns the name in URLs, such as `rootfs`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Rootfs => "rootfs",
            Self::LoadList => "ins-file",
        }
    }

    /// Returns the file name that the response suggests to the client.
    #[must_use]
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Kernel => "vmlinuz",
            Self::Rootfs => "rootfs.img",
            Self::LoadList => "generic.ins",
        }
    }
}
