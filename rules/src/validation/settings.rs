//! Settings with which the operator of the service disables validations.

use std::collections::BTreeSet;

use super::definition::ValidationId;

/// The validations that the operator of the service has disabled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationSettings {
    /// The disabled host validations.
    pub disabled_host: DisabledValidations,
    /// The disabled cluster validations.
    pub disabled_cluster: DisabledValidations,
}

/// A set of disabled host or cluster validations. Requirements of operators cannot be disabled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DisabledValidations(BTreeSet<&'static str>);

impl DisabledValidations {
    /// Parses a comma-separated list of ids. An empty text disables nothing. Ids of
    /// [unimplemented](ValidationId::UNIMPLEMENTED) validations are accepted and have no effect.
    ///
    /// # Errors
    ///
    /// Returns an error if an item of the list is empty or an unknown id.
    pub fn parse<Id: ValidationId>(list: &str) -> Result<Self, DisabledListError> {
        if list.is_empty() {
            return Ok(Self::default());
        }
        let unimplemented = |item: &str| Id::UNIMPLEMENTED.iter().copied().find(|id| *id == item);
        let parse = |item: &str| match (item.is_empty(), Id::find(item)) {
            (true, _) => Err(DisabledListError::Empty { list: list.into() }),
            (false, Some(id)) => Ok(id.as_str()),
            (false, None) => {
                unimplemented(item).ok_or_else(|| DisabledListError::Unknown { id: item.into() })
            }
        };
        list.split(',').map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// Returns `true` if the validation is disabled.
    #[must_use]
    pub fn contains<Id: ValidationId>(&self, id: Id) -> bool {
        !id.is_of_operator() && self.0.contains(id.as_str())
    }
}

/// The error for an invalid list of disabled validations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DisabledListError {
    /// An item of the list is empty.
    #[error("empty validation id in {list:?}")]
    Empty {
        /// The whole list, for the message.
        list: Box<str>,
    },
    /// An item of the list is an unknown id.
    #[error("unknown validation id {id:?}")]
    Unknown {
        /// The unknown id.
        id: Box<str>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::cluster::ClusterValidationId;
    use crate::validation::host::HostValidationId;

    #[test]
    fn parses_comma_separated_lists() {
        let disabled = DisabledValidations::parse::<HostValidationId>("has-min-memory,connected").unwrap();
        let ids: Vec<_> = HostValidationId::ALL.iter().filter(|id| disabled.contains(**id)).collect();
        assert_eq!(ids, [&HostValidationId::Connected, &HostValidationId::HasMinMemory]);
        assert_eq!(DisabledValidations::parse::<HostValidationId>(""), Ok(DisabledValidations::default()));
        DisabledValidations::parse::<HostValidationId>("ntp-synced,odf-requirements-satisfied").unwrap();
        DisabledValidations::parse::<ClusterValidationId>("ntp-server-configured").unwrap();
    }

    #[test]
    fn rejects_empty_and_unknown_ids() {
        for (list, message) in [
            ("connected,", r#"empty validation id in "connected,""#),
            (",", r#"empty validation id in ",""#),
            ("connected,zzz", r#"unknown validation id "zzz""#),
            ("connected, has-inventory", r#"unknown validation id " has-inventory""#),
        ] {
            let error = DisabledValidations::parse::<HostValidationId>(list).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
        assert!(DisabledValidations::parse::<ClusterValidationId>("connected").is_err());
    }
}
