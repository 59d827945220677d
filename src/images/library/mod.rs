//! The image library: downloads, verifies and opens base images, and identifies them by their digests.
//!
//! Each image has its own task, so an unavailable image does not delay others:
//!
//! ```text
//!            +--------------- a valid file exists ---------------+
//!            |                                                   v
//! Absent ----+--> Downloading --> Verifying ----------------> Ready
//!   ^                |  ^             |                          |
//!   |                v  |             v                          |
//!   |              Failed, until `retry_at` <--------------------+
//!   +---------------- the file was replaced or deleted ----------+
//! ```
//!
//! A download goes to a file with another name, which is never served. When it is complete, the library checks the
//! length, the structure and, if the catalogue contains it, the SHA-256 digest. Then it renames the file.
//!
//! The library has the SHA-256 digest of every ready image. It reads the digest from a record next to the file if the
//! length, inode and times in the record match the file. Otherwise, it hashes the file. A file lease proves that the
//! bytes do not change afterwards. If a process dies during a download, the next process resumes it, provided that the
//! server still has the same version.
//!
//! Several processes may use the same directory, even one that they cannot write to. Only one process downloads each
//! image.
//!
//! Users may add images while the library is open. [`AddedImageServers`] limits the servers of added images, which must
//! be HTTP servers.
//!
//! The library has no dependency on infra-envs and does not serve requests.

mod added_servers;
mod base;
mod dedicated_thread;
mod error;
mod fetch;
mod leases;
mod location;
mod managed_image;
mod open_existing;
mod partial_file;
mod paths;
mod record;
mod released;
mod remote;
mod settings;
mod state;
mod verify;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use inventory::catalogue::OsImage;

pub use added_servers::AddedImageServers;
pub(crate) use base::BaseImageId;
pub use base::OpenBaseImage;
pub use error::{ImageNotReady, LibraryError, NmstatectlError};
pub use location::ImageLocationError;
pub use settings::{DownloadTiming, LibrarySettings, RetryPolicy, ServerTrust, UnknownFiles};
pub use state::{BaseImageState, ImageState};
pub(crate) use verify::image_architecture;

use error::error_chain;
use leases::LibraryLeases;
use location::ImageLocation;
use managed_image::{ImageStatus, LibraryShared, ManagedImage, WorkLimits};
use paths::{ImageKey, ImagePaths};
use released::ReleasedImages;
use remote::{DownloadSource, RemoteClient};

/// Maximum number of concurrent downloads of added images. A download that exceeds its
/// [turn](LibrarySettings::added_turn) does not count.
const PARALLEL_ADDED_DOWNLOADS: usize = 2;

/// An image library. Clones share its state; dropping the last clone stops the background work.
#[derive(Clone, Debug)]
pub struct Library {
    inner: Arc<LibraryInner>,
}

#[derive(Debug)]
struct LibraryInner {
    slots: RwLock<BTreeMap<ImageKey, LibrarySlot>>,
    shared: Arc<LibraryShared>,
    /// The client for added images. Created on first use, because reading the certificates takes milliseconds.
    added_client: OnceLock<RemoteClient>,
    runtime: Handle,
}

/// An image of the library, and the task that keeps it available.
#[derive(Debug)]
struct LibrarySlot {
    image: Arc<ManagedImage>,
    task: JoinHandle<()>,
}

impl Drop for LibrarySlot {
    fn drop(&mut self) {
        self.image.removed.send_replace(true);
        self.task.abort();
        // Close the file now, because tasks that wait for the image may keep the `ManagedImage` alive.
        self.image.update_status(|status| *status = ImageStatus::default());
    }
}

