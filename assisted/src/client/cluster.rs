//! Client methods for the operations on clusters.

use uuid::Uuid;

use super::{ApiClient, ClientError};
use crate::cluster::{
    Cluster, ClusterCreateParams, ClusterDefaults, ClusterImportParams, ClusterUpdateParams,
    DisconnectedClusterParams,
};
use crate::id::ClusterId;

/// A filter for a list of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFilter {
    /// Whether each cluster in the list contains its hosts.
    pub with_hosts: bool,
    /// Only the cluster with this id in its `ClusterVersion` resource.
    pub openshift_cluster_id: Option<Uuid>,
    /// Only clusters of the user with this name.
    pub owner: Option<String>,
}

/// The hosts in the response for a cluster: included or excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterHosts {
    /// The cluster contains its hosts.
    #[default]
    Included,
    /// The list of hosts is empty, but the host counts are set.
    Excluded,
}

impl ApiClient {
    /// Registers a cluster.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// # use assisted::Secret;
    /// use assisted::cluster::ClusterCreateParams;
    ///
    /// # async fn example(client: ApiClient, pull_secret: Secret) -> Result<(), ClientError> {
    /// let params = ClusterCreateParams {
    ///     base_dns_domain: Some("example.com".to_owned()),
    ///     ..ClusterCreateParams::new("edge", "4.18", pull_secret)
    /// };
    /// let cluster = client.register_cluster(&params).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn register_cluster(&self, params: &ClusterCreateParams) -> Result<Cluster, ClientError> {
        self.post("register cluster", &["clusters"]).json(params).read().await
    }

    /// Registers an existing cluster that this service did not install, to add hosts to it.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// use assisted::cluster::ClusterImportParams;
    ///
    /// # async fn example(client: ApiClient) -> Result<(), ClientError> {
    /// let params = ClusterImportParams {
    ///     name: "edge".to_owned(),
    ///     api_vip_dnsname: "api.edge.example.com".to_owned(),
    ///     openshift_cluster_id: "b5b8d2d1-6f4b-4f29-8d0a-0e9f5c1f2a33".parse().expect("a UUID"),
    ///     openshift_version: None,
    /// };
    /// let cluster = client.import_cluster(&params).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn import_cluster(&self, params: &ClusterImportParams) -> Result<Cluster, ClientError> {
        self.post("import cluster", &["clusters", "import"]).json(params).read().await
    }

    /// Registers a disconnected cluster: its hosts are installed without a connection to the service.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// use assisted::cluster::DisconnectedClusterParams;
    ///
    /// # async fn example(client: ApiClient) -> Result<(), ClientError> {
    /// let params = DisconnectedClusterParams { name: "air-gap".to_owned(), openshift_version: "4.18".to_owned() };
    /// let cluster = client.register_disconnected_cluster(&params).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn register_disconnected_cluster(
        &self,
        params: &DisconnectedClusterParams,
    ) -> Result<Cluster, ClientError> {
        let call = self.post("register disconnected cluster", &["clusters", "disconnected"]);
        call.json(params).read().await
    }

    /// Lists clusters.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// use assisted::client::ClusterFilter;
    ///
    /// # async fn example(client: ApiClient) -> Result<(), ClientError> {
    /// let clusters = client.list_clusters(&ClusterFilter::default()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_clusters(&self, filter: &ClusterFilter) -> Result<Vec<Cluster>, ClientError> {
        let mut query = vec![("with_hosts", filter.with_hosts.to_string())];
        query.extend(filter.openshift_cluster_id.map(|id| ("openshift_cluster_id", id.to_string())));
        query.extend(filter.owner.clone().map(|owner| ("owner", owner)));
        self.get("list clusters", &["clusters"]).query(&query).read().await
    }

    /// Returns a cluster.
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
    /// use assisted::client::ClusterHosts;
    ///
    /// # async fn example(client: ApiClient, id: ClusterId) -> Result<(), ClientError> {
    /// let cluster = client.get_cluster(id, ClusterHosts::Excluded).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_cluster(&self, id: ClusterId, hosts: ClusterHosts) -> Result<Cluster, ClientError> {
        let query = [("exclude-hosts", (hosts == ClusterHosts::Excluded).to_string())];
        self.get("get cluster", &["clusters", &id.to_string()]).query(&query).read().await
    }

    /// Updates a cluster. Fields that are `None` stay unchanged.
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
    /// use assisted::cluster::{ClusterUpdateParams, Vip};
    ///
    /// # async fn example(client: ApiClient, id: ClusterId) -> Result<(), ClientError> {
    /// let vip = |ip: &str| Some(vec![Vip { ip: ip.to_owned(), ..Vip::default() }]);
    /// let changes = ClusterUpdateParams {
    ///     api_vips: vip("192.168.1.5"),
    ///     ingress_vips: vip("192.168.1.6"),
    ///     ..ClusterUpdateParams::default()
    /// };
    /// let cluster = client.update_cluster(id, &changes).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_cluster(
        &self,
        id: ClusterId,
        changes: &ClusterUpdateParams,
    ) -> Result<Cluster, ClientError> {
        self.patch("update cluster", &["clusters", &id.to_string()]).json(changes).read().await
    }

    /// Deletes a cluster.
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
    /// # async fn example(client: ApiClient, id: ClusterId) -> Result<(), ClientError> {
    /// client.delete_cluster(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_cluster(&self, id: ClusterId) -> Result<(), ClientError> {
        self.delete("delete cluster", &["clusters", &id.to_string()]).send_expecting(204).await
    }

    /// Returns the default settings of new clusters.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// # async fn example(client: ApiClient) -> Result<(), ClientError> {
    /// let network = client.cluster_defaults().await?.cluster_network_cidr;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cluster_defaults(&self) -> Result<ClusterDefaults, ClientError> {
        self.get("get defaults of clusters", &["clusters", "default-config"]).read().await
    }
}
