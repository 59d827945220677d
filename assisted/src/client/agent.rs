//! Client methods for the operations that agents and installers call.

use super::{ApiClient, ClientError};
use crate::host::{HostCreateParams, HostProgressParams, LogsProgressParams, LogsState, RegisteredHost};
use crate::id::{HostId, InfraEnvId};
use crate::reply::StepReply;
use crate::step::Steps;

impl ApiClient {
    /// Registers a host. Agents call this after boot.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// # use assisted::{HostId, InfraEnvId};
    /// use assisted::host::HostCreateParams;
    ///
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId, host: HostId) -> Result<(), ClientError> {
    /// let version = Some("quay.io/example/agent:1".to_owned());
    /// let params = HostCreateParams { discovery_agent_version: version, ..HostCreateParams::new(host) };
    /// let registered = client.register_host(infra_env, &params).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn register_host(
        &self,
        infra_env: InfraEnvId,
        params: &HostCreateParams,
    ) -> Result<RegisteredHost, ClientError> {
        let path = ["infra-envs", &infra_env.to_string(), "hosts"];
        self.post("register host", &path).json(params).read().await
    }

    /// Checks in, and returns the next steps of a host. `clock` is the host's clock, in seconds since 1970.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// # use assisted::{HostId, InfraEnvId};
    /// use chrono::Utc;
    ///
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId, host: HostId) -> Result<(), ClientError> {
    /// let steps = client.next_steps(infra_env, host, Utc::now().timestamp()).await?;
    /// for step in &steps.instructions {
    ///     println!("{}", step.step_type);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next_steps(
        &self,
        infra_env: InfraEnvId,
        host: HostId,
        clock: i64,
    ) -> Result<Steps, ClientError> {
        let path = ["infra-envs", &infra_env.to_string(), "hosts", &host.to_string(), "instructions"];
        self.get("get next steps", &path).query(&[("timestamp", clock.to_string())]).read().await
    }

    /// Reports the result of a step.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// # use assisted::{HostId, InfraEnvId};
    /// # use assisted::step::Step;
    /// use assisted::reply::{ExitCode, StepReply};
    ///
    /// # async fn example(
    /// #     client: ApiClient,
    /// #     infra_env: InfraEnvId,
    /// #     host: HostId,
    /// #     step: Step,
    /// # ) -> Result<(), ClientError> {
    /// let reply = StepReply::failure(&step, ExitCode::TIMED_OUT, "chronyc did not end in 30 seconds");
    /// client.post_reply(infra_env, host, &reply).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn post_reply(
        &self,
        infra_env: InfraEnvId,
        host: HostId,
        reply: &StepReply,
    ) -> Result<(), ClientError> {
        let path = ["infra-envs", &infra_env.to_string(), "hosts", &host.to_string(), "instructions"];
        self.post("report step result", &path).json(reply).send_expecting(204).await
    }

    /// Reports the progress of a host's installation.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// # use assisted::{HostId, InfraEnvId};
    /// use assisted::host::{HostProgressParams, HostStage};
    ///
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId, host: HostId) -> Result<(), ClientError> {
    /// let progress = HostProgressParams::new(HostStage::WritingImage, "50%");
    /// client.update_host_progress(infra_env, host, &progress).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_host_progress(
        &self,
        infra_env: InfraEnvId,
        host: HostId,
        progress: &HostProgressParams,
    ) -> Result<(), ClientError> {
        let path = ["infra-envs", &infra_env.to_string(), "hosts", &host.to_string(), "progress"];
        self.put("report progress of host", &path).json(progress).send_expecting(200).await
    }

    /// Reports the state of a host's log upload.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// # use assisted::{HostId, InfraEnvId};
    /// use assisted::host::LogsState;
    ///
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId, host: HostId) -> Result<(), ClientError> {
    /// client.update_host_logs_progress(infra_env, host, LogsState::Collecting).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_host_logs_progress(
        &self,
        infra_env: InfraEnvId,
        host: HostId,
        logs_state: LogsState,
    ) -> Result<(), ClientError> {
        let path = ["infra-envs", &infra_env.to_string(), "hosts", &host.to_string(), "logs-progress"];
        let progress = LogsProgressParams { logs_state };
        self.put("report state of host logs", &path).json(&progress).send_expecting(204).await
    }
}
