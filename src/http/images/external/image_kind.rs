//! The kinds of images in the API of the external service.

use crate::http::images::artifact::Artifact;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ImageKind {
    Full,
    Minimal,
    Disconnected,
    /// Network boot. The service then uses the image type of the infra-env.
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

    /// Returns the name of the kind in the API of the service.
    pub(super) fn iso_type(self) -> Option<&'static str> {
        match self {
            Self::Full => Some("full-iso"),
            Self::Minimal => Some("minimal-iso"),
            Self::Disconnected => Some("disconnected-iso"),
            Self::Network => None,
        }
    }
}
