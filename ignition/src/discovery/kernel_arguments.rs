//! Changes to the kernel command line, in the JSON form of the inventory.
//!
//! ```json
//! [{"operation": "append", "value": "rd.net.timeout.carrier=60"}, {"operation": "delete", "value": "quiet"}]
//! ```
//!
//! The changes are not part of a config. They are applied to the boot loader configs of an image, or to the iPXE script
//! of a network boot.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::input::InputError;

const FIELD: &str = "kernel_arguments";

/// Maximum number of changes for one infra-env.
pub const MAX_CHANGES: usize = 1000;

/// The operation of a command line change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum KernelArgumentOperation {
    /// Appends the argument to the command line.
    Append,
    /// `KEY=OLD=NEW`: replaces each `KEY=OLD` with `KEY=NEW`.
    Replace,
    /// Removes all occurrences of the argument.
    Delete,
}

impl fmt::Display for KernelArgumentOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Append => "append",
            Self::Replace => "replace",
            Self::Delete => "delete",
        })
    }
}

/// A change to the command line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct KernelArgumentChange {
    operation: KernelArgumentOperation,
    value: String,
}

impl KernelArgumentChange {
    /// Creates a change.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is empty, or contains a blank outside of double quotes, an unmatched quote or a
    /// control character. Also returns an error if the value of a replacement is not `KEY=OLD=NEW`.
    pub fn new(operation: KernelArgumentOperation, value: &str) -> Result<Self, InputError> {
        match change_problem(operation, value) {
            Some(reason) => Err(InputError::new(FIELD, value, reason)),
            None => Ok(Self { operation, value: value.to_owned() }),
        }
    }

    /// Returns the operation.
    #[must_use]
    pub fn operation(&self) -> KernelArgumentOperation {
        self.operation
    }

    /// Returns the argument, or `KEY=OLD=NEW` for a replacement.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    fn replacement(&self) -> Option<(String, String)> {
        let (key, rest) = self.value.split_once('=')?;
        let (old, new) = rest.split_once('=')?;
        Some((format!("{key}={old}"), format!("{key}={new}")))
    }
}

fn change_problem(operation: KernelArgumentOperation, value: &str) -> Option<String> {
    if value.is_empty() {
        return Some("is empty".to_owned());
    }
    // The pattern in the inventory's API allows line breaks between quotes. They would start a new line in a boot
    // script.
    if let Some(bad) = value.chars().find(|it| it.is_control()) {
        return Some(format!("has the character {bad:?}"));
    }
    // After splitting at quotes, every second part was between quotes.
    if value.split('"').step_by(2).any(|unquoted| unquoted.contains(' ')) {
        return Some("has a blank outside of double quotes".to_owned());
    }
    if value.matches('"').count() % 2 == 1 {
        return Some("has an unbalanced double quote".to_owned());
    }
    let is_replacement = value.split('=').count() == 3 && !value.starts_with('=');
    (operation == KernelArgumentOperation::Replace && !is_replacement)
        .then(|| "is not of the form KEY=OLD=NEW".to_owned())
}

/// The kernel argument changes of an infra-env.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<RawChange>")]
pub struct KernelArguments(Vec<KernelArgumentChange>);

/// A change that has not been checked yet.
#[derive(Deserialize)]
struct RawChange {
    operation: Option<KernelArgumentOperation>,
    value: String,
}

impl TryFrom<Vec<RawChange>> for KernelArguments {
    type Error = InputError;

    fn try_from(raw: Vec<RawChange>) -> Result<Self, InputError> {
        let change = |raw: RawChange| {
            KernelArgumentChange::new(raw.operation.unwrap_or(KernelArgumentOperation::Append), &raw.value)
        };
        raw.into_iter().map(change).collect()
    }
}

impl KernelArguments {
    /// Parses the JSON form. An empty text, `null` and an empty list mean no changes. A change without an operation
    /// appends its argument. Unknown keys are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a list of changes, if there are more than [`MAX_CHANGES`] changes, or if
    /// [`KernelArgumentChange::new`] rejects a change.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::discovery::kernel_arguments::KernelArguments;
    ///
    /// let changes = KernelArguments::parse(
    ///     r#"[{"operation": "replace", "value": "console=tty0=tty1"}, {"operation": "append", "value": "quiet"}]"#,
    /// )?;
    /// assert_eq!(changes.apply(&["console=tty0", "rw"]), ["console=tty1", "rw", "quiet"]);
    /// let error = KernelArguments::parse(r#"[{"operation": "append", "value": "a b"}]"#).unwrap_err();
    /// assert_eq!(error.to_string(), r#"kernel_arguments "a b": has a blank outside of double quotes"#);
    /// # Ok::<(), ignition::discovery::InputError>(())
    /// ```
    pub fn parse(json: &str) -> Result<Self, InputError> {
        if json.trim().is_empty() {
            return Ok(Self::default());
        }
        let raw: Option<Vec<RawChange>> =
            serde_json::from_str(json).map_err(|error| InputError::new(FIELD, json, error.to_string()))?;
        let raw = raw.unwrap_or_default();
        if raw.len() > MAX_CHANGES {
            return Err(InputError::new(FIELD, json, format!("has more than {MAX_CHANGES} changes")));
        }
        raw.try_into()
    }

