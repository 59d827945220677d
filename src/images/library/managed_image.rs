//! The state of one base image in the library, and the task that obtains the image and keeps it ready.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use isogen::{BaseImage, Digest};
use tokio::sync::{Notify, Semaphore, watch};

use super::base::OpenBaseImage;
use super::dedicated_thread::on_dedicated_thread;
use super::error::{FetchError, error_chain};
use super::fetch;
use super::leases::LibraryLeases;
use super::location::ImageLocation;
use super::open_existing::{self, ExistingImage};
use super::partial_file::{PartClaim, PartialFile};
use super::paths::ImagePaths;
use super::record::{self, DigestText, ImageRecord};
use super::released::ReleasedImages;
use super::remote::DownloadSource;
use super::settings::{DownloadTiming, LibrarySettings};
use super::state::BaseImageState;
use super::verify;
use crate::base_files::BaseFile;
use inventory::catalogue::OsImage;
use isogen::FileStamp;

/// Maximum number of concurrent hash computations. Each one occupies a CPU core.
const PARALLEL_HASHES: usize = 2;
/// Interval at which to check the progress of a download by another process.
const OTHERS_PAUSE: Duration = Duration::from_millis(500);
/// Interval at which to publish the progress of a download or verification.
pub(super) const PROGRESS_PAUSE: Duration = Duration::from_millis(100);
/// Pause before another attempt to download from a URL that provided a wrong image, as a multiple of the longest retry
/// pause. With the default settings, it is a day. It is long, because each attempt downloads a whole image.
const OTHER_IMAGE_PAUSES: u32 = 288;

/// The state that all images of a library share.
#[derive(Debug)]
pub(super) struct LibraryShared {
    pub(super) settings: LibrarySettings,
    /// Limits for images of the catalogue.
    pub(super) configured: WorkLimits,
    /// Limits for added images. They are separate, so that images of the catalogue do not wait for added images.
    pub(super) added: WorkLimits,
    /// Number of state changes of all images.
    pub(super) changes: watch::Sender<u64>,
    pub(super) leases: LibraryLeases,
    pub(super) released: ReleasedImages,
}

/// Limits on concurrent work.
#[derive(Debug)]
pub(super) struct WorkLimits {
    pub(super) downloads: Semaphore,
    pub(super) hashing: Semaphore,
}

impl WorkLimits {
    pub(super) fn new(downloads: usize) -> Self {
        let downloads = Semaphore::new(downloads.clamp(1, Semaphore::MAX_PERMITS));
        Self { downloads, hashing: Semaphore::new(PARALLEL_HASHES) }
    }
}

/// A base image of the library.
pub(super) struct ManagedImage {
    pub(super) image: OsImage,
    pub(super) location: ImageLocation,
    pub(super) remote: Option<DownloadSource>,
    pub(super) paths: ImagePaths,
    pub(super) shared: Arc<LibraryShared>,
    pub(super) status: watch::Sender<ImageStatus>,
    /// Whether a reader has asked for the image. Starts the download with `DownloadTiming::OnFirstUse`.
    pub(super) requested: watch::Sender<bool>,
    /// Whether a user added the image while the library was open.
    pub(super) is_added: bool,
    /// Whether the image was removed from the library.
    pub(super) removed: watch::Sender<bool>,
    /// Notified when a reader or a lease signal reports that the file may have changed.
    pub(super) suspected_change: Notify,
}

impl fmt::Debug for ManagedImage {
    /// Omits the URL of the catalogue entry, which may contain credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut image = f.debug_struct("ManagedImage");
        image.field("name", &self.paths.name()).field("location", &self.location);
        image.field("state", &self.status.borrow().state).finish_non_exhaustive()
    }
}

/// The published status of an image.
#[derive(Clone, Debug, Default)]
pub(super) struct ImageStatus {
    pub(super) state: BaseImageState,
    /// The image, if it is ready.
    pub(super) base: Option<Arc<OpenBaseImage>>,
}

