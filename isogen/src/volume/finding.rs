//! Oddities of a volume that do not stop a reader.

/// An oddity of a volume that does not stop a reader.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Byte offset in the image.
    pub offset: u64,
    /// The oddity, in one sentence.
    pub message: String,
}
