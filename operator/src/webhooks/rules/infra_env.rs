//! Admission rules for InfraEnvs.

use super::Denial;
use crate::crds::InfraEnvSpec;

const BOTH: &str = "Either Spec.ClusterRef or Spec.OSImageVersion should be specified (not both).";

const CLUSTER_REF: &str = "Attempted to change Spec.ClusterRef which is immutable after InfraEnv creation.";

const CPU_ARCHITECTURE: &str =
    "Attempted to change Spec.CpuArchitecture which is immutable after InfraEnv creation.";

const VERSION_OF_BOUND: &str = "spec.OSImageVersion is not valid. It can't be added alongside with a clusterRef when \
    the cluster is not installed yet.";

/// CPU architecture of an InfraEnv that does not set one.
const DEFAULT_ARCHITECTURE: &str = "x86_64";

/// Checks a new InfraEnv.
///
/// # Errors
///
/// Returns the denial of the request.
pub(crate) fn creation(new: &InfraEnvSpec) -> Result<(), Denial> {
    if new.cluster_ref.is_some() && new.os_image_version.is_some() {
        return Err(Denial::bad_request(BOTH, &["spec.clusterRef", "spec.osImageVersion"]));
    }
    Ok(())
}

/// Checks an update of an InfraEnv.
///
/// # Errors
///
/// Returns the denial of the request.
pub(crate) fn update(old: &InfraEnvSpec, new: &InfraEnvSpec) -> Result<(), Denial> {
    if old.cluster_ref != new.cluster_ref {
        return Err(Denial::bad_request(CLUSTER_REF, &["spec.clusterRef"]));
    }
    if architecture(old) != architecture(new) {
        return Err(Denial::bad_request(CPU_ARCHITECTURE, &["spec.cpuArchitecture"]));
    }
    // Upstream allows the addition for installed clusters. This service does not support ClusterDeployments, so it
    // treats each cluster as not installed.
    let is_added = old.os_image_version.is_none() && new.os_image_version.is_some();
    if is_added && new.cluster_ref.is_some() {
        return Err(Denial::bad_request(VERSION_OF_BOUND, &["spec.osImageVersion"]));
    }
    Ok(())
}

fn architecture(spec: &InfraEnvSpec) -> &str {
    spec.cpu_architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crds::ClusterRef;

    fn bound(name: &str, namespace: &str) -> InfraEnvSpec {
        let cluster = ClusterRef { name: name.to_owned(), namespace: namespace.to_owned() };
        InfraEnvSpec { cluster_ref: Some(cluster), ..InfraEnvSpec::default() }
    }

    fn with_version(spec: InfraEnvSpec, version: &str) -> InfraEnvSpec {
        InfraEnvSpec { os_image_version: Some(version.to_owned()), ..spec }
    }

    fn with_architecture(name: &str) -> InfraEnvSpec {
        InfraEnvSpec { cpu_architecture: Some(name.to_owned()), ..InfraEnvSpec::default() }
    }

    #[test]
    fn rejects_creation_with_cluster_and_version() {
        let denial = creation(&with_version(bound("a", "b"), "4.18")).unwrap_err();
        assert_eq!((denial.code, denial.reason, &*denial.message), (400, "BadRequest", BOTH));
        let fields: Vec<_> = denial.causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(fields, ["spec.clusterRef", "spec.osImageVersion"]);
        creation(&bound("a", "b")).unwrap();
        creation(&with_version(InfraEnvSpec::default(), "4.18")).unwrap();
    }

    #[test]
    fn updates_follow_the_table() {
        let none = InfraEnvSpec::default;
        let rows = [
            (none(), none(), None),
            (bound("a", "b"), bound("a", "b"), None),
            (bound("a", "b"), bound("c", "b"), Some(CLUSTER_REF)),
            (bound("a", "b"), bound("a", "c"), Some(CLUSTER_REF)),
            (bound("a", "b"), none(), Some(CLUSTER_REF)),
            (none(), bound("a", "b"), Some(CLUSTER_REF)),
            (none(), with_architecture("x86_64"), None),
            (with_architecture("x86_64"), none(), None),
            (none(), with_architecture("aarch64"), Some(CPU_ARCHITECTURE)),
            (with_architecture("arm64"), with_architecture("aarch64"), Some(CPU_ARCHITECTURE)),
            (none(), with_version(none(), "4.18"), None),
            (bound("a", "b"), with_version(bound("a", "b"), "4.18"), Some(VERSION_OF_BOUND)),
            (with_version(bound("a", "b"), "4.17"), with_version(bound("a", "b"), "4.18"), None),
            (with_version(bound("a", "b"), "4.17"), bound("a", "b"), None),
        ];
        for (old, new, message) in rows {
            let denial = update(&old, &new).err();
            assert_eq!(denial.as_ref().map(|it| it.message.as_str()), message, "{old:?} {new:?}");
            assert!(denial.is_none_or(|it| it.code == 400));
        }
    }
}
