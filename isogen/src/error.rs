//! The error type of this crate.
//!
//! [`Malformed`](Error::Malformed) and similar variants report a damaged image, [`InvalidEdit`](Error::InvalidEdit)
//! reports a mistake of the caller, and [`Internal`](Error::Internal) reports a bug in this crate. The variants name the
//! position of the problem and the actual value. `Display` prints one level; `source()` returns the cause.

use std::io;
use std::num::TryFromIntError;

use crate::compression::Compression;
use crate::visible::visible;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an image could not be read, edited or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened.
    #[error("opening {}", visible(file))]
    Open {
        /// Name of the file.
        file: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file could not be read.
    #[error("reading {} at byte {offset}", visible(file))]
    Read {
        /// Name of the file.
        file: String,
        /// Offset of the read.
        offset: u64,
        /// The error of the storage.
        source: io::Error,
    },
    /// The output could not be written.
    #[error("writing {}", visible(file))]
    Write {
        /// Name of the file.
        file: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is shorter than its volume descriptor states. The usual cause is an interrupted download.
    #[error(
        "{}: ISO image is incomplete: the volume descriptor declares {expected} bytes, the file has {found}; \
         download it again",
        visible(file)
    )]
    Incomplete {
        /// Name of the file.
        file: String,
        /// Length of the volume in bytes, according to the volume descriptor.
        expected: u64,
        /// Length of the file in bytes.
        found: u64,
    },
    /// The file is not an ISO image.
    #[error(
        "{}: not an ISO 9660 image: expected a volume descriptor (CD001) at byte {offset}, found {}",
        visible(file),
        visible(found)
    )]
    NotIso {
        /// Name of the file.
        file: String,
        /// Offset of the identifier of the first volume descriptor.
        offset: u64,
        /// The bytes at that offset, or the end of the file.
        found: String,
    },
    /// A structure violates its format.
    #[error("{}: byte {offset}: {what}: expected {expected}, found {}", visible(file), visible(found))]
    Malformed {
        /// Name of the file.
        file: String,
        /// Offset of the structure.
        offset: u64,
        /// The structure or field.
        what: &'static str,
        /// The value that the format requires.
        expected: String,
        /// The actual value.
        found: String,
    },
    /// A path that an operation needs does not exist in the image.
    #[error("{}: the image has no {}", visible(file), visible(path))]
    NotFound {
        /// Name of the image.
        file: String,
        /// The path in the image.
        path: String,
    },
    /// The file is an ISO image, but not a CoreOS one, or it has no embed area for an Ignition config.
    #[error("Unrecognized CoreOS ISO image: {} has no {missing} (volume ID {volume_id:?})", visible(file))]
    NotCoreOs {
        /// Name of the image.
        file: String,
        /// The part of a CoreOS image that it does not have.
        missing: &'static str,
        /// The volume identifier.
        volume_id: String,
    },
    /// A JSON description inside the image cannot be used.
    #[error("{}: {}: {reason}", visible(file), visible(path))]
    Description {
        /// Name of the image.
        file: String,
        /// The JSON file in the image.
        path: String,
        /// The problem with the description, including the value.
        reason: String,
    },
    /// The initrd archives of an image or file cannot be decoded.
    #[error("{}: decoding the initrd archive at byte {offset}", visible(file))]
    Archive {
        /// Name of the file.
        file: String,
        /// Offset of the archives in the file.
        offset: u64,
        /// The error of the decoder.
        source: crate::initrd::ArchiveError,
    },
    /// The image has no embed areas for kernel arguments.
    #[error("No karg embed areas found; old or corrupted CoreOS ISO image ({}).", visible(file))]
    NoKargs {
        /// Name of the image.
        file: String,
    },
    /// The kernel arguments of an image cannot be read, or an edit of them is not valid.
    #[error("{}: {reason}", visible(file))]
    Kargs {
        /// Name of the image.
        file: String,
        /// The problem with the arguments.
        reason: KargsError,
    },
    /// The packed archive does not fit into the Ignition area.
    #[error(
        "Compressed initramfs is too large: {len} > {capacity} bytes of the Ignition area of {}",
        visible(file)
    )]
    ArchiveTooLarge {
        /// Name of the image.
        file: String,
        /// Length of the packed archive in bytes.
        len: u64,
        /// Length of the area in bytes.
        capacity: u64,
    },
    /// The image has no description of its minimal ISO.
    #[error(
        "This ISO image does not support extracting a minimal ISO ({} has no coreos/miniso.dat).",
        visible(file)
    )]
    NoMinimal {
        /// Name of the image.
        file: String,
    },
    /// The digest of the unpacked minimal ISO differs from the recorded digest.
    #[error(
        "{}: wrong final digest of the minimal ISO: expected {expected}, found {}",
        visible(file),
        visible(found)
    )]
    MinimalDigest {
        /// Name of the image.
        file: String,
        /// The digest in `miniso.dat`.
        expected: String,
        /// The digest of the unpacked bytes.
        found: String,
    },
    /// The operation needs an unmodified image, but the image is customised.
    #[error("Cannot operate on ISO with embedded customizations ({what} of {}).", visible(file))]
    Customized {
        /// Name of the image.
        file: String,
        /// The customised area.
        what: &'static str,
    },
    /// The plan moves bytes of the image, so it cannot be written over the image.
    #[error("{}: the plan moves bytes of the image and cannot be written in place", visible(file))]
    NotInPlace {
        /// Name of the image.
        file: String,
    },
    /// An in-place edit of the file was not completed. Edits that overwrite all embed areas repair the image.
    #[error("{}: an in-place edit was interrupted before it was complete", visible(file))]
    Interrupted {
        /// Name of the image.
        file: String,
    },
    /// A structure uses a feature of its format that this crate does not support.
    #[error("{}: byte {offset}: {what}: {} is not supported", visible(file), visible(found))]
    Unsupported {
        /// Name of the file.
        file: String,
        /// Offset of the structure.
        offset: u64,
        /// The structure or field.
        what: &'static str,
        /// The value that asks for the unsupported feature.
        found: String,
    },
    /// A part of the image uses a compression that this build of the crate does not support.
    #[error(
        "{}: byte {offset}: the {what} is compressed with {compression}; this build has no support for \
         {compression}",
        visible(file)
    )]
    UnsupportedCompression {
        /// Name of the file.
        file: String,
        /// Offset of the bytes, or of the field that names the compression.
        offset: u64,
        /// The compressed part of the image.
        what: &'static str,
        /// The compression. Its Cargo feature is turned off.
        compression: Compression,
    },
    /// The root file system has no `nmstatectl`. RHCOS has it; most other systems do not.
    #[error("{}: rootfs without nmstatectl: its {filesystem} has no {}", visible(file), visible(path))]
    NoNmstatectl {
        /// Name of the root file system image.
        file: String,
        /// The type of the file system.
        filesystem: &'static str,
        /// The path where `nmstatectl` was expected.
        path: String,
    },
    /// The caller requested an impossible edit. The image is not at fault.
    #[error("invalid {what} {value:?}: {reason}")]
    InvalidEdit {
        /// The invalid part of the edit.
        what: &'static str,
        /// The invalid value.
        value: String,
        /// The reason why the value is not valid.
        reason: &'static str,
    },
    /// An invariant of this crate is broken. This is a bug: no image and no edit can cause it.
    #[error("internal error at byte {offset}: {what}")]
    Internal {
        /// The broken invariant and the structure that it is about.
        what: &'static str,
        /// Offset in the image or in the structure.
        offset: u64,
    },
}

