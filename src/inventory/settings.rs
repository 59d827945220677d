//! What an operator sets.

use ignition::discovery::HttpUrl;
use ignition::network::Generation;

use super::id::InfraEnvId;
use crate::images::ImageType;

/// The settings of the inventory.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where machines and iPXE reach the API, without the path of the API.
    pub service_base_url: HttpUrl,
    /// Where they reach images.
    pub image_service_base_url: HttpUrl,
    /// Whether bodies with keys that nobody knows are refused.
    pub reject_unknown_fields: bool,
    /// The kind of image of an infra-env that asks for none.
    pub default_image_type: ImageType,
    /// The time server of infra-envs that name none; may be empty.
    pub default_ntp_source: String,
    /// Registries that need no credentials.
    pub public_registries: Vec<String>,
    /// The image of the agent.
    pub agent_image: String,
    /// The image of the installer.
    pub installer_image: String,
    /// The image of the controller.
    pub controller_image: String,
    /// How this service calls its version.
    pub self_version: String,
    /// How the release of all images is called; may be empty.
    pub release_tag: String,
    /// How long machines wait, in seconds, before they look at their network.
    pub discovery_delay_seconds: u32,
    /// The id of the only infra-env that will be made.
    pub infra_env_id: Option<InfraEnvId>,
}

impl Settings {
    /// The path of the API.
    pub const API: &'static str = "/api/assisted-install";

    /// Settings that have only what they must have.
    #[must_use]
    pub fn new(service_base_url: HttpUrl, image_service_base_url: HttpUrl) -> Self {
        const IMAGES: &str = "quay.io/edge-infrastructure";
        Self {
            service_base_url,
            image_service_base_url,
            reject_unknown_fields: true,
            default_image_type: ImageType::Full,
            default_ntp_source: String::new(),
            public_registries: Vec::new(),
            agent_image: format!("{IMAGES}/assisted-installer-agent:latest"),
            installer_image: format!("{IMAGES}/assisted-installer:latest"),
            controller_image: format!("{IMAGES}/assisted-installer-controller:latest"),
            self_version: concat!("kindling-", env!("CARGO_PKG_VERSION")).to_owned(),
            release_tag: String::new(),
            discovery_delay_seconds: 0,
            infra_env_id: None,
        }
    }

    /// How the network of machines that boot a version is set up.
    #[must_use]
    pub fn generation(&self, version: &str) -> Generation {
        Generation::for_version(version)
    }
}
