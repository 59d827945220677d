//! Files beside the records: logs that hosts send, manifests, what an installation leaves.
//!
//! They are in a directory, or in a bucket that several replicas share. A file is there as a whole or not at all; who reads
//! one while it is replaced reads the old one to its end.

mod parts;

use std::error::Error;
use std::fmt;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, TryStreamExt};
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreExt, RetryConfig};
use tokio::io::AsyncWriteExt;

use crate::bucket;

/// What is longer goes to the store in parts of this length, two at a time: the least that S3 takes is 5 MiB.
const PART_LEN: usize = 8 << 20;
const MOST_PARTS_AT_ONCE: usize = 2;
/// What of a file is in memory at most while it is written: those parts, and the next one.
pub(super) const MOST_BUFFERED: usize = PART_LEN * (MOST_PARTS_AT_ONCE + 1);
/// A name, on any file system.
const MOST_NAME: usize = 200;
/// A key of S3, with something left for the prefix.
const MOST_PATH: usize = 800;
/// A folder with more is no folder of one record.
const MOST_LISTED: usize = 10_000;
/// A store that has not answered by then is taken to be gone.
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);

/// The path of a file or of a folder of files: names that mean nothing to a file system and need no escapes in a URL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath(String);

impl FilePath {
    /// A path of names, the outermost first. A name has letters, digits, `.`, `_` and `-`, and does not start with `.`.
    ///
    /// # Errors
    ///
    /// When there is no name, or one cannot be in a path.
    pub fn of<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Result<Self, FileError> {
        let mut path = String::new();
        for name in names {
            let name = name.as_ref();
            if !is_name(name) {
                return Err(FileError::Name { name: name.to_owned() });
            }
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(name);
        }
        if path.is_empty() || path.len() > MOST_PATH {
            return Err(FileError::Name { name: path });
        }
        Ok(Self(path))
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last of its names.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    fn to_object(&self) -> object_store::path::Path {
        object_store::path::Path::from(self.as_str())
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn is_name(name: &str) -> bool {
    let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !name.is_empty() && name.len() <= MOST_NAME && !name.starts_with('.') && name.bytes().all(is_harmless)
}

/// Why something failed.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Something is wrong with a file, or with where files are.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A name that cannot be in a path.
    #[error("{name:?} cannot be in the path of a file")]
    Name {
        /// The name.
        name: String,
    },
    /// No place for files.
    #[error("files are in a directory or at `s3://BUCKET/PREFIX`, not at `{scheme}:`")]
    UnknownScheme {
        /// How the place starts.
        scheme: String,
    },
    /// The directory is not to be had.
    #[error("the directory {} cannot be used for files", path.display())]
    Directory {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The place cannot be used.
    #[error("files cannot be kept at {place}")]
    Open {
        /// Which one.
        place: String,
        /// Why.
        source: Cause,
    },
    /// A file is too long.
    #[error("{path} is longer than {most} bytes")]
    TooLong {
        /// Which one.
        path: FilePath,
        /// How long it may be.
        most: u64,
    },
    /// What sends a file does not send all of it.
    #[error("{path} broke off after {received} bytes")]
    BrokenOff {
        /// Which one.
        path: FilePath,
        /// What came.
        received: u64,
        /// Why no more came.
        source: Cause,
    },
    /// A folder has too many files.
    #[error("{folder} has more than {MOST_LISTED} files")]
    TooMany {
        /// Which one.
        folder: FilePath,
    },
    /// The place fails.
    #[error("{path} cannot be {done}")]
    Failed {
        /// Which file or folder.
        path: FilePath,
        /// What was to be done with it.
        done: &'static str,
        /// Why it cannot.
        source: Cause,
    },
}

impl FileError {
    /// Whether the disk is full, or a quota is used up.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let mut cause: Option<&(dyn Error + 'static)> = Some(self);
        while let Some(error) = cause {
            let io = error.downcast_ref::<io::Error>();
            if io.is_some_and(|io| matches!(io.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)) {
                return true;
            }
            // The source of such an error would be that of the error in it.
            let inner = io.and_then(io::Error::get_ref).map(|inner| inner as &(dyn Error + 'static));
            cause = inner.or_else(|| error.source());
        }
        false
    }
}

/// Where files are kept. Clones are the same place.
#[derive(Clone, Debug)]
pub struct FileStore {
    objects: Arc<dyn ObjectStore>,
    /// Tells other processes that parts in the directory may be of uploads that are under way.
    _in_use: Option<Arc<File>>,
}

/// What is known of a file without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Its path.
    pub path: FilePath,
    /// Its length in bytes.
    pub len: u64,
    /// When it was written.
    pub written_at: DateTime<Utc>,
}

/// A file that is being read.
pub struct OpenFile {
    /// What it is.
    pub info: FileInfo,
    /// What is in it.
    pub content: BoxStream<'static, Result<Bytes, FileError>>,
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFile").field("info", &self.info).finish_non_exhaustive()
    }
}

impl FileStore {
    /// A store in a directory, or, for `s3://BUCKET/PREFIX`, in a bucket: with the credentials of the variables `AWS_*`,
    /// at `S3_ENDPOINT_URL` if that is set, and with the certificates of `SSL_CERT_FILE` in the place of the system's.
    ///
    /// If the process is killed during an upload, its parts stay in the bucket: a lifecycle rule of the bucket should remove
    /// incomplete multipart uploads.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made or the settings of the bucket make no sense. The bucket is not asked.
    pub fn open(place: &str) -> Result<Self, FileError> {
        match place.split_once("://") {
            Some(("s3", bucket)) => Self::in_bucket(bucket),
            Some((scheme, _)) => Err(FileError::UnknownScheme { scheme: scheme.to_owned() }),
            None => Self::in_directory(Path::new(place)),
        }
    }

    /// A store in a directory, which is created if it does not exist. Parts of uploads that a killed process left are removed.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made.
    pub fn in_directory(directory: &Path) -> Result<Self, FileError> {
        let failed = |source| FileError::Directory { path: directory.to_owned(), source };
        // Logs and manifests may have secrets in them.
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let in_use = parts::take(directory).map_err(failed)?;
        let place = || directory.display().to_string();
        let objects = LocalFileSystem::new_with_prefix(directory)
            .map_err(|source| FileError::Open { place: place(), source: source.into() })?
            .with_fsync(true);
        Ok(Self { objects: Arc::new(objects), _in_use: Some(Arc::new(in_use)) })
    }

    fn in_bucket(place: &str) -> Result<Self, FileError> {
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let retry = RetryConfig { retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
        let failed = |source: object_store::Error| FileError::Open {
            place: format!("s3://{place}"),
            source: source.into(),
        };
        let objects = bucket::from_env(bucket).with_retry(retry).build().map_err(failed)?;
        let prefix = prefix.trim_matches('/');
        if prefix.is_empty() {
            return Ok(Self { objects: Arc::new(objects), _in_use: None });
        }
        let prefix = FilePath::of(prefix.split('/'))?.to_object();
        Ok(Self { objects: Arc::new(PrefixStore::new(objects, prefix)), _in_use: None })
    }

    /// Writes a file, in place of the one that was there, and gives its length. Whatever fails, nothing half written is
    /// there.
    ///
    /// # Errors
    ///
    /// When the content is longer than `most` or breaks off, or the place fails.
    pub async fn put<E>(
        &self,
        path: &FilePath,
        content: impl Stream<Item = Result<Bytes, E>> + Send,
        most: u64,
    ) -> Result<u64, FileError>
    where
        E: Into<Cause>,
    {
        let mut writer = BufWriter::with_capacity(Arc::clone(&self.objects), path.to_object(), PART_LEN)
            .with_max_concurrency(MOST_PARTS_AT_ONCE);
        let filled = fill(&mut writer, path, content, most).await;
        if filled.is_err()
            && let Err(error) = writer.abort().await
        {
            tracing::warn!(%path, %error, "an upload cannot be taken back");
        }
        let len = filled?;
        writer.shutdown().await.map_err(failed(path, "written"))?;
        Ok(len)
    }

    /// Opens a file, if there is one.
    ///
    /// # Errors
    ///
    /// When the place fails.
    pub async fn get(&self, path: &FilePath) -> Result<Option<OpenFile>, FileError> {
        let result = match self.objects.get(&path.to_object()).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            result => result.map_err(failed(path, "read"))?,
        };
        let info =
            FileInfo { path: path.clone(), len: result.meta.size, written_at: result.meta.last_modified };
        let path = path.clone();
        let content = result.into_stream().map_err(move |error| failed(&path, "read")(error)).boxed();
        Ok(Some(OpenFile { info, content }))
    }

    /// Deletes a file, if there is one.
    ///
    /// # Errors
    ///
    /// When the place fails.
    pub async fn delete(&self, path: &FilePath) -> Result<(), FileError> {
        match self.objects.delete(&path.to_object()).await {
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            result => result.map_err(failed(path, "deleted")),
        }
    }

    /// Deletes all files of a folder and of the folders in it.
    ///
    /// # Errors
    ///
    /// When the place fails, or there are too many.
    pub async fn delete_folder(&self, folder: &FilePath) -> Result<(), FileError> {
        for file in self.list(folder).await? {
            self.delete(&file.path).await?;
        }
        Ok(())
    }

    /// The files of a folder and of the folders in it, in the order of their paths.
    ///
    /// # Errors
    ///
    /// When the place fails, or there are too many.
    pub async fn list(&self, folder: &FilePath) -> Result<Vec<FileInfo>, FileError> {
        let mut found = Vec::new();
        let mut objects = self.objects.list(Some(&folder.to_object()));
        while let Some(object) = objects.next().await {
            let object = object.map_err(failed(folder, "listed"))?;
            // What others put there is none of ours.
            let Ok(path) = FilePath::of(object.location.as_ref().split('/')) else { continue };
            if found.len() == MOST_LISTED {
                return Err(FileError::TooMany { folder: folder.clone() });
            }
            found.push(FileInfo { path, len: object.size, written_at: object.last_modified });
        }
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }
}

fn failed<E: Into<Cause>>(path: &FilePath, done: &'static str) -> impl FnOnce(E) -> FileError {
    let path = path.clone();
    move |source| FileError::Failed { path, done, source: source.into() }
}

async fn fill<E>(
    writer: &mut BufWriter,
    path: &FilePath,
    content: impl Stream<Item = Result<Bytes, E>> + Send,
    most: u64,
) -> Result<u64, FileError>
where
    E: Into<Cause>,
{
    let mut content = pin!(content);
    let mut received: u64 = 0;
    while let Some(bytes) = content.next().await {
        let broken_off =
            |error: E| FileError::BrokenOff { path: path.clone(), received, source: error.into() };
        let bytes = bytes.map_err(broken_off)?;
        received = u64::try_from(bytes.len()).map_or(u64::MAX, |len| received.saturating_add(len));
        if received > most {
            return Err(FileError::TooLong { path: path.clone(), most });
        }
        writer.put(bytes).await.map_err(failed(path, "written"))?;
    }
    Ok(received)
}