impl ManagedImage {
    /// Keeps the image available: obtains it, retries after failures, and obtains it again when the file changes. Never
    /// returns.
    pub(super) async fn keep_available(self: Arc<Self>) {
        let mut failures = 0_u32;
        loop {
            match self.obtain(failures == 0).await {
                Ok(base) => {
                    failures = 0;
                    self.publish_ready(&base);
                    self.wait_until_replaced(&base).await;
                    tracing::info!(
                        image = self.paths.name(),
                        "base image file was changed, replaced or deleted"
                    );
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    self.wait_for_retry(&error, failures).await;
                }
            }
        }
    }

    /// Publishes a failure, and waits until it is time for the next attempt.
    async fn wait_for_retry(&self, error: &FetchError, failures: u32) {
        let retry = &self.shared.settings.retry;
        if self.remote.is_some() && error.is_other_image() {
            let pause = retry.longest_pause.saturating_mul(OTHER_IMAGE_PAUSES);
            let before = find_stamp(&self.image_path()).await.ok();
            self.publish_failure(error, pause);
            // Try again after the pause, or earlier if the file changes.
            let _ = tokio::time::timeout(pause, self.wait_until_file_differs(before)).await;
            return;
        }
        // If another process is writing the file, do not increase the pause: longer pauses would not help.
        let is_written = matches!(error, FetchError::OpenForWriting { .. } | FetchError::Unstable);
        let pause = retry.pause(if is_written { 1 } else { failures });
        self.publish_failure(error, pause);
        tokio::time::sleep(pause).await;
    }

    async fn obtain(self: &Arc<Self>, is_first: bool) -> Result<Arc<OpenBaseImage>, FetchError> {
        if let Some(base) = self.adopt(is_first).await? {
            return Ok(base);
        }
        self.wait_until_requested().await;
        loop {
            match self.claim_partial_file().await? {
                PartClaim::Ours(part) => return self.download(*part).await,
                PartClaim::Others { have, total } => {
                    self.publish_unready(BaseImageState::Downloading { have, total });
                    tokio::time::sleep(OTHERS_PAUSE).await;
                }
            }
            if let Some(base) = self.adopt(false).await? {
                return Ok(base);
            }
        }
    }

    /// Locks the partial file of the image. Hashes the received bytes if the download can resume.
    async fn claim_partial_file(&self) -> Result<PartClaim, FetchError> {
        let Ok(_permit) = self.limits().hashing.acquire().await else { return Err(FetchError::GivenUp) };
        let (paths, url) = (self.paths.clone(), self.location.to_string());
        on_dedicated_thread(move || PartialFile::claim(&paths, &url)).await?
    }

    /// Downloads the rest of a partial file, unless another process has completed the base image in the meantime.
    async fn download(self: &Arc<Self>, mut part: PartialFile) -> Result<Arc<OpenBaseImage>, FetchError> {
        if let Some(base) = self.adopt(false).await? {
            on_dedicated_thread(move || part.discard()).await?;
            return Ok(base);
        }
        let complete = fetch::download_image(self, part).await?;
        verify::warn_if_unusual(self.paths.name(), &complete.image);
        Ok(self.new_ready_base((complete.image, complete.base_file), (complete.digest, complete.stamp)))
    }

    fn new_ready_base(
        &self,
        opened: (BaseImage, Arc<BaseFile>),
        hashed: (Digest, FileStamp),
    ) -> Arc<OpenBaseImage> {
        Arc::new(OpenBaseImage::new(opened, self.image.clone(), self.paths.clone(), hashed))
    }

    /// Returns the base image in an existing file. Returns `None` if the image must be downloaded, because the file
    /// does not exist or is invalid.
    ///
    /// If the file is a valid but wrong image from the same URL, the server very probably still provides that image.
    /// The first attempt after a start then returns an error, to avoid a useless download.
    async fn adopt(self: &Arc<Self>, is_first: bool) -> Result<Option<Arc<OpenBaseImage>>, FetchError> {
        let path = self.image_path();
        match self.adopt_at(path.clone()).await {
            Ok(None) if self.remote.is_none() => {
                Err(verify::disk_error("opening", &path)(rustix::io::Errno::NOENT.into()))
            }
            Err(error) if is_first && error.is_other_image() && self.is_from_same_url().await => Err(error),
            Err(error) if self.remote.is_some() && error.is_content_error() => {
                let error = error_chain(&error);
                tracing::warn!(
                    image = self.paths.name(),
                    error,
                    "existing file is not usable, downloading the base image"
                );
                Ok(None)
            }
            outcome => outcome,
        }
    }

