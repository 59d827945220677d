//! The stored form of validation results: a JSON object with a version, and with the arguments of each outcome by id.

use serde::de::DeserializeOwned;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::definition::ValidationId as _;
use super::outcome::ValidationOutcome;
use super::results::ValidationResults;

/// The version of the stored form. New ids and new outcomes do not need a new version: see
/// [`ValidationResults::from_stored`].
const VERSION: u64 = 1;

/// The error for stored results that cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum StoredResultsError {
    /// The text is not JSON, or a member has an unexpected type.
    #[error("invalid stored validation results")]
    Json(#[from] serde_json::Error),
    /// Another version of the service stored the results in a different form.
    #[error("stored validation results have version {found}, version {VERSION} is expected")]
    Version {
        /// The version in the text.
        found: u64,
    },
}

/// Results, with the version of their stored form.
#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u64,
    #[serde(flatten)]
    results: T,
}

#[derive(Deserialize)]
struct VersionOnly {
    version: u64,
}

pub(super) fn write<T: Serialize>(results: &T) -> Result<String, StoredResultsError> {
    Ok(serde_json::to_string(&Versioned { version: VERSION, results })?)
}

pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, StoredResultsError> {
    let VersionOnly { version } = serde_json::from_str(text)?;
    if version != VERSION {
        return Err(StoredResultsError::Version { found: version });
    }
    let Versioned { results, .. } = serde_json::from_str(text)?;
    Ok(results)
}

impl<O: ValidationOutcome> ValidationResults<O> {
    /// Returns the stored form of the results.
    ///
    /// # Errors
    ///
    /// Returns an error if an argument of an outcome cannot be serialized as JSON.
    pub fn to_stored(&self) -> Result<String, StoredResultsError> {
        write(self)
    }

    /// Parses stored results. Validations and outcomes that only newer versions of the service have are omitted, as if
    /// they were not computed yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is malformed, or if another version of the service stored it in a different form.
    pub fn from_stored(text: &str) -> Result<Self, StoredResultsError> {
        read(text)
    }
}

#[derive(Serialize, Deserialize)]
struct StoredMembers {
    outcomes: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    disabled: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hidden: Vec<String>,
}

impl<O: ValidationOutcome> Serialize for ValidationResults<O> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hidden = self.hidden().iter().map(|id| id.as_str().to_owned()).collect();
        let mut members = StoredMembers { outcomes: Map::new(), disabled: Vec::new(), hidden };
        for outcome in self.outcomes() {
            let id = outcome.id().as_str().to_owned();
            match outcome.to_content().map_err(S::Error::custom)? {
                Some(content) => drop(members.outcomes.insert(id, content)),
                None => members.disabled.push(id),
            }
        }
        members.serialize(serializer)
    }
}

impl<'de, O: ValidationOutcome> Deserialize<'de> for ValidationResults<O> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = StoredMembers::deserialize(deserializer)?;
        let find = |id: &String| O::Id::find(id);
        let disabled = members.disabled.iter().filter_map(find).map(O::disabled);
        let computed = members.outcomes.into_iter().filter_map(|(id, content)| {
            // Omit outcomes that this version does not have.
            O::from_content(O::Id::find(&id)?, content).ok()
        });
        let outcomes: Vec<_> = computed.chain(disabled).collect();
        Ok(Self::from_parts(outcomes, members.hidden.iter().filter_map(find).collect()))
    }
}

#[cfg(test)]
mod tests;
