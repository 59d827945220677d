//! Defines the quantities that grow, and their sizes.

use crate::work::Size;

/// The quantity that grows while all others stay the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Hosts with static networks in one infra-env.
    Hosts,
    /// Infra-envs in the inventory.
    InfraEnvs,
    /// Base images that are in use.
    LiveImages,
    /// The length of one base image in MiB.
    ImageLength,
    /// Connections that request ranges concurrently.
    Connections,
}

impl Axis {
    pub(crate) const ALL: [Self; 5] =
        [Self::Hosts, Self::InfraEnvs, Self::LiveImages, Self::ImageLength, Self::Connections];

    /// Returns the short name of the axis, for `--only`.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Hosts => "hosts",
            Self::InfraEnvs => "infra-envs",
            Self::LiveImages => "base-images",
            Self::ImageLength => "image-length",
            Self::Connections => "connections",
        }
    }

    /// Returns the heading of the section about the axis in the page.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Hosts => "Hosts of an infra-env",
            Self::InfraEnvs => "Infra-envs in the inventory",
            Self::LiveImages => "Base images",
            Self::ImageLength => "Length of a base image",
            Self::Connections => "Connections",
        }
    }

    /// Returns the unit of the sizes.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Hosts => "hosts",
            Self::InfraEnvs => "infra-envs",
            Self::LiveImages => "base images",
            Self::ImageLength => "MiB",
            Self::Connections => "connections",
        }
    }

    /// Sizes in ascending order.
    pub(crate) fn sizes(self, size: Size) -> &'static [u64] {
        let (full, small): (&[u64], &[u64]) = match self {
            Self::Hosts => (&[10, 100, 1_000, 10_000], &[1, 10, 50]),
            Self::InfraEnvs => (&[1, 100, 1_000, 10_000], &[1, 10, 50]),
            Self::LiveImages => (&[1, 5, 20, 50], &[1, 3]),
            Self::ImageLength => (&[1 << 10, 4 << 10, 16 << 10, 64 << 10], &[16, 64]),
            Self::Connections => (&[1, 10, 100, 1_000], &[1, 10, 50]),
        };
        if size == Size::Full { full } else { small }
    }
}

/// Selects the axis with exactly this key, otherwise the axes whose keys contain it, or all axes without a key.
pub(crate) fn chosen(only: Option<&str>) -> Vec<Axis> {
    let mut axes = Axis::ALL.to_vec();
    if let Some(only) = only {
        let is_key = axes.iter().any(|axis| axis.key() == only);
        axes.retain(|axis| if is_key { axis.key() == only } else { axis.key().contains(only) });
    }
    axes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_selected_by_key_or_part_of_it() {
        assert_eq!(chosen(None), Axis::ALL);
        assert_eq!(chosen(Some("hosts")), [Axis::Hosts]);
        assert_eq!(chosen(Some("image")), [Axis::LiveImages, Axis::ImageLength]);
        assert!(chosen(Some("nothing")).is_empty());
    }

    #[test]
    fn sizes_ascend_and_quick_runs_use_smaller_ones() {
        for axis in Axis::ALL {
            for size in [Size::Full, Size::Small] {
                let sizes = axis.sizes(size);
                assert!(sizes.len() > 1 && sizes.is_sorted_by(|one, next| one < next), "{axis:?}");
            }
            assert!(axis.sizes(Size::Small).last() < axis.sizes(Size::Full).last(), "{axis:?}");
        }
    }
}