    /// Returns `true` if the record proves that the file was downloaded from the URL of the entry, and has not changed.
    async fn is_from_same_url(self: &Arc<Self>) -> bool {
        let image = Arc::clone(self);
        let check = on_dedicated_thread(move || {
            let record: ImageRecord = record::read_record(&image.paths.image_record())?;
            let stamp = FileStamp::from(&std::fs::metadata(image.image_path()).ok()?);
            let expected = image.image.sha256.map_or(record.sha256.clone(), DigestText::from);
            Some(
                record.url == image.location.to_string()
                    && record.sha256 == expected
                    && record.stamp == stamp.into(),
            )
        });
        matches!(check.await, Ok(Some(true)))
    }

    async fn adopt_at(self: &Arc<Self>, path: PathBuf) -> Result<Option<Arc<OpenBaseImage>>, FetchError> {
        let (image, at) = (Arc::clone(self), path.clone());
        let Some(existing) = on_dedicated_thread(move || open_existing::open_existing(&at, &image)).await??
        else {
            return Ok(None);
        };
        let (existing, digest) = match existing.recorded_digest() {
            Some(digest) => (existing, digest),
            None => self.complete_record(existing, path).await?,
        };
        if let Some(expected) = self.image.sha256.filter(|expected| *expected != digest) {
            return Err(FetchError::Digest { expected, found: digest });
        }
        Ok(Some(self.new_ready_base((existing.image, existing.base_file), (digest, existing.stamp))))
    }

    /// Reads the whole file to compute the results that are missing in the record.
    async fn complete_record(
        self: &Arc<Self>,
        existing: ExistingImage,
        path: PathBuf,
    ) -> Result<(ExistingImage, Digest), FetchError> {
        let Ok(_permit) = self.limits().hashing.acquire().await else { return Err(FetchError::GivenUp) };
        let image = Arc::clone(self);
        let examination = on_dedicated_thread(move || {
            let digest = match existing.digest {
                Some(digest) => digest,
                None => image.hash_existing(&existing, &path)?,
            };
            existing.verify_and_record((&image.paths, &image.location.to_string()), &path, digest)?;
            Ok((existing, digest))
        });
        examination.await?
    }

    fn hash_existing(&self, existing: &ExistingImage, path: &Path) -> Result<Digest, FetchError> {
        let total = existing.stamp.len;
        let mut progress = ProgressPublisher::new(self);
        let digest = existing
            .hash_file(path, |have| progress.publish_progress(BaseImageState::Verifying { have, total }))?;
        // Warn only when the file is hashed, so that the warning is not repeated at each start.
        verify::warn_if_unusual(self.paths.name(), &existing.image);
        Ok(digest)
    }

    pub(super) fn limits(&self) -> &WorkLimits {
        if self.is_added { &self.shared.added } else { &self.shared.configured }
    }

    /// Returns the path of the complete image, which may not exist yet.
    fn image_path(&self) -> PathBuf {
        match &self.location {
            ImageLocation::File(path) => path.clone(),
            _ => self.paths.image_file(),
        }
    }

    async fn wait_until_requested(&self) {
        if self.shared.settings.when == DownloadTiming::OnFirstUse && !*self.requested.borrow() {
            self.publish_unready(BaseImageState::Absent);
            // Cannot fail, because `self` owns the sender.
            let _ = self.requested.subscribe().wait_for(|is_requested| *is_requested).await;
        }
    }

    /// Waits until the file of the image is created, replaced or deleted.
    async fn wait_until_file_differs(&self, before: Option<Option<FileStamp>>) {
        let path = self.image_path();
        loop {
            tokio::time::sleep(self.shared.settings.recheck).await;
            // Ignore errors: an unreachable file server does not mean that the file has changed.
            if find_stamp(&path).await.is_ok_and(|now| Some(now) != before) {
                return;
            }
        }
    }

