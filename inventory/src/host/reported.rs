//! Parses and serializes the reports of agents.
//!
//! Agents are not trusted. Their JSON is parsed into the types of [`assisted`]: unknown keys are ignored, the length of
//! lists is limited, and values of a wrong type are refused. The stored report is serialized from these types.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::json::to_json_text;

/// Returns an error if a text of a report contains a character that PostgreSQL cannot store.
pub(crate) fn check_text(what: &str, report: &str) -> Result<(), Error> {
    if has_nul(report) {
        return Err(Error::invalid(format!("{what}: a text must not contain a NUL character")));
    }
    Ok(())
}

/// Parses a report. `what` names the report in errors.
pub(crate) fn read<'a, T: Deserialize<'a>>(what: &str, report: &'a str) -> Result<T, Error> {
    check_text(what, report)?;
    serde_json::from_str(report).map_err(|error| Error::invalid(format!("{what}: {error}")))
}

/// Returns `true` if a string of the JSON contains a NUL. Valid JSON contains it only as an escape.
fn has_nul(json: &str) -> bool {
    let mut rest = json;
    while let Some((_, escape)) = rest.split_once('\\') {
        if escape.starts_with("u0000") {
            return true;
        }
        let mut after = escape.chars();
        after.next();
        rest = after.as_str();
    }
    false
}

/// Serializes a parsed report. `what` names the report in errors.
pub(crate) fn write<T: Serialize>(what: &str, report: &T) -> Result<String, Error> {
    to_json_text(&format!("the report {what}"), report)
}

#[cfg(test)]
mod tests {
    use assisted::reply::NtpReport;

    use super::*;

    #[test]
    fn rejects_strings_with_nul() {
        for (text, is_valid) in [
            (r#"{"ntp_sources": [{"source_name": "\u0000"}]}"#, false),
            (r#"{"ntp_sources": [{"source_name": "\\\u0000"}]}"#, false),
            (r#"{"\u0000": 1}"#, false),
            (r#"{"ntp_sources": [{"source_name": "\\u0000 \n\u0001"}]}"#, true),
        ] {
            assert_eq!(read::<NtpReport<'_>>("ntp", text).is_ok(), is_valid, "{text}");
        }
    }

    #[test]
    fn rejects_invalid_reports() {
        for text in [
            "",
            "[]",
            "null",
            "{",
            r#"{"ntp_sources": [null]}"#,
            r#"{"ntp_sources": [["a"]]}"#,
            r#"{"ntp_sources": {}}"#,
        ] {
            assert!(read::<NtpReport<'_>>("ntp", text).is_err(), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert!(read::<NtpReport<'_>>("ntp", &format!(r#"{{"x": {deep}"#)).is_err());
    }
}
