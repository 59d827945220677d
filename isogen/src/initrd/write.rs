//! Packing an [`Archive`]: one cpio archive in one stream, the same bytes on every machine.
//!
//! Members come sorted by name, each missing parent directory just before its first child (the kernel skips a file
//! whose directory does not exist). Inode numbers count up from zero, so no member looks like a hard link.

use std::collections::BTreeSet;
use std::io::{self, Write};

use bytes::Bytes;
use liblzma::stream::{Check, Filters, LzmaOptions, Stream};

use super::archive::Archive;
use super::error::ArchiveError;
use super::newc;

/// How an archive is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// xz: smallest, slowest. Its check is CRC32, the only one that the kernel knows.
    Xz,
    /// gzip: an order of magnitude faster than xz, a little larger.
    Gzip,
    /// Not compressed.
    Stored,
}

/// An encoded archive, its length a multiple of four so that anything may follow it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packed(Bytes);

impl Packed {
    /// Takes archives that were encoded elsewhere, and pads them to a multiple of four.
    #[must_use]
    pub fn from_encoded(bytes: Bytes) -> Self {
        let padding = newc::padding(bytes.len() as u64);
        if padding.is_empty() { Self(bytes) } else { Self([&bytes, padding].concat().into()) }
    }

    /// Packs one file by itself, without the directories above it, for an initrd that has them. Its name may begin with
    /// a slash: the kernel unpacks into its root either way.
    ///
    /// # Errors
    ///
    /// Fails for a name or data that the format cannot hold, or where an encoder runs out of memory.
    pub fn of_file(name: &str, mode: u32, data: &[u8], encoding: Encoding) -> Result<Self, ArchiveError> {
        let mut archive = Vec::new();
        append(&mut archive, newc::Member { name, inode: 1, mode, data_len: 0 }, data)?;
        end(&mut archive);
        let bytes = encode(&archive, encoding).map_err(|source| ArchiveError::Pack { source })?;
        Ok(Self::from_encoded(bytes.into()))
    }

    /// Packs files and links with the modes that they say, in their order, each missing directory before what is in it.
    /// Names may begin with a slash. Without entries there is nothing to pack.
    ///
    /// # Errors
    ///
    /// Fails for a name or data that the format cannot hold, or where an encoder runs out of memory.
    pub fn of_entries<'a>(
        entries: impl IntoIterator<Item = Entry<'a>>,
        encoding: Encoding,
    ) -> Result<Self, ArchiveError> {
        let mut writer = TreeWriter::default();
        for entry in entries {
            writer.add(entry.name, entry.mode, entry.data)?;
        }
        if writer.is_empty() {
            return Ok(Self::default());
        }
        let bytes = encode(&writer.end(), encoding).map_err(|source| ArchiveError::Pack { source })?;
        Ok(Self::from_encoded(bytes.into()))
    }

    /// The encoded bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// The number of encoded bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Tells whether there is nothing in it, as where an archive without members was packed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Archive {
    /// Packs the members into one archive. Without members there is nothing to pack, not even an empty archive.
    ///
    /// # Errors
    ///
    /// Fails for a member whose name or data the format cannot hold, or where an encoder runs out of memory.
    pub fn pack(&self, encoding: Encoding) -> Result<Packed, ArchiveError> {
        if self.is_empty() { Ok(Packed::default()) } else { self.pack_always(encoding) }
    }

    /// Packs the members into one archive, an empty one where there are none.
    ///
    /// # Errors
    ///
    /// As [`pack`](Self::pack).
    pub fn pack_always(&self, encoding: Encoding) -> Result<Packed, ArchiveError> {
        let archive = self.to_cpio()?;
        let bytes = encode(&archive, encoding).map_err(|source| ArchiveError::Pack { source })?;
        Ok(Packed::from_encoded(bytes.into()))
    }

    fn to_cpio(&self) -> Result<Vec<u8>, ArchiveError> {
        let mut writer = TreeWriter::default();
        for (name, contents) in self.iter() {
            writer.add(name, newc::FILE_MODE, contents)?;
        }
        Ok(writer.end())
    }
}

/// A file or a link that [`Packed::of_entries`] packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    name: &'a str,
    mode: u32,
    data: &'a [u8],
}

