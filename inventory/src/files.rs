//! Storage for files: logs that hosts send, manifests and other files of installations.
//!
//! Files are in a directory, or in a bucket that several replicas share. Each write is atomic: a reader sees the old or
//! the new file as a whole. A client that reads a file while it is replaced gets all of the old file.

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

use crate::bucket::s3_from_env;
use crate::discovery::LongName;

/// Longer files are uploaded in parts of this length, two at a time. The minimum of S3 is 5 MiB.
const PART_LEN: usize = 8 << 20;
const MAX_PARTS_AT_ONCE: usize = 2;
/// The most bytes of a file that are in memory during a write: the parts being sent and the next one.
pub(super) const MAX_BUFFERED: usize = PART_LEN * (MAX_PARTS_AT_ONCE + 1);
/// Longest name of a file, valid on all file systems.
const MAX_NAME: usize = 200;
/// Longest path. The rest of an S3 key's length is left for the prefix.
const MAX_PATH: usize = 800;
/// The most files of a folder that can be listed. No record has that many.
const MAX_LISTED: usize = 10_000;
/// A store that does not answer within this time is considered unavailable.
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);

/// The path of a file or folder. Its names have no special meaning in file systems and need no escapes in URLs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath(String);

impl FilePath {
    /// Joins names to a path, outermost first. A name has only letters, digits, `.`, `_` and `-`, and does not start
    /// with `.`.
    ///
    /// # Errors
    ///
    /// Returns an error if a name is not valid, if no name is given, or if the path is too long.
    pub fn from_names<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Result<Self, FileError> {
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
        if path.is_empty() || path.len() > MAX_PATH {
            return Err(FileError::Name { name: path });
        }
        Ok(Self(path))
    }

    /// Returns the path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the last name of the path.
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
    !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('.') && name.bytes().all(is_harmless)
}

/// The cause of a file error.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Why a file operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A name is not valid in a path.
    #[error("{name:?} is not allowed in the path of a file")]
    Name {
        /// The name.
        name: String,
    },
    /// The name of a file is too long for an archive.
    #[error(transparent)]
    Archive(#[from] LongName),
    /// The location is neither a directory nor a bucket.
    #[error("unsupported file storage `{scheme}:`; use a directory or `s3://BUCKET/PREFIX`")]
    UnknownScheme {
        /// The scheme of the location.
        scheme: String,
    },
    /// The directory cannot be used.
    #[error("cannot use directory {} for files", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The location cannot be used.
    #[error("cannot store files at {place}")]
    Open {
        /// The location.
        place: String,
        /// The cause.
        source: Cause,
    },
    /// A file is too long.
    #[error("{path} is longer than {most} bytes")]
    TooLong {
        /// The file.
        path: FilePath,
        /// The limit in bytes.
        most: u64,
    },
    /// The sender of a file stopped before the end.
    #[error("the upload of {path} was interrupted after {received} bytes")]
    BrokenOff {
        /// The file.
        path: FilePath,
        /// Number of bytes received.
        received: u64,
        /// The cause.
        source: Cause,
    },
    /// A folder has too many files to list.
    #[error("{folder} has more than {MAX_LISTED} files")]
    TooMany {
        /// The folder.
        folder: FilePath,
    },
    /// An operation of the storage failed.
    #[error("{path} cannot be {done}")]
    Failed {
        /// The file or folder.
        path: FilePath,
        /// The operation, as a past participle.
        done: &'static str,
        /// The cause.
        source: Cause,
    },
}

impl FileError {
    /// Returns `true` if the disk is full or a quota is used up.
    #[must_use]
    pub(crate) fn is_full(&self) -> bool {
        let mut cause: Option<&(dyn Error + 'static)> = Some(self);
        while let Some(error) = cause {
            let io = error.downcast_ref::<io::Error>();
            if io.is_some_and(|io| matches!(io.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)) {
                return true;
            }
            // `io::Error::source` skips the error that it wraps.
            let inner = io.and_then(io::Error::get_ref).map(|inner| inner as &(dyn Error + 'static));
            cause = inner.or_else(|| error.source());
        }
        false
    }
}

/// A storage for files. Clones use the same storage.
#[derive(Clone, Debug)]
pub struct FileStore {
    objects: Arc<dyn ObjectStore>,
    /// The lock that tells other processes that parts in the directory may belong to uploads in progress.
    _in_use: Option<Arc<File>>,
}

/// Metadata of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// The path.
    pub path: FilePath,
    /// The length in bytes.
    pub len: u64,
    /// When it was written.
    pub written_at: DateTime<Utc>,
}

/// An open file.
pub struct OpenFile {
    /// The metadata.
    pub info: FileInfo,
    /// The bytes.
    pub content: BoxStream<'static, Result<Bytes, FileError>>,
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFile").field("info", &self.info).finish_non_exhaustive()
    }
}

impl FileStore {
    /// Opens a store in a directory or, for `s3://BUCKET/PREFIX`, in a bucket. A bucket uses the credentials in
    /// `AWS_*`, the endpoint `S3_ENDPOINT_URL` if it is set, and the certificates in `SSL_CERT_FILE` instead of the
    /// system's.
    ///
    /// If the process is killed during an upload, the parts stay in the bucket: a lifecycle rule of the bucket should
    /// remove incomplete multipart uploads.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be created or the bucket settings are invalid. Does not connect to the
    /// bucket.
    pub fn open(place: &str) -> Result<Self, FileError> {
        match place.split_once("://") {
            Some(("s3", bucket)) => Self::in_bucket(bucket),
            Some((scheme, _)) => Err(FileError::UnknownScheme { scheme: scheme.to_owned() }),
            None => Self::in_directory(Path::new(place)),
        }
    }

