//! One image of a library: what is known of it, and the work to have it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use isogen::Digest;
use tokio::sync::{Notify, Semaphore, watch};

use super::adopt::{self, Found};
use super::apart::apart;
use super::base::Base;
use super::download;
use super::error::{FetchError, chain};
use super::leases::Leases;
use super::location::Location;
use super::part::{Claim, Part};
use super::remote::Remote;
use super::settings::{LibrarySettings, When};
use super::shelf::Shelf;
use super::state::State;
use super::verify;
use crate::http::zerocopy::FileStamp;
use crate::images::OsImage;

/// How often it is looked whether another process has got on.
const OTHERS_PAUSE: Duration = Duration::from_millis(500);
/// How often progress is told.
pub(super) const PROGRESS_PAUSE: Duration = Duration::from_millis(100);

/// What all images of a library share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: LibrarySettings,
    /// So many are fetched at a time.
    pub(super) downloads: Semaphore,
    /// So many are hashed at a time.
    pub(super) hashing: Semaphore,
    /// Counts what has changed.
    pub(super) changes: watch::Sender<u64>,
    pub(super) leases: Leases,
}

/// An image, and what is known of it.
pub(super) struct Slot {
    pub(super) image: OsImage,
    pub(super) location: Location,
    pub(super) remote: Option<Remote>,
    pub(super) shelf: Shelf,
    pub(super) shared: Arc<Shared>,
    pub(super) known: watch::Sender<Known>,
    pub(super) wanted: watch::Sender<bool>,
    /// Somebody has seen that the file is not what it was.
    pub(super) doubted: Notify,
}

impl fmt::Debug for Slot {
    /// Without the URL of the catalogue, which may have credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut slot = f.debug_struct("Slot");
        slot.field("name", &self.shelf.name()).field("location", &self.location);
        slot.field("state", &self.known.borrow().state).finish_non_exhaustive()
    }
}

/// What is known of an image.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) state: State,
    /// The image, if it is ready.
    pub(super) base: Option<Arc<Base>>,
    /// The image, if it is coming and has been opened already.
    pub(super) arriving: Option<Arc<Base>>,
}

