//! Determines the number of control plane nodes, the platform, and the default network plugin of a cluster.

use super::parts::{HighAvailabilityMode, NetworkType, Platform, PlatformType};
use crate::catalogue::{CpuArchitecture, ReleaseArchitecture, Version};
use crate::error::Error;

/// The first version that supports more than three control plane nodes.
const MORE_MASTERS_SINCE: (u64, u64) = (4, 18);
/// The first version with OVN-Kubernetes as its default network plugin.
const OVN_SINCE: (u64, u64) = (4, 12);

/// Returns the number of control plane nodes from the requested availability mode and number.
pub(super) fn control_plane_count(
    mode: Option<HighAvailabilityMode>,
    count: Option<i64>,
    version: Option<&Version>,
) -> Result<i64, Error> {
    let single = if count == Some(1) { HighAvailabilityMode::None } else { HighAvailabilityMode::Full };
    let (least, most) = match mode.unwrap_or(single) {
        HighAvailabilityMode::None => (1, 1),
        HighAvailabilityMode::Full if version.is_some_and(|version| version.minor() < MORE_MASTERS_SINCE) => {
            (3, 3)
        }
        HighAvailabilityMode::Full => (3, 5),
    };
    let count = count.unwrap_or(least);
    if (least..=most).contains(&count) {
        return Ok(count);
    }
    let allowed = if least == most { format!("exactly {least}") } else { format!("{least} to {most}") };
    Err(Error::invalid(format!(
        "there should be {allowed} dedicated control plane nodes in this high availability mode and OpenShift \
         version, and control_plane_count is {count}"
    )))
}

pub(super) fn default_network_type(control_plane_count: i64, version: &Version) -> NetworkType {
    if control_plane_count == 1 || version.minor() >= OVN_SINCE {
        NetworkType::OVNKubernetes
    } else {
        NetworkType::OpenShiftSDN
    }
}

/// The requested platform and networking, with the current values of the cluster.
#[derive(Clone, Debug)]
pub(super) struct PlatformRequest {
    /// Requested platform.
    pub(super) platform: Option<Platform>,
    /// Whether user-managed networking is requested.
    pub(super) user_managed_networking: Option<bool>,
    /// Current platform of the cluster.
    pub(super) current: Option<Platform>,
    /// Whether the cluster currently has user-managed networking.
    pub(super) is_user_managed: bool,
    /// Whether the cluster has a single node.
    pub(super) is_single_node: bool,
    /// CPU architecture of the hosts.
    pub(super) architecture: Option<ReleaseArchitecture>,
}

