//! Sets of the hosts of a cluster, as bit sets of positions in the cluster's host list.

/// Number of hosts in one word of a bit set.
const WORD_LEN: usize = 64;

/// A set of hosts. All sets of one cluster have the same capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostSet(Box<[u64]>);

impl HostSet {
    /// Returns an empty set for a cluster of `host_count` hosts.
    pub(super) fn empty(host_count: usize) -> Self {
        Self(vec![0; host_count.div_ceil(WORD_LEN)].into())
    }

    pub(super) fn insert(&mut self, host: usize) {
        if let Some(word) = self.0.get_mut(host / WORD_LEN) {
            *word |= bit(host);
        }
    }

    pub(super) fn remove(&mut self, host: usize) {
        if let Some(word) = self.0.get_mut(host / WORD_LEN) {
            *word &= !bit(host);
        }
    }

    pub(super) fn contains(&self, host: usize) -> bool {
        self.0.get(host / WORD_LEN).is_some_and(|word| word & bit(host) != 0)
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|word| usize::try_from(word.count_ones()).unwrap_or(WORD_LEN)).sum()
    }

    pub(super) fn union(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    pub(super) fn intersect(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= other;
        }
    }

    /// Returns the hosts in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(index, word)| {
            let bits = std::iter::successors(Some(*word), |word| Some(word & word.wrapping_sub(1)));
            let bits = bits.take_while(|word| *word != 0).map(u64::trailing_zeros);
            bits.filter_map(move |bit| Some(index * WORD_LEN + usize::try_from(bit).ok()?))
        })
    }
}

fn bit(host: usize) -> u64 {
    1 << (host % WORD_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_iterates_in_ascending_order() {
        let mut set = HostSet::empty(130);
        for host in [129, 0, 64, 63, 64] {
            set.insert(host);
        }
        set.remove(63);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 64, 129]);
        assert_eq!(set.len(), 3);
        assert!(set.contains(129) && !set.contains(63) && !set.contains(1000));
    }
}