/// The reason why kernel arguments cannot be read or why an edit of them is not valid.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum KargsError {
    /// The arguments do not fit into the areas.
    #[error("kargs too large for area: {len} vs {capacity}")]
    TooLarge {
        /// Length of the arguments in bytes, including the end character.
        len: usize,
        /// Length of an area in bytes.
        capacity: usize,
    },
    /// A replacement is not of the form `KEY=OLD=NEW`.
    #[error("invalid replacement {value:?}: format should be: KEY=OLD=NEW")]
    InvalidReplacement {
        /// The invalid replacement.
        value: String,
    },
    /// An argument contains a control character, which could end the line in the boot loader's config.
    #[error("kernel argument {value:?} contains the control character {found:?} at byte {offset}")]
    ControlCharacter {
        /// The invalid argument.
        value: String,
        /// Offset of the character in the argument.
        offset: usize,
        /// The control character.
        found: char,
    },
    /// The areas of the image hold different arguments.
    #[error("kargs don't match at all offsets: {first:?} at byte {first_at}, {other:?} at byte {other_at}")]
    Mismatch {
        /// The arguments of the first area.
        first: String,
        /// Offset of that area.
        first_at: u64,
        /// The arguments of the area that differs.
        other: String,
        /// Offset of that area.
        other_at: u64,
    },
    /// The contents of an area are not UTF-8.
    #[error("the kargs area at byte {offset} has invalid UTF-8 at its byte {invalid_at}")]
    NotText {
        /// Offset of the area.
        offset: u64,
        /// Offset in the area of the first byte that is not UTF-8.
        invalid_at: usize,
    },
    /// An argument that the operation replaces is missing.
    #[error("the kernel arguments have no {key}")]
    MissingArgument {
        /// The start of the argument, up to its `=`.
        key: &'static str,
    },
    /// The image does not record its default arguments.
    #[error("the image does not record its default kargs, so they cannot be restored")]
    NoDefault,
}

/// An extension trait of values that can be missing only because of a bug.
pub(crate) trait OrInternal<T> {
    /// Returns the value, or [`Error::Internal`] if it is missing.
    fn or_internal(self, what: &'static str, offset: u64) -> Result<T>;
}

impl<T> OrInternal<T> for Option<T> {
    #[inline]
    fn or_internal(self, what: &'static str, offset: u64) -> Result<T> {
        self.ok_or(Error::Internal { what, offset })
    }
}

impl<T> OrInternal<T> for Result<T, TryFromIntError> {
    #[inline]
    fn or_internal(self, what: &'static str, offset: u64) -> Result<T> {
        self.ok().or_internal(what, offset)
    }
}

/// Formats an error and its causes as one line.
pub(crate) fn format_with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of sources and paths in images may be empty, so errors contain a placeholder for an empty text.
    #[test]
    fn empty_texts_are_visible() {
        let (file, path, found, text) = (String::new, String::new, String::new, || "x".to_owned());
        let offset = 7;
        for (error, expected) in [
            (Error::Open { file: file(), source: io::ErrorKind::NotFound.into() }, "opening \"\""),
            (
                Error::Read { file: file(), offset, source: io::ErrorKind::Other.into() },
                "reading \"\" at byte 7",
            ),
            (Error::NotFound { file: file(), path: path() }, "\"\": the image has no \"\""),
            (
                Error::Malformed { file: file(), offset, what: "name", expected: text(), found: found() },
                "\"\": byte 7: name: expected x, found \"\"",
            ),
            (
                Error::Unsupported { file: file(), offset, what: "version", found: found() },
                "\"\": byte 7: version: \"\" is not supported",
            ),
            (Error::Description { file: file(), path: path(), reason: text() }, "\"\": \"\": x"),
        ] {
            assert_eq!(error.to_string(), expected);
        }
    }
}
