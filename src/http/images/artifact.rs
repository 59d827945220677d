//! What a URL of an image means.

use ignition::discovery::ImageType as DiscoveryImage;

use crate::images::CpuArchitecture;

/// An image of an infra-env, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Artifact {
    /// The ISO with everything in it.
    FullIso,
    /// The ISO that fetches its root file system.
    MinimalIso,
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
        Self::of_name(name).filter(|artifact| matches!(artifact, Self::FullIso | Self::MinimalIso))
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
            _ => None,
        }
    }

    /// What kind of config goes into it.
    #[must_use]
    pub fn config(self) -> DiscoveryImage {
        match self {
            Self::FullIso => DiscoveryImage::Full,
            _ => DiscoveryImage::Minimal,
        }
    }

    /// The name to save it under, behind the id of its infra-env.
    #[must_use]
    pub fn file_name(self) -> &'static str {
        match self {
            Self::FullIso | Self::MinimalIso => "discovery.iso",
            Self::Initrd => "initrd.img",
            Self::InitrdAddrsize => "initrd.addrsize",
        }
    }

    /// Its media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::FullIso | Self::MinimalIso => "application/x-iso9660-image",
            Self::Initrd | Self::InitrdAddrsize => "application/octet-stream",
        }
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
