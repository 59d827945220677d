//! What grows, and through which sizes.

use crate::work::Size;

/// What grows while all else stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Machines with static networks in one infra-env.
    Hosts,
    /// Infra-envs in the inventory.
    InfraEnvs,
    /// Live images that images are made on.
    LiveImages,
    /// The length of one live image, in MiB.
    ImageLength,
    /// Connections that ask for ranges at once.
    Connections,
}

impl Axis {
    pub(crate) const ALL: [Self; 5] =
        [Self::Hosts, Self::InfraEnvs, Self::LiveImages, Self::ImageLength, Self::Connections];

    /// A short name, for `--only`.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Hosts => "hosts",
            Self::InfraEnvs => "infra-envs",
            Self::LiveImages => "live-images",
            Self::ImageLength => "image-length",
            Self::Connections => "connections",
        }
    }

    /// The head of its part of the page.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Hosts => "Hosts of an infra-env",
            Self::InfraEnvs => "Infra-envs in the inventory",
            Self::LiveImages => "Live images",
            Self::ImageLength => "Length of a live image",
            Self::Connections => "Connections",
        }
    }

    /// What sizes are numbers of.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Hosts => "hosts",
            Self::InfraEnvs => "infra-envs",
            Self::LiveImages => "live images",
            Self::ImageLength => "MiB",
            Self::Connections => "connections",
        }
    }

    /// From the smallest on.
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

/// What has exactly this key, or else what has it in its key; all without one.
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
    fn axes_are_chosen_by_their_key_or_a_part_of_it() {
        assert_eq!(chosen(None), Axis::ALL);
        assert_eq!(chosen(Some("hosts")), [Axis::Hosts]);
        assert_eq!(chosen(Some("image")), [Axis::LiveImages, Axis::ImageLength]);
        assert!(chosen(Some("nothing")).is_empty());
    }

    #[test]
    fn sizes_grow_and_small_ones_are_smaller() {
        for axis in Axis::ALL {
            for size in [Size::Full, Size::Small] {
                let sizes = axis.sizes(size);
                assert!(sizes.len() > 1 && sizes.is_sorted_by(|one, next| one < next), "{axis:?}");
            }
            assert!(axis.sizes(Size::Small).last() < axis.sizes(Size::Full).last(), "{axis:?}");
        }
    }
}
