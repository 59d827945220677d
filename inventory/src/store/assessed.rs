//! The state of the records that a cluster's assessment is based on, as a few numbers that the database can compare.
//!
//! An assessment stores the generation of its cluster, and the number and the generations of the cluster's hosts. If
//! they differ from the current ones, the cluster must be assessed again. The generations of all hosts are stored as
//! one sum, which changes whenever a host changes.

use super::Columns;

/// Each generation is reduced modulo this prime, so that the sum over all hosts fits into 64 bits. The first generation
/// of a record is a time in microseconds.
const MODULUS: i64 = 1_000_000_007;

/// The state of a cluster and its hosts at the time of an assessment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssessedState {
    /// The generation of the cluster's record.
    pub cluster: i64,
    /// The number of the cluster's hosts, without deleted hosts.
    pub hosts: i64,
    /// The [sum](generation_sum) of the hosts' generations.
    pub generations: i64,
}

impl AssessedState {
    /// Returns the state of a cluster from its generation and the generations of its hosts. The caller must leave out
    /// deleted hosts.
    #[must_use]
    pub fn new(cluster: i64, hosts: &[i64]) -> Self {
        // Never saturates: that many hosts do not fit into memory.
        let count = i64::try_from(hosts.len()).unwrap_or(i64::MAX);
        Self { cluster, hosts: count, generations: generation_sum(hosts) }
    }

    /// Returns the columns of an assessment with this state.
    #[must_use]
    pub fn columns(self) -> Columns {
        Columns {
            seen_hosts: Some(self.hosts),
            seen_generations: Some(self.generations),
            seen_cluster: Some(self.cluster),
            ..Columns::default()
        }
    }
}

/// Returns the sum of the generations, each reduced modulo a prime. The database computes the same sum.
#[must_use]
pub fn generation_sum(generations: &[i64]) -> i64 {
    // Nine billion hosts would be necessary to overflow the sum.
    generations.iter().map(|generation| generation % MODULUS).fold(0, i64::saturating_add)
}

/// Returns the SQL expression for the [sum](generation_sum) over a column. The sum is 0 if there are no rows.
pub(super) fn sql_generation_sum(column: &str) -> String {
    format!("CAST(COALESCE(SUM({column} % {MODULUS}), 0) AS BIGINT)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_changes_with_each_generation_and_does_not_overflow() {
        assert_eq!(generation_sum(&[]), 0);
        let time = 1_764_000_000_000_000;
        assert_eq!(generation_sum(&[time + 1, 3]), generation_sum(&[time, 3]) + 1);
        assert_eq!(generation_sum(&[MODULUS - 1, MODULUS, MODULUS + 1]), MODULUS);
        assert_eq!(generation_sum(&[i64::MAX; 1000]), 1000 * (i64::MAX % MODULUS));
    }
}
