//! Resolves YAML scalars to values, by the rules of serde_yaml 0.9, which `nmstatectl` on the hosts uses.
//!
//! The types are the types of YAML 1.2's core schema, plus `0b` for binary numbers. So `yes`, `on`, `010` and dates are
//! strings.

use serde_json::{Number, Value};

use super::quoted;

/// The prefix of the tags for YAML's own types. The short form of the prefix is `!!`.
const CORE_TAG_PREFIX: &str = "tag:yaml.org,2002:";

/// Returns the value of a scalar, or the problem as an error.
pub(super) fn resolve(text: String, tag: Option<&str>, is_plain: bool) -> Result<Value, String> {
    check_tag(tag)?;
    let fits =
        |value: Option<Value>, kind: &str| value.ok_or_else(|| format!("{} is not {kind}", quoted(&text)));
    match tag.and_then(|tag| tag.strip_prefix(CORE_TAG_PREFIX)) {
        Some("bool") => fits(parse_boolean(&text), "a boolean"),
        Some("null") => fits(parse_null(&text), "null"),
        Some("int") => fits(parse_integer(&text)?, "an integer"),
        Some("float") => fits(parse_float(&text)?, "a float"),
        None if tag.is_none() && is_plain => Ok(resolve_plain(&text)?.unwrap_or(Value::String(text))),
        _ => Ok(Value::String(text)),
    }
}

/// Rejects application-specific tags. nmstate and Kubernetes do not define any.
pub(super) fn check_tag(tag: Option<&str>) -> Result<(), String> {
    match tag.filter(|tag| tag.starts_with('!')) {
        Some(tag) => Err(format!("unknown tag {}", quoted(tag))),
        None => Ok(()),
    }
}

/// Returns the value of a scalar without quotes and tag, or `None` if the scalar is a string.
fn resolve_plain(text: &str) -> Result<Option<Value>, String> {
    if text.is_empty() {
        return Ok(Some(Value::Null));
    }
    if let Some(value) = parse_null(text).or_else(|| parse_boolean(text)) {
        return Ok(Some(value));
    }
    match parse_integer(text)? {
        Some(value) => Ok(Some(value)),
        None if has_leading_zero(text) => Ok(None),
        None => parse_float(text),
    }
}

fn parse_null(text: &str) -> Option<Value> {
    matches!(text, "null" | "Null" | "NULL" | "~").then_some(Value::Null)
}

fn parse_boolean(text: &str) -> Option<Value> {
    match text {
        "true" | "True" | "TRUE" => Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => Some(Value::Bool(false)),
        _ => None,
    }
}

fn parse_integer(text: &str) -> Result<Option<Value>, String> {
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefixed = [("0x", 16), ("0o", 8), ("0b", 2)]
        .into_iter()
        .find_map(|(prefix, radix)| Some((unsigned.strip_prefix(prefix)?, radix)));
    let (digits, radix) = prefixed.unwrap_or((unsigned, 10));
    if digits.starts_with(['+', '-']) || prefixed.is_none() && has_leading_zero(text) {
        return Ok(None);
    }
    let Ok(number) = u128::from_str_radix(digits, radix) else { return Ok(None) };
    let fitting = if is_negative {
        let Some(number) = 0_i128.checked_sub_unsigned(number) else { return Ok(None) };
        i64::try_from(number).map(Value::from)
    } else {
        u64::try_from(number).map(Value::from)
    };
    fitting
        .map(Some)
        .map_err(|_| format!("the number {text} does not fit into 64 bits; quote it if it is meant as text"))
}

/// Infinities and NaN are errors, because JSON cannot express them.
fn parse_float(text: &str) -> Result<Option<Value>, String> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let special =
        [".inf", ".Inf", ".INF"].into_iter().any(|it| digits == it || text.strip_prefix('-') == Some(it));
    if special || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(format!("{text} is not a finite number; quote it if it is meant as text"));
    }
    if digits.len() < text.len() && digits.starts_with(['+', '-']) {
        return Ok(None);
    }
    Ok(digits.parse().ok().and_then(Number::from_f64).map(Value::Number))
}

/// Returns `true` if the text consists of digits with a leading zero. Such a text is a string in YAML 1.2, not an octal
/// number.
fn has_leading_zero(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the result of serde_yaml, which also accepts numbers that JSON cannot express.
    fn resolve_with_serde_yaml(text: &str) -> Option<Value> {
        let value: serde_yaml_ng::Value = serde_yaml_ng::from_str(text).ok()?;
        if value.as_f64().is_some_and(|number| !number.is_finite()) {
            return None;
        }
        serde_json::to_value(value).ok()
    }

    fn resolve_plain(text: &str) -> Option<Value> {
        resolve(text.to_owned(), None, true).ok()
    }

    #[test]
    fn plain_scalars_resolve_as_in_serde_yaml() {
        for text in [
            "",
            "~",
            "null",
            "Null",
            "nUll",
            "true",
            "True",
            "tRue",
            "yes",
            "No",
            "on",
            "off",
            "y",
            "0",
            "-0",
            "+0",
            "00",
            "010",
            "-01",
            "+07",
            "08",
            "0o17",
            "0O17",
            "-0o17",
            "+0o17",
            "0x1f",
            "-0x1F",
            "0x",
            "0x-1",
            "0x+1",
            "-0x-1",
            "0b101",
            "0b2",
            "+1",
            "++1",
            "+-1",
            "--1",
            "1_000",
            "18446744073709551615",
            "-9223372036854775808",
            "18446744073709551616",
            "-9223372036854775809",
            "340282366920938463463374607431768211456",
            "1.0",
            "1.",
            ".5",
            "-.5",
            "+.5",
            "1e3",
            "1E-3",
            "1e400",
            "-1e400",
            "00.5",
            "01e1",
            "0.10",
            ".inf",
            "-.INF",
            "+.Inf",
            ".nan",
            "-.nan",
            "inf",
            "nan",
            "infinity",
            "2001-12-14",
            "12:30:45",
            "192.0.2.1",
            "52:54:00:aa:bb:01",
            "2001:db8::1",
        ] {
            assert_eq!(resolve_plain(text), resolve_with_serde_yaml(text), "{text:?}");
        }
    }

    #[test]
    fn tag_determines_the_type() {
        let tagged = |tag: &str, text: &str| {
            resolve(text.to_owned(), Some(&format!("{CORE_TAG_PREFIX}{tag}")), true).ok()
        };
        assert_eq!(tagged("str", "7"), Some("7".into()));
        assert_eq!(tagged("int", "0x10"), Some(16.into()));
        assert_eq!(tagged("int", "x"), None);
        assert_eq!(tagged("float", "7"), Some(7.0.into()));
        assert_eq!(tagged("bool", "TRUE"), Some(true.into()));
        assert_eq!(tagged("null", "~"), Some(Value::Null));
        assert_eq!(tagged("binary", "YQ=="), Some("YQ==".into()));
        assert!(resolve("a".to_owned(), Some("!secret"), true).unwrap_err().contains("\"!secret\""));
        assert_eq!(resolve("7".to_owned(), None, false).ok(), Some("7".into()));
    }

    proptest! {
        #[test]
        fn numbers_resolve_as_in_serde_yaml(text in "[-+]{0,2}(0[xob])?[-+]?[0-9a-f_]{0,22}(\\.[0-9]{0,3})?([eE][-+]?[0-9]{1,3})?") {
            // A single dash is a list item, and three dashes begin a document.
            prop_assume!(!["", "-", "---"].contains(&text.as_str()));
            prop_assert_eq!(resolve_plain(&text), resolve_with_serde_yaml(&text));
        }
    }
}
