//! Records: JSON files that store the results of earlier downloads and checks, such as the digest of an image. After a
//! restart, the library need not read the whole image file again.
//!
//! A damaged record is treated like a missing record.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use isogen::Digest;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::paths;
use isogen::FileStamp;

/// Maximum length of a record. A real record is shorter than a kilobyte.
const MAX_RECORD: u64 = 64 << 10;

/// A [`FileStamp`] without the device number, which may differ after a restart of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordedStamp {
    len: u64,
    seconds: i64,
    nanoseconds: i64,
    /// Seconds and nanoseconds of the `ctime`. Missing in records of earlier releases, whose files are hashed again.
    changed: Option<(i64, i64)>,
    inode: Option<u64>,
}

impl From<FileStamp> for RecordedStamp {
    fn from(stamp: FileStamp) -> Self {
        Self {
            len: stamp.len,
            seconds: stamp.modified.seconds,
            nanoseconds: stamp.modified.nanoseconds,
            changed: Some((stamp.changed.seconds, stamp.changed.nanoseconds)),
            inode: Some(stamp.inode),
        }
    }
}

/// The record of a complete image (`….iso.json`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ImageRecord {
    /// Path of the hashed file.
    pub(super) file: PathBuf,
    pub(super) stamp: RecordedStamp,
    pub(super) sha256: DigestText,
    /// Whether the minimal ISO described by `miniso.dat` has the digest in that description. Missing in records of
    /// earlier releases.
    pub(super) minimal_verified: Option<bool>,
    /// The URL from which the image was downloaded, without credentials.
    pub(super) url: String,
}

/// The record of the program extracted from an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProgramRecord {
    /// The SHA-256 digest of the image.
    pub(super) image: DigestText,
    /// The SHA-256 digest of the packed program.
    pub(super) sha256: DigestText,
}

/// The record of a partial file (`….iso.part.json`). A request that resumes the download must be for the same version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartRecord {
    #[serde(flatten)]
    pub(super) origin: RemoteVersion,
    /// Number of bytes synced to the disk.
    pub(super) durable: u64,
    /// The boot ID of the system when the bytes were received. If it is still the same, bytes that were not synced are
    /// in the file too.
    pub(super) boot: Option<String>,
}

/// A version of an image, as the server reported it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RemoteVersion {
    /// The URL without credentials.
    pub(super) url: String,
    pub(super) len: u64,
    pub(super) validator: Option<VersionValidator>,
}

/// The validator of a version of an image (RFC 9110, 8.8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum VersionValidator {
    /// A strong entity tag.
    Etag(String),
    LastModified(String),
}

impl VersionValidator {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Etag(text) | Self::LastModified(text) => text,
        }
    }
}

/// A SHA-256 digest as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DigestText(String);

impl From<Digest> for DigestText {
    fn from(digest: Digest) -> Self {
        Self(digest.to_string())
    }
}

impl DigestText {
    pub(super) fn parse_digest(&self) -> Option<Digest> {
        self.0.parse().ok()
    }
}

/// Reads a record. Returns `None` if it does not exist or is damaged.
pub(super) fn read_record<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut bytes = Vec::new();
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(file = %path.display(), %error, "cannot read record, ignoring it");
            return None;
        }
    };
    let read = file.take(MAX_RECORD).read_to_end(&mut bytes);
    let record = read.and_then(|_| serde_json::from_slice(&bytes).map_err(io::Error::from));
    record
        .inspect_err(|error| tracing::warn!(file = %path.display(), %error, "record is damaged, ignoring it"))
        .ok()
}

/// Replaces a record atomically.
pub(super) fn write_record(path: &Path, record: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(record)?;
    bytes.push(b'\n');
    paths::replace_file(path, &bytes)
}

/// Returns the boot ID of the kernel, which changes with each start of the system.
pub(super) fn boot_id() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|text| text.trim().to_owned())
}
