//! File storage: logs from hosts, manifests and other files of installations.
//!
//! Files are in a directory, or in a bucket shared by several replicas. Each write is atomic: a reader sees the old or
//! the new file as a whole. A client that is reading a file when it is replaced receives all of the old file.

mod error;
mod in_bucket;
mod parts;
mod path;
mod upload;

use std::fmt;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, TryStreamExt};
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::bucket::{BucketFailure, s3_from_env, without_response};

pub use crate::tar::LongName;
pub use error::{Cause, FileError};
pub use in_bucket::BucketLimits;
use in_bucket::FileBucket;
pub use path::FilePath;
use upload::PendingUpload;

/// Length of an uploaded part. Longer files are uploaded in parts, two at a time. The minimum of S3 is 5 MiB.
const PART_LEN: usize = 8 << 20;
const MAX_PARTS_AT_ONCE: usize = 2;
/// Maximum number of bytes of a file in memory during a write: the parts being sent and the next part.
pub(super) const MAX_BUFFERED: usize = PART_LEN * (MAX_PARTS_AT_ONCE + 1);
/// Maximum number of files in a listed folder. No record has that many files.
const MAX_LISTED: usize = 10_000;
/// Age after which an incomplete upload is abandoned. Stalled clients are disconnected long before.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

impl FilePath {
    /// Joins names into a path, outermost first. A name has only letters, digits, `.`, `_` and `-`, and does not start
    /// with `.`.
    ///
    /// # Errors
    ///
    /// Returns an error if a name is not valid, if no name is given, or if the path is too long.
    pub fn from_names<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Result<Self, FileError> {
        Self::join(names).map_err(|name| FileError::Name { name })
    }
}

/// A file storage. Clones use the same storage.
#[derive(Clone, Debug)]
pub struct FileStore {
    objects: Arc<dyn ObjectStore>,
    bucket: Option<Arc<FileBucket>>,
    /// The lock that shows other processes that parts in the directory may belong to uploads in progress.
    _in_use: Option<Arc<File>>,
}

/// Path, length and time of a stored file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// The path in the store.
    pub path: FilePath,
    /// The length in bytes.
    pub len: u64,
    /// Time of the last write.
    pub written_at: DateTime<Utc>,
}

/// A file that is ready to be read.
pub struct OpenFile {
    /// Path, length and time of the file.
    pub info: FileInfo,
    /// The bytes of the file.
    pub content: BoxStream<'static, Result<Bytes, FileError>>,
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFile").field("info", &self.info).finish_non_exhaustive()
    }
}

impl FileStore {
    /// Opens a store in a directory or, for `s3://BUCKET/PREFIX`, in a bucket. A bucket uses the credentials in `AWS_*`
    /// and the endpoint in `S3_ENDPOINT_URL` if it is set. The certificates in `SSL_CERT_FILE` replace the system's.
    ///
    /// If the process is killed during an upload, its parts stay until they are
    /// [removed](Self::remove_abandoned_uploads).
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be created or the bucket settings are invalid. Does not connect to the
    /// bucket.
    pub fn open(place: &str) -> Result<Self, FileError> {
        Self::open_with_limits(place, BucketLimits::default())
    }

    /// Opens a store like [`open`](Self::open), with these time limits for a bucket.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases.
    pub fn open_with_limits(place: &str, limits: BucketLimits) -> Result<Self, FileError> {
        match place.split_once("://") {
            Some(("s3", bucket)) => Self::in_bucket(bucket, limits),
            Some((scheme, _)) => Err(FileError::UnknownScheme { scheme: scheme.to_owned() }),
            None => Self::in_directory(Path::new(place)),
        }
    }

    /// Opens a store in a directory, which is created if it does not exist. Removes upload parts that a killed process
    /// left.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be created, read or locked.
    pub fn in_directory(directory: &Path) -> Result<Self, FileError> {
        let failed = |source| FileError::Directory { path: directory.to_owned(), source };
        // Only the owner may access the directory, because logs and manifests may contain secrets.
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
            // An invalid bucket name may contain credentials, so the error does not contain it.
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

    /// Checks that a bucket responds and exists. A directory is not checked.
    ///
    /// # Errors
    ///
    /// Returns an error if the bucket does not respond, does not exist, or refuses the credentials.
    pub async fn check(&self) -> Result<(), FileError> {
        if self.bucket.is_some() {
            // No file has this name: the request only shows whether the bucket responds.
            self.get(&FilePath::from_names(["kindling-check"])?).await?;
        }
        Ok(())
    }

    /// Removes uploads to a bucket that have been incomplete for a day, because their processes were killed. Incomplete
    /// uploads in a directory are removed when the directory is opened.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage fails.
    pub async fn remove_abandoned_uploads(&self, now: DateTime<Utc>) -> Result<usize, FileError> {
        self.remove_incomplete_uploads(ABANDONED, now).await
    }

    /// Removes incomplete uploads to a bucket that began more than `age` before `now`. Returns the number of removed
    /// uploads.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage fails.
    pub async fn remove_incomplete_uploads(
        &self,
        age: Duration,
        now: DateTime<Utc>,
    ) -> Result<usize, FileError> {
        let Some(bucket) = &self.bucket else { return Ok(0) };
        // `None`: the time is before the start of the calendar, so no upload is old enough.
        let before = TimeDelta::from_std(age).ok().and_then(|age| now.checked_sub_signed(age));
        let Some(before) = before else { return Ok(0) };
        let removed = bucket.remove_incomplete_uploads(before).await;
        removed.map_err(self.error(&FilePath::from_names(["incomplete-uploads"])?, "removed"))
    }

    /// Writes a file, which replaces an existing one, and returns its length. If writing fails, no partial file is
    /// visible.
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
        let mut upload = PendingUpload::new(writer, path.clone());
        let len = upload.write(content, most, self.error(path, "written")).await?;
        upload.complete().await.map_err(self.error(path, "written"))?;
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

    /// Deletes a file. Succeeds if the file does not exist.
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
        let mut files = Vec::new();
        let mut objects = self.objects.list(Some(&folder.to_object()));
        while let Some(object) = objects.next().await {
            let object = object.map_err(self.error(folder, "listed"))?;
            // Skip objects of other programs.
            let Ok(path) = FilePath::from_names(object.location.as_ref().split('/')) else { continue };
            if files.len() == MAX_LISTED {
                return Err(FileError::TooMany { folder: folder.clone(), most: MAX_LISTED });
            }
            files.push(FileInfo { path, len: object.size, written_at: object.last_modified });
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(files)
    }

    /// Returns a function that converts a storage error. The result contains nothing that a bucket's server sent.
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
}
