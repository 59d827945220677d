//! Records about the files of the library, in files next to them.
//!
//! A record that cannot be read is ignored and written again from the file that it describes.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use isogen::Digest;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::paths;
use isogen::FileStamp;

/// The number of bytes of a record that are read. Real records have less than a kilobyte.
const MAX_RECORD: u64 = 64 << 10;

/// A [`FileStamp`] without its device, whose number may differ after a restart of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordedStamp {
    len: u64,
    seconds: i64,
    nanoseconds: i64,
    /// Seconds and nanoseconds of the `ctime`. Records of earlier versions have none, so such a file is hashed again.
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
    /// The file that was hashed.
    pub(super) file: PathBuf,
    pub(super) stamp: RecordedStamp,
    pub(super) sha256: DigestText,
    /// Whether the minimal ISO that `miniso.dat` describes has the digest recorded there. Missing in records of earlier
    /// releases.
    pub(super) minimal_verified: Option<bool>,
    /// The URL that it was downloaded from, without credentials.
    pub(super) url: String,
}

/// The record of a program that was extracted from an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProgramRecord {
    /// The SHA-256 digest of the image.
    pub(super) image: DigestText,
    /// The SHA-256 digest of the packed program.
    pub(super) sha256: DigestText,
}

/// The record of a part. The next request must be for the same version of the image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartRecord {
    #[serde(flatten)]
    pub(super) origin: RemoteVersion,
    /// The number of bytes that are synced to the disk.
    pub(super) durable: u64,
    /// The boot ID when the bytes were received. Until the system restarts, all written bytes are in the file, synced
    /// or not.
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

/// Replaces a record as a whole.
pub(super) fn write_record(path: &Path, record: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(record)?;
    bytes.push(b'\n');
    paths::replace_file(path, &bytes)
}

/// Returns the boot ID, which differs after each start of the system.
pub(super) fn boot_id() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|text| text.trim().to_owned())
}
