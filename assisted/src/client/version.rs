//! Client methods for the operations on versions and base images.

use std::collections::BTreeMap;

use super::{ApiClient, ClientError};
use crate::architecture::CpuArchitecture;
use crate::version::{
    ComponentVersions, ListedOsImage, OpenshiftVersion, OsImageParams, SupportedArchitectures,
};

/// A filter for a list of OpenShift versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionFilter {
    /// Only versions that contain this text, such as `4.18`.
    pub version: Option<String>,
    /// Only the latest release of each minor version.
    pub only_latest: bool,
}

impl ApiClient {
    /// Lists the OpenShift versions that clusters can be created with, by version.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// use assisted::client::VersionFilter;
    ///
    /// # async fn example(client: ApiClient) -> Result<(), ClientError> {
    /// let versions = client.openshift_versions(&VersionFilter::default()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn openshift_versions(
        &self,
        filter: &VersionFilter,
    ) -> Result<BTreeMap<String, OpenshiftVersion>, ClientError> {
        let mut query = Vec::new();
        query.extend(filter.version.clone().map(|version| ("version", version)));
        if filter.only_latest {
            query.push(("only_latest", true.to_string()));
        }
        self.get("list OpenShift versions", &["openshift-versions"]).query(&query).read().await
    }

    /// Returns the versions of the components that take part in an installation, such as the agent.
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
    /// let versions = client.component_versions().await?.versions;
    /// let agent = versions.get("discovery-agent");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn component_versions(&self) -> Result<ComponentVersions, ClientError> {
        self.get("get component versions", &["component-versions"]).read().await
    }

    /// Returns the CPU architectures that an OpenShift version supports.
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
    /// let arm = client.supported_architectures("4.18").await?.architectures.arm64;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn supported_architectures(
        &self,
        version: &str,
    ) -> Result<SupportedArchitectures, ClientError> {
        let call = self.get("get supported architectures", &["support-levels", "architectures"]);
        call.query(&[("openshift_version", version.to_owned())]).read().await
    }

    /// Lists base images. Only Kindling has this operation.
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
    /// let images = client.os_images().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn os_images(&self) -> Result<Vec<ListedOsImage>, ClientError> {
        self.get("list base images", &["os-images"]).read().await
    }

    /// Adds a base image. Only Kindling has this operation.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// use assisted::architecture::CpuArchitecture;
    /// use assisted::version::OsImageParams;
    ///
    /// # async fn example(client: ApiClient) -> Result<(), ClientError> {
    /// let params = OsImageParams {
    ///     openshift_version: "4.18".to_owned(),
    ///     cpu_architecture: CpuArchitecture::X86_64,
    ///     url: "https://mirror.example.com/rhcos-live.iso".to_owned(),
    ///     version: "418.94.202501221327-0".to_owned(),
    ///     sha256: None,
    /// };
    /// let image = client.add_os_image(&params).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn add_os_image(&self, params: &OsImageParams) -> Result<ListedOsImage, ClientError> {
        self.post("add base image", &["os-images"]).json(params).read().await
    }

    /// Removes a base image that an API client added. Only Kindling has this operation.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// use assisted::architecture::CpuArchitecture;
    ///
    /// # async fn example(client: ApiClient) -> Result<(), ClientError> {
    /// client.remove_os_image("4.18", CpuArchitecture::X86_64).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove_os_image(
        &self,
        openshift_version: &str,
        architecture: CpuArchitecture,
    ) -> Result<(), ClientError> {
        let path = ["os-images", openshift_version, architecture.as_str()];
        self.delete("remove base image", &path).send_expecting(204).await
    }
}
