//! The files of an infra-env.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use ignition::discovery::ipxe::{self, Architecture, Credential};
use ignition::discovery::{ImageType as DiscoveryImage, InfraEnvId as DiscoveryId, Token};
use ignition::network::Networks;
use sha2::{Digest, Sha256};

use super::model::PresignedUrl;
use super::record::InfraEnvRecord;
use super::rules::refused;
use super::urls;
use crate::api_error::ApiError;
use crate::discovery::Inputs;
use crate::images::{CpuArchitecture, ImageType};
use crate::inventory::id::InfraEnvId;
use crate::inventory::time::Millis;
use crate::inventory::{Inventory, in_background};

/// A file of an infra-env.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileName {
    /// The Ignition config.
    DiscoveryIgnition,
    /// The script with which iPXE boots a machine.
    IpxeScript,
    /// The files of the machines' networks, in a tar archive.
    StaticNetworkConfig,
}

impl FileName {
    /// The names that the API has for them.
    pub(super) const NAMES: [(&'static str, Self); 3] = [
        ("discovery.ign", Self::DiscoveryIgnition),
        ("ipxe-script", Self::IpxeScript),
        ("static-network-config", Self::StaticNetworkConfig),
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::DiscoveryIgnition => "discovery.ign",
            Self::IpxeScript => "ipxe-script",
            Self::StaticNetworkConfig => "static-network-config",
        }
    }
}

/// What an iPXE script does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpxeScript {
    /// It boots the discovery image.
    #[default]
    DiscoveryImageAlways,
    /// It asks again, with the address of the machine, whether the machine shall boot the discovery image.
    BootOrderControl,
}

impl IpxeScript {
    pub(super) const NAMES: [(&'static str, Self); 2] = [
        ("discovery-image-always", Self::DiscoveryImageAlways),
        ("boot-order-control", Self::BootOrderControl),
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::DiscoveryImageAlways => "discovery-image-always",
            Self::BootOrderControl => "boot-order-control",
        }
    }
}

/// A file as it is downloaded.
#[derive(Clone, Debug)]
pub struct File {
    /// The name to save it under; empty if there is nothing in it.
    pub name: String,
    /// What is in it.
    pub contents: Bytes,
    /// When the image of the infra-env changed last.
    pub changed_at: DateTime<Utc>,
}

impl File {
    fn new(name: impl Into<String>, contents: impl Into<Bytes>, record: &InfraEnvRecord) -> Self {
        let changed_at = record.image_changed_at.0.unwrap_or_default();
        Self { name: name.into(), contents: contents.into(), changed_at }
    }

    /// What is the same as long as the contents are: a strong entity tag.
    #[must_use]
    pub fn etag(&self) -> String {
        let digest = Sha256::digest(&self.contents);
        let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("\"{hex}\"")
    }
}

impl Inventory {
    /// The Ignition config of an infra-env, for a kind of image other than its own if one is given.
    ///
    /// # Errors
    ///
    /// When there is no such infra-env or no config for this kind.
    pub async fn discovery_ignition(
        &self,
        id: InfraEnvId,
        kind: Option<ImageType>,
    ) -> Result<File, ApiError> {
        let record = self.stored_infra_env(id).await?.record;
        let kind = match kind.unwrap_or(record.image.image_type) {
            ImageType::Full => DiscoveryImage::Full,
            ImageType::Minimal => DiscoveryImage::Minimal,
            ImageType::Disconnected if record.cluster_id.is_none() => {
                return Err(ApiError::not_found(
                    "a disconnected image is made for a cluster, and the infra-env has none",
                ));
            }
            ImageType::Disconnected => {
                let reason = "configs of disconnected images are not made by this service yet";
                return Err(ApiError::new(axum::http::StatusCode::NOT_IMPLEMENTED, reason));
            }
        };
        self.made_from(record, move |record, inputs, networks| {
            let composed = inputs.config(kind, networks).map_err(refused)?;
            Ok(File::new("discovery.ign", composed.config.to_json(), record))
        })
        .await
    }

