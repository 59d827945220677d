//! Operations that start, cancel and report the installation of a cluster. The controller inside the cluster sends the
//! reports.

use super::{ApiClient, ClientError};
use crate::cluster::{
    Cluster, ClusterProgressParams, CompletionParams, FinalizingStage, MonitoredOperator, OperatorReport,
};
use crate::host::{LogsProgressParams, LogsState};
use crate::id::ClusterId;

impl ApiClient {
    /// Starts the installation of a cluster.
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
    /// # async fn example(client: ApiClient, cluster: ClusterId) -> Result<(), ClientError> {
    /// let cluster = client.install_cluster(cluster).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn install_cluster(&self, cluster: ClusterId) -> Result<Cluster, ClientError> {
        self.post("install cluster", &["clusters", &cluster.to_string(), "actions", "install"]).read().await
    }

    /// Cancels the installation of a cluster.
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
    /// # async fn example(client: ApiClient, cluster: ClusterId) -> Result<(), ClientError> {
    /// let cluster = client.cancel_installation(cluster).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel_installation(&self, cluster: ClusterId) -> Result<Cluster, ClientError> {
        self.post("cancel installation", &["clusters", &cluster.to_string(), "actions", "cancel"])
            .read()
            .await
    }

    /// Resets a cluster whose installation failed or was cancelled.
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
    /// # async fn example(client: ApiClient, cluster: ClusterId) -> Result<(), ClientError> {
    /// let cluster = client.reset_cluster(cluster).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reset_cluster(&self, cluster: ClusterId) -> Result<Cluster, ClientError> {
        self.post("reset cluster", &["clusters", &cluster.to_string(), "actions", "reset"]).read().await
    }

    /// Reports the finalizing stage of a cluster, after its hosts are installed.
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
    /// use assisted::cluster::FinalizingStage;
    ///
    /// # async fn example(client: ApiClient, cluster: ClusterId) -> Result<(), ClientError> {
    /// client.update_cluster_progress(cluster, FinalizingStage::Done).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_cluster_progress(
        &self,
        cluster: ClusterId,
        finalizing_stage: FinalizingStage,
    ) -> Result<(), ClientError> {
        let progress = ClusterProgressParams { finalizing_stage };
        self.put("report progress of cluster", &["clusters", &cluster.to_string(), "progress"])
            .json(&progress)
            .send_expecting(200)
            .await
    }

    /// Lists the operators of a cluster.
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
    /// # async fn example(client: ApiClient, cluster: ClusterId) -> Result<(), ClientError> {
    /// let operators = client.monitored_operators(cluster).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn monitored_operators(
        &self,
        cluster: ClusterId,
    ) -> Result<Vec<MonitoredOperator>, ClientError> {
        self.get("list operators", &["clusters", &cluster.to_string(), "monitored-operators"]).read().await
    }

    /// Reports the state of an operator of the cluster.
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
    /// use assisted::cluster::{OperatorReport, OperatorStatus};
    ///
    /// # async fn example(client: ApiClient, cluster: ClusterId) -> Result<(), ClientError> {
    /// let version = "4.18.3".to_owned();
    /// let report = OperatorReport { version, ..OperatorReport::new("console", OperatorStatus::Available) };
    /// client.report_operator(cluster, &report).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn report_operator(
        &self,
        cluster: ClusterId,
        report: &OperatorReport,
    ) -> Result<(), ClientError> {
        let path = ["clusters", &cluster.to_string(), "monitored-operators"];
        self.put("report state of operator", &path).json(report).send_expecting(200).await
    }

    /// Uploads the CA certificate of the cluster's ingress, in PEM format. The service adds it to the kubeconfig.
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
    /// # async fn example(client: ApiClient, cluster: ClusterId, pem: &str) -> Result<(), ClientError> {
    /// client.upload_ingress_certificate(cluster, pem).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn upload_ingress_certificate(&self, cluster: ClusterId, pem: &str) -> Result<(), ClientError> {
        let path = ["clusters", &cluster.to_string(), "uploads", "ingress-cert"];
        self.post("upload ingress certificate", &path).json(&pem).send_expecting(201).await
    }

    /// Reports the result of an installation. The service ignores it: it derives the result from the states of hosts
    /// and operators.
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
    /// use assisted::cluster::CompletionParams;
    ///
    /// # async fn example(client: ApiClient, cluster: ClusterId) -> Result<(), ClientError> {
    /// client.complete_installation(cluster, &CompletionParams::success()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn complete_installation(
        &self,
        cluster: ClusterId,
        result: &CompletionParams,
    ) -> Result<Cluster, ClientError> {
        let path = ["clusters", &cluster.to_string(), "actions", "complete-installation"];
        self.post("report result of installation", &path).json(result).read().await
    }

    /// Reports the state of the controller's log upload.
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
    /// use assisted::host::LogsState;
    ///
    /// # async fn example(client: ApiClient, cluster: ClusterId) -> Result<(), ClientError> {
    /// client.update_cluster_logs_progress(cluster, LogsState::Completed).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_cluster_logs_progress(
        &self,
        cluster: ClusterId,
        logs_state: LogsState,
    ) -> Result<(), ClientError> {
        let progress = LogsProgressParams { logs_state };
        let path = ["clusters", &cluster.to_string(), "logs-progress"];
        self.put("report state of controller logs", &path).json(&progress).send_expecting(204).await
    }
}
