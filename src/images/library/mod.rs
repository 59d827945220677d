//! The live images on this machine: fetched, checked, opened, and told apart by their digests.
//!
//! Each image goes its own way, and one that cannot be had holds up no other:
//!
//! ```text
//!            +-------- a file that is there and is good ---------+
//!            |                                                   v
//! Absent ----+--> Downloading --> Verifying ----------------> Ready
//!   ^                |  ^             |                          |
//!   |                v  |             v                          |
//!   |              Failed, until `retry_at` <--------------------+
//!   +---------------- the file was replaced or deleted ----------+
//! ```
//!
//! What is half written bears another name, and becomes the image by being renamed: after its length, its structure and,
//! where the catalogue tells it, its SHA-256 have been found right. The SHA-256 of every image that is ready is known: it
//! comes from a record beside the file, as long as the length, inode and times of the file are those of the record, and is
//! computed otherwise. A file lease proves that it keeps these bytes. A process that dies leaves a part that
//! the next one goes on with, if the server still has the same version.
//!
//! Several processes may have the same directory, even one that they may only read; each image is fetched by one of them.
//!
//! The library says nothing about infra-envs and serves nothing.

mod adopt;
mod apart;
mod arrival;
mod base;
mod download;
mod error;
mod leases;
mod location;
mod part;
mod record;
mod remote;
mod settings;
mod shelf;
mod slot;
mod state;
mod verify;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinHandle;

use super::catalogue::OsImage;
use super::version::Version;

pub use base::Base;
pub use error::{LibraryError, NmstatectlError, NotReady};
pub use location::LocationError;
pub use settings::{LibrarySettings, RetryPolicy, Trust, Unknown, When};
pub use state::{ImageState, State};

use leases::Leases;
use location::Location;
use remote::{Client, Remote};
use shelf::{Key, Shelf};
use slot::{Known, Shared, Slot};

/// Hashing takes a processor each.
const PARALLEL_HASHES: usize = 2;

/// The images that there are. Clones are the same library; the last of them takes the work with it.
#[derive(Clone, Debug)]
pub struct Library {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    slots: BTreeMap<Key, Arc<Slot>>,
    shared: Arc<Shared>,
    work: Vec<JoinHandle<()>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        for work in &self.work {
            work.abort();
        }
    }
}

impl Library {
    /// Opens a library of the images of a catalogue. It returns at once: files that are there are opened, and others are
    /// fetched, in the background. Images that agree in version, architecture and type are one; of their URLs, the one of
    /// the newest version of OpenShift is used.
    ///
    /// # Errors
    ///
    /// When the settings or an entry of the catalogue make no sense, the directory is not to be had, or there is no
    /// runtime.
    pub fn open(
        settings: LibrarySettings,
        images: impl IntoIterator<Item = OsImage>,
    ) -> Result<Self, LibraryError> {
        let runtime = Handle::try_current().map_err(|_| LibraryError::NoRuntime)?;
        let directory = settings.directory.clone();
        let failed = |source| LibraryError::Directory { path: directory.clone(), source };
        std::fs::create_dir_all(&directory).map_err(failed)?;
        let client = Client::new(&settings)?;
        let shared = Arc::new(Shared {
            downloads: Semaphore::new(settings.parallel_downloads.clamp(1, Semaphore::MAX_PERMITS)),
            hashing: Semaphore::new(PARALLEL_HASHES),
            changes: watch::Sender::new(0),
            leases: Leases::new(),
            settings,
        });
        let mut slots = BTreeMap::new();
        for (key, image) in distinct(images)? {
            slots.insert(key.clone(), Arc::new(slot(&key, image, &shared, &client)?));
        }
        if shared.settings.unknown == Unknown::Prune {
            shelf::prune(&directory, slots.values().map(|slot| &slot.shelf)).map_err(failed)?;
        }
        let work = slots.values().map(|slot| runtime.spawn(Arc::clone(slot).keep())).collect();
        Ok(Self { inner: Arc::new(Inner { slots, shared, work }) })
    }

    /// How far each image is.
    #[must_use]
    pub fn states(&self) -> Vec<ImageState> {
        let state = |slot: &Arc<Slot>| ImageState {
            image: slot.image.clone(),
            name: slot.shelf.name().to_owned(),
            state: slot.known.borrow().state.clone(),
        };
        self.inner.slots.values().map(state).collect()
    }

    /// How far an image is; nothing for one that is not of this library.
    #[must_use]
    pub fn state(&self, image: &OsImage) -> Option<State> {
        self.inner.slots.get(&Key::of(image)).map(|slot| slot.known.borrow().state.clone())
    }

