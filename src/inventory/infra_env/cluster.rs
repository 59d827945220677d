//! Whether an infra-env fits the cluster that its machines become part of.

use super::record::ImageSource;
use crate::api_error::ApiError;
use crate::images::{CpuArchitecture, ImageType, ReleaseArchitecture, Version};
use crate::inventory::Inventory;
use crate::inventory::cluster::{ClusterKind, ClusterRecord, PlatformType};
use crate::inventory::id::ClusterId;
use crate::inventory::store::Stored;

impl Inventory {
    /// The cluster of an infra-env, if it has one that is still there.
    pub(super) async fn cluster_of_infra_env(
        &self,
        id: Option<ClusterId>,
    ) -> Result<Option<ClusterRecord>, ApiError> {
        let Some(id) = id else { return Ok(None) };
        let stored: Option<Stored<ClusterRecord>> = self.records().find(None, id.0).await?;
        Ok(stored.map(|stored| stored.record).filter(|record| record.deleted_at.is_none()))
    }

    /// Refuses an infra-env whose machines or images do not fit its cluster.
    pub(super) fn check_fits(
        &self,
        cluster: &ClusterRecord,
        image: &ImageSource,
        architecture: CpuArchitecture,
    ) -> Result<(), ApiError> {
        self.check_architecture(cluster, architecture)?;
        if cluster.kind == ClusterKind::AddHostsCluster {
            return Ok(());
        }
        let version = &cluster.openshift_version;
        if image.image_type == ImageType::Minimal
            && architecture == CpuArchitecture::S390x
            && !version.is_empty()
        {
            return Err(ApiError::bad(format!(
                "cannot use Minimal ISO because it's not compatible with the s390x architecture on version {version} \
                 of OpenShift"
            )));
        }
        if image.image_type == ImageType::Full && is_oracle_cloud(cluster) {
            return Err(ApiError::bad(
                "cannot use Full ISO because it's not compatible with the platform oci",
            ));
        }
        match (Version::parse(version), first_version(architecture)) {
            (Some(found), Some(first)) if found.minor() < first => Err(ApiError::bad(format!(
                "cannot use {architecture} architecture because it's not compatible on version {version} of OpenShift"
            ))),
            _ => Ok(()),
        }
    }

    fn check_architecture(
        &self,
        cluster: &ClusterRecord,
        architecture: CpuArchitecture,
    ) -> Result<(), ApiError> {
        let fits = match cluster.cpu_architecture {
            None => true,
            Some(ReleaseArchitecture::One(one)) => one == architecture,
            Some(ReleaseArchitecture::Multi) => {
                let minor = |version: &str| Version::parse(version).map(|version| version.minor());
                let wanted = minor(&cluster.openshift_version);
                let is_of_cluster = |version: &str| wanted.is_some() && minor(version) == wanted;
                self.catalogue().releases().iter().any(|release| {
                    is_of_cluster(&release.version) && release.cpu_architectures.contains(&architecture)
                })
            }
        };
        if fits {
            return Ok(());
        }
        let of_cluster = cluster.cpu_architecture.map(ReleaseArchitecture::as_str).unwrap_or_default();
        Err(ApiError::bad(format!(
            "Specified CPU architecture ({architecture}) doesn't match the cluster ({of_cluster})"
        )))
    }
}

fn is_oracle_cloud(cluster: &ClusterRecord) -> bool {
    let platform = cluster.spec.platform.as_ref();
    let external = platform.filter(|platform| platform.platform_type == PlatformType::External);
    let name = external.and_then(|platform| platform.external.as_ref()?.platform_name.as_deref());
    name == Some("oci")
}

/// The first version of OpenShift for a kind of machine, if there were versions before.
fn first_version(architecture: CpuArchitecture) -> Option<(u64, u64)> {
    match architecture {
        CpuArchitecture::X86_64 => None,
        CpuArchitecture::Arm64 => Some((4, 10)),
        CpuArchitecture::Ppc64le | CpuArchitecture::S390x => Some((4, 12)),
    }
}