impl Slot {
    /// Has the image, for ever: fetches it, tries again, and notices when its file is replaced.
    pub(super) async fn keep(self: Arc<Self>) {
        let mut failures = 0_u32;
        loop {
            match self.obtain().await {
                Ok(base) => {
                    failures = 0;
                    self.ready(&base);
                    self.until_replaced(&base).await;
                    tracing::info!(
                        image = self.shelf.name(),
                        "the file of the base image was changed, replaced or deleted"
                    );
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    // A file that is being written is complete soon, or never.
                    let is_written =
                        matches!(error, FetchError::OpenForWriting { .. } | FetchError::Unstable);
                    let pause = self.shared.settings.retry.pause(if is_written { 1 } else { failures });
                    self.fail(&error, pause);
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    async fn obtain(self: &Arc<Self>) -> Result<Arc<Base>, FetchError> {
        if let Some(base) = self.adopt().await? {
            return Ok(base);
        }
        self.until_wanted().await;
        loop {
            let (shelf, url) = (self.shelf.clone(), self.location.to_string());
            match apart(move || Part::claim(&shelf, &url)).await?? {
                Claim::Ours(part) => return self.fetch(*part).await,
                Claim::Others { have, total } => {
                    self.publish(State::Downloading { have, total });
                    tokio::time::sleep(OTHERS_PAUSE).await;
                }
            }
            if let Some(base) = self.adopt().await? {
                return Ok(base);
            }
        }
    }

    /// Downloads the rest of a part, unless whoever had it before has just made it the image.
    async fn fetch(self: &Arc<Self>, mut part: Part) -> Result<Arc<Base>, FetchError> {
        if let Some(base) = self.adopt().await? {
            apart(move || part.discard()).await?;
            return Ok(base);
        }
        let complete = download::download(self, part).await?;
        verify::warn(self.shelf.name(), &self.image, &complete.image);
        let known = (complete.digest, complete.stamp);
        Ok(Arc::new(Base::complete(
            (complete.image, complete.base_file),
            self.image.clone(),
            self.shelf.clone(),
            known,
        )))
    }

    /// Takes the file that is there, if there is one and it is good. One of our own that is not good is fetched anew.
    async fn adopt(self: &Arc<Self>) -> Result<Option<Arc<Base>>, FetchError> {
        let path = self.path();
        match self.adopt_at(path.clone()).await {
            Ok(None) if self.remote.is_none() => {
                Err(verify::disk("opening", &path)(rustix::io::Errno::NOENT.into()))
            }
            Err(error) if self.remote.is_some() && error.is_of_contents() => {
                let error = chain(&error);
                tracing::warn!(image = self.shelf.name(), error, "the file that is there is not used");
                Ok(None)
            }
            outcome => outcome,
        }
    }

    async fn adopt_at(self: &Arc<Self>, path: PathBuf) -> Result<Option<Arc<Base>>, FetchError> {
        let (slot, at) = (Arc::clone(self), path.clone());
        let Some(found) = apart(move || adopt::look(&at, &slot)).await?? else { return Ok(None) };
        let (found, digest) = match found.recorded() {
            Some(digest) => (found, digest),
            None => self.examine(found, path).await?,
        };
        if let Some(expected) = self.image.sha256.filter(|expected| *expected != digest) {
            return Err(FetchError::Digest { expected, found: digest });
        }
        let known = (digest, found.stamp);
        Ok(Some(Arc::new(Base::complete(
            (found.image, found.base_file),
            self.image.clone(),
            self.shelf.clone(),
            known,
        ))))
    }

    /// Finds out what the record does not have, which takes reading the file.
    async fn examine(self: &Arc<Self>, found: Found, path: PathBuf) -> Result<(Found, Digest), FetchError> {
        let Ok(_permit) = self.shared.hashing.acquire().await else { return Err(FetchError::GivenUp) };
        let slot = Arc::clone(self);
        let examined = apart(move || {
            let digest = match found.digest {
                Some(digest) => digest,
                None => slot.hash(&found, &path)?,
            };
            found.verify_and_record((&slot.shelf, &slot.location.to_string()), &path, digest)?;
            Ok((found, digest))
        });
        examined.await?
    }

    fn hash(&self, found: &Found, path: &Path) -> Result<Digest, FetchError> {
        let total = found.stamp.len;
        let mut progress = Progress::new(self);
        let digest = found.hash(path, |have| progress.tell(State::Verifying { have, total }))?;
        // Oddities are logged once per file, not at each start.
        verify::warn(self.shelf.name(), &self.image, &found.image);
        Ok(digest)
    }

    /// Where the image is, or will be.
    fn path(&self) -> PathBuf {
        match &self.location {
            Location::File(path) => path.clone(),
            _ => self.shelf.image(),
        }
    }

    async fn until_wanted(&self) {
        if self.shared.settings.when == When::OnFirstUse && !*self.wanted.borrow() {
            self.publish(State::Absent);
            // The other end is this slot itself.
            let _ = self.wanted.subscribe().wait_for(|wanted| *wanted).await;
        }
    }

    async fn until_replaced(&self, base: &Base) {
        let path = self.path();
        loop {
            // Whether it is time or somebody has seen a change, the file tells.
            let _ = tokio::time::timeout(self.shared.settings.recheck, self.doubted.notified()).await;
            let now = tokio::fs::metadata(&path).await;
            if !base.is_unchanged() {
                return;
            }
            match now.map(|metadata| FileStamp::from(&metadata)) {
                Ok(stamp) if Some(stamp) != base.stamp() => return,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
                // A file server that does not answer has not replaced anything.
                _ => {}
            }
        }
    }

    fn ready(&self, base: &Arc<Base>) {
        let (len, digest) = (base.image().source().len(), base.digest().unwrap_or_default());
        tracing::info!(image = self.shelf.name(), len, %digest, "the image is ready");
        let base = Some(Arc::clone(base));
        self.change(|known| *known = Known { state: State::Ready { len, digest }, base, arriving: None });
    }

    fn fail(&self, error: &FetchError, pause: Duration) {
        let reason = format!("{} from {}: {}", self.shelf.name(), self.location, chain(error));
        tracing::error!(image = self.shelf.name(), reason, ?pause, "base image unavailable, retrying");
        let retry_at =
            chrono::TimeDelta::from_std(pause).ok().and_then(|pause| Utc::now().checked_add_signed(pause));
        let state = State::Failed { reason, retry_at: retry_at.unwrap_or_default() };
        self.change(|known| *known = Known { state, base: None, arriving: None });
    }

    /// Tells a state in which nothing is ready. What has been opened early stays.
    pub(super) fn publish(&self, state: State) {
        self.change(|known| {
            known.state = state;
            known.base = None;
        });
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Known)) {
        self.known.send_modify(change);
        self.shared.changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// Tells progress, but not each step of it.
pub(super) struct Progress<'a> {
    slot: &'a Slot,
    told: Option<Instant>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(slot: &'a Slot) -> Self {
        Self { slot, told: None }
    }

    pub(super) fn tell(&mut self, state: State) {
        if self.told.is_none_or(|told| told.elapsed() >= PROGRESS_PAUSE) {
            self.told = Some(Instant::now());
            self.slot.publish(state);
        }
    }
}
