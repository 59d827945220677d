//! Remedies: the actions that a user can take for validations that a service reports.
//!
//! The service may be another product or another version, so only the id, the status and the message of a validation
//! are available.

use assisted::host::ValidationStatus;

use super::cluster::ClusterOutcome;
use super::definition::ValidationId;
use super::host::HostOutcome;
use super::outcome::ValidationOutcome;

/// Returns the remedy for a host validation. If several outcomes have the same status, the most similar message selects
/// the remedy. Returns `None` if the validation is unknown or needs no action.
///
/// # Examples
///
/// ```
/// use assisted::host::ValidationStatus;
/// use rules::validation::remedy_of_host;
///
/// let remedy = remedy_of_host("hostname-valid", ValidationStatus::Failure, "The host name localhost is forbidden");
/// assert!(remedy.is_some_and(|remedy| remedy.starts_with("Set another name of the host")));
/// ```
#[must_use]
pub fn remedy_of_host(id: &str, status: ValidationStatus, message: &str) -> Option<&'static str> {
    remedy::<HostOutcome>(id, status, message)
}

/// Returns the remedy for a cluster validation. See [`remedy_of_host`].
#[must_use]
pub fn remedy_of_cluster(id: &str, status: ValidationStatus, message: &str) -> Option<&'static str> {
    remedy::<ClusterOutcome>(id, status, message)
}

/// Returns the remedy of the sample with the most similar message. If several are equally similar, returns the remedy
/// of the first.
fn remedy<O: ValidationOutcome>(id: &str, status: ValidationStatus, message: &str) -> Option<&'static str> {
    let samples = O::samples(O::Id::find(id)?);
    let descriptions = samples.iter().map(O::describe).filter(|it| it.status.shown() == Some(status));
    let mut with_lengths: Vec<_> =
        descriptions.map(|it| (common_len(&it.message, message), it.remedy)).collect();
    // A stable sort keeps the first of several equally similar messages in front.
    with_lengths.sort_by_key(|(len, _)| std::cmp::Reverse(*len));
    with_lengths.into_iter().next()?.1
}

/// Returns the length of the common prefix in characters. Numbers and names usually follow later in a message.
fn common_len(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::ClusterValidationId;
    use crate::validation::HostValidationId;

    #[test]
    fn every_sample_message_selects_its_remedy() {
        for id in HostValidationId::ALL {
            for sample in HostOutcome::samples(*id) {
                let description = sample.describe();
                let Some(status) = description.status.shown() else { continue };
                let remedy = remedy_of_host(id.as_str(), status, &description.message);
                assert_eq!(remedy, description.remedy, "{id}: {}", description.message);
            }
        }
        for id in ClusterValidationId::ALL {
            for sample in ClusterOutcome::samples(*id) {
                let description = sample.describe();
                let Some(status) = description.status.shown() else { continue };
                let remedy = remedy_of_cluster(id.as_str(), status, &description.message);
                assert_eq!(remedy, description.remedy, "{id}: {}", description.message);
            }
        }
    }

    #[test]
    fn message_with_different_numbers_selects_the_same_remedy() {
        let remedy = |message| remedy_of_cluster("network-prefix-valid", ValidationStatus::Failure, message);
        let too_long =
            "Host prefix, now 30, must be less than or equal to 25 to allow at least 128 addresses";
        assert!(remedy(too_long).is_some_and(|remedy| remedy.starts_with("Set a smaller `host_prefix`")));
        let few =
            "Cluster network CIDR prefix 24 does not contain enough addresses for 9 hosts each one with 26";
        assert!(remedy(few).is_some_and(|remedy| remedy.starts_with("Set a larger network")));
    }

    #[test]
    fn unknown_message_selects_the_first_remedy_of_its_status() {
        let remedy = remedy_of_host("hostname-valid", ValidationStatus::Failure, "");
        assert!(remedy.is_some_and(|remedy| remedy.starts_with("Wait for the inventory report")));
    }

    #[test]
    fn unknown_validation_and_success_have_no_remedy() {
        assert_eq!(remedy_of_host("odf-requirements-satisfied", ValidationStatus::Failure, ""), None);
        assert_eq!(remedy_of_cluster("has-min-memory", ValidationStatus::Failure, ""), None);
        assert_eq!(
            remedy_of_host("has-min-memory", ValidationStatus::Success, "Sufficient minimum RAM"),
            None
        );
        assert_eq!(remedy_of_host("has-min-memory", ValidationStatus::Disabled, ""), None);
    }
}
