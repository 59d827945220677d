//! Kinds of machines and of images.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The processor of a machine. ARM has two names: both are read, `arm64` is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CpuArchitecture {
    /// Intel and AMD, 64 bits.
    #[default]
    #[serde(rename = "x86_64", alias = "amd64")]
    X86_64,
    /// ARM, 64 bits.
    #[serde(rename = "arm64", alias = "aarch64")]
    Arm64,
    /// POWER, little-endian.
    #[serde(rename = "ppc64le")]
    Ppc64le,
    /// IBM Z.
    #[serde(rename = "s390x")]
    S390x,
}

impl CpuArchitecture {
    /// As the API writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Arm64 => "arm64",
            Self::Ppc64le => "ppc64le",
            Self::S390x => "s390x",
        }
    }

    /// Reads any of its names.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "x86_64" | "amd64" => Some(Self::X86_64),
            "arm64" | "aarch64" => Some(Self::Arm64),
            "ppc64le" => Some(Self::Ppc64le),
            "s390x" => Some(Self::S390x),
            _ => None,
        }
    }
}

impl fmt::Display for CpuArchitecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The kind of image that an infra-env asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = image_type)]
pub enum ImageType {
    /// Everything is in the image.
    #[default]
    #[serde(rename = "full-iso")]
    Full,
    /// The root file system is fetched at boot.
    #[serde(rename = "minimal-iso")]
    Minimal,
    /// Everything, and all that an installation without network needs.
    #[serde(rename = "disconnected-iso")]
    Disconnected,
}

impl ImageType {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Full, Self::Minimal, Self::Disconnected];

    /// As the API writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full-iso",
            Self::Minimal => "minimal-iso",
            Self::Disconnected => "disconnected-iso",
        }
    }

    /// The name of its file in a URL.
    #[must_use]
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Full => "full.iso",
            Self::Minimal => "minimal.iso",
            Self::Disconnected => "disconnected.iso",
        }
    }
}

impl fmt::Display for ImageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
