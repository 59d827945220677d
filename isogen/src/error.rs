//! What can go wrong with an image, an archive or an edit.
//!
//! Each variant says which file, where in it, and which value was met. `Display` prints one level; the cause, where
//! there is one, is behind `source()`.

use std::io;

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an image could not be read, edited or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened.
    #[error("opening {file}")]
    Open {
        /// Name of the file.
        file: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The file could not be read.
    #[error("reading {file} at byte {offset}")]
    Read {
        /// Name of the file.
        file: String,
        /// Where the read began.
        offset: u64,
        /// The system's answer.
        source: io::Error,
    },
    /// The output could not be written.
    #[error("writing {file}")]
    Write {
        /// Name of the file.
        file: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The file is shorter than its volume descriptor says: most often an interrupted download.
    #[error(
        "{file}: ISO image is incomplete: the volume descriptor promises {expected} bytes, the file has {found}"
    )]
    Incomplete {
        /// Name of the file.
        file: String,
        /// Bytes that the volume descriptor promises.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// A structure breaks the rules of its format.
    #[error("{file}: byte {offset}: {what}: expected {expected}, found {found}")]
    Malformed {
        /// Name of the file.
        file: String,
        /// Where the structure stands.
        offset: u64,
        /// What was being read.
        what: &'static str,
        /// What the format asks for.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A path that an operation needs does not exist in the image.
    #[error("{file}: the image has no {path}")]
    NotFound {
        /// Name of the image.
        file: String,
        /// The path inside it.
        path: String,
    },
    /// The image is an ISO, but not a CoreOS one, or one without a place for an Ignition config.
    #[error("Unrecognized CoreOS ISO image: {file} has no {missing} (volume ID {volume_id:?})")]
    NotCoreOs {
        /// Name of the image.
        file: String,
        /// What a CoreOS image would have.
        missing: &'static str,
        /// Its volume identifier.
        volume_id: String,
    },
    /// A JSON description inside the image cannot be used.
    #[error("{file}: {path}: {reason}")]
    Description {
        /// Name of the image.
        file: String,
        /// The JSON file inside it.
        path: String,
        /// What is wrong with it, with the value.
        reason: String,
    },
    /// The initrd archives of an image or file cannot be decoded.
    #[error("{file}: decoding the initrd archive at byte {offset}")]
    Archive {
        /// Name of the file.
        file: String,
        /// Where the archives begin in it.
        offset: u64,
        /// What is wrong.
        source: crate::initrd::ArchiveError,
    },
    /// The image carries no kernel-argument areas.
    #[error("No karg embed areas found; old or corrupted CoreOS ISO image ({file}).")]
    NoKargs {
        /// Name of the image.
        file: String,
    },
    /// The kernel arguments of an image cannot be read, or an edit of them is refused.
    #[error("{file}: {reason}")]
    Kargs {
        /// Name of the image.
        file: String,
        /// What is wrong.
        reason: KargsError,
    },
    /// The packed archive does not fit into the area.
    #[error("Compressed initramfs is too large: {len} > {capacity} bytes of the Ignition area of {file}")]
    ArchiveTooLarge {
        /// Name of the image.
        file: String,
        /// Bytes of the packed archive.
        len: u64,
        /// Bytes of the area.
        capacity: u64,
    },
    /// The image has no description of its minimal form.
    #[error("This ISO image does not support extracting a minimal ISO ({file} has no coreos/miniso.dat).")]
    NoMinimal {
        /// Name of the image.
        file: String,
    },
    /// Unpacking the minimal ISO did not give what was packed.
    #[error("{file}: wrong final digest of the minimal ISO: expected {expected}, found {found}")]
    MinimalDigest {
        /// Name of the image.
        file: String,
        /// The digest in `miniso.dat`.
        expected: String,
        /// The digest of the unpacked bytes.
        found: String,
    },
    /// The image holds customisations where an untouched one is needed.
    #[error(
        "Cannot operate on ISO with embedded customizations ({what} of {file}). Reset it with `iso reset` and try again."
    )]
    Customized {
        /// Name of the image.
        file: String,
        /// What is not as published.
        what: &'static str,
    },
    /// The plan rearranges the image, so it cannot be written over it.
    #[error("{file}: the plan moves bytes of the image and cannot be written in place")]
    NotInPlace {
        /// Name of the image.
        file: String,
    },
    /// An edit of this file in place was begun and never finished.
    #[error(
        "{file}: an edit in place was interrupted before it was complete; `iso reset` makes the image whole again"
    )]
    Interrupted {
        /// Name of the image.
        file: String,
    },
    /// A structure uses a part of its format that is not read here.
    #[error("{file}: byte {offset}: {what}: {found} is not supported")]
    Unsupported {
        /// Name of the file.
        file: String,
        /// Where the structure stands.
        offset: u64,
        /// What was being read.
        what: &'static str,
        /// What stands there.
        found: String,
    },
    /// The root file system has no `nmstatectl`, as that of most systems but RHCOS.
    #[error("{file}: rootfs without nmstatectl: its {filesystem} has no {path}")]
    NoNmstatectl {
        /// Name of the root file system image.
        file: String,
        /// The kind of file system in it.
        filesystem: &'static str,
        /// The path that was looked for.
        path: String,
    },
    /// A value handed in by the caller cannot be used.
    #[error("{what} {value:?} is refused: {reason}")]
    Refused {
        /// The value.
        what: &'static str,
        /// Its value.
        value: String,
        /// Why not.
        reason: &'static str,
    },
}

impl Error {
    /// Tells whether this is a missing path, as opposed to a broken structure.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::NoNmstatectl { .. })
    }

    /// Returns the offset of bytes that are not available yet, if the storage answered [`WouldBlock`](io::ErrorKind::WouldBlock).
    #[must_use]
    pub fn would_block_at(&self) -> Option<u64> {
        match self {
            Self::Read { offset, source, .. } if source.kind() == io::ErrorKind::WouldBlock => Some(*offset),
            Self::Read { source, .. } => source.get_ref()?.downcast_ref::<Self>()?.would_block_at(),
            _ => None,
        }
    }
}

/// Why kernel arguments are refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum KargsError {
    /// The arguments do not fit.
    #[error("kargs too large for area: {len} vs {capacity}")]
    TooLarge {
        /// Bytes that they would take, with the end character.
        len: usize,
        /// Bytes of the area.
        capacity: usize,
    },
    /// A replacement is not of the form `KEY=OLD=NEW`.
    #[error("invalid replacement {value:?}: format should be: KEY=OLD=NEW")]
    Replacement {
        /// The value.
        value: String,
    },
    /// An argument holds a character that would end the boot loader's line.
    #[error("kernel argument {value:?} holds the control character {found:?} at byte {offset}")]
    Control {
        /// The argument.
        value: String,
        /// Where.
        offset: usize,
        /// Which one.
        found: char,
    },
    /// The areas of the image hold different arguments.
    #[error("kargs don't match at all offsets: {first:?} at byte {first_at}, {other:?} at byte {other_at}")]
    Mismatch {
        /// The arguments of the first area.
        first: String,
        /// Where it begins.
        first_at: u64,
        /// The arguments of another one.
        other: String,
        /// Where it begins.
        other_at: u64,
    },
    /// An area is not text.
    #[error("the kargs area at byte {offset} is not UTF-8 from its byte {bad} on")]
    NotText {
        /// Where the area begins.
        offset: u64,
        /// Where in it the text breaks.
        bad: usize,
    },
    /// The image does not say what its arguments were when it was made.
    #[error("the image does not record its default kargs, so they cannot be restored")]
    NoDefault,
}

/// An error and its causes on one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
