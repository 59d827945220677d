//! From an infra-env to the inputs of its images.

use ignition::discovery::kernel_arguments::KernelArguments;
use ignition::discovery::{
    CertificateBundle, CertificateCheck, ImageReference, InfraEnv, InfraEnvId as DiscoveryId, InputError,
    Override, PullSecret, Service, SshKeys, TimeSources, Token,
};

use super::record::{ImageSource, InfraEnvRecord};
use super::static_network;
use crate::api_error::ApiError;
use crate::discovery::Inputs;
use crate::inventory::id::InfraEnvId;
use crate::inventory::rules::check_proxies;
use crate::inventory::{Secret, Settings};

impl From<InputError> for ApiError {
    fn from(error: InputError) -> Self {
        Self::bad(error.to_string())
    }
}

impl InfraEnvRecord {
    /// What its images are made of.
    ///
    /// # Errors
    ///
    /// When a value is no good, which only happens to infra-envs that an older version of this program has let in.
    pub fn inputs(&self, settings: &Settings) -> Result<Inputs, ApiError> {
        self.image.inputs(self.id, &self.url_token, settings)
    }
}

impl ImageSource {
    /// What the images of an infra-env are made of.
    pub(super) fn inputs(
        &self,
        id: InfraEnvId,
        token: &Secret,
        settings: &Settings,
    ) -> Result<Inputs, ApiError> {
        let version = self.openshift_version.clone();
        let delay = self.network_discovery_delay_seconds.and_then(|delay| u32::try_from(delay).ok());
        Ok(Inputs {
            service: service(token, settings)?,
            infra_env: self.infra_env(id)?,
            hosts: static_network::hosts(&self.static_network_config),
            kernel_arguments: self.kernel_arguments()?,
            generation: settings.generation(&version),
            version,
            discovery_delay_seconds: delay.unwrap_or(settings.discovery_delay_seconds),
        })
    }

    fn infra_env(&self, id: InfraEnvId) -> Result<InfraEnv, ApiError> {
        let id = DiscoveryId::parse(&id.to_string())?;
        let mut infra_env = InfraEnv::new(id, PullSecret::parse(self.pull_secret.reveal())?);
        infra_env.ssh_keys = SshKeys::parse(&self.ssh_authorized_key)?;
        let text = |proxy: &Option<String>| proxy.clone().unwrap_or_default();
        let proxy = &self.proxy;
        infra_env.proxies =
            check_proxies(&text(&proxy.http_proxy), &text(&proxy.https_proxy), &text(&proxy.no_proxy))?;
        infra_env.time_sources = TimeSources::parse(&self.additional_ntp_sources, &self.ntp_sources)?;
        infra_env.trust_bundle = self.trust_bundle()?;
        if !self.ignition_config_override.is_empty() {
            infra_env.config_override = Some(Override::new(self.ignition_config_override.as_str()));
        }
        Ok(infra_env)
    }

    /// The certificates to trust, if there are any.
    pub(super) fn trust_bundle(&self) -> Result<Option<CertificateBundle>, InputError> {
        let pem = Some(self.additional_trust_bundle.as_str()).filter(|pem| !pem.is_empty());
        pem.map(|pem| CertificateBundle::parse("additional_trust_bundle", pem)).transpose()
    }

    /// The changes of the kernel arguments.
    pub(super) fn kernel_arguments(&self) -> Result<KernelArguments, InputError> {
        // An argument without a value adds nothing to a command line.
        let arguments: Vec<_> = self.kernel_arguments.iter().filter(|one| !one.value.is_empty()).collect();
        let json = serde_json::to_string(&arguments).unwrap_or_default();
        KernelArguments::parse(&json)
    }
}

fn service(token: &Secret, settings: &Settings) -> Result<Service, InputError> {
    let agent_image = ImageReference::parse("AGENT_DOCKER_IMAGE", &settings.agent_image)?;
    let mut service = Service::new(settings.service_base_url.clone(), agent_image);
    if settings.skip_certificate_verification {
        service.certificate_check = CertificateCheck::Skip;
    }
    let authority = settings.service_ca_certificates.as_deref();
    service.authority =
        authority.map(|pem| CertificateBundle::parse("SERVICE_CA_CERT_PATH", pem)).transpose()?;
    if !token.is_empty() {
        service.token = Some(Token::new(token.reveal())?);
    }
    Ok(service)
}
