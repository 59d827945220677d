//! What a URL of an image means.

use ignition::discovery::ImageType as DiscoveryImage;

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
    /// The image of a file name, as it stands at the end of a short URL.
    #[must_use]
    pub fn of_file(name: &str) -> Option<Self> {
        match name {
            "full.iso" => Some(Self::FullIso),
            "minimal.iso" => Some(Self::MinimalIso),
            _ => None,
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
    /// The file of a name, as it stands in a URL.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "kernel" => Some(Self::Kernel),
            "rootfs" => Some(Self::Rootfs),
            "ins-file" => Some(Self::LoadList),
            _ => None,
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
