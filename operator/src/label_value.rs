//! Converts text, such as a product name, to a Kubernetes label value.

/// Maximum length of a label value in Kubernetes.
pub const MAX_LABEL_VALUE: usize = 63;

/// Converts `text` to a legal label value. Returns `None` if that is not possible.
///
/// Illegal characters are removed (`Red Hat` becomes `RedHat`). A value that is too long is truncated, so that it ends
/// with a letter or digit. If the result still starts or ends with another character, the function returns `None`, and
/// the caller leaves the label unchanged.
pub fn label_value(text: &str) -> Option<String> {
    let mut value: String = text.chars().filter(|&c| is_label_character(c)).collect();
    if value.len() > MAX_LABEL_VALUE {
        value.truncate(MAX_LABEL_VALUE);
        let end = value.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).len();
        value.truncate(end);
    }
    is_label_value(&value).then_some(value)
}

/// Returns `true` if `value` is a legal label value. The empty text is legal.
pub fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_label_name(value)
}

/// Returns `true` if `name` is legal as the part of a label key after the prefix.
pub fn is_label_name(name: &str) -> bool {
    name.len() <= MAX_LABEL_VALUE && has_label_shape(name)
}

/// Returns `true` if `text` is not empty and contains only legal characters of a label, at any length.
pub fn has_label_shape(text: &str) -> bool {
    text.chars().all(is_label_character)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}

fn is_label_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn value_keeps_only_label_characters() {
        for (text, value) in [
            ("Red Hat", Some("RedHat")),
            ("PowerEdge R650 (SKU=0A; Model)", Some("PowerEdgeR650SKU0AModel")),
            ("", Some("")),
            ("å∂", Some("")),
            ("x86_64", Some("x86_64")),
            ("-a", None),
            ("a.", None),
            ("Dell Inc.", None),
            ("...", None),
        ] {
            assert_eq!(label_value(text).as_deref(), value, "{text:?}");
        }
    }

    #[test]
    fn long_value_is_truncated_to_a_legal_value() {
        assert_eq!(label_value(&"a".repeat(64)), Some("a".repeat(63)));
        assert_eq!(label_value(&format!("{}--b", "a".repeat(61))), Some("a".repeat(61)));
        assert_eq!(label_value(&format!("{}.", "a".repeat(62))), None, "63 characters are not cut");
    }

    proptest! {
        #[test]
        fn value_is_legal_and_stable(text in "\\PC{0,80}|[-A-Za-z0-9_. ]{0,90}") {
            if let Some(value) = label_value(&text) {
                prop_assert!(is_label_value(&value));
                prop_assert_eq!(label_value(&value), Some(value));
            }
        }

        #[test]
        fn legal_value_is_unchanged(value in "([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?") {
            prop_assert_eq!(label_value(&value), Some(value));
        }
    }
}