    /// Counts what changes: whoever shows progress waits for a change, and looks at the [states](Self::states). While
    /// bytes come, there are some ten changes each second and image.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.shared.changes.subscribe()
    }

    /// Whether all images can be used. Those that are only fetched when somebody asks for them, and that nobody has asked
    /// for, count as if they could.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let is_lazy = self.inner.shared.settings.when == When::OnFirstUse;
        let is_ready = |slot: &Arc<Slot>| {
            let is_asked_for = !is_lazy || *slot.wanted.borrow();
            slot.known.borrow().state.is_ready() || !is_asked_for
        };
        self.inner.slots.values().all(is_ready)
    }

    /// Waits until all images [can be used](Self::is_ready), however often one fails on the way.
    pub async fn ready(&self) {
        let mut changes = self.changes();
        while !self.is_ready() {
            // The sender is part of this library.
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// An image, as soon as it is ready.
    ///
    /// # Errors
    ///
    /// When it is not of this library, or could not be had; it is tried again later.
    pub async fn base(&self, image: &OsImage) -> Result<Arc<Base>, NotReady> {
        self.wait(image, Slot::outcome).await
    }

    /// An image, if it is ready. If it is only fetched when somebody asks for it, this is asking for it.
    ///
    /// # Errors
    ///
    /// When it is not of this library, not ready or could not be had.
    pub fn base_now(&self, image: &OsImage) -> Result<Arc<Base>, NotReady> {
        let slot = self.slot(image)?;
        let known = slot.known.borrow();
        slot.outcome(&known)
            .unwrap_or_else(|| Err(NotReady::OnItsWay { image: slot.shelf.name().to_owned() }))
    }

    /// An image, as soon as it can be planned with, even while most of its bytes are coming. Whoever reads bytes of it that
    /// are not there is [told](Base::available) what to wait for, and fails when the download does. The last sector is
    /// given out when the image has been found good. Such a base stays one of bytes that come even after they have: ask again for
    /// one with a mapping.
    ///
    /// # Errors
    ///
    /// When it is not of this library, or could not be had; it is tried again later.
    pub async fn early_base(&self, image: &OsImage) -> Result<Arc<Base>, NotReady> {
        self.wait(image, |slot, known| match &known.arriving {
            Some(base) => Some(Ok(Arc::clone(base))),
            None => slot.outcome(known),
        })
        .await
    }

    /// An image, as soon as it is ready, however often it fails before.
    ///
    /// # Errors
    ///
    /// When it is not of this library.
    pub async fn wait_ready(&self, image: &OsImage) -> Result<Arc<Base>, NotReady> {
        self.wait(image, |_, known| known.base.clone().map(Ok)).await
    }

    /// Looks at the file of an image at once, as somebody has seen that it is not what it was.
    pub fn look_again(&self, image: &OsImage) {
        if let Some(slot) = self.inner.slots.get(&Key::of(image)) {
            slot.doubted.notify_one();
        }
    }

    async fn wait(
        &self,
        image: &OsImage,
        outcome: impl Fn(&Slot, &Known) -> Option<Result<Arc<Base>, NotReady>>,
    ) -> Result<Arc<Base>, NotReady> {
        let slot = self.slot(image)?;
        if let Some(found) = outcome(slot, &slot.known.borrow()) {
            return found;
        }
        let mut known = slot.known.subscribe();
        loop {
            let found = outcome(slot, &known.borrow_and_update());
            match found {
                Some(found) => return found,
                None => known.changed().await.map_err(|_| NotReady::Closed)?,
            }
        }
    }

    /// The slot of an image, which somebody wants.
    fn slot(&self, image: &OsImage) -> Result<&Arc<Slot>, NotReady> {
        let key = Key::of(image);
        let slot = self.inner.slots.get(&key).ok_or_else(|| NotReady::Unknown { image: key.to_string() })?;
        if !*slot.wanted.borrow() {
            slot.wanted.send_replace(true);
        }
        Ok(slot)
    }
}

impl Slot {
    /// What came of an image, if anything did.
    fn outcome(&self, known: &Known) -> Option<Result<Arc<Base>, NotReady>> {
        match (&known.base, &known.state) {
            (Some(base), _) => Some(Ok(Arc::clone(base))),
            (None, State::Failed { reason, retry_at }) => {
                Some(Err(NotReady::Failed { reason: reason.clone(), retry_at: *retry_at }))
            }
            _ => None,
        }
    }
}

/// One entry for each file.
fn distinct(images: impl IntoIterator<Item = OsImage>) -> Result<BTreeMap<Key, OsImage>, LibraryError> {
    let mut distinct = BTreeMap::<Key, OsImage>::new();
    for image in images {
        let key = Key::of(&image);
        if !key.is_name() {
            return Err(LibraryError::Version { version: image.version });
        }
        match distinct.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(image);
            }
            Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                if known.url != image.url {
                    tracing::warn!(image = %Key::of(&image), "the catalogue has this image at several URLs; one is used");
                }
                let is_newer =
                    Version::parse(&image.openshift_version) > Version::parse(&known.openshift_version);
                let sha256 = known.sha256.or(image.sha256).filter(|_| known.url == image.url);
                if is_newer {
                    *known = image;
                }
                known.sha256 = known.sha256.or(sha256);
            }
        }
    }
    Ok(distinct)
}

fn slot(key: &Key, image: OsImage, shared: &Arc<Shared>, client: &Client) -> Result<Slot, LibraryError> {
    let location = Location::parse(&image.url)
        .map_err(|source| LibraryError::Location { image: key.to_string(), source })?;
    Ok(Slot {
        remote: Remote::of(&location, client)?,
        shelf: Shelf::new(&shared.settings.directory, key),
        shared: Arc::clone(shared),
        known: watch::Sender::default(),
        wanted: watch::Sender::default(),
        doubted: Notify::new(),
        location,
        image,
    })
}