impl LibraryInner {
    fn slots(&self) -> RwLockReadGuard<'_, BTreeMap<ImageKey, LibrarySlot>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn slots_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<ImageKey, LibrarySlot>> {
        self.slots.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Library {
    /// Opens a library of the images of a catalogue. Returns immediately. Opens existing files and downloads missing
    /// images in the background. Entries with the same version, architecture and type are one image, for which the
    /// library uses the URL of the entry with the newest OpenShift version.
    ///
    /// # Errors
    ///
    /// Returns an error if the settings or an entry of the catalogue are invalid, if two entries of one image have
    /// different digests, if the directory cannot be used, or if the caller is not in a Tokio runtime.
    pub fn open(
        settings: LibrarySettings,
        images: impl IntoIterator<Item = OsImage>,
    ) -> Result<Self, LibraryError> {
        Self::open_with_added(settings, images, [])
    }

    /// Opens a library of the images of a catalogue, and of the images that users [added](Self::set_added) earlier.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`open`](Self::open). Logs and ignores invalid added images.
    pub fn open_with_added(
        settings: LibrarySettings,
        images: impl IntoIterator<Item = OsImage>,
        added: impl IntoIterator<Item = OsImage>,
    ) -> Result<Self, LibraryError> {
        let runtime = Handle::try_current().map_err(|_| LibraryError::NoRuntime)?;
        let directory = settings.directory.clone();
        let failed = |source| LibraryError::Directory { path: directory.clone(), source };
        std::fs::create_dir_all(&directory).map_err(failed)?;
        let client = RemoteClient::new(&settings)?;
        let shared = Arc::new(LibraryShared {
            configured: WorkLimits::new(settings.parallel_downloads),
            added: WorkLimits::new(PARALLEL_ADDED_DOWNLOADS),
            changes: watch::Sender::new(0),
            leases: LibraryLeases::new(),
            released: ReleasedImages::default(),
            settings,
        });
        let images = distinct_images(images)?.into_iter().map(|(key, image)| {
            let image = new_image(&key, image, &shared, &client)?;
            Ok((key, image))
        });
        let images: BTreeMap<_, _> = images.collect::<Result<_, LibraryError>>()?;
        let added: Vec<OsImage> = added.into_iter().collect();
        if shared.settings.unknown == UnknownFiles::Prune {
            let image_paths: Vec<_> = images.values().map(|image| image.paths.clone()).collect();
            paths::remove_unknown_images(&directory, &image_paths).map_err(failed)?;
        }
        let paths = |image: &OsImage| ImagePaths::for_added(&directory, &ImageKey::new(image), &image.url);
        let added_paths: Vec<_> = added.iter().map(paths).collect();
        paths::remove_unknown_added(&directory, &added_paths).map_err(failed)?;
        let start = |(key, image): (ImageKey, ManagedImage)| (key, LibrarySlot::start(image, &runtime));
        let slots = RwLock::new(images.into_iter().map(start).collect());
        let library =
            Self { inner: Arc::new(LibraryInner { slots, shared, added_client: OnceLock::new(), runtime }) };
        library.set_added(added);
        Ok(library)
    }

    /// Sets the list of added images, which the library provides in addition to the images of the catalogue. Downloads
    /// new images immediately. Removes images that are no longer in the list, and their files; readers in progress
    /// continue. An image of the catalogue takes precedence over an added image with the same version, architecture and
    /// type. Logs and ignores invalid images.
    ///
    /// [`is_ready`](Self::is_ready) does not depend on added images.
    pub fn set_added(&self, images: impl IntoIterator<Item = OsImage>) {
        let mut new_images = BTreeMap::new();
        for image in images {
            match self.new_added_image(image) {
                Ok((key, image)) => {
                    new_images.entry(key).or_insert(image);
                }
                Err(error) => tracing::error!(error = error_chain(&error), "added base image not used"),
            }
        }
        let is_removed = |key: &ImageKey, slot: &mut LibrarySlot| {
            let is_same = |new: &ManagedImage| {
                new.image.url == slot.image.image.url && new.image.sha256 == slot.image.image.sha256
            };
            slot.image.is_added && !new_images.get(key).is_some_and(is_same)
        };
        let removed: Vec<_> = self.inner.slots_mut().extract_if(.., is_removed).collect();
        for (_, slot) in removed {
            let paths = slot.image.paths.clone();
            // Dropping the slot ends the download.
            drop(slot);
            paths.remove_own_directory();
        }
        let mut slots = self.inner.slots_mut();
        for (key, image) in new_images {
            match slots.entry(key) {
                Entry::Vacant(entry) => {
                    image.requested.send_replace(true);
                    entry.insert(LibrarySlot::start(image, &self.inner.runtime));
                }
                Entry::Occupied(entry) if entry.get().image.image.url != image.image.url => {
                    let image = entry.key();
                    tracing::warn!(%image, "added base image not used: a configured one has the same version");
                }
                Entry::Occupied(_) => {}
            }
        }
        drop(slots);
        self.inner.shared.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    fn new_added_image(&self, image: OsImage) -> Result<(ImageKey, ManagedImage), LibraryError> {
        let key = ImageKey::new(&image);
        if !image.has_safe_version() {
            return Err(LibraryError::Version { version: image.version });
        }
        let client = match self.inner.added_client.get() {
            Some(client) => client,
            None => {
                let client = RemoteClient::for_added_images(&self.inner.shared.settings)?;
                self.inner.added_client.get_or_init(|| client)
            }
        };
        let mut image = new_image(&key, image, &self.inner.shared, client)?;
        image.is_added = true;
        image.paths = ImagePaths::for_added(&self.inner.shared.settings.directory, &key, &image.image.url);
        match image.location {
            ImageLocation::Http(_) => Ok((key, image)),
            ImageLocation::Bucket { .. } | ImageLocation::File(_) => {
                Err(LibraryError::AddedLocation { image: key.to_string() })
            }
        }
    }

    /// Returns the state of each image.
    #[must_use]
    pub fn states(&self) -> Vec<ImageState> {
        let state = |LibrarySlot { image, .. }: &LibrarySlot| ImageState {
            is_added: image.is_added,
            image: image.image.clone(),
            name: image.paths.name().to_owned(),
            state: image.status.borrow().state.clone(),
        };
        self.inner.slots().values().map(state).collect()
    }

    /// Returns the state of an image, or `None` if it is not in this library.
    #[must_use]
    pub fn state(&self, image: &OsImage) -> Option<BaseImageState> {
        self.find_image(image).map(|image| image.status.borrow().state.clone())
    }

    /// Returns a counter of state changes. To show progress, wait for a change and then read the
    /// [states](Self::states). During a download, the counter changes about ten times per second for each image.
    #[must_use]
    pub fn state_changes(&self) -> watch::Receiver<u64> {
        self.inner.shared.changes.subscribe()
    }

    /// Returns `true` if all images of the catalogue can be used. With [`DownloadTiming::OnFirstUse`], images that were
    /// never requested count as ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let is_lazy = self.inner.shared.settings.when == DownloadTiming::OnFirstUse;
        let is_ready = |LibrarySlot { image, .. }: &LibrarySlot| {
            let is_asked_for = !is_lazy || *image.requested.borrow();
            image.status.borrow().state.is_ready() || !is_asked_for
        };
        self.inner.slots().values().filter(|slot| !slot.image.is_added).all(is_ready)
    }

    /// Waits until all images of the catalogue [can be used](Self::is_ready), even if downloads fail in between.
    pub async fn wait_all_ready(&self) {
        let mut changes = self.state_changes();
        while !self.is_ready() {
            // Cannot fail, because the library owns the sender.
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until an image is ready, and returns it.
    ///
    /// # Errors
    ///
    /// Returns an error if the image is not in this library, if the latest attempt to obtain it failed (the library
    /// retries later), or if `image` has another digest.
    pub async fn base(&self, image: &OsImage) -> Result<Arc<OpenBaseImage>, ImageNotReady> {
        self.wait_for_outcome(image, ManagedImage::latest_outcome).await
    }

    /// Returns an image if it is ready. With [`DownloadTiming::OnFirstUse`], this counts as its first use and starts
    /// the download.
    ///
    /// # Errors
    ///
    /// Returns an error if the image is not in this library or is not ready, if the latest attempt to obtain it failed,
    /// or if `image` has another digest.
    pub fn base_now(&self, image: &OsImage) -> Result<Arc<OpenBaseImage>, ImageNotReady> {
        let requested = self.mark_requested(image)?;
        let outcome = requested.latest_outcome(&requested.status.borrow());
        let on_its_way = || ImageNotReady::OnItsWay { image: requested.paths.name().to_owned() };
        require_digest(image, outcome.ok_or_else(on_its_way)??)
    }

    /// Waits until an image is ready, and returns it. Continues to wait if attempts to obtain the image fail.
    ///
    /// # Errors
    ///
    /// Returns an error if the image is not in this library, or if `image` has another digest.
    pub async fn wait_ready(&self, image: &OsImage) -> Result<Arc<OpenBaseImage>, ImageNotReady> {
        self.wait_for_outcome(image, |_, status| status.base.clone().map(Ok)).await
    }

    /// Checks immediately if the file of an image has changed. Readers call this when they detect a change.
    pub fn recheck(&self, image: &OsImage) {
        if let Some(image) = self.find_image(image) {
            image.suspected_change.notify_one();
        }
    }

    /// Registers a hook for the removal or replacement of base images. The hook drops cached objects that keep the file
    /// of the base image open. Readers in progress continue.
    pub(crate) fn on_release(&self, hook: impl Fn(&OpenBaseImage) + Send + Sync + 'static) {
        self.inner.shared.released.add_hook(Box::new(hook));
    }

    /// Returns the total length of deleted base images that readers in progress keep on the disk. Does not count a file
    /// that remains only because a client has not acknowledged all sent pages.
    #[must_use]
    pub fn deleted_bytes(&self) -> u64 {
        self.inner.shared.released.deleted_bytes()
    }

    async fn wait_for_outcome(
        &self,
        image: &OsImage,
        outcome: impl Fn(&ManagedImage, &ImageStatus) -> Option<Result<Arc<OpenBaseImage>, ImageNotReady>>,
    ) -> Result<Arc<OpenBaseImage>, ImageNotReady> {
        let requested = self.mark_requested(image)?;
        let (mut status, mut removed) = (requested.status.subscribe(), requested.removed.subscribe());
        let ready = async {
            loop {
                let result = outcome(&requested, &status.borrow_and_update());
                match result {
                    Some(result) => return require_digest(image, result?),
                    // Cannot fail: `requested` owns the sender.
                    None => _ = status.changed().await,
                }
            }
        };
        tokio::select! {
            result = ready => result,
            _ = removed.wait_for(|removed| *removed) => Err(ImageNotReady::unknown(&ImageKey::new(image))),
        }
    }

    fn find_image(&self, image: &OsImage) -> Option<Arc<ManagedImage>> {
        self.inner.slots().get(&ImageKey::new(image)).map(|slot| Arc::clone(&slot.image))
    }

    /// Returns an image and marks it as requested, which starts a deferred download.
    fn mark_requested(&self, image: &OsImage) -> Result<Arc<ManagedImage>, ImageNotReady> {
        let managed = self.find_image(image).ok_or_else(|| ImageNotReady::unknown(&ImageKey::new(image)))?;
        if !*managed.requested.borrow() {
            managed.requested.send_replace(true);
        }
        Ok(managed)
    }
}

impl LibrarySlot {
    fn start(image: ManagedImage, runtime: &Handle) -> Self {
        let image = Arc::new(image);
        let task = runtime.spawn(Arc::clone(&image).keep_available());
        Self { image, task }
    }
}

impl ManagedImage {
    /// Returns the image or the error of the latest attempt, or `None` if an attempt is in progress.
    fn latest_outcome(&self, status: &ImageStatus) -> Option<Result<Arc<OpenBaseImage>, ImageNotReady>> {
        match (&status.base, &status.state) {
            (Some(base), _) => Some(Ok(Arc::clone(base))),
            (None, BaseImageState::Failed { reason, retry_at }) => {
                Some(Err(ImageNotReady::Failed { reason: reason.clone(), retry_at: *retry_at }))
            }
            _ => None,
        }
    }
}

/// Returns an error if the digest of a base image differs from the digest in the requested entry. Entries with the same
/// version share a file, and the library compares the file with only one of them.
fn require_digest(image: &OsImage, base: Arc<OpenBaseImage>) -> Result<Arc<OpenBaseImage>, ImageNotReady> {
    let digest = base.digest();
    match image.sha256.filter(|expected| *expected != digest) {
        None => Ok(base),
        Some(expected) => Err(ImageNotReady::OtherDigest {
            image: ImageKey::new(image).to_string(),
            expected,
            found: digest,
        }),
    }
}

/// Reduces the catalogue to one entry for each file. The digest of any entry for a file applies to the file.
fn distinct_images(
    images: impl IntoIterator<Item = OsImage>,
) -> Result<BTreeMap<ImageKey, OsImage>, LibraryError> {
    let mut distinct = BTreeMap::<ImageKey, OsImage>::new();
    for image in images {
        let key = ImageKey::new(&image);
        if !image.has_safe_version() {
            return Err(LibraryError::Version { version: image.version });
        }
        let version = image.parsed_version()?;
        match distinct.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(image);
            }
            Entry::Occupied(mut entry) => {
                let existing = entry.get_mut();
                if let (Some(one), Some(other)) = (existing.sha256, image.sha256)
                    && one != other
                {
                    return Err(LibraryError::ContradictoryDigest {
                        image: ImageKey::new(&image).to_string(),
                    });
                }
                if existing.url != image.url {
                    tracing::warn!(image = %ImageKey::new(&image), "catalogue lists this image with several URLs, using one of them");
                }
                let is_newer = version > existing.parsed_version()?;
                let sha256 = existing.sha256.or(image.sha256);
                if is_newer {
                    *existing = image;
                }
                existing.sha256 = existing.sha256.or(sha256);
            }
        }
    }
    Ok(distinct)
}

fn new_image(
    key: &ImageKey,
    image: OsImage,
    shared: &Arc<LibraryShared>,
    client: &RemoteClient,
) -> Result<ManagedImage, LibraryError> {
    let location = ImageLocation::parse(&image.url)
        .map_err(|source| LibraryError::Location { image: key.to_string(), source })?;
    Ok(ManagedImage {
        remote: DownloadSource::new(&location, client)?,
        paths: ImagePaths::new(&shared.settings.directory, key),
        shared: Arc::clone(shared),
        status: watch::Sender::default(),
        requested: watch::Sender::default(),
        removed: watch::Sender::default(),
        is_added: false,
        suspected_change: Notify::new(),
        location,
        image,
    })
}
