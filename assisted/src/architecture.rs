//! CPU architectures and image types.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::string_enum::string_enum;

/// The CPU architecture of a host. Readers accept two names for ARM (`arm64` and `aarch64`) and for x86 (`x86_64` and
/// `amd64`), also in an [`Extensible`](crate::Extensible). They are written as `arm64` and `x86_64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CpuArchitecture {
    /// 64-bit Intel and AMD.
    #[default]
    #[serde(rename = "x86_64", alias = "amd64")]
    X86_64,
    /// 64-bit ARM.
    #[serde(rename = "arm64", alias = "aarch64")]
    Arm64,
    /// Little-endian POWER.
    #[serde(rename = "ppc64le")]
    Ppc64le,
    /// IBM Z.
    #[serde(rename = "s390x")]
    S390x,
}

impl CpuArchitecture {
    /// Returns the name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Arm64 => "arm64",
            Self::Ppc64le => "ppc64le",
            Self::S390x => "s390x",
        }
    }

    /// Parses any accepted name of an architecture.
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

// These types only document which names requests may contain. `CpuArchitecture` parses them.
string_enum! {
    /// CPU architecture, with all accepted names.
    #[allow(missing_docs, reason = "names of architectures")]
    InfraEnvArchitecture as cpu_architecture {
        X86_64 = "x86_64",
        Aarch64 = "aarch64",
        Arm64 = "arm64",
        Ppc64le = "ppc64le",
        S390x = "s390x",
    }

    /// CPU architecture, with all accepted names.
    #[allow(missing_docs, reason = "names of architectures")]
    OsImageArchitecture as os_image_cpu_architecture {
        X86_64 = "x86_64",
        Aarch64 = "aarch64",
        Arm64 = "arm64",
        Ppc64le = "ppc64le",
        S390x = "s390x",
    }

    /// CPU architecture of a cluster's hosts, with all accepted names.
    #[allow(missing_docs, reason = "names of architectures")]
    ClusterArchitecture as cluster_cpu_architecture {
        X86_64 = "x86_64",
        Aarch64 = "aarch64",
        Arm64 = "arm64",
        Ppc64le = "ppc64le",
        S390x = "s390x",
        Multi = "multi",
    }
}

/// The CPU architecture of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum ReleaseArchitecture {
    /// One architecture.
    One(CpuArchitecture),
    /// A multi-architecture release.
    Multi,
}

impl ReleaseArchitecture {
    /// Returns the name in the API: `multi`, or the name of the architecture.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::One(architecture) => architecture.as_str(),
            Self::Multi => "multi",
        }
    }

    /// Parses any accepted name of an architecture, or `multi`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "multi" { Some(Self::Multi) } else { CpuArchitecture::from_name(name).map(Self::One) }
    }
}

impl Default for ReleaseArchitecture {
    fn default() -> Self {
        Self::One(CpuArchitecture::default())
    }
}

impl fmt::Display for ReleaseArchitecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<ReleaseArchitecture> for String {
    fn from(architecture: ReleaseArchitecture) -> Self {
        architecture.as_str().to_owned()
    }
}

impl TryFrom<String> for ReleaseArchitecture {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::from_name(&name).ok_or_else(|| format!("{name:?} is not a known CPU architecture"))
    }
}

/// The type of an infra-env's discovery image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = image_type))]
pub enum ImageType {
    /// Contains everything that a machine needs to boot.
    #[default]
    #[serde(rename = "full-iso")]
    Full,
    /// Downloads the root file system at boot.
    #[serde(rename = "minimal-iso")]
    Minimal,
    /// Also contains everything that an installation without network needs.
    #[serde(rename = "disconnected-iso")]
    Disconnected,
}

impl ImageType {
    /// All image types.
    pub const ALL: [Self; 3] = [Self::Full, Self::Minimal, Self::Disconnected];

    /// Returns the name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full-iso",
            Self::Minimal => "minimal-iso",
            Self::Disconnected => "disconnected-iso",
        }
    }

    /// Returns the file name in image URLs.
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
