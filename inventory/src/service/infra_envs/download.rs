//! Generates an infra-env's files for download: Ignition config, network file archive, initrd, iPXE script and URLs.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use ignition::discovery::ipxe::{self, Credential, IpxeArchitecture, NetworkBoot};
use ignition::discovery::{AgentToken, DiscoveryImage, InfraEnvId as DiscoveryId, InputError};
use ignition::network::HostNetworkFiles;
use sha2::{Digest, Sha256};

use super::check::config_error;
use crate::catalogue::{CpuArchitecture, ImageType};
use crate::error::Error;
use crate::id::InfraEnvId;
use crate::infra_env::{InfraEnvRecord, static_network, urls};
use crate::{Inventory, in_background};
use discovery::Inputs;

/// A downloadable file of an infra-env.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileName {
    DiscoveryIgnition,
    IpxeScript,
    /// A tar archive with the network files of all hosts.
    StaticNetworkConfig,
}

impl FileName {
    /// The values of the request parameter `file_name`.
    pub(crate) const NAMES: [(&'static str, Self); 3] = [
        ("discovery.ign", Self::DiscoveryIgnition),
        ("ipxe-script", Self::IpxeScript),
        ("static-network-config", Self::StaticNetworkConfig),
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::DiscoveryIgnition => "discovery.ign",
            Self::IpxeScript => "ipxe-script",
            Self::StaticNetworkConfig => "static-network-config",
        }
    }
}

/// The kind of an iPXE script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpxeScript {
    /// The script always boots the discovery image.
    #[default]
    DiscoveryImageAlways,
    /// The script sends the host's MAC address to the service, which decides whether the host boots the discovery
    /// image.
    BootOrderControl,
}

impl IpxeScript {
    pub(crate) const NAMES: [(&'static str, Self); 2] = [
        ("discovery-image-always", Self::DiscoveryImageAlways),
        ("boot-order-control", Self::BootOrderControl),
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::DiscoveryImageAlways => "discovery-image-always",
            Self::BootOrderControl => "boot-order-control",
        }
    }
}

/// A file to send to a client.
#[derive(Clone, Debug)]
pub struct File {
    /// File name to suggest to the client. Empty for none.
    pub name: String,
    /// The complete contents.
    pub contents: Bytes,
    /// Time of the last change to the infra-env's image source.
    pub changed_at: DateTime<Utc>,
}

impl File {
    fn new(
        name: impl Into<String>,
        contents: impl Into<Bytes>,
        record: &InfraEnvRecord,
    ) -> Result<Self, Error> {
        let changed_at = record.image_changed_at.0.ok_or_else(|| {
            Error::broken(format_args!("infra-env {} has no time of the last change of its image", record.id))
        })?;
        Ok(Self { name: name.into(), contents: contents.into(), changed_at })
    }

    /// Returns a strong entity tag, computed from the contents.
    #[must_use]
    pub fn etag(&self) -> String {
        let digest = Sha256::digest(&self.contents);
        let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("\"{hex}\"")
    }
}

impl Inventory {
    /// Returns the Ignition config of an infra-env. If `kind` is set, the config is for that image type instead of the
    /// infra-env's own type.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist, or if no config can be generated for the image type.
    pub(crate) async fn discovery_ignition(
        &self,
        id: InfraEnvId,
        kind: Option<ImageType>,
    ) -> Result<File, Error> {
        let record = self.infra_env(id).await?;
        let kind = match kind.unwrap_or(record.image.image_type) {
            ImageType::Full => DiscoveryImage::Full,
            ImageType::Minimal => DiscoveryImage::Minimal,
            ImageType::Disconnected if record.cluster_id.is_none() => {
                return Err(Error::not_found(
                    "a disconnected image requires a cluster, and the infra-env has none",
                ));
            }
            ImageType::Disconnected => {
                let reason = "configs of disconnected images are not made by this service yet";
                return Err(Error::unimplemented(reason));
            }
        };
        self.make_from_inputs(record, move |record, inputs, networks| {
            let composed = inputs.config(kind, networks).map_err(config_error)?;
            let config = composed.config.to_json().map_err(|error| config_error(error.into()))?;
            File::new("discovery.ign", config, record)
        })
        .await
    }

    /// Returns a tar archive with the network files of an infra-env's hosts.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist, or if the network files cannot be generated.
    pub(crate) async fn static_network_tar(&self, id: InfraEnvId) -> Result<File, Error> {
        let record = self.infra_env(id).await?;
        if record.image.static_network_config.is_empty() {
            return File::new("", Bytes::new(), &record);
        }
        self.make_from_inputs(record, |record, _, networks| {
            let name = format!("{}-static-network-config.tar", record.id);
            File::new(name, static_network::tar(networks)?, record)
        })
        .await
    }

