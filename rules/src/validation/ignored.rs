//! The lists of validations that a user ignores for a cluster.

use super::definition::ValidationId;

/// The list item that stands for all ignorable validations.
const ALL: &str = "all";

/// The error for a text that is not a JSON list of strings.
#[derive(Debug, thiserror::Error)]
#[error("invalid list of ignored validations: a JSON list of ids is expected")]
pub struct IgnoredListError(#[from] serde_json::Error);

/// The validations that the user ignores for a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredValidations<Id> {
    has_list: bool,
    has_all: bool,
    ids: Vec<Id>,
    unknown: Vec<Box<str>>,
}

impl<Id: ValidationId> IgnoredValidations<Id> {
    /// Returns a value that ignores no validations, for a host without a cluster or a cluster without a list.
    #[must_use]
    pub fn none() -> Self {
        Self { has_list: false, has_all: false, ids: Vec::new(), unknown: Vec::new() }
    }

    /// Parses a JSON list of ids. An empty text means that no list is set, which differs from an empty list: see
    /// [`has_list`](Self::has_list). Unknown ids are accepted, because other versions of the service may know them.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is neither empty nor a JSON list of strings.
    pub fn parse(text: &str) -> Result<Self, IgnoredListError> {
        if text.is_empty() {
            return Ok(Self::none());
        }
        let mut ignored = Self { has_list: true, ..Self::none() };
        for item in serde_json::from_str::<Vec<String>>(text)? {
            match Id::find(&item) {
                _ if item == ALL => ignored.has_all = true,
                Some(id) => ignored.ids.push(id),
                None => ignored.unknown.push(item.into()),
            }
        }
        Ok(ignored)
    }

    /// Returns `true` if a list is set, even an empty one. The service then ignores its own list of disabled
    /// validations for this cluster.
    #[must_use]
    pub fn has_list(&self) -> bool {
        self.has_list
    }

    /// Returns `true` if the list contains the validation and the validation can be ignored.
    #[must_use]
    pub fn contains(&self, id: Id) -> bool {
        id.definition().is_ignorable && (self.has_all || self.ids.contains(&id))
    }

    /// Returns the items of the list that this version does not know as ids.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.unknown.iter().map(AsRef::as_ref)
    }

    /// Returns the ids that cannot be ignored. The API refuses the list because of them, unless the list contains
    /// `all`.
    pub fn refused(&self) -> impl Iterator<Item = Id> {
        let ids = self.ids.iter().copied().filter(|id| !id.definition().is_ignorable);
        ids.filter(|_| !self.has_all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::HostValidationId;
    use crate::validation::HostValidationId::{Connected, HasInventory, HasMinMemory, HostnameValid};

    type Ignored = IgnoredValidations<HostValidationId>;

    fn contained(text: &str) -> Vec<HostValidationId> {
        let ignored = Ignored::parse(text).unwrap();
        HostValidationId::ALL.iter().copied().filter(|id| ignored.contains(*id)).collect()
    }

    #[test]
    fn list_contains_its_ids() {
        assert_eq!(contained(""), []);
        assert_eq!(contained("[]"), []);
        assert_eq!(contained(r#"["has-min-memory"]"#), [HasMinMemory]);
    }

    #[test]
    fn empty_list_differs_from_no_list() {
        assert!(!Ignored::parse("").unwrap().has_list());
        assert!(Ignored::parse("[]").unwrap().has_list());
    }

    #[test]
    fn all_excludes_non_ignorable_ids() {
        let ids = contained(r#"["all","connected"]"#);
        assert!(ids.contains(&HasMinMemory));
        let never = [
            Connected,
            HasInventory,
            HostnameValid,
            HostValidationId::InventoryNotFullyTruncated,
            HostValidationId::MachineCidrDefined,
            HostValidationId::HostnameUnique,
        ];
        for id in never {
            assert!(!ids.contains(&id), "{id}");
        }
        assert_eq!(ids.len(), HostValidationId::ALL.len() - never.len());
    }

    #[test]
    fn non_ignorable_ids_are_refused_unless_all_is_listed() {
        let refused = |text: &str| Ignored::parse(text).unwrap().refused().collect::<Vec<_>>();
        assert_eq!(refused(r#"["connected","has-min-memory"]"#), [Connected]);
        assert_eq!(refused(r#"["connected","all"]"#), []);
    }

    #[test]
    fn unknown_ids_are_listed() {
        let ignored = Ignored::parse(r#"["zzz","connected"]"#).unwrap();
        assert_eq!(ignored.unknown().collect::<Vec<_>>(), ["zzz"]);
    }

    #[test]
    fn rejects_malformed_lists() {
        for text in ["x", "{}", "null", "[1]", r#""all""#, " "] {
            assert!(Ignored::parse(text).is_err(), "{text:?}");
        }
    }
}
