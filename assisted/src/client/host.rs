//! Client methods for the operations of users on hosts.

use std::ops::ControlFlow;

use serde::de::DeserializeOwned;

use super::{ApiClient, ClientError};
use crate::host::{
    BindHostParams, Host, HostIgnition, HostIgnitionParams, HostRole, HostStatus, HostUpdateParams,
    InstallerArgsParams,
};
use crate::id::{ClusterId, HostId, InfraEnvId};

/// A filter for a list of a cluster's hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFilter {
    /// Only hosts with this role.
    pub role: Option<HostRole>,
    /// Only hosts with this status.
    pub status: Option<HostStatus>,
    /// Whether each host contains its inventory report.
    pub with_inventory: bool,
    /// Whether each host contains its connectivity report.
    pub with_connectivity: bool,
}

impl ApiClient {
    /// Lists the hosts of an infra-env.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// # use assisted::InfraEnvId;
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId) -> Result<(), ClientError> {
    /// let hosts = client.list_hosts(infra_env).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_hosts(&self, infra_env: InfraEnvId) -> Result<Vec<Host>, ClientError> {
        self.get("list hosts", &["infra-envs", &infra_env.to_string(), "hosts"]).read().await
    }

    /// Passes each host of an infra-env to `visit` until it returns `Break`. Memory use does not depend on the number
    /// of hosts. `T` may be a type with only the fields that the caller needs.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails. `visit` may already have received some of the hosts.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// # use assisted::InfraEnvId;
    /// use std::ops::ControlFlow;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct HostName {
    ///     requested_hostname: Option<String>,
    /// }
    ///
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId) -> Result<(), ClientError> {
    /// let print_name = |host: HostName| {
    ///     println!("{:?}", host.requested_hostname);
    ///     ControlFlow::Continue(())
    /// };
    /// client.visit_hosts(infra_env, print_name).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn visit_hosts<T: DeserializeOwned>(
        &self,
        infra_env: InfraEnvId,
        visit: impl FnMut(T) -> ControlFlow<()>,
    ) -> Result<(), ClientError> {
        self.get("list hosts", &["infra-envs", &infra_env.to_string(), "hosts"]).visit_items(visit).await
    }

    /// Lists the hosts of a cluster. Host names that users did not choose are not filled in.
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
    /// use assisted::client::HostFilter;
    /// use assisted::host::HostRole;
    ///
    /// # async fn example(client: ApiClient, cluster: ClusterId) -> Result<(), ClientError> {
    /// let filter = HostFilter { role: Some(HostRole::Master), ..HostFilter::default() };
    /// let masters = client.list_cluster_hosts(cluster, &filter).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_cluster_hosts(
        &self,
        cluster: ClusterId,
        filter: &HostFilter,
    ) -> Result<Vec<Host>, ClientError> {
        let mut query = vec![
            ("with-inventory", filter.with_inventory.to_string()),
            ("with-connectivity", filter.with_connectivity.to_string()),
        ];
        query.extend(filter.role.map(|role| ("role", role.to_string())));
        query.extend(filter.status.map(|status| ("status", status.to_string())));
        let path = ["clusters", &cluster.to_string(), "hosts"];
        self.get("list hosts of cluster", &path).query(&query).read().await
    }

    /// Returns a host.
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
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId, host: HostId) -> Result<(), ClientError> {
    /// let host = client.get_host(infra_env, host).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_host(&self, infra_env: InfraEnvId, host: HostId) -> Result<Host, ClientError> {
        self.get("get host", &["infra-envs", &infra_env.to_string(), "hosts", &host.to_string()]).read().await
    }

    /// Updates a host. Fields that are `None` stay unchanged.
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
    /// use assisted::host::{ChosenRole, HostUpdateParams};
    ///
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId, host: HostId) -> Result<(), ClientError> {
    /// let changes = HostUpdateParams { host_role: Some(ChosenRole::Master), ..HostUpdateParams::default() };
    /// let host = client.update_host(infra_env, host, &changes).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_host(
        &self,
        infra_env: InfraEnvId,
        host: HostId,
        changes: &HostUpdateParams,
    ) -> Result<Host, ClientError> {
        let path = ["infra-envs", &infra_env.to_string(), "hosts", &host.to_string()];
        self.patch("update host", &path).json(changes).read().await
    }

    /// Deletes a host.
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
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId, host: HostId) -> Result<(), ClientError> {
    /// client.delete_host(infra_env, host).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_host(&self, infra_env: InfraEnvId, host: HostId) -> Result<(), ClientError> {
        self.delete("delete host", &["infra-envs", &infra_env.to_string(), "hosts", &host.to_string()])
            .send_expecting(204)
            .await
    }

    /// Binds a host to a cluster. The host joins the cluster when its agent registers again.
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
    /// # async fn example(
    /// #     client: ApiClient,
    /// #     infra_env: InfraEnvId,
    /// #     host: HostId,
    /// #     cluster: ClusterId,
    /// # ) -> Result<(), ClientError> {
    /// let host = client.bind_host(infra_env, host, cluster).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn bind_host(
        &self,
        infra_env: InfraEnvId,
        host: HostId,
        cluster_id: ClusterId,
    ) -> Result<Host, ClientError> {
        let path = ["infra-envs", &infra_env.to_string(), "hosts", &host.to_string(), "actions", "bind"];
        self.post("bind host", &path).json(&BindHostParams { cluster_id }).read().await
    }

    /// Unbinds a host from its cluster.
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
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId, host: HostId) -> Result<(), ClientError> {
    /// let host = client.unbind_host(infra_env, host).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn unbind_host(&self, infra_env: InfraEnvId, host: HostId) -> Result<Host, ClientError> {
        let path = ["infra-envs", &infra_env.to_string(), "hosts", &host.to_string(), "actions", "unbind"];
        self.post("unbind host", &path).read().await
    }

    /// Starts the installation of a host that joins an existing cluster.
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
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId, host: HostId) -> Result<(), ClientError> {
    /// let host = client.install_host(infra_env, host).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn install_host(&self, infra_env: InfraEnvId, host: HostId) -> Result<Host, ClientError> {
        let path = ["infra-envs", &infra_env.to_string(), "hosts", &host.to_string(), "actions", "install"];
        self.post("install host", &path).read().await
    }

    /// Sets the coreos-installer arguments of a host.
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
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId, host: HostId) -> Result<(), ClientError> {
    /// let args = vec!["--append-karg".to_owned(), "quiet".to_owned()];
    /// let host = client.set_installer_args(infra_env, host, args).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_installer_args(
        &self,
        infra_env: InfraEnvId,
        host: HostId,
        args: Vec<String>,
    ) -> Result<Host, ClientError> {
        let path = ["infra-envs", &infra_env.to_string(), "hosts", &host.to_string(), "installer-args"];
        self.patch("set installer arguments", &path).json(&InstallerArgsParams { args }).read().await
    }

    /// Returns the host's Ignition override as the text of a config. The text is empty if the host has none.
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
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId, host: HostId) -> Result<(), ClientError> {
    /// let config = client.host_ignition(infra_env, host).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn host_ignition(&self, infra_env: InfraEnvId, host: HostId) -> Result<String, ClientError> {
        let path = ["infra-envs", &infra_env.to_string(), "hosts", &host.to_string(), "ignition"];
        let ignition: HostIgnition = self.get("get Ignition override", &path).read().await?;
        Ok(ignition.config)
    }

    /// Sets the host's Ignition override. An empty text removes the override.
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
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId, host: HostId) -> Result<(), ClientError> {
    /// let config = r#"{"ignition":{"version":"3.2.0"}}"#;
    /// client.set_host_ignition(infra_env, host, config.to_owned()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_host_ignition(
        &self,
        infra_env: InfraEnvId,
        host: HostId,
        config: String,
    ) -> Result<(), ClientError> {
        let path = ["infra-envs", &infra_env.to_string(), "hosts", &host.to_string(), "ignition"];
        self.patch("set Ignition override", &path)
            .json(&HostIgnitionParams { config })
            .send_expecting(201)
            .await
    }
}
