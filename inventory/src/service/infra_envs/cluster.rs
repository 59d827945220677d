//! Checks that an infra-env is compatible with its cluster.

use crate::Inventory;
use crate::catalogue::{CpuArchitecture, ImageType, ReleaseArchitecture};
use crate::cluster::{ClusterKind, ClusterRecord, PlatformType};
use crate::error::Error;
use crate::id::ClusterId;
use crate::infra_env::ImageSource;
use crate::service::clusters::find_cluster;
use crate::store::Reader;

/// Returns the cluster of an infra-env. Returns `None` if the infra-env has no cluster, or if the cluster is deleted.
pub(crate) async fn cluster_of_infra_env(
    reader: &impl Reader,
    id: Option<ClusterId>,
) -> Result<Option<ClusterRecord>, Error> {
    let Some(id) = id else { return Ok(None) };
    Ok(find_cluster(reader, id).await?.map(|stored| stored.record))
}

/// Returns the cluster of an infra-env, if it has one. Returns an error if the cluster does not exist or is deleted.
pub(crate) async fn require_cluster_of_infra_env(
    reader: &impl Reader,
    id: Option<ClusterId>,
) -> Result<Option<ClusterRecord>, Error> {
    let cluster = cluster_of_infra_env(reader, id).await?;
    match id {
        Some(id) if cluster.is_none() => Err(Error::not_found(format!("Cluster ID {id} does not exist"))),
        _ => Ok(cluster),
    }
}

impl Inventory {
    /// Returns an error if the architecture or the image type of the infra-env is incompatible with the cluster.
    pub(crate) fn check_fits_cluster(
        &self,
        cluster: &ClusterRecord,
        image: &ImageSource,
        architecture: CpuArchitecture,
    ) -> Result<(), Error> {
        self.check_architecture(cluster, architecture)?;
        if cluster.kind == ClusterKind::AddHostsCluster {
            return Ok(());
        }
        let version = &cluster.openshift_version;
        if image.image_type == ImageType::Minimal
            && architecture == CpuArchitecture::S390x
            && !version.is_empty()
        {
            return Err(Error::invalid(format!(
                "cannot use Minimal ISO because it's not compatible with the s390x architecture on version {version} \
                 of OpenShift"
            )));
        }
        if image.image_type == ImageType::Full && is_oracle_cloud(cluster) {
            return Err(Error::invalid(
                "cannot use Full ISO because it's not compatible with the platform oci",
            ));
        }
        match (cluster.parsed_version()?, first_version(architecture)) {
            (Some(cluster_version), Some(first)) if cluster_version.minor() < first => {
                Err(Error::invalid(format!(
                    "cannot use {architecture} architecture because it's not compatible on version {version} of OpenShift"
                )))
            }
            _ => Ok(()),
        }
    }

    fn check_architecture(
        &self,
        cluster: &ClusterRecord,
        architecture: CpuArchitecture,
    ) -> Result<(), Error> {
        let Some(of_cluster) = cluster.cpu_architecture else { return Ok(()) };
        let fits = match of_cluster {
            ReleaseArchitecture::One(one) => one == architecture,
            ReleaseArchitecture::Multi => {
                let minor = cluster.parsed_version()?.map(|version| version.minor());
                self.catalogue().releases().iter().any(|release| {
                    Some(release.parsed_version().minor()) == minor
                        && release.cpu_architectures.contains(&architecture)
                })
            }
        };
        if fits {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "Specified CPU architecture ({architecture}) doesn't match the cluster ({})",
            of_cluster.as_str()
        )))
    }
}

fn is_oracle_cloud(cluster: &ClusterRecord) -> bool {
    let platform = cluster.spec.platform.as_ref();
    let external = platform.filter(|platform| platform.platform_type == PlatformType::External);
    let name = external.and_then(|platform| platform.external.as_ref()?.platform_name.as_deref());
    name == Some("oci")
}

/// Returns the first OpenShift version that supports the architecture. Returns `None` if all versions support it.
fn first_version(architecture: CpuArchitecture) -> Option<(u64, u64)> {
    match architecture {
        CpuArchitecture::X86_64 => None,
        CpuArchitecture::Arm64 => Some((4, 10)),
        CpuArchitecture::Ppc64le | CpuArchitecture::S390x => Some((4, 12)),
    }
}
