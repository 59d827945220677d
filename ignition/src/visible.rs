//! Makes empty names and values visible in messages.

/// Returns `text`, or a visible placeholder if it is empty.
pub(crate) fn visible(text: &str) -> &str {
    if text.is_empty() { "\"\"" } else { text }
}
