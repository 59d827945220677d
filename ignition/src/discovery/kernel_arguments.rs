//! Changes to the kernel's command line, in the inventory's JSON form.
//!
//! ```json
//! [{"operation": "append", "value": "rd.net.timeout.carrier=60"}, {"operation": "delete", "value": "quiet"}]
//! ```
//!
//! They are no part of a config: images carry them in the boot loader's files, and network boots in their script.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::input::InputError;

const FIELD: &str = "kernel_arguments";

/// Most changes of one infra-env.
pub const MAX_CHANGES: usize = 1000;

/// What is done to the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Operation {
    /// The argument is put at the end.
    Append,
    /// `KEY=OLD=NEW`: where there is `KEY=OLD`, there is `KEY=NEW` then.
    Replace,
    /// The argument goes, wherever it is.
    Delete,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Append => "append",
            Self::Replace => "replace",
            Self::Delete => "delete",
        })
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Change {
    operation: Operation,
    value: String,
}

impl Change {
    /// Takes a change.
    ///
    /// # Errors
    ///
    /// When the value is empty, has a blank outside of double quotes, a quote without its other half, or a control
    /// character; and when that of a replacement is not of its form.
    pub fn new(operation: Operation, value: &str) -> Result<Self, InputError> {
        match problem(operation, value) {
            Some(reason) => Err(InputError::new(FIELD, value, reason)),
            None => Ok(Self { operation, value: value.to_owned() }),
        }
    }

    /// What is done.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// With which argument.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What a replacement looks for, and what it puts there.
    fn replacement(&self) -> Option<(String, String)> {
        let (key, rest) = self.value.split_once('=')?;
        let (old, new) = rest.split_once('=')?;
        Some((format!("{key}={old}"), format!("{key}={new}")))
    }
}

fn problem(operation: Operation, value: &str) -> Option<String> {
    if value.is_empty() {
        return Some("is empty".to_owned());
    }
    // The inventory's own pattern lets a line break pass between quotes, which would start a line of a boot script.
    if let Some(bad) = value.chars().find(|it| it.is_control()) {
        return Some(format!("has the character {bad:?}"));
    }
    let mut is_quoted = false;
    for it in value.chars() {
        match it {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => return Some("has a blank outside of double quotes".to_owned()),
            _ => {}
        }
    }
    if is_quoted {
        return Some("has a double quote without its other half".to_owned());
    }
    let is_replacement = value.split('=').count() == 3 && !value.starts_with('=');
    (operation == Operation::Replace && !is_replacement).then(|| "is not of the form KEY=OLD=NEW".to_owned())
}

/// All changes of an infra-env.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Raw>")]
pub struct KernelArguments(Vec<Change>);

/// A change that may be none.
#[derive(Deserialize)]
struct Raw {
    operation: Option<Operation>,
    value: String,
}

impl TryFrom<Vec<Raw>> for KernelArguments {
    type Error = InputError;

    fn try_from(raw: Vec<Raw>) -> Result<Self, InputError> {
        let change = |raw: Raw| Change::new(raw.operation.unwrap_or(Operation::Append), &raw.value);
        raw.into_iter().map(change).collect()
    }
}

impl KernelArguments {
    /// Reads the JSON form. An empty text, `null` and an empty list are no changes. A change without an operation
    /// appends; other keys are passed over.
    ///
    /// # Errors
    ///
    /// When the text is no list of changes, or one of them is not as [`Change::new`] wants it.
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
        let raw: Option<Vec<Raw>> =
            serde_json::from_str(json).map_err(|error| InputError::new(FIELD, json, error.to_string()))?;
        let raw = raw.unwrap_or_default();
        if raw.len() > MAX_CHANGES {
            return Err(InputError::new(FIELD, json, format!("has more than {MAX_CHANGES} changes")));
        }
        raw.try_into()
    }

    /// The changes.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.0
    }

    /// A command line after the changes: first what goes, then what comes, then what is replaced.
    #[must_use]
    pub fn apply(&self, arguments: &[&str]) -> Vec<String> {
        let of = |operation| self.0.iter().filter(move |change| change.operation == operation);
        let is_kept = |it: &&&str| !of(Operation::Delete).any(|change| change.value == **it);
        let mut result: Vec<String> = arguments.iter().filter(is_kept).map(|&it| it.to_owned()).collect();
        result.extend(of(Operation::Append).map(|change| change.value.clone()));
        for (old, new) in of(Operation::Replace).filter_map(Change::replacement) {
            for argument in result.iter_mut().filter(|argument| **argument == old) {
                argument.clone_from(&new);
            }
        }
        result
    }
}

impl FromIterator<Change> for KernelArguments {
    fn from_iter<I: IntoIterator<Item = Change>>(changes: I) -> Self {
        Self(changes.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_form_goes_both_ways() {
        let json = r#"[{"operation":"append","value":"isolcpus=1,2,10-20,100-2000:2/25"},{"operation":"delete","value":"p=\"a b\""}]"#;
        let changes = KernelArguments::parse(json).unwrap();
        assert_eq!(serde_json::to_string(&changes).unwrap(), json);
        assert_eq!(changes.changes()[1].value(), "p=\"a b\"");
        for empty in ["", " ", "null", "[]"] {
            assert_eq!(KernelArguments::parse(empty).unwrap(), KernelArguments::default());
        }
        let short = KernelArguments::parse(r#"[{"value":"quiet"}]"#).unwrap();
        assert_eq!(short.changes()[0].operation(), Operation::Append);
    }

    #[test]
    fn what_is_no_change_is_refused() {
        for (operation, value, reason) in [
            ("append", "", "is empty"),
            ("append", "a b", "a blank outside"),
            ("append", "a\tb", "'\\t'"),
            ("append", "a=\"b\nboot\"", "'\\n'"),
            ("append", "a=\"b", "other half"),
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
    fn changes_are_applied_in_the_installers_order() {
        let changes: KernelArguments = [
            (Operation::Replace, "b=1=2"),
            (Operation::Append, "b=1"),
            (Operation::Delete, "a"),
            (Operation::Append, "a"),
            (Operation::Delete, "absent"),
        ]
        .into_iter()
        .map(|(operation, value)| Change::new(operation, value).unwrap())
        .collect();
        assert_eq!(changes.apply(&["a", "b=1", "a=1", "a"]), ["b=2", "a=1", "b=2", "a"]);
    }
}
