//! Registers infra-envs.

use assisted::infra_env::InfraEnvCreateParams;
use futures_util::future::BoxFuture;
use ignition::network::check::NetworkFinding;

use super::check::PullSecretOf;
use super::cluster::require_cluster_of_infra_env;
use super::signing_key::fresh_key;
use crate::catalogue::{CpuArchitecture, ImageType};
use crate::error::Error;
use crate::id::InfraEnvId;
use crate::infra_env::{
    ImageSource, InfraEnvDefinition, InfraEnvRecord, MirrorRegistries, event, static_network,
};
use crate::request_id::RequestId;
use crate::store::{Change, ReadSet, Record};
use crate::time::Micros;
use crate::{Inventory, Secret};

impl Inventory {
    /// Registers an infra-env, whose id the service chooses.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is invalid, or if the cluster or a base image for the version does not exist.
    pub fn register_infra_env(
        &self,
        params: InfraEnvCreateParams,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<InfraEnvRecord, Error>> {
        Box::pin(async move {
            let done = self.make_infra_env(params, request).await;
            if let Err(refusal) = &done {
                let event = event::registration_failed(refusal, &self.journal(request));
                self.records().add_event(event).await?;
            }
            done
        })
    }

    async fn make_infra_env(
        &self,
        params: InfraEnvCreateParams,
        request: Option<RequestId>,
    ) -> Result<InfraEnvRecord, Error> {
        let id = self.settings().infra_env_id.unwrap_or_else(InfraEnvId::fresh);
        let (record, warnings) = self.new_infra_env(id, params.into()).await?;
        let (record, warnings) = (&record, &warnings[..]);
        let attempt = |reads: ReadSet| async move {
            let planned = self.plan_registration(&reads, record.clone(), warnings, request).await?;
            // A random id cannot exist yet, but a configured id can.
            if self.records().store().exists(record.key()).await? {
                return Err(Error::conflict(format!("infra-env {id} already exists")));
            }
            Ok(planned)
        };
        self.records().change(attempt).await
    }

    /// Checks the definition. Returns a record without times and base image, and the network findings that are only
    /// warnings.
    pub(super) async fn new_infra_env(
        &self,
        id: InfraEnvId,
        definition: InfraEnvDefinition,
    ) -> Result<(InfraEnvRecord, Vec<NetworkFinding>), Error> {
        let (params, owner) = (&definition.params, definition.owner.clone());
        let url_token = self.url_token_of_new(id, definition.url_token.as_ref())?;
        let cpu_architecture = params.cpu_architecture.unwrap_or_default();
        // A missing cluster takes precedence over all other errors.
        require_cluster_of_infra_env(self.records(), params.cluster_id).await?;
        let (name, cluster_id) = (params.name.clone(), params.cluster_id);
        let mut image = self.new_image_source(definition, cpu_architecture);
        image.check_delay()?;
        let warnings = self
            .check_in_background(&image, &ImageSource::default(), (cpu_architecture, PullSecretOf::New))
            .await?;
        image.static_network_config = static_network::in_stored_order(image.static_network_config);
        let record = InfraEnvRecord {
            id,
            name,
            user_name: "admin".to_owned(),
            email_domain: "Unknown".to_owned(),
            cluster_id,
            cpu_architecture,
            image,
            image_generation: 1,
            image_changed_at: Micros::default(),
            signing_key: fresh_key()?,
            url_token,
            token_key: self.policy().token_key(),
            owner,
            created_at: Micros::default(),
            updated_at: Micros::default(),
        };
        Ok((record, warnings))
    }

    /// Returns the token for the URLs of a new infra-env. Reuses `earlier` if it is a valid token.
    fn url_token_of_new(&self, id: InfraEnvId, earlier: Option<&Secret>) -> Result<Secret, Error> {
        match earlier {
            Some(token) if self.policy().takes_url_token(self.now(), id, token) => Ok(token.clone()),
            _ => self.policy().url_token(id),
        }
    }

    /// Looks up the cluster and the base image again, because they may have been removed meanwhile. Then sets the times
    /// and plans the change.
    pub(super) async fn plan_registration(
        &self,
        reads: &ReadSet,
        mut record: InfraEnvRecord,
        warnings: &[NetworkFinding],
        request: Option<RequestId>,
    ) -> Result<(Change, InfraEnvRecord), Error> {
        let (mut change, mut journal) = (Change::new(), self.journal(request));
        let cluster = require_cluster_of_infra_env(reads, record.cluster_id).await?;
        let os_image = self.os_image(&record.image.openshift_version, record.cpu_architecture).await?;
        self.start_using_os_image(reads, &mut change, &os_image).await?;
        record.image.openshift_version.clone_from(&os_image.openshift_version);
        record.image.os_image = os_image.openshift_version;
        if let Some(cluster) = &cluster {
            self.check_fits_cluster(cluster, &record.image, record.cpu_architecture)?;
            change.require(cluster);
        }
        let now = journal.micros();
        (record.image_changed_at, record.created_at, record.updated_at) = (now, now, now);
        change.insert(&record)?;
        journal.add(event::registered(&record, &journal));
        journal.add(event::image_updated(&record, &journal));
        for warning in warnings {
            journal.add(event::network_warning(&record, warning, &journal));
        }
        journal.write(&mut change)?;
        Ok((change, record))
    }

    /// Returns the image source of a new infra-env, without a base image.
    pub(super) fn new_image_source(
        &self,
        InfraEnvDefinition { params, mirrors, .. }: InfraEnvDefinition,
        architecture: CpuArchitecture,
    ) -> ImageSource {
        let settings = self.settings();
        let no_sources = params.additional_ntp_sources.is_none() && params.ntp_sources.is_none();
        let default_ntp_source = if no_sources { settings.default_ntp_source.clone() } else { String::new() };
        let default_type = if architecture == CpuArchitecture::S390x {
            ImageType::Full
        } else {
            settings.default_image_type
        };
        ImageSource {
            openshift_version: params.openshift_version.unwrap_or_default(),
            os_image: String::new(),
            image_type: params.image_type.unwrap_or(default_type),
            pull_secret: Secret::new(params.pull_secret.reveal().trim()),
            ssh_authorized_key: params.ssh_authorized_key.unwrap_or_default().trim().to_owned(),
            proxy: params.proxy.unwrap_or_default(),
            additional_ntp_sources: params.additional_ntp_sources.unwrap_or(default_ntp_source),
            ntp_sources: params.ntp_sources.unwrap_or_default(),
            static_network_config: params.static_network_config.unwrap_or_default(),
            ignition_config_override: params.ignition_config_override.unwrap_or_default(),
            kernel_arguments: params.kernel_arguments.unwrap_or_default(),
            additional_trust_bundle: params.additional_trust_bundle.unwrap_or_default().trim().to_owned(),
            rendezvous_ip: params.rendezvous_ip.filter(|address| !address.is_empty()),
            network_discovery_delay_seconds: params.network_discovery_delay_seconds,
            mirrors: mirrors.map(MirrorRegistries::trimmed),
        }
    }
}
