//! Checks the parameters of an infra-env without registering it.

use assisted::infra_env::InfraEnvCreateParams;
use futures_util::future::BoxFuture;
use ignition::network::check::NetworkFinding;

use super::check::PullSecretOf;
use crate::error::Error;
use crate::infra_env::ImageSource;
use crate::{Inventory, Secret};

/// A placeholder pull secret, without which no config can be generated.
const PULL_SECRET: &str = r#"{"auths":{"registry.invalid":{"auth":"YTpi"}}}"#;

impl Inventory {
    /// Checks the parameters of an infra-env with the rules for a registration. Returns the network findings that are
    /// only warnings. Nothing is written.
    ///
    /// The pull secret is not checked. The cluster and a base image for the version need not exist, because both may be
    /// added later.
    ///
    /// # Errors
    ///
    /// Returns an [`Invalid`](crate::ErrorKind::Invalid) error if a value is invalid. Any other error means that the
    /// parameters could not be checked. For example, an Ignition override without a version cannot be checked if there
    /// is no base image, whose version determines the Ignition spec.
    pub fn check_infra_env_params(
        &self,
        params: InfraEnvCreateParams,
    ) -> BoxFuture<'_, Result<Vec<NetworkFinding>, Error>> {
        Box::pin(async move {
            let architecture = params.cpu_architecture.unwrap_or_default();
            let params = InfraEnvCreateParams { pull_secret: Secret::new(PULL_SECRET), ..params };
            let mut image = self.new_image_source(params.into(), architecture);
            image.check_delay()?;
            if image.openshift_version.is_empty() && !image.ignition_config_override.is_empty() {
                let os_image = self.os_image("", architecture).await;
                image.openshift_version = os_image.map_err(undecided)?.openshift_version;
            }
            // With the same pull secret in `before`, the check skips the pull secret.
            let before = ImageSource { pull_secret: image.pull_secret.clone(), ..ImageSource::default() };
            let of = (architecture, PullSecretOf::Existing);
            self.check_in_background(&image, &before, of).await
        })
    }
}

/// Returns the error for parameters that cannot be checked, because the catalogue of the service has no base image.
fn undecided(error: Error) -> Error {
    Error::unavailable(format!("no base image decides which Ignition spec the override may have: {error}"))
}

#[cfg(test)]
mod tests {
    use assisted::infra_env::{KernelArgument, KernelArgumentOperation, Proxy};
    use futures_util::StreamExt as _;

    use super::*;
    use crate::catalogue::CpuArchitecture;
    use crate::error::ErrorKind;
    use crate::service::infra_envs::InfraEnvQuery;
    use crate::service::test_inventory::{TestInventory, infra_env_params};

    #[tokio::test]
    async fn check_needs_no_pull_secret_and_writes_nothing() {
        let test = TestInventory::open().await;
        let params = InfraEnvCreateParams {
            pull_secret: Secret::default(),
            openshift_version: Some("4.99".to_owned()),
            ignition_config_override: Some(r#"{"ignition": {"version": "3.1.0"}}"#.to_owned()),
            ..infra_env_params()
        };
        assert_eq!(test.inventory.check_infra_env_params(params).await, Ok(Vec::new()));
        let infra_envs: Vec<_> = test.inventory.infra_envs(InfraEnvQuery::default()).collect().await;
        assert!(infra_envs.is_empty(), "{infra_envs:?}");
    }

    #[tokio::test]
    async fn rejects_the_same_values_as_registration() {
        type Edit = fn(&mut InfraEnvCreateParams);
        let edits: [Edit; 5] = [
            |it| it.proxy = Some(Proxy { http_proxy: Some("p".to_owned()), ..Proxy::default() }),
            |it| it.ntp_sources = Some("a;b".to_owned()),
            |it| it.ssh_authorized_key = Some("key".to_owned()),
            |it| it.ignition_config_override = Some("{".to_owned()),
            |it| {
                let operation = Some(KernelArgumentOperation::Delete);
                it.kernel_arguments = Some(vec![KernelArgument { operation, value: "a".to_owned() }]);
            },
        ];
        let test = TestInventory::open().await;
        for edit in edits {
            let mut params = infra_env_params();
            edit(&mut params);
            let error = test.inventory.check_infra_env_params(params.clone()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            let registration = test.inventory.register_infra_env(params, None).await.unwrap_err();
            assert_eq!(error.reason(), registration.reason());
        }
    }

    #[tokio::test]
    async fn override_without_a_base_image_is_undecided() {
        let test = TestInventory::open().await;
        let params = InfraEnvCreateParams {
            cpu_architecture: Some(CpuArchitecture::S390x),
            ignition_config_override: Some("{".to_owned()),
            ..infra_env_params()
        };
        let error = test.inventory.check_infra_env_params(params).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}
