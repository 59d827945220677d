//! The error type of reading and packing archives.

use std::io;

use crate::compression::Compression;
use crate::visible::visible;

/// The result type of reading and packing archives.
pub(super) type Result<T, E = ArchiveError> = std::result::Result<T, E>;

/// The reason why initrd archives cannot be read or packed. Offsets count from the start of the encoded bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The byte at the start of an archive is neither zero nor the first byte of a known archive format.
    #[error("byte {offset}: expected an archive (cpio, gzip, xz or zstd) or zeros, found byte {found:#04x}")]
    NotAnArchive {
        /// Offset of the byte.
        offset: u64,
        /// Value of the byte.
        found: u8,
    },
    /// A compressed stream cannot be decoded.
    #[error("byte {offset}: cannot decode {encoding} stream")]
    Stream {
        /// Offset of the stream.
        offset: u64,
        /// Name of the compression.
        encoding: &'static str,
        /// The error of the decoder.
        source: io::Error,
    },
    /// A stream uses a compression that this build of the crate does not support.
    #[error(
        "byte {offset}: the archive is compressed with {compression}; this build has no support for {compression}"
    )]
    UnsupportedCompression {
        /// Offset of the stream.
        offset: u64,
        /// The compression. Its Cargo feature is turned off.
        compression: Compression,
    },
    /// The input reader failed.
    #[error("reading at byte {offset}")]
    Read {
        /// Offset of the failed read.
        offset: u64,
        /// The error of the input reader.
        source: io::Error,
    },
    /// An archive violates the cpio format.
    #[error(
        "archive at byte {archive}, offset {offset}: {what}: expected {expected}, found {}",
        visible(found)
    )]
    Malformed {
        /// Offset of the archive, or of the stream that contains it.
        archive: u64,
        /// Offset in the decoded archive.
        offset: u64,
        /// The malformed field.
        what: &'static str,
        /// The value that the format requires.
        expected: &'static str,
        /// The actual value.
        found: String,
    },
    /// An archive or a compressed stream ends early.
    #[error("archive at byte {archive}: truncated after {offset} decoded bytes")]
    Truncated {
        /// Offset of the archive.
        archive: u64,
        /// Number of decoded bytes.
        offset: u64,
    },
    /// A compressed stream contains more data after its archive.
    #[error(
        "archive at byte {archive}: found trailing garbage inside compressed archive, at its byte {offset}"
    )]
    TrailingGarbage {
        /// Offset of the stream.
        archive: u64,
        /// Offset in the decoded bytes where the additional data begins.
        offset: u64,
    },
    /// The archives exceed one of the [`ArchiveLimits`](super::ArchiveLimits).
    #[error("archive at byte {archive}, offset {offset}: {what} exceeds the limit of {limit}")]
    Limit {
        /// Offset of the archive.
        archive: u64,
        /// Offset in the decoded archive.
        offset: u64,
        /// The limited quantity.
        what: &'static str,
        /// The maximum of that quantity.
        limit: u64,
    },
    /// A member cannot be packed.
    #[error("member {name:?} cannot be packed: {reason}")]
    Member {
        /// Name of the member.
        name: String,
        /// The reason why it cannot be packed.
        reason: &'static str,
    },
    /// This build of the crate cannot pack archives with the compression.
    #[error("packing the archive with {compression}: this build has no support for {compression}")]
    UnsupportedEncoding {
        /// The compression. Its Cargo feature is turned off.
        compression: Compression,
    },
    /// An encoder failed.
    #[error("packing the archive")]
    Pack {
        /// The error of the encoder.
        source: io::Error,
    },
}
