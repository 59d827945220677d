//! Client methods for the operations on infra-envs.

use std::ops::ControlFlow;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{ApiClient, ClientError};
use crate::id::{ClusterId, InfraEnvId};
use crate::infra_env::{InfraEnv, InfraEnvCreateParams, InfraEnvUpdateParams, Preflight, PresignedUrl};

/// A file of an infra-env that the service can return a URL for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InfraEnvFile {
    /// The discovery Ignition config.
    DiscoveryIgnition,
    /// The iPXE script that boots the discovery image.
    BootScript,
    /// The iPXE script that boots either the discovery image or the disk, depending on the state of the host.
    BootOrderScript,
}

/// The fields that a search by name needs.
#[derive(Deserialize)]
struct NamedInfraEnv {
    id: InfraEnvId,
    name: String,
}

impl ApiClient {
    /// Registers an infra-env.
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
    /// use assisted::infra_env::InfraEnvCreateParams;
    ///
    /// # async fn example(client: ApiClient, pull_secret: Secret) -> Result<(), ClientError> {
    /// let params = InfraEnvCreateParams {
    ///     openshift_version: Some("4.18".to_owned()),
    ///     ..InfraEnvCreateParams::new("edge", pull_secret)
    /// };
    /// let infra_env = client.register_infra_env(&params).await?;
    /// println!("boot hosts from {}", infra_env.download_url.reveal());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn register_infra_env(&self, params: &InfraEnvCreateParams) -> Result<InfraEnv, ClientError> {
        self.register_infra_env_as(params).await
    }

    /// Registers an infra-env. `T` is the type of the response. [`serde_json::Value`], for example, keeps unknown
    /// fields.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// use assisted::infra_env::InfraEnvCreateParams;
    ///
    /// # async fn example(client: ApiClient, params: InfraEnvCreateParams) -> Result<(), ClientError> {
    /// let resource: serde_json::Value = client.register_infra_env_as(&params).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn register_infra_env_as<T: DeserializeOwned>(
        &self,
        params: &InfraEnvCreateParams,
    ) -> Result<T, ClientError> {
        self.post("register infra-env", &["infra-envs"]).json(params).read().await
    }

    /// Lists all infra-envs, or only the infra-envs of one cluster.
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
    /// let infra_envs = client.list_infra_envs(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_infra_envs(&self, cluster: Option<ClusterId>) -> Result<Vec<InfraEnv>, ClientError> {
        let query: Vec<_> = cluster.map(|id| ("cluster_id", id.to_string())).into_iter().collect();
        self.get("list infra-envs", &["infra-envs"]).query(&query).read().await
    }

    /// Passes each infra-env to `visit` until it returns `Break`. Memory use does not depend on the number of
    /// infra-envs. `T` may be a type with only the fields that the caller needs.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails. `visit` may already have received some of the infra-envs.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// use std::ops::ControlFlow;
    ///
    /// use assisted::infra_env::InfraEnv;
    ///
    /// # async fn example(client: ApiClient) -> Result<(), ClientError> {
    /// let print_name = |infra_env: InfraEnv| {
    ///     println!("{}", infra_env.name);
    ///     ControlFlow::Continue(())
    /// };
    /// client.visit_infra_envs(print_name).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn visit_infra_envs<T: DeserializeOwned>(
        &self,
        visit: impl FnMut(T) -> ControlFlow<()>,
    ) -> Result<(), ClientError> {
        self.get("list infra-envs", &["infra-envs"]).visit_items(visit).await
    }

    /// Returns the ids of all infra-envs with the given name. Names are not unique.
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
    /// let ids = client.infra_envs_with_name("edge").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn infra_envs_with_name(&self, name: &str) -> Result<Vec<InfraEnvId>, ClientError> {
        let mut ids = Vec::new();
        let add_id = |infra_env: NamedInfraEnv| {
            if infra_env.name == name {
                ids.push(infra_env.id);
            }
            ControlFlow::Continue(())
        };
        self.visit_infra_envs(add_id).await?;
        Ok(ids)
    }

    /// Returns findings about the static networks, the Ignition config and the URLs of an infra-env. Only Kindling has
    /// this operation; other services respond with 404.
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
    /// # async fn example(client: ApiClient, id: InfraEnvId) -> Result<(), ClientError> {
    /// let findings = client.preflight(id).await?.network;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn preflight(&self, id: InfraEnvId) -> Result<Preflight, ClientError> {
        self.preflight_as(id).await
    }

    /// Returns the findings of [`ApiClient::preflight`]. `T` is the type of the response. [`serde_json::Value`], for
    /// example, keeps unknown fields.
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
    /// # async fn example(client: ApiClient, id: InfraEnvId) -> Result<(), ClientError> {
    /// let resource: serde_json::Value = client.preflight_as(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn preflight_as<T: DeserializeOwned>(&self, id: InfraEnvId) -> Result<T, ClientError> {
        self.get("check infra-env", &["infra-envs", &id.to_string(), "preflight"]).read().await
    }

    /// Returns an infra-env.
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
    /// # async fn example(client: ApiClient, id: InfraEnvId) -> Result<(), ClientError> {
    /// let infra_env = client.get_infra_env(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_infra_env(&self, id: InfraEnvId) -> Result<InfraEnv, ClientError> {
        self.get_infra_env_as(id).await
    }

    /// Returns an infra-env. `T` is the type of the response. [`serde_json::Value`], for example, keeps unknown fields.
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
    /// # async fn example(client: ApiClient, id: InfraEnvId) -> Result<(), ClientError> {
    /// let resource: serde_json::Value = client.get_infra_env_as(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_infra_env_as<T: DeserializeOwned>(&self, id: InfraEnvId) -> Result<T, ClientError> {
        self.get("get infra-env", &["infra-envs", &id.to_string()]).read().await
    }

    /// Updates an infra-env. Fields that are `None` stay unchanged.
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
    /// use assisted::architecture::ImageType;
    /// use assisted::infra_env::InfraEnvUpdateParams;
    ///
    /// # async fn example(client: ApiClient, id: InfraEnvId) -> Result<(), ClientError> {
    /// let changes =
    ///     InfraEnvUpdateParams { image_type: Some(ImageType::Minimal), ..InfraEnvUpdateParams::default() };
    /// let infra_env = client.update_infra_env(id, &changes).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_infra_env(
        &self,
        id: InfraEnvId,
        changes: &InfraEnvUpdateParams,
    ) -> Result<InfraEnv, ClientError> {
        self.patch("update infra-env", &["infra-envs", &id.to_string()]).json(changes).read().await
    }

    /// Deletes an infra-env. The service refuses this while the infra-env has hosts.
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
    /// # async fn example(client: ApiClient, id: InfraEnvId) -> Result<(), ClientError> {
    /// client.delete_infra_env(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_infra_env(&self, id: InfraEnvId) -> Result<(), ClientError> {
        self.delete("delete infra-env", &["infra-envs", &id.to_string()]).send_expecting(204).await
    }

    /// Returns the URL of the discovery image.
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
    /// # async fn example(client: ApiClient, id: InfraEnvId) -> Result<(), ClientError> {
    /// let url = client.image_url(id).await?.url;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn image_url(&self, id: InfraEnvId) -> Result<PresignedUrl, ClientError> {
        let path = ["infra-envs", &id.to_string(), "downloads", "image-url"];
        self.get("get image URL", &path).read().await
    }

    /// Returns the URL of another file of an infra-env.
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
    /// use assisted::client::InfraEnvFile;
    ///
    /// # async fn example(client: ApiClient, id: InfraEnvId) -> Result<(), ClientError> {
    /// let script = client.file_url(id, InfraEnvFile::BootScript).await?.url;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn file_url(&self, id: InfraEnvId, file: InfraEnvFile) -> Result<PresignedUrl, ClientError> {
        let (name, script) = match file {
            InfraEnvFile::DiscoveryIgnition => ("discovery.ign", None),
            InfraEnvFile::BootScript => ("ipxe-script", Some("discovery-image-always")),
            InfraEnvFile::BootOrderScript => ("ipxe-script", Some("boot-order-control")),
        };
        let mut query = vec![("file_name", name.to_owned())];
        query.extend(script.map(|script| ("ipxe_script_type", script.to_owned())));
        let path = ["infra-envs", &id.to_string(), "downloads", "files-presigned"];
        self.get("get file URL", &path).query(&query).read().await
    }

    /// Replaces the key that signs the URLs of an infra-env. URLs signed with the old key become invalid.
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
    /// # async fn example(client: ApiClient, id: InfraEnvId) -> Result<(), ClientError> {
    /// client.regenerate_signing_key(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn regenerate_signing_key(&self, id: InfraEnvId) -> Result<(), ClientError> {
        let path = ["infra-envs", &id.to_string(), "regenerate-signing-key"];
        self.post("regenerate signing key", &path).send_expecting(204).await
    }
}