impl PlatformRequest {
    /// Returns the platform, and whether the user manages the networking. Each of them restricts the other.
    pub(super) fn resolve(self) -> Result<(Platform, bool), Error> {
        use PlatformType::{Baremetal, External, None, Nutanix, Vsphere};
        let requested = self.platform.clone();
        let integrated =
            self.current.clone().filter(|current| matches!(current.platform_type, Nutanix | Vsphere));
        let has_no_platform = matches!(
            self.architecture,
            Some(ReleaseArchitecture::One(CpuArchitecture::Ppc64le | CpuArchitecture::S390x))
        );
        if has_no_platform {
            let external = requested.or(self.current).filter(|platform| platform.platform_type == External);
            return Ok((external.unwrap_or(Platform::from_type(None)), true));
        }
        let platform = match (requested, self.user_managed_networking) {
            (Some(platform), _) => platform,
            (Option::None, _) if self.is_single_node => {
                let external = self.current.filter(|current| current.platform_type == External);
                return Ok((external.unwrap_or(Platform::from_type(None)), true));
            }
            (Option::None, Some(true)) => {
                let is_compatible = |platform: &Platform| platform.platform_type != Baremetal;
                self.current.filter(is_compatible).unwrap_or(Platform::from_type(None))
            }
            (Option::None, _) => integrated.unwrap_or(Platform::from_type(Baremetal)),
        };
        let (name, managed) = (platform.platform_type.as_str(), self.user_managed_networking);
        let user_managed = match platform.platform_type {
            Baremetal | Nutanix if self.is_single_node => {
                return Err(Error::invalid(format!("Can't set {name} platform on single node OpenShift")));
            }
            None | External if managed == Some(false) => {
                let reason = format!("Can't set {name} platform with user-managed-networking disabled");
                return Err(Error::invalid(reason));
            }
            Baremetal if managed == Some(true) => {
                let reason = format!("Can't set {name} platform with user-managed-networking enabled");
                return Err(Error::invalid(reason));
            }
            None | External => true,
            Baremetal => false,
            Nutanix | Vsphere => managed.unwrap_or(self.is_user_managed),
        };
        Ok((platform, user_managed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_plane_count_depends_on_availability_and_version() {
        use HighAvailabilityMode::{Full, None as Single};
        let (old, new) = (Version::new(4, 17), Version::parse("4.18.0-rc.1").unwrap());
        for (mode, count, version, expected) in [
            (None, None, &old, Ok(3)),
            (Some(Full), None, &new, Ok(3)),
            (Some(Single), None, &old, Ok(1)),
            (None, Some(1), &old, Ok(1)),
            (Some(Single), Some(1), &old, Ok(1)),
            (Some(Single), Some(3), &new, Err("exactly 1")),
            (Some(Full), Some(1), &new, Err("3 to 5")),
            (None, Some(4), &old, Err("exactly 3")),
            (None, Some(5), &new, Ok(5)),
            (None, Some(6), &new, Err("3 to 5")),
            (None, Some(0), &new, Err("3 to 5")),
            (None, Some(-1), &new, Err("3 to 5")),
        ] {
            match (control_plane_count(mode, count, Some(version)), expected) {
                (Ok(actual), Ok(expected)) => assert_eq!(actual, expected),
                (Err(refusal), Err(part)) => assert!(refusal.reason().contains(part), "{refusal}"),
                other => panic!("{mode:?} {count:?} {version}: {other:?}"),
            }
        }
    }

    fn resolve(
        requested: &str,
        managed: Option<bool>,
        change: impl Fn(&mut PlatformRequest),
    ) -> Result<(String, bool), String> {
        let platform = |name: &str| serde_json::from_value(serde_json::json!({"type": name})).ok();
        let mut request = PlatformRequest {
            platform: platform(requested),
            user_managed_networking: managed,
            current: None,
            is_user_managed: false,
            is_single_node: false,
            architecture: Some(ReleaseArchitecture::default()),
        };
        change(&mut request);
        let resolved = request.resolve();
        resolved
            .map(|(platform, managed)| (platform.platform_type.as_str().to_owned(), managed))
            .map_err(|refusal| refusal.reason().to_owned())
    }

    #[test]
    fn platform_and_networking_limit_each_other() {
        for (requested, managed, expected) in [
            ("", None, ("baremetal", false)),
            ("", Some(false), ("baremetal", false)),
            ("", Some(true), ("none", true)),
            ("none", None, ("none", true)),
            ("external", Some(true), ("external", true)),
            ("vsphere", None, ("vsphere", false)),
            ("vsphere", Some(true), ("vsphere", true)),
            ("nutanix", Some(false), ("nutanix", false)),
        ] {
            assert_eq!(
                resolve(requested, managed, |_| {}),
                Ok((expected.0.to_owned(), expected.1)),
                "{requested} {managed:?}"
            );
        }
        for (requested, managed, word) in
            [("none", false, "disabled"), ("external", false, "disabled"), ("baremetal", true, "enabled")]
        {
            let reason = format!("Can't set {requested} platform with user-managed-networking {word}");
            assert_eq!(resolve(requested, Some(managed), |_| {}), Err(reason));
        }
    }

    #[test]
    fn single_nodes_and_some_architectures_have_no_platform() {
        let single = |request: &mut PlatformRequest| request.is_single_node = true;
        assert_eq!(resolve("", None, single), Ok(("none".to_owned(), true)));
        assert_eq!(resolve("", Some(false), single), Ok(("none".to_owned(), true)));
        assert_eq!(resolve("vsphere", None, single), Ok(("vsphere".to_owned(), false)));
        let reason = "Can't set baremetal platform on single node OpenShift";
        assert_eq!(resolve("baremetal", None, single), Err(reason.to_owned()));
        for architecture in [CpuArchitecture::S390x, CpuArchitecture::Ppc64le] {
            let on = |request: &mut PlatformRequest| {
                request.architecture = Some(ReleaseArchitecture::One(architecture));
            };
            assert_eq!(resolve("baremetal", Some(false), on), Ok(("none".to_owned(), true)));
            assert_eq!(resolve("external", None, on), Ok(("external".to_owned(), true)));
        }
    }

    #[test]
    fn change_of_networking_keeps_a_compatible_platform() {
        let on = |current| {
            move |request: &mut PlatformRequest| request.current = Some(Platform::from_type(current))
        };
        let resolved = |managed, current| resolve("", Some(managed), on(current)).unwrap();
        assert_eq!(resolved(true, PlatformType::Vsphere), ("vsphere".to_owned(), true));
        assert_eq!(resolved(true, PlatformType::External), ("external".to_owned(), true));
        assert_eq!(resolved(true, PlatformType::Baremetal), ("none".to_owned(), true));
        assert_eq!(resolved(false, PlatformType::External), ("baremetal".to_owned(), false));
        assert_eq!(resolved(false, PlatformType::Nutanix), ("nutanix".to_owned(), false));
        let managed = |request: &mut PlatformRequest| request.is_user_managed = true;
        assert_eq!(resolve("vsphere", None, managed), Ok(("vsphere".to_owned(), true)));
        assert_eq!(resolve("baremetal", None, managed), Ok(("baremetal".to_owned(), false)));
    }
}
