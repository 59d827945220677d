//! What a cluster stands on: how many machines control it, on which platform, and what connects its pods.

use super::parts::{HighAvailabilityMode, NetworkType, Platform, PlatformType};
use crate::api_error::ApiError;
use crate::images::{CpuArchitecture, ReleaseArchitecture, Version};

/// The first version whose clusters may have more than three machines that control them.
const MORE_MASTERS_SINCE: (u64, u64) = (4, 18);
/// The first version that connects pods with OVN where nobody says otherwise.
const OVN_SINCE: (u64, u64) = (4, 12);

/// How many machines control a cluster, from what its owner says of it.
pub(super) fn control_plane_count(
    mode: Option<HighAvailabilityMode>,
    count: Option<i64>,
    version: Option<&Version>,
) -> Result<i64, ApiError> {
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
    Err(ApiError::bad(format!(
        "there should be {allowed} dedicated control plane nodes in this high availability mode and OpenShift \
         version, and control_plane_count is {count}"
    )))
}

/// What connects pods where nobody says it.
pub(super) fn default_network_type(control_plane_count: i64, version: &Version) -> NetworkType {
    if control_plane_count == 1 || version.minor() >= OVN_SINCE {
        NetworkType::OVNKubernetes
    } else {
        NetworkType::OpenShiftSDN
    }
}

/// What is asked of a platform.
#[derive(Clone, Debug)]
pub(super) struct PlatformRequest {
    /// What the cluster shall stand on.
    pub(super) platform: Option<Platform>,
    /// Whether its owner manages what connects its machines.
    pub(super) user_managed_networking: Option<bool>,
    /// What it stands on until now.
    pub(super) present: Option<Platform>,
    /// Whether its owner manages what connects its machines until now.
    pub(super) is_user_managed: bool,
    /// Whether it is one machine.
    pub(super) is_single_node: bool,
    /// The processor of its machines.
    pub(super) architecture: Option<ReleaseArchitecture>,
}

impl PlatformRequest {
    /// The platform, and whether the cluster's owner manages what connects its machines: the two go together.
    pub(super) fn resolve(self) -> Result<(Platform, bool), ApiError> {
        use PlatformType::{Baremetal, External, None, Nutanix, Vsphere};
        let asked = self.platform.clone();
        let present =
            self.present.clone().filter(|present| matches!(present.platform_type, Nutanix | Vsphere));
        let has_no_platform = matches!(
            self.architecture,
            Some(ReleaseArchitecture::One(CpuArchitecture::Ppc64le | CpuArchitecture::S390x))
        );
        if has_no_platform {
            let external = asked.or(self.present).filter(|platform| platform.platform_type == External);
            return Ok((external.unwrap_or(Platform::of(None)), true));
        }
        let platform = match (asked, self.user_managed_networking) {
            (Some(platform), _) => platform,
            (Option::None, _) if self.is_single_node => {
                let present = self.present.filter(|present| present.platform_type == External);
                return Ok((present.unwrap_or(Platform::of(None)), true));
            }
            (Option::None, Some(true)) => {
                let kept = |platform: &Platform| platform.platform_type != Baremetal;
                self.present.filter(kept).unwrap_or(Platform::of(None))
            }
            (Option::None, _) => present.unwrap_or(Platform::of(Baremetal)),
        };
        let (name, asked) = (platform.platform_type.as_str(), self.user_managed_networking);
        let user_managed = match platform.platform_type {
            Baremetal | Nutanix if self.is_single_node => {
                return Err(ApiError::bad(format!("Can't set {name} platform on single node OpenShift")));
            }
            None | External if asked == Some(false) => {
                let reason = format!("Can't set {name} platform with user-managed-networking disabled");
                return Err(ApiError::bad(reason));
            }
            Baremetal if asked == Some(true) => {
                let reason = format!("Can't set {name} platform with user-managed-networking enabled");
                return Err(ApiError::bad(reason));
            }
            None | External => true,
            Baremetal => false,
            Nutanix | Vsphere => asked.unwrap_or(self.is_user_managed),
        };
        Ok((platform, user_managed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_machine_or_three_or_more_control_a_cluster() {
        use HighAvailabilityMode::{Full, None as Single};
        let (old, new) = (Version::of(4, 17), Version::parse("4.18.0-rc.1").unwrap());
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
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(refusal), Err(part)) => assert!(refusal.reason().contains(part), "{refusal}"),
                other => panic!("{mode:?} {count:?} {version}: {other:?}"),
            }
        }
    }

    fn resolve(
        asked: &str,
        managed: Option<bool>,
        change: impl Fn(&mut PlatformRequest),
    ) -> Result<(String, bool), String> {
        let platform = |name: &str| serde_json::from_value(serde_json::json!({"type": name})).ok();
        let mut request = PlatformRequest {
            platform: platform(asked),
            user_managed_networking: managed,
            present: None,
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
    fn platform_and_networking_go_together() {
        for (asked, managed, expected) in [
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
                resolve(asked, managed, |_| {}),
                Ok((expected.0.to_owned(), expected.1)),
                "{asked} {managed:?}"
            );
        }
        for (asked, managed, word) in
            [("none", false, "disabled"), ("external", false, "disabled"), ("baremetal", true, "enabled")]
        {
            let reason = format!("Can't set {asked} platform with user-managed-networking {word}");
            assert_eq!(resolve(asked, Some(managed), |_| {}), Err(reason));
        }
    }

    #[test]
    fn one_machine_and_some_processors_have_no_platform() {
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
    fn a_change_of_networking_keeps_a_platform_that_it_goes_with() {
        let on = |present| move |request: &mut PlatformRequest| request.present = Some(Platform::of(present));
        let found = |managed, present| resolve("", Some(managed), on(present)).unwrap();
        assert_eq!(found(true, PlatformType::Vsphere), ("vsphere".to_owned(), true));
        assert_eq!(found(true, PlatformType::External), ("external".to_owned(), true));
        assert_eq!(found(true, PlatformType::Baremetal), ("none".to_owned(), true));
        assert_eq!(found(false, PlatformType::External), ("baremetal".to_owned(), false));
        assert_eq!(found(false, PlatformType::Nutanix), ("nutanix".to_owned(), false));
        let managed = |request: &mut PlatformRequest| request.is_user_managed = true;
        assert_eq!(resolve("vsphere", None, managed), Ok(("vsphere".to_owned(), true)));
        assert_eq!(resolve("baremetal", None, managed), Ok(("baremetal".to_owned(), false)));
    }
}