    /// Returns the additional initrd of a minimal image, as an archive. Empty if the image needs none.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist, or if the archive cannot be generated.
    pub(crate) async fn minimal_initrd(&self, id: InfraEnvId) -> Result<File, Error> {
        let record = self.infra_env(id).await?;
        self.make_from_inputs(record, |record, inputs, networks| {
            let packed = inputs.initrd(networks).map_err(config_error)?;
            File::new("", packed.as_bytes().clone(), record)
        })
        .await
    }

    /// Returns an iPXE script of an infra-env. With a MAC address, returns the script that boots the discovery image.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist, or if the host with this MAC address must boot from its disk.
    pub async fn ipxe_script(
        &self,
        id: InfraEnvId,
        kind: IpxeScript,
        mac: Option<&str>,
    ) -> Result<File, Error> {
        let record = self.infra_env(id).await?;
        if let Some(mac) = mac {
            self.require_discovery(id, mac).await?;
        }
        self.ipxe_script_of(&record, if mac.is_some() { IpxeScript::DiscoveryImageAlways } else { kind })
    }

    /// Returns an iPXE script of an infra-env, generated only from the given record.
    ///
    /// # Errors
    ///
    /// Returns an error if a value of the record is invalid.
    pub fn ipxe_script_of(&self, record: &InfraEnvRecord, kind: IpxeScript) -> Result<File, Error> {
        let script = if kind == IpxeScript::BootOrderControl {
            let id = DiscoveryId::parse(&record.id.to_string())?;
            let credential = url_credential(record)?;
            ipxe::redirect_script(&self.settings().service_base_url, &id, credential.as_ref())
        } else {
            self.network_boot(record)?.script()?
        };
        File::new(format!("{}-ipxe-script", record.id), script, record)
    }

    /// Returns the settings for network boot of an infra-env's hosts.
    pub(super) fn network_boot(&self, record: &InfraEnvRecord) -> Result<NetworkBoot, Error> {
        let (id, version) = (DiscoveryId::parse(&record.id.to_string())?, &record.image.os_image);
        let images = self.settings().image_service_base_url.clone();
        let architecture = ipxe_architecture(record.cpu_architecture);
        let mut boot = NetworkBoot::new(images, id, version, architecture)?;
        boot.credential = url_credential(record)?;
        boot.kernel_arguments = record.image.kernel_arguments()?;
        Ok(boot)
    }

    /// Returns the URL of an infra-env's image.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env or its base image does not exist.
    pub(crate) async fn image_url(&self, id: InfraEnvId) -> Result<String, Error> {
        let record = self.infra_env(id).await?;
        self.os_image(&record.image.os_image, record.cpu_architecture).await?;
        self.shown_iso_url(&record).await
    }

    /// Returns the URL of a file of an infra-env.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist.
    pub(crate) async fn file_url(
        &self,
        id: InfraEnvId,
        file: FileName,
        script: Option<IpxeScript>,
    ) -> Result<String, Error> {
        let record = self.infra_env(id).await?;
        Ok(urls::file(&record, file.as_str(), script.map(IpxeScript::as_str), self.settings()))
    }

    /// Calls `make` with the inputs and the network files of an infra-env, on a background thread.
    async fn make_from_inputs(
        &self,
        record: InfraEnvRecord,
        make: impl FnOnce(&InfraEnvRecord, &Inputs, &HostNetworkFiles) -> Result<File, Error> + Send + 'static,
    ) -> Result<File, Error> {
        let inventory = self.clone();
        in_background(move |cancel| {
            let inputs = record.inputs(inventory.settings())?;
            let networks = inputs.networks_until(inventory.keyfiles(), cancel).map_err(config_error)?;
            make(&record, &inputs, &networks)
        })
        .await
    }
}

/// Returns the credential for the URLs of an infra-env. Returns `None` if the authentication policy requires none.
fn url_credential(record: &InfraEnvRecord) -> Result<Option<Credential>, InputError> {
    let token = Some(record.url_token.reveal()).filter(|token| !token.is_empty());
    Ok(token.map(AgentToken::new).transpose()?.map(Credential::ApiKey))
}

/// Returns the architecture name for an iPXE script.
#[must_use]
pub fn ipxe_architecture(architecture: CpuArchitecture) -> IpxeArchitecture {
    match architecture {
        CpuArchitecture::X86_64 => IpxeArchitecture::X86_64,
        CpuArchitecture::Arm64 => IpxeArchitecture::Arm64,
        CpuArchitecture::Ppc64le => IpxeArchitecture::Ppc64le,
        CpuArchitecture::S390x => IpxeArchitecture::S390x,
    }
}