impl<'a> Entry<'a> {
    /// A file with its permissions.
    #[must_use]
    pub fn file(name: &'a str, permissions: u16, contents: &'a [u8]) -> Self {
        Self { name, mode: newc::TYPE_REGULAR | u32::from(permissions), data: contents }
    }

    /// A symbolic link.
    #[must_use]
    pub fn link(name: &'a str, target: &'a str) -> Self {
        Self { name, mode: newc::LINK_MODE, data: target.as_bytes() }
    }
}

/// An archive under way: numbers its members, and knows which directories it has.
#[derive(Default)]
struct TreeWriter<'a> {
    bytes: Vec<u8>,
    directories: BTreeSet<&'a str>,
    inode: u32,
}

impl<'a> TreeWriter<'a> {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn add(&mut self, name: &'a str, mode: u32, data: &[u8]) -> Result<(), ArchiveError> {
        for (end, _) in name.match_indices('/') {
            let directory = name.get(..end).unwrap_or_default();
            if !directory.is_empty() && self.directories.insert(directory) {
                self.append(directory, newc::DIRECTORY_MODE, &[])?;
            }
        }
        self.append(name, mode, data)
    }

    fn append(&mut self, name: &str, mode: u32, data: &[u8]) -> Result<(), ArchiveError> {
        append(&mut self.bytes, newc::Member { name, inode: self.inode, mode, data_len: 0 }, data)?;
        self.inode = self.inode.wrapping_add(1);
        Ok(())
    }

    fn end(mut self) -> Vec<u8> {
        end(&mut self.bytes);
        self.bytes
    }
}

/// Appends a member and its data, which gives the length.
fn append(archive: &mut Vec<u8>, member: newc::Member<'_>, data: &[u8]) -> Result<(), ArchiveError> {
    check_name(member.name)?;
    let data_len = u32::try_from(data.len()).map_err(|_| refuse(member.name, "its data passes 4 GiB"))?;
    archive.extend_from_slice(&newc::Member { data_len, ..member }.to_header());
    archive.extend_from_slice(data);
    archive.extend_from_slice(newc::padding(data.len() as u64));
    Ok(())
}

/// Appends the member that ends an archive.
fn end(archive: &mut Vec<u8>) {
    let trailer = newc::Member { name: newc::TRAILER, inode: 0, mode: 0, data_len: 0 };
    archive.extend_from_slice(&trailer.to_header());
}

/// Longest name that the kernel unpacks, with its NUL.
const MAX_NAME: usize = 4096;

fn check_name(name: &str) -> Result<(), ArchiveError> {
    match name {
        "" => Err(refuse(name, "it has no name")),
        newc::TRAILER => Err(refuse(name, "that name ends an archive")),
        _ if name.contains('\0') => Err(refuse(name, "its name holds a NUL")),
        _ if name.len() >= MAX_NAME => Err(refuse(name, "its name passes 4095 bytes")),
        _ => Ok(()),
    }
}

fn refuse(name: &str, reason: &'static str) -> ArchiveError {
    ArchiveError::Member { name: name.to_owned(), reason }
}

fn encode(archive: &[u8], encoding: Encoding) -> io::Result<Vec<u8>> {
    match encoding {
        Encoding::Stored => Ok(archive.to_vec()),
        Encoding::Gzip => {
            // No time, no name: the header is the same everywhere.
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(archive)?;
            encoder.finish()
        }
        Encoding::Xz => {
            let mut encoder = liblzma::write::XzEncoder::new_stream(Vec::new(), xz_stream(archive.len())?);
            encoder.write_all(archive)?;
            encoder.finish()
        }
    }
}

/// Smallest dictionary that the format knows.
const MIN_DICTIONARY: u32 = 4096;
/// The dictionary of preset 9: above it, size is not gained.
const MAX_DICTIONARY: u32 = 64 << 20;

/// An encoder as strong as preset 9 whose dictionary is no larger than the archive. The full 64 MiB would cost tens of
/// milliseconds to set up, and as much memory again in the initrd that unpacks it.
fn xz_stream(len: usize) -> io::Result<Stream> {
    let fitting = u32::try_from(len).ok().and_then(u32::checked_next_power_of_two).unwrap_or(MAX_DICTIONARY);
    let mut options = LzmaOptions::new_preset(9)?;
    options.dict_size(fitting.clamp(MIN_DICTIONARY, MAX_DICTIONARY));
    Ok(Stream::new_stream_encoder(Filters::new().lzma2(&options), Check::Crc32)?)
}
