//! The records other than the host that an assessment of a single host depends on.

use std::sync::Arc;

use ignition::version::Version;
use rules::view::ClusterView;

use crate::Inventory;
use crate::error::{Error, ErrorKind};
use crate::host::HostRecord;
use crate::host::assessment::HostContext;
use crate::id::{ClusterId, HostKey, InfraEnvId};
use crate::service::cluster_views::CurrentView;
use crate::store::Key;

impl Inventory {
    /// Returns the assessment context of a host.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist, or if the database fails.
    pub(crate) async fn host_context(&self, key: HostKey) -> Result<HostContext<'_>, Error> {
        let host = key.find_cached(self).await?;
        self.context_of_record(host.record()).await
    }

    /// Returns the assessment context of a host. Returns `None` if the host does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub(crate) async fn context_of(&self, host: Key) -> Result<Option<HostContext<'_>>, Error> {
        let Some(infra_env) = host.parent else { return Ok(None) };
        let key = HostKey { infra_env_id: InfraEnvId(infra_env), host_id: assisted::HostId(host.id) };
        match self.host_context(key).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            context => context.map(Some),
        }
    }

    /// Returns the assessment context of a registering host, which need not exist yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist, or if the database fails.
    pub(crate) async fn registration_context(&self, key: HostKey) -> Result<HostContext<'_>, Error> {
        match self.host_context(key).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            context => return context,
        }
        let cluster = self.current_infra_env(key.infra_env_id).await?.record().cluster_id;
        self.context(key.infra_env_id, cluster).await
    }

    pub(crate) async fn context_of_record(&self, host: &HostRecord) -> Result<HostContext<'_>, Error> {
        self.context(host.infra_env_id, host.cluster_id).await
    }

    pub(crate) async fn context(
        &self,
        infra_env: InfraEnvId,
        cluster: Option<ClusterId>,
    ) -> Result<HostContext<'_>, Error> {
        Ok(HostContext {
            settings: self.settings(),
            basis: self.assessment_basis(),
            cluster: self.cluster_facts(cluster).await?,
            image_version: self.image_version(infra_env).await?,
        })
    }

    /// Returns the version of an infra-env's base image, if it is known.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist, or if the database fails.
    pub(crate) async fn image_version(&self, infra_env: InfraEnvId) -> Result<Option<Version>, Error> {
        let infra_env = self.current_infra_env(infra_env).await?;
        Ok(Version::parse(&infra_env.record().image.openshift_version))
    }

    /// Returns the current view of a cluster. Returns `None` if `cluster` is `None`, or if the cluster does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails or contains an invalid record.
    pub(crate) async fn cluster_view(
        &self,
        cluster: Option<ClusterId>,
    ) -> Result<Option<Arc<CurrentView>>, Error> {
        let Some(cluster) = cluster else { return Ok(None) };
        self.cluster_views().of_cluster(self.records(), cluster).await
    }

    async fn cluster_facts(&self, cluster: Option<ClusterId>) -> Result<Option<Arc<ClusterView>>, Error> {
        let view = self.cluster_view(cluster).await?;
        Ok(view.map(|view| Arc::clone(view.facts())))
    }
}
