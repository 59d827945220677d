//! What can be wrong with an archive.

use std::io;

/// Why a run of initrd archives cannot be read or packed. Offsets count from the start of the encoded bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// Something stands where an archive should begin.
    #[error("byte {offset}: expected an archive (cpio, gzip, xz or zstd) or zeros, found byte {found:#04x}")]
    NotAnArchive {
        /// Where.
        offset: u64,
        /// What stands there.
        found: u8,
    },
    /// A compressed stream does not decode.
    #[error("byte {offset}: {encoding} stream does not decode")]
    Stream {
        /// Where the stream begins.
        offset: u64,
        /// The compression.
        encoding: &'static str,
        /// The decoder's answer.
        source: io::Error,
    },
    /// The underlying reader failed.
    #[error("reading at byte {offset}")]
    Read {
        /// Where.
        offset: u64,
        /// The system's answer.
        source: io::Error,
    },
    /// An archive breaks the cpio format.
    #[error("archive at byte {archive}, its byte {offset}: {what}: expected {expected}, found {found}")]
    Malformed {
        /// Where the archive, or the stream that holds it, begins.
        archive: u64,
        /// Where in the decoded archive.
        offset: u64,
        /// The field.
        what: &'static str,
        /// What the format asks for.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// An archive, or a compressed stream, stops in the middle.
    #[error("archive at byte {archive}: it ends early, after {offset} decoded bytes")]
    Truncated {
        /// Where the archive begins.
        archive: u64,
        /// How far it could be decoded.
        offset: u64,
    },
    /// A compressed stream goes on behind its archive.
    #[error(
        "archive at byte {archive}: found trailing garbage inside compressed archive, at its byte {offset}"
    )]
    TrailingGarbage {
        /// Where the stream begins.
        archive: u64,
        /// Where in the decoded bytes.
        offset: u64,
    },
    /// The archive asks for more than a reader should give.
    #[error("archive at byte {archive}, its byte {offset}: {what} passes the limit of {limit}")]
    Limit {
        /// Where the archive begins.
        archive: u64,
        /// Where in the decoded archive.
        offset: u64,
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// A member cannot be packed.
    #[error("member {name:?} cannot be packed: {reason}")]
    Member {
        /// The member's name.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// An encoder failed.
    #[error("packing the archive")]
    Pack {
        /// The encoder's answer.
        source: io::Error,
    },
}
