//! What is known of files, beside them.
//!
//! A record that cannot be read is none: it is made anew from the file it is about.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use isogen::Digest;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::shelf;
use crate::http::zerocopy::FileStamp;

/// The longest record that is read. Real ones have less than a kilobyte.
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

/// The record of a complete image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ImageRecord {
    /// The file that was hashed.
    pub(super) file: PathBuf,
    pub(super) stamp: RecordedStamp,
    pub(super) sha256: Text,
    /// Whether the minimal ISO that `miniso.dat` describes has the digest recorded there. Missing in records of earlier
    /// releases.
    pub(super) minimal_verified: Option<bool>,
    /// Where it came from, without credentials.
    pub(super) url: String,
}

/// The record of a program that was taken out of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProgramRecord {
    /// Of the image.
    pub(super) image: Text,
    /// Of the program, packed.
    pub(super) sha256: Text,
}

/// The record of a part: what the next request has to be about for the bytes to belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartRecord {
    #[serde(flatten)]
    pub(super) origin: Origin,
    /// So many bytes are on the disk for good.
    pub(super) durable: u64,
    /// The start of the system in which they came. As long as it is the same, all bytes are there that were written.
    pub(super) boot: Option<String>,
}

/// A version of an image, as the server told it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origin {
    /// Without credentials.
    pub(super) url: String,
    pub(super) len: u64,
    pub(super) validator: Option<Validator>,
}

/// What a server tells versions apart by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Validator {
    /// A strong one.
    Etag(String),
    LastModified(String),
}

impl Validator {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Etag(text) | Self::LastModified(text) => text,
        }
    }
}

/// A digest as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Text(String);

impl From<Digest> for Text {
    fn from(digest: Digest) -> Self {
        Self(digest.to_string())
    }
}

impl Text {
    pub(super) fn digest(&self) -> Option<Digest> {
        self.0.parse().ok()
    }
}

/// Reads a record, if there is one.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut bytes = Vec::new();
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(file = %path.display(), %error, "this record cannot be read and is ignored");
            return None;
        }
    };
    let read = file.take(MAX_RECORD).read_to_end(&mut bytes);
    let record = read.and_then(|_| serde_json::from_slice(&bytes).map_err(io::Error::from));
    record
        .inspect_err(
            |error| tracing::warn!(file = %path.display(), %error, "this record is damaged and is ignored"),
        )
        .ok()
}

/// Writes a record.
pub(super) fn write(path: &Path, record: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(record)?;
    bytes.push(b'\n');
    shelf::write_whole(path, &bytes)
}

/// What differs from one start of the system to the next.
pub(super) fn boot() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|text| text.trim().to_owned())
}
