//! Texts of callers and documents in messages.

/// Returns a text for a message, in which an empty text is visible.
pub(crate) fn visible(text: &str) -> &str {
    if text.is_empty() { "\"\"" } else { text }
}
