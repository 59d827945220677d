//! Packs an [`Archive`] as one cpio archive in one stream. The output bytes are the same on every machine.
//!
//! Members are sorted by name, and each missing parent directory precedes its first child, because the kernel skips a
//! file whose directory does not exist. Inode numbers count up from zero, so that no member looks like a hard link.

use std::collections::BTreeSet;
use std::io::{self, Write};

use bytes::Bytes;

use super::archive::Archive;
use super::error::{ArchiveError, Result};
use super::newc;
use crate::compression::{self, Compression};

/// The compression of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// xz: the smallest and slowest encoding. The integrity check is CRC32, the only one that the kernel supports.
    /// Needs the feature `xz`.
    Xz,
    /// gzip: about ten times as fast as xz, but slightly larger.
    Gzip,
    /// No compression.
    Stored,
}

/// An encoded archive, padded to a multiple of four bytes so that another archive may follow it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedArchive(Bytes);

impl PackedArchive {
    /// Wraps encoded archives and pads them to a multiple of four bytes.
    #[must_use]
    pub fn from_encoded(bytes: Bytes) -> Self {
        let padding = newc::padding(bytes.len() as u64);
        if padding.is_empty() { Self(bytes) } else { Self([&bytes, padding].concat().into()) }
    }

    /// Packs one file without its parent directories, for an initrd that already contains the directories. `name` may
    /// begin with a slash, which the kernel ignores.
    ///
    /// # Errors
    ///
    /// Returns an error if the format cannot store the name or the data, if an encoder runs out of memory, or if this
    /// build does not support the encoding.
    pub fn from_file(name: &str, mode: u32, data: &[u8], encoding: Encoding) -> Result<Self, ArchiveError> {
        let mut writer = ArchiveWriter { inode: 1, ..ArchiveWriter::default() };
        writer.append_member(name, mode, data)?;
        writer.finish(encoding)
    }

    /// Packs files and links with their modes, in the given order. Each missing directory precedes its first entry.
    /// Names may begin with a slash. Without entries, the result is empty.
    ///
    /// # Errors
    ///
    /// Returns an error if the format cannot store a name or its data, if an encoder runs out of memory, or if this
    /// build does not support the encoding.
    pub fn from_entries<'a>(
        entries: impl IntoIterator<Item = ArchiveEntry<'a>>,
        encoding: Encoding,
    ) -> Result<Self, ArchiveError> {
        let mut writer = ArchiveWriter::default();
        for entry in entries {
            writer.add(entry.name, entry.mode, entry.data)?;
        }
        if writer.bytes.is_empty() { Ok(Self::default()) } else { writer.finish(encoding) }
    }

    /// Returns the encoded bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// Returns the number of encoded bytes, including the padding.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns `true` if there are no encoded bytes, because the packed archive has no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Archive {
    /// Packs the members into one archive. Without members, the result has no bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the format cannot store a member's name or data, if an encoder runs out of memory, or if
    /// this build does not support the encoding.
    pub fn pack(&self, encoding: Encoding) -> Result<PackedArchive, ArchiveError> {
        if self.is_empty() { Ok(PackedArchive::default()) } else { self.pack_even_if_empty(encoding) }
    }

    /// Packs the members into one archive. Without members, the result is a cpio archive that contains only the
    /// trailer.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`pack`](Self::pack).
    pub fn pack_even_if_empty(&self, encoding: Encoding) -> Result<PackedArchive, ArchiveError> {
        let mut writer = ArchiveWriter::default();
        for (name, contents) in self.iter() {
            writer.add(name, newc::FILE_MODE, contents)?;
        }
        writer.finish(encoding)
    }
}

/// A file or link for [`PackedArchive::from_entries`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveEntry<'a> {
    name: &'a str,
    mode: u32,
    data: &'a [u8],
}

impl<'a> ArchiveEntry<'a> {
    /// Creates a regular file with its permissions.
    #[must_use]
    pub fn file(name: &'a str, permissions: u16, contents: &'a [u8]) -> Self {
        Self { name, mode: newc::TYPE_REGULAR | u32::from(permissions), data: contents }
    }

    /// Creates a symbolic link.
    #[must_use]
    pub fn link(name: &'a str, target: &'a str) -> Self {
        Self { name, mode: newc::LINK_MODE, data: target.as_bytes() }
    }
}

/// An archive under construction: its bytes, the directories that it already contains, and the inode number of the next
/// member.
#[derive(Default)]
struct ArchiveWriter<'a> {
    bytes: Vec<u8>,
    directories: BTreeSet<&'a str>,
    inode: u32,
}

impl<'a> ArchiveWriter<'a> {
    fn add(&mut self, name: &'a str, mode: u32, data: &[u8]) -> Result<()> {
        for (end, _) in name.match_indices('/') {
            let (directory, _) = name.split_at(end);
            if !directory.is_empty() && self.directories.insert(directory) {
                self.append_member(directory, newc::DIRECTORY_MODE, &[])?;
            }
        }
        self.append_member(name, mode, data)
    }

    fn append_member(&mut self, name: &str, mode: u32, data: &[u8]) -> Result<()> {
        check_name(name)?;
        let data_len = u32::try_from(data.len()).map_err(|_| member_error(name, "its data exceeds 4 GiB"))?;
        self.bytes.extend(newc::CpioMember { name, inode: self.inode, mode, data_len }.to_header());
        self.bytes.extend_from_slice(data);
        self.bytes.extend_from_slice(newc::padding(data.len() as u64));
        // Wrapping is harmless: the kernel treats members with equal inode numbers as hard links only if their link
        // count is greater than one.
        self.inode = self.inode.wrapping_add(1);
        Ok(())
    }

    /// Appends the trailer and encodes the archive.
    fn finish(mut self, encoding: Encoding) -> Result<PackedArchive> {
        if encoding == Encoding::Xz && !Compression::Xz.is_supported() {
            return Err(ArchiveError::UnsupportedEncoding { compression: Compression::Xz });
        }
        let trailer = newc::CpioMember { name: newc::TRAILER, inode: 0, mode: 0, data_len: 0 };
        self.bytes.extend(trailer.to_header());
        let encoded = compress(self.bytes, encoding).map_err(|source| ArchiveError::Pack { source })?;
        // `Bytes` would retain the spare capacity, which can be as large as the archive.
        Ok(PackedArchive::from_encoded(encoded.into_boxed_slice().into()))
    }
}

/// Maximum length of a name that the kernel unpacks, including its NUL.
const MAX_NAME_LEN: usize = 4096;

fn check_name(name: &str) -> Result<()> {
    match name {
        "" => Err(member_error(name, "it has no name")),
        newc::TRAILER => Err(member_error(name, "the name is reserved for the end of an archive")),
        _ if name.contains('\0') => Err(member_error(name, "its name contains a NUL byte")),
        _ if name.len() >= MAX_NAME_LEN => Err(member_error(name, "its name exceeds 4095 bytes")),
        _ => Ok(()),
    }
}

fn member_error(name: &str, reason: &'static str) -> ArchiveError {
    ArchiveError::Member { name: name.to_owned(), reason }
}

fn compress(archive: Vec<u8>, encoding: Encoding) -> io::Result<Vec<u8>> {
    match encoding {
        Encoding::Stored => Ok(archive),
        Encoding::Gzip => {
            // The gzip header has no time and no file name, so it is the same on every machine.
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(&archive)?;
            encoder.finish()
        }
        Encoding::Xz => compression::pack_xz(&archive),
    }
}
