//! Texts of callers and images in errors.

/// Returns a text for an error, in which an empty text is visible.
pub(crate) fn visible(text: &str) -> &str {
    if text.is_empty() { "\"\"" } else { text }
}
