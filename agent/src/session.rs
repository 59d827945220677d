//! Requests that a running step sends to the service.

use assisted::client::{ApiClient, ClientError};
use assisted::host::{HostProgressParams, HostStage, LogsState};
use assisted::{HostId, InfraEnvId};

/// A registered host's access to the service. Installers and log collectors report their progress through it.
#[derive(Clone, Debug)]
pub struct HostSession {
    client: ApiClient,
    infra_env: InfraEnvId,
    host: HostId,
}

impl HostSession {
    /// Creates the session of a registered host.
    #[must_use]
    pub fn new(client: ApiClient, infra_env: InfraEnvId, host: HostId) -> Self {
        Self { client, infra_env, host }
    }

    /// Returns the client. Its requests carry the credential and the version of the agent.
    #[must_use]
    pub fn client(&self) -> &ApiClient {
        &self.client
    }

    /// Returns the id of the host's infra-env.
    #[must_use]
    pub fn infra_env(&self) -> InfraEnvId {
        self.infra_env
    }

    /// Returns the id of the host.
    #[must_use]
    pub fn host(&self) -> HostId {
        self.host
    }

    /// Reports the progress of the installation.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use agent::session::HostSession;
    /// use assisted::host::HostStage;
    ///
    /// # async fn example(session: &HostSession) -> Result<(), assisted::client::ClientError> {
    /// session.report_progress(HostStage::WritingImage, "50%").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn report_progress(&self, stage: HostStage, info: &str) -> Result<(), ClientError> {
        let progress = HostProgressParams::new(stage, info);
        self.client.update_host_progress(self.infra_env, self.host, &progress).await
    }

    /// Reports the state of the host's log upload.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    pub async fn report_logs(&self, state: LogsState) -> Result<(), ClientError> {
        self.client.update_host_logs_progress(self.infra_env, self.host, state).await
    }
}