    /// Returns the changes.
    #[must_use]
    pub fn changes(&self) -> &[KernelArgumentChange] {
        &self.0
    }

    /// Applies the changes to a command line: first deletions, then additions, then replacements.
    #[must_use]
    pub fn apply(&self, arguments: &[&str]) -> Vec<String> {
        let of = |operation| self.0.iter().filter(move |change| change.operation == operation);
        let is_kept = |it: &&&str| !of(KernelArgumentOperation::Delete).any(|change| change.value == **it);
        let mut result: Vec<String> = arguments.iter().filter(is_kept).map(|&it| it.to_owned()).collect();
        result.extend(of(KernelArgumentOperation::Append).map(|change| change.value.clone()));
        for (old, new) in of(KernelArgumentOperation::Replace).filter_map(KernelArgumentChange::replacement) {
            for argument in result.iter_mut().filter(|argument| **argument == old) {
                argument.clone_from(&new);
            }
        }
        result
    }
}

impl FromIterator<KernelArgumentChange> for KernelArguments {
    fn from_iter<I: IntoIterator<Item = KernelArgumentChange>>(changes: I) -> Self {
        Self(changes.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_form_round_trips() {
        let json = r#"[{"operation":"append","value":"isolcpus=1,2,10-20,100-2000:2/25"},{"operation":"delete","value":"p=\"a b\""}]"#;
        let changes = KernelArguments::parse(json).unwrap();
        assert_eq!(serde_json::to_string(&changes).unwrap(), json);
        assert_eq!(changes.changes()[1].value(), "p=\"a b\"");
        for empty in ["", " ", "null", "[]"] {
            assert_eq!(KernelArguments::parse(empty).unwrap(), KernelArguments::default());
        }
        let short = KernelArguments::parse(r#"[{"value":"quiet"}]"#).unwrap();
        assert_eq!(short.changes()[0].operation(), KernelArgumentOperation::Append);
    }

    #[test]
    fn rejects_invalid_changes() {
        for (operation, value, reason) in [
            ("append", "", "is empty"),
            ("append", "a b", "a blank outside"),
            ("append", "a\tb", "'\\t'"),
            ("append", "a=\"b\nboot\"", "'\\n'"),
            ("append", "a=\"b", "unbalanced"),
            ("replace", "a=b", "KEY=OLD=NEW"),
            ("replace", "=b=c", "KEY=OLD=NEW"),
            ("replace", "a=b=c=d", "KEY=OLD=NEW"),
        ] {
            let json = serde_json::json!([{"operation": operation, "value": value}]).to_string();
            let error = KernelArguments::parse(&json).unwrap_err().to_string();
            assert!(error.starts_with("kernel_arguments ") && error.contains(reason), "{error}");
        }
        for bad in [
            "{",
            "{}",
            "[null]",
            "[1]",
            r#"[{"operation":"prepend","value":"a"}]"#,
            r#"[{"operation":"append"}]"#,
        ] {
            assert!(KernelArguments::parse(bad).is_err(), "{bad}");
        }
        let many = format!("[{}]", vec![r#"{"value":"a"}"#; MAX_CHANGES + 1].join(","));
        assert!(KernelArguments::parse(&many).unwrap_err().to_string().ends_with("more than 1000 changes"));
    }

    #[test]
    fn changes_are_applied_in_the_order_of_the_installer() {
        let changes: KernelArguments = [
            (KernelArgumentOperation::Replace, "b=1=2"),
            (KernelArgumentOperation::Append, "b=1"),
            (KernelArgumentOperation::Delete, "a"),
            (KernelArgumentOperation::Append, "a"),
            (KernelArgumentOperation::Delete, "absent"),
        ]
        .into_iter()
        .map(|(operation, value)| KernelArgumentChange::new(operation, value).unwrap())
        .collect();
        assert_eq!(changes.apply(&["a", "b=1", "a=1", "a"]), ["b=2", "a=1", "b=2", "a"]);
    }
}
