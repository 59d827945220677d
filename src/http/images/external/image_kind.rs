//! The kinds of images that the other service knows.

use crate::http::images::artifact::Artifact;

/// What the service distinguishes between images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ImageKind {
    Full,
    Minimal,
    Disconnected,
    /// What boots over the network: the service takes the kind of the infra-env itself.
    Network,
}

impl ImageKind {
    pub(super) fn from_artifact(artifact: Artifact) -> Self {
        match artifact {
            Artifact::FullIso => Self::Full,
            Artifact::MinimalIso => Self::Minimal,
            Artifact::DisconnectedIso => Self::Disconnected,
            Artifact::Initrd | Artifact::InitrdAddrsize => Self::Network,
        }
    }

    /// The name that the service has for it.
    pub(super) fn iso_type(self) -> Option<&'static str> {
        match self {
            Self::Full => Some("full-iso"),
            Self::Minimal => Some("minimal-iso"),
            Self::Disconnected => Some("disconnected-iso"),
            Self::Network => None,
        }
    }
}