    async fn wait_until_replaced(&self, base: &OpenBaseImage) {
        let path = self.image_path();
        loop {
            // Check the file periodically, and after a notification.
            let _ =
                tokio::time::timeout(self.shared.settings.recheck, self.suspected_change.notified()).await;
            let now = tokio::fs::metadata(&path).await;
            if !base.is_unchanged() {
                return;
            }
            match now.map(|metadata| FileStamp::from(&metadata)) {
                Ok(stamp) if stamp != base.file_stamp() => return,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
                // Ignore other errors: an unreachable file server does not mean that the file was replaced.
                _ => {}
            }
        }
    }

    fn publish_ready(&self, base: &Arc<OpenBaseImage>) {
        let (len, digest) = (base.image().source().len(), base.digest());
        tracing::info!(image = self.paths.name(), len, %digest, "base image ready");
        let base = Some(Arc::clone(base));
        self.update_status(|status| {
            *status = ImageStatus { state: BaseImageState::Ready { len, digest }, base }
        });
    }

    fn publish_failure(&self, error: &FetchError, pause: Duration) {
        let (name, location) = (self.paths.name(), &self.location);
        let reason = format!("{name} from {location}: {}", error_chain(error));
        tracing::error!(image = name, reason, ?pause, "base image unavailable, retrying");
        let reason =
            if self.is_added { format!("{name} from {location}: {}", error.public_reason()) } else { reason };
        let state = BaseImageState::Failed { reason, retry_at: retry_time_after(Utc::now(), pause) };
        self.update_status(|status| *status = ImageStatus { state, base: None });
    }

    /// Publishes a state in which the image is not ready.
    pub(super) fn publish_unready(&self, state: BaseImageState) {
        self.update_status(|status| *status = ImageStatus { state, base: None });
    }

    /// Changes the status. Releases the previous open image if the new status has another image or no image. The status
    /// of a removed image is always empty.
    pub(super) fn update_status(&self, change: impl FnOnce(&mut ImageStatus)) {
        let mut released = None;
        self.status.send_modify(|status| {
            let before = status.base.clone();
            change(status);
            if *self.removed.borrow() {
                *status = ImageStatus::default();
            }
            let is_open = |image: &Arc<OpenBaseImage>| {
                status.base.as_ref().is_some_and(|open| Arc::ptr_eq(open, image))
            };
            released = before.filter(|image| !is_open(image));
        });
        released.iter().for_each(|image| self.shared.released.release(image));
        self.shared.changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// Returns the stamp of a file, or `None` if it does not exist.
async fn find_stamp(path: &Path) -> std::io::Result<Option<FileStamp>> {
    match tokio::fs::metadata(path).await {
        Ok(metadata) => Ok(Some(FileStamp::from(&metadata))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Publishes progress at most once per [`PROGRESS_PAUSE`].
pub(super) struct ProgressPublisher<'a> {
    image: &'a ManagedImage,
    published_at: Option<Instant>,
}

impl<'a> ProgressPublisher<'a> {
    pub(super) fn new(image: &'a ManagedImage) -> Self {
        Self { image, published_at: None }
    }

    pub(super) fn publish_progress(&mut self, state: BaseImageState) {
        if self.published_at.is_none_or(|published_at| published_at.elapsed() >= PROGRESS_PAUSE) {
            self.published_at = Some(Instant::now());
            self.image.publish_unready(state);
        }
    }
}

/// Returns the time after a pause. Saturates at the maximum of `DateTime`.
fn retry_time_after(now: DateTime<Utc>, pause: Duration) -> DateTime<Utc> {
    let end = TimeDelta::from_std(pause).ok().and_then(|pause| now.checked_add_signed(pause));
    end.unwrap_or(DateTime::<Utc>::MAX_UTC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_after_a_pause_saturates() {
        let now = DateTime::UNIX_EPOCH;
        assert_eq!(retry_time_after(now, Duration::from_secs(300)), now + TimeDelta::seconds(300));
        for pause in [Duration::from_secs(1 << 50), Duration::MAX] {
            assert_eq!(retry_time_after(now, pause), DateTime::<Utc>::MAX_UTC, "{pause:?}");
        }
    }
}
