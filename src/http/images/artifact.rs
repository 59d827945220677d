//! What a URL of an image means.

use ignition::discovery::ImageType as DiscoveryImage;

use crate::images::{CpuArchitecture, ImageType};
use crate::inventory::id::InfraEnvId;

/// The name of the iPXE script of an infra-env, in our own URLs.
pub(super) const SCRIPT: &str = "script.ipxe";

/// An image of an infra-env, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Artifact {
    /// The ISO with everything in it.
    FullIso,
    /// The ISO that fetches its root file system.
    MinimalIso,
    /// The ISO with everything in it that an installation without network needs. It has a live image of its own.
    DisconnectedIso,
    /// The initrd of a machine that boots over the network.
    Initrd,
    /// On s390x: where that initrd goes, and how long it is.
    InitrdAddrsize,
}

impl Artifact {
    /// All that a live image of an architecture gives.
    pub fn all(architecture: CpuArchitecture) -> impl Iterator<Item = Self> {
        let is_z = architecture == CpuArchitecture::S390x;
        [Self::FullIso, Self::MinimalIso, Self::Initrd]
            .into_iter()
            .chain(is_z.then_some(Self::InitrdAddrsize))
    }

    /// The ISO of a file name, as it stands at the end of a short URL of the assisted image service.
    #[must_use]
    pub fn of_iso(name: &str) -> Option<Self> {
        let isos = [Self::FullIso, Self::MinimalIso, Self::DisconnectedIso];
        isos.into_iter().find(|artifact| artifact.name() == name)
    }

    /// The image of a name, as it stands at the end of our own URLs.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::FullIso, Self::MinimalIso, Self::Initrd, Self::InitrdAddrsize]
            .into_iter()
            .find(|artifact| artifact.name() == name)
    }

    /// Its name in our own URLs.
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

    /// The image of a type, as it stands in the query of a long URL.
    #[must_use]
    pub fn of_type(name: &str) -> Option<Self> {
        match name {
            "full-iso" => Some(Self::FullIso),
            "minimal-iso" => Some(Self::MinimalIso),
            "disconnected-iso" => Some(Self::DisconnectedIso),
            _ => None,
        }
    }

    /// What kind of config goes into it. What boots over the network has that of its infra-env, as it always had.
    #[must_use]
    pub fn config(self) -> Option<DiscoveryImage> {
        match self {
            Self::FullIso | Self::DisconnectedIso => Some(DiscoveryImage::Full),
            Self::MinimalIso => Some(DiscoveryImage::Minimal),
            Self::Initrd | Self::InitrdAddrsize => None,
        }
    }

    /// Whether it is an ISO image.
    #[must_use]
    pub fn is_iso(self) -> bool {
        matches!(self, Self::FullIso | Self::MinimalIso | Self::DisconnectedIso)
    }

    /// The type of the live images that it is made on.
    #[must_use]
    pub fn live_image(self) -> ImageType {
        if self == Self::DisconnectedIso { ImageType::Disconnected } else { ImageType::Full }
    }

    /// The name to save it under.
    #[must_use]
    pub fn file_name(self, infra_env: InfraEnvId, architecture: CpuArchitecture) -> String {
        match self {
            Self::FullIso | Self::MinimalIso => format!("{infra_env}-discovery.iso"),
            Self::DisconnectedIso => format!("agent-ove.{architecture}.iso"),
            Self::Initrd => format!("{infra_env}-initrd.img"),
            Self::InitrdAddrsize => format!("{infra_env}-initrd.addrsize"),
        }
    }

    /// Its media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        if self.is_iso() { "application/x-iso9660-image" } else { "application/octet-stream" }
    }
}

/// A file of a live image that is the same for all infra-envs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BootFile {
    /// The kernel.
    Kernel,
    /// The root file system.
    Rootfs,
    /// On s390x: what the firmware loads where.
    LoadList,
}

impl BootFile {
    /// All that a live image of an architecture gives.
    pub fn all(architecture: CpuArchitecture) -> impl Iterator<Item = Self> {
        let is_z = architecture == CpuArchitecture::S390x;
        [Self::Kernel, Self::Rootfs].into_iter().chain(is_z.then_some(Self::LoadList))
    }

    /// The file of a name, as it stands in a URL.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Kernel, Self::Rootfs, Self::LoadList].into_iter().find(|file| file.name() == name)
    }

    /// Its name in URLs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Rootfs => "rootfs",
            Self::LoadList => "ins-file",
        }
    }

    /// The name to save it under.
    #[must_use]
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Kernel => "vmlinuz",
            Self::Rootfs => "rootfs.img",
            Self::LoadList => "generic.ins",
        }
    }
}