    /// The files of the networks of an infra-env's machines.
    ///
    /// # Errors
    ///
    /// When there is no such infra-env.
    pub async fn static_network_tar(&self, id: InfraEnvId) -> Result<File, ApiError> {
        let record = self.stored_infra_env(id).await?.record;
        if record.image.static_network_config.is_empty() {
            return Ok(File::new("", Bytes::new(), &record));
        }
        self.made_from(record, |record, _, networks| {
            let name = format!("{}-static-network-config.tar", record.id);
            Ok(File::new(name, Inputs::network_tar(networks), record))
        })
        .await
    }

    /// The archive that a machine unpacks before its root file system is there. Empty if it needs none.
    ///
    /// # Errors
    ///
    /// When there is no such infra-env.
    pub async fn minimal_initrd(&self, id: InfraEnvId) -> Result<File, ApiError> {
        let record = self.stored_infra_env(id).await?.record;
        self.made_from(record, |record, inputs, networks| {
            let packed = inputs.initrd(networks).map_err(refused)?;
            Ok(File::new("", packed.as_bytes().clone(), record))
        })
        .await
    }

    /// The script with which iPXE boots a machine, or what it does instead if the machine is known by its address.
    ///
    /// # Errors
    ///
    /// When there is no such infra-env, and when the machine shall not boot the discovery image.
    pub async fn ipxe_script(
        &self,
        id: InfraEnvId,
        kind: IpxeScript,
        mac: Option<&str>,
    ) -> Result<File, ApiError> {
        let record = self.stored_infra_env(id).await?.record;
        if let Some(mac) = mac {
            self.require_discovery(id, mac).await?;
        }
        let token = Some(record.url_token.reveal()).filter(|token| !token.is_empty());
        let credential = token.map(Token::new).transpose()?.map(Credential::ApiKey);
        let settings = self.settings();
        let script = if kind == IpxeScript::BootOrderControl && mac.is_none() {
            let id = DiscoveryId::parse(&record.id.to_string())?;
            ipxe::redirect_script(&settings.service_base_url, &id, credential.as_ref())
        } else {
            let mut inputs = record.inputs(settings)?;
            inputs.version.clone_from(&record.image.os_image);
            let images = settings.image_service_base_url.clone();
            inputs.network_boot(images, ipxe_architecture(record.cpu_architecture), credential)?.script()?
        };
        Ok(File::new(format!("{}-ipxe-script", record.id), script, &record))
    }

    /// The URL of an infra-env's image.
    ///
    /// # Errors
    ///
    /// When there is no such infra-env, or its live image is gone.
    pub async fn image_url(&self, id: InfraEnvId) -> Result<PresignedUrl, ApiError> {
        let record = self.stored_infra_env(id).await?.record;
        self.os_image(&record.image.os_image, record.cpu_architecture).await?;
        Ok(PresignedUrl { url: urls::image(&record, self.settings()), expires_at: Millis(None) })
    }

    /// The URL of a file of an infra-env.
    ///
    /// # Errors
    ///
    /// When there is no such infra-env.
    pub async fn file_url(
        &self,
        id: InfraEnvId,
        file: FileName,
        script: Option<IpxeScript>,
    ) -> Result<PresignedUrl, ApiError> {
        let record = self.stored_infra_env(id).await?.record;
        let url = urls::file(&record, file.as_str(), script.map(IpxeScript::as_str), self.settings());
        Ok(PresignedUrl { url, expires_at: Millis(None) })
    }

    /// Makes a file of an infra-env and the files of its networks, on another thread.
    async fn made_from(
        &self,
        record: InfraEnvRecord,
        make: impl FnOnce(&InfraEnvRecord, &Inputs, &Networks) -> Result<File, ApiError> + Send + 'static,
    ) -> Result<File, ApiError> {
        let inventory = self.clone();
        in_background(move |cancel| {
            let inputs = record.inputs(inventory.settings())?;
            let networks = inputs.networks_until(inventory.keyfiles(), cancel).map_err(refused)?;
            make(&record, &inputs, &networks)
        })
        .await
    }
}

fn ipxe_architecture(architecture: CpuArchitecture) -> Architecture {
    match architecture {
        CpuArchitecture::X86_64 => Architecture::X86_64,
        CpuArchitecture::Arm64 => Architecture::Arm64,
        CpuArchitecture::Ppc64le => Architecture::Ppc64le,
        CpuArchitecture::S390x => Architecture::S390x,
    }
}
