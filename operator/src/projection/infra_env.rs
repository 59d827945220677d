//! Projects the state of an image to the status of an InfraEnv.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use inventory::service::infra_envs::{ImageUrls, IpxeScript};

use crate::conditions::{self, ConditionValue};
use crate::crds::names::INFRA_ENV_LABEL;
use crate::crds::{BootArtifactUrls, InfraEnvStatus, Selector};

/// The type of the only condition of an InfraEnv.
pub(crate) const IMAGE_CREATED: &str = "ImageCreated";

/// The reason of the condition if the image cannot be created.
pub(crate) const IMAGE_CREATION_ERROR: &str = "ImageCreationError";

/// The state of the image of an InfraEnv.
#[derive(Clone, Debug)]
pub(crate) enum ImageState {
    /// The image is available for download.
    Available {
        /// The URLs of the image and of its artifacts.
        urls: Box<ImageUrls>,
        /// The type of the published iPXE script.
        script: IpxeScript,
        /// Whether the image contains static networks.
        has_networks: bool,
    },
    /// A user must change the resource, or an object that it refers to.
    InvalidInput(String),
    /// The image cannot be created at the moment.
    InternalError(String),
    /// The cluster of the InfraEnv does not exist.
    MissingCluster(String),
}

impl ImageState {
    /// Returns `true` if the conditions in `status` already show this state.
    pub(crate) fn is_shown(&self, status: Option<&InfraEnvStatus>) -> bool {
        let value = self.condition();
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        conditions.iter().any(|it| {
            it.type_ == IMAGE_CREATED
                && (it.status.as_str(), it.reason.as_str()) == (value.status, value.reason)
                && it.message == value.message
        })
    }

    fn condition(&self) -> ConditionValue {
        match self {
            Self::Available { .. } => {
                let message = "InfraEnv is available: Image has been created";
                ConditionValue::new("True", "InfraEnvAvailable", message)
            }
            Self::InvalidInput(cause) => {
                ConditionValue::new("False", IMAGE_CREATION_ERROR, format!("Failed to create image: {cause}"))
            }
            Self::InternalError(cause) => {
                let message = format!("Failed to create image due to an internal error: {cause}");
                ConditionValue::new("False", IMAGE_CREATION_ERROR, message)
            }
            Self::MissingCluster(cause) => {
                let message = format!("ClusterDeployment is missing: {cause}");
                ConditionValue::new("Unknown", "MissingClusterDeployment", message)
            }
        }
    }
}

/// Returns the status of the InfraEnv named `name`.
#[must_use]
pub(crate) fn status(
    before: Option<&InfraEnvStatus>,
    name: &str,
    image: &ImageState,
    now: DateTime<Utc>,
) -> InfraEnvStatus {
    let mut status = before.cloned().unwrap_or_default();
    let match_labels = BTreeMap::from([(INFRA_ENV_LABEL.to_owned(), name.to_owned())]);
    status.agent_label_selector = Selector { match_labels, ..Selector::default() };
    match image {
        ImageState::Available { urls, script, has_networks } => {
            let url = urls.iso.reveal();
            if status.iso_download_url != url {
                url.clone_into(&mut status.iso_download_url);
                status.created_time = Some(now.into());
            }
            status.boot_artifacts = BootArtifactUrls {
                initrd: urls.initrd.reveal().to_owned(),
                rootfs: urls.rootfs.clone(),
                kernel: urls.kernel.clone(),
                ipxe_script: urls.ipxe_script(*script).reveal().to_owned(),
                discovery_ignition_url: urls.discovery_ignition.reveal().to_owned(),
            };
            urls.events.reveal().clone_into(&mut status.debug_info.events_url);
            let networks = if *has_networks { urls.static_network.reveal() } else { "" };
            networks.clone_into(&mut status.debug_info.static_network_download_url);
        }
        ImageState::InvalidInput(_) | ImageState::InternalError(_) => {
            status.iso_download_url.clear();
            status.created_time = None;
        }
        ImageState::MissingCluster(_) => {}
    }
    conditions::set(&mut status.conditions, IMAGE_CREATED, image.condition(), now);
    status
}
