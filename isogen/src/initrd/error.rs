//! The errors of reading and packing archives.

use std::io;

use crate::compression::Compression;
use crate::visible::visible;

/// The result type of reading and packing archives.
pub(super) type Result<T, E = ArchiveError> = std::result::Result<T, E>;

/// Why a run of initrd archives cannot be read or packed. Offsets count from the start of the encoded bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// A byte where an archive should begin is neither zero nor the first byte of an archive.
    #[error("byte {offset}: expected an archive (cpio, gzip, xz or zstd) or zeros, found byte {found:#04x}")]
    NotAnArchive {
        /// Its offset.
        offset: u64,
        /// The byte.
        found: u8,
    },
    /// A compressed stream does not decode.
    #[error("byte {offset}: cannot decode {encoding} stream")]
    Stream {
        /// Offset of the stream.
        offset: u64,
        /// The compression.
        encoding: &'static str,
        /// The decoder's error.
        source: io::Error,
    },
    /// A stream has a compression that this build of the crate does not support.
    #[error(
        "byte {offset}: the archive is compressed with {compression}; this build has no support for {compression}"
    )]
    UnsupportedCompression {
        /// Offset of the stream.
        offset: u64,
        /// The compression, whose feature is missing.
        compression: Compression,
    },
    /// The underlying reader failed.
    #[error("reading at byte {offset}")]
    Read {
        /// Offset of the failed read.
        offset: u64,
        /// The system's error.
        source: io::Error,
    },
    /// An archive breaks the cpio format.
    #[error(
        "archive at byte {archive}, offset {offset}: {what}: expected {expected}, found {}",
        visible(found)
    )]
    Malformed {
        /// Offset of the archive, or of the stream that contains it.
        archive: u64,
        /// Offset in the decoded archive.
        offset: u64,
        /// The field.
        what: &'static str,
        /// The value that the format requires.
        expected: &'static str,
        /// The value that was found.
        found: String,
    },
    /// An archive or a compressed stream ends early.
    #[error("archive at byte {archive}: truncated after {offset} decoded bytes")]
    Truncated {
        /// Offset of the archive.
        archive: u64,
        /// Number of bytes that could be decoded.
        offset: u64,
    },
    /// A compressed stream has more data after its archive.
    #[error(
        "archive at byte {archive}: found trailing garbage inside compressed archive, at its byte {offset}"
    )]
    TrailingGarbage {
        /// Offset of the stream.
        archive: u64,
        /// Offset of that data in the decoded bytes.
        offset: u64,
    },
    /// The archives exceed one of the [`ArchiveLimits`](super::ArchiveLimits).
    #[error("archive at byte {archive}, offset {offset}: {what} exceeds the limit of {limit}")]
    Limit {
        /// Offset of the archive.
        archive: u64,
        /// Offset in the decoded archive.
        offset: u64,
        /// The quantity that is limited.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// A member cannot be packed.
    #[error("member {name:?} cannot be packed: {reason}")]
    Member {
        /// The member's name.
        name: String,
        /// Why it cannot be packed.
        reason: &'static str,
    },
    /// This build of the crate cannot pack with the compression.
    #[error("packing the archive with {compression}: this build has no support for {compression}")]
    UnsupportedEncoding {
        /// The compression, whose feature is missing.
        compression: Compression,
    },
    /// An encoder failed.
    #[error("packing the archive")]
    Pack {
        /// The encoder's error.
        source: io::Error,
    },
}