    /// Opens a store in a directory, which is created if it does not exist. Removes parts of uploads that a killed
    /// process left.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be created, read or locked.
    pub fn in_directory(directory: &Path) -> Result<Self, FileError> {
        let failed = |source| FileError::Directory { path: directory.to_owned(), source };
        // Logs and manifests may contain secrets.
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let in_use = parts::lock_directory(directory).map_err(failed)?;
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
        let objects = s3_from_env(bucket).with_retry(retry).build().map_err(failed)?;
        let prefix = prefix.trim_matches('/');
        if prefix.is_empty() {
            return Ok(Self { objects: Arc::new(objects), _in_use: None });
        }
        let prefix = FilePath::from_names(prefix.split('/'))?.to_object();
        Ok(Self { objects: Arc::new(PrefixStore::new(objects, prefix)), _in_use: None })
    }

    /// Writes a file, replacing an existing one, and returns its length. If writing fails, no partial file is visible.
    ///
    /// # Errors
    ///
    /// Returns an error if the content is longer than `most` bytes, if the sender stops early, or if the storage fails.
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
            .with_max_concurrency(MAX_PARTS_AT_ONCE);
        let filled = write_content(&mut writer, path, content, most).await;
        if filled.is_err()
            && let Err(error) = writer.abort().await
        {
            tracing::warn!(%path, %error, "could not abort an upload");
        }
        let len = filled?;
        writer.shutdown().await.map_err(file_error(path, "written"))?;
        Ok(len)
    }

    /// Opens a file. Returns `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage fails.
    pub async fn get(&self, path: &FilePath) -> Result<Option<OpenFile>, FileError> {
        let result = match self.objects.get(&path.to_object()).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            result => result.map_err(file_error(path, "read"))?,
        };
        let info =
            FileInfo { path: path.clone(), len: result.meta.size, written_at: result.meta.last_modified };
        let path = path.clone();
        let content = result.into_stream().map_err(move |error| file_error(&path, "read")(error)).boxed();
        Ok(Some(OpenFile { info, content }))
    }

    /// Deletes a file. Succeeds if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage fails.
    pub async fn delete(&self, path: &FilePath) -> Result<(), FileError> {
        match self.objects.delete(&path.to_object()).await {
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            result => result.map_err(file_error(path, "deleted")),
        }
    }

    /// Deletes all files in a folder and its subfolders.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage fails or the folder has too many files.
    pub async fn delete_folder(&self, folder: &FilePath) -> Result<(), FileError> {
        for file in self.list(folder).await? {
            self.delete(&file.path).await?;
        }
        Ok(())
    }

    /// Returns the files in a folder and its subfolders, sorted by path.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage fails or the folder has too many files.
    pub async fn list(&self, folder: &FilePath) -> Result<Vec<FileInfo>, FileError> {
        let mut found = Vec::new();
        let mut objects = self.objects.list(Some(&folder.to_object()));
        while let Some(object) = objects.next().await {
            let object = object.map_err(file_error(folder, "listed"))?;
            // Skip objects that other programs put there.
            let Ok(path) = FilePath::from_names(object.location.as_ref().split('/')) else { continue };
            if found.len() == MAX_LISTED {
                return Err(FileError::TooMany { folder: folder.clone() });
            }
            found.push(FileInfo { path, len: object.size, written_at: object.last_modified });
        }
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }
}

fn file_error<E: Into<Cause>>(path: &FilePath, done: &'static str) -> impl FnOnce(E) -> FileError {
    let path = path.clone();
    move |source| FileError::Failed { path, done, source: source.into() }
}

async fn write_content<E>(
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
        writer.put(bytes).await.map_err(file_error(path, "written"))?;
    }
    Ok(received)
}
