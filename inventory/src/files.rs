//! Storage for files: logs that hosts send, manifests and other files of installations.
//!
//! Files are in a directory, or in a bucket that several replicas share. Each write is atomic: a reader sees the old or
//! the new file as a whole. A client that reads a file while it is replaced gets all of the old file.

mod in_bucket;
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
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::io::AsyncWriteExt;
use tokio::runtime::Handle;

use crate::bucket::{BucketFailure, s3_from_env, without_response};
use crate::discovery::LongName;

pub use in_bucket::BucketLimits;
use in_bucket::FileBucket;

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
/// Age after which an incomplete upload is abandoned. Stalled clients are disconnected long before.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

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
    /// The bucket does not exist.
    #[error("{path} cannot be {done}: bucket {bucket} does not exist; create it, or use another one")]
    MissingBucket {
        /// The file or folder.
        path: FilePath,
        /// The operation, as a past participle.
        done: &'static str,
        /// The bucket.
        bucket: String,
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
    /// Returns `true` if the storage did not answer. The same operation may succeed later.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        let Self::Failed { source, .. } = self else { return false };
        matches!(source.downcast_ref(), Some(BucketFailure::Unavailable { .. }))
    }

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
    bucket: Option<Arc<FileBucket>>,
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
    /// If the process is killed during an upload, the parts stay until they are
    /// [removed](Self::remove_abandoned_uploads).
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be created or the bucket settings are invalid. Does not connect to the
    /// bucket.
    pub fn open(place: &str) -> Result<Self, FileError> {
        Self::open_with_limits(place, BucketLimits::default())
    }

    /// Opens a store as [`open`](Self::open) does, with these time limits for a bucket.
    ///
    /// # Errors
    ///
    /// Returns the same errors.
    pub fn open_with_limits(place: &str, limits: BucketLimits) -> Result<Self, FileError> {
        match place.split_once("://") {
            Some(("s3", bucket)) => Self::in_bucket(bucket, limits),
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
        Ok(Self { objects: Arc::new(objects), bucket: None, _in_use: Some(Arc::new(in_use)) })
    }

    fn in_bucket(place: &str, limits: BucketLimits) -> Result<Self, FileError> {
        let (name, prefix) = place.split_once('/').unwrap_or((place, ""));
        let settings = s3_from_env(name).map_err(|source| {
            // The name of an invalid bucket may contain credentials.
            FileError::Open { place: "an S3 bucket".to_owned(), source: source.into() }
        })?;
        let prefix = prefix.trim_matches('/');
        let prefix = if prefix.is_empty() { None } else { Some(FilePath::from_names(prefix.split('/'))?) };
        let bucket = FileBucket::open(settings, name, prefix.as_ref(), limits)
            .map_err(|source| FileError::Open { place: format!("s3://{place}"), source })?;
        let objects: Arc<dyn ObjectStore> = match prefix {
            Some(prefix) => Arc::new(PrefixStore::new(bucket.objects(), prefix.to_object())),
            None => Arc::new(bucket.objects()),
        };
        Ok(Self { objects, bucket: Some(Arc::new(bucket)), _in_use: None })
    }

    /// Returns `true` if the files are in a bucket.
    #[must_use]
    pub fn is_in_bucket(&self) -> bool {
        self.bucket.is_some()
    }

    /// Checks that a bucket answers and exists. A directory is not checked.
    ///
    /// # Errors
    ///
    /// Returns an error if the bucket does not answer, does not exist, or refuses the credentials.
    pub async fn check(&self) -> Result<(), FileError> {
        if self.bucket.is_some() {
            // No file has this name.
            self.get(&FilePath::from_names(["kindling-check"])?).await?;
        }
        Ok(())
    }

    /// Removes uploads to a bucket that have been incomplete for a day: their processes were killed. Those in a
    /// directory are removed when it is opened.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage fails.
    pub async fn remove_abandoned_uploads(&self) -> Result<usize, FileError> {
        self.remove_incomplete_uploads(ABANDONED).await
    }

    /// Removes uploads to a bucket that began more than `age` ago and are incomplete. Returns their number.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage fails.
    pub async fn remove_incomplete_uploads(&self, age: Duration) -> Result<usize, FileError> {
        let Some(bucket) = &self.bucket else { return Ok(0) };
        let removed = bucket.remove_incomplete_uploads(age).await;
        removed.map_err(self.error(&FilePath::from_names(["incomplete-uploads"])?, "removed"))
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
        let writer = BufWriter::with_capacity(Arc::clone(&self.objects), path.to_object(), PART_LEN)
            .with_max_concurrency(MAX_PARTS_AT_ONCE);
        let mut upload = PendingUpload { writer: Some(writer), path: path.clone() };
        let len = self.write_content(&mut upload, content, most).await?;
        let Some(mut writer) = upload.writer.take() else { return Ok(len) };
        // The task continues if the caller leaves: it completes the upload or removes its parts.
        let completed = tokio::spawn(async move { writer.shutdown().await });
        let completed = completed.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        completed.map_err(self.error(path, "written"))?;
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
            result => result.map_err(self.error(path, "read"))?,
        };
        let info =
            FileInfo { path: path.clone(), len: result.meta.size, written_at: result.meta.last_modified };
        let (path, store) = (path.clone(), self.clone());
        let content = result.into_stream().map_err(move |error| store.error(&path, "read")(error)).boxed();
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
            result => result.map_err(self.error(path, "deleted")),
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
            let object = object.map_err(self.error(folder, "listed"))?;
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

    /// Returns a function that converts an error of the storage. Nothing of what a bucket's server sent is in the
    /// result.
    fn error<E: Into<Cause>>(
        &self,
        path: &FilePath,
        done: &'static str,
    ) -> impl FnOnce(E) -> FileError + use<E> {
        let (path, bucket) = (path.clone(), self.bucket.clone());
        move |source| {
            let source = without_response(source.into());
            match (source.downcast_ref(), bucket) {
                (Some(BucketFailure::MissingBucket), Some(bucket)) => {
                    FileError::MissingBucket { path, done, bucket: bucket.name().to_owned() }
                }
                _ => FileError::Failed { path, done, source },
            }
        }
    }

    async fn write_content<E>(
        &self,
        upload: &mut PendingUpload,
        content: impl Stream<Item = Result<Bytes, E>> + Send,
        most: u64,
    ) -> Result<u64, FileError>
    where
        E: Into<Cause>,
    {
        let PendingUpload { writer: Some(writer), path } = upload else { return Ok(0) };
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
            writer.put(bytes).await.map_err(self.error(path, "written"))?;
        }
        Ok(received)
    }
}

/// An upload in progress. Its parts are removed if it is dropped, for example because the client has disconnected.
struct PendingUpload {
    /// `None` once all content was written.
    writer: Option<BufWriter>,
    path: FilePath,
}

impl Drop for PendingUpload {
    fn drop(&mut self) {
        let (Some(mut writer), Ok(runtime)) = (self.writer.take(), Handle::try_current()) else { return };
        let path = self.path.clone();
        runtime.spawn(async move {
            if let Err(error) = writer.abort().await {
                let error = without_response(error.into());
                let error = &*error as &dyn Error;
                tracing::warn!(%path, error, "could not remove the parts of an incomplete upload");
            }
        });
    }
}
