//! Irregularities of a volume that do not prevent its use.

/// An irregularity of a volume that does not prevent its use.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct VolumeFinding {
    /// Offset in the image.
    pub offset: u64,
    /// The irregularity, in one sentence.
    pub message: String,
}
