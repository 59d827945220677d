//! Client methods that upload the logs of hosts and controllers.

use super::body::Body;
use super::call::Call;
use super::multipart::FormUpload;
use super::{ApiClient, ClientError};
use crate::id::{ClusterId, HostId, InfraEnvId};

/// A log archive to upload: a gzip-compressed tar file.
#[derive(Debug)]
pub struct LogsUpload {
    file_name: String,
    body: Body,
    length: Option<u64>,
}

impl LogsUpload {
    /// Returns an upload of bytes, or of a stream wrapped with [`Body::from_stream`].
    pub fn new(file_name: impl Into<String>, body: impl Into<Body>) -> Self {
        Self { file_name: file_name.into(), body: body.into(), length: None }
    }

    /// Sets the length of a stream. Without a length, the request uses chunked transfer coding.
    #[must_use]
    pub fn with_length(self, bytes: u64) -> Self {
        Self { length: Some(bytes), ..self }
    }
}

impl ApiClient {
    /// Uploads the logs of a host as a stream.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// # use assisted::{ClusterId, HostId, InfraEnvId};
    /// use assisted::client::LogsUpload;
    ///
    /// # async fn example(
    /// #     client: ApiClient,
    /// #     cluster: ClusterId,
    /// #     infra_env: InfraEnvId,
    /// #     host: HostId,
    /// #     archive: Vec<u8>,
    /// # ) -> Result<(), ClientError> {
    /// let logs = LogsUpload::new("logs.tar.gz", archive);
    /// client.upload_host_logs(cluster, (infra_env, host), logs).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn upload_host_logs(
        &self,
        cluster: ClusterId,
        (infra_env, host): (InfraEnvId, HostId),
        logs: LogsUpload,
    ) -> Result<(), ClientError> {
        let query = [
            ("logs_type", "host".to_owned()),
            ("infra_env_id", infra_env.to_string()),
            ("host_id", host.to_string()),
        ];
        self.upload("upload host logs", cluster, logs).query(&query).send_expecting(204).await
    }

    /// Uploads the logs of a cluster's controller as a stream.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// # use assisted::ClusterId;
    /// use assisted::client::LogsUpload;
    ///
    /// # async fn example(client: ApiClient, cluster: ClusterId, archive: Vec<u8>) -> Result<(), ClientError> {
    /// let logs = LogsUpload::new("controller_logs.tar.gz", archive);
    /// client.upload_controller_logs(cluster, logs).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn upload_controller_logs(
        &self,
        cluster: ClusterId,
        logs: LogsUpload,
    ) -> Result<(), ClientError> {
        let query = [("logs_type", "controller".to_owned())];
        self.upload("upload controller logs", cluster, logs).query(&query).send_expecting(204).await
    }

    fn upload(&self, operation: &'static str, cluster: ClusterId, logs: LogsUpload) -> Call<'_> {
        let call = self.post(operation, &["clusters", &cluster.to_string(), "logs"]);
        call.form(FormUpload::new("upfile", &logs.file_name, (logs.body, logs.length)))
    }
}
