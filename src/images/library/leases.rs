//! Leases of base images, which prove that no process writes to them.
//!
//! If a process opens a leased file for writing, the kernel sends a [signal](SIGNAL) and makes that process wait. The
//! library then revokes the file, so that no further byte is served from it, and the process continues within
//! milliseconds. Before that, it deletes the record of the image, so that the file is hashed again even if its times
//! are unchanged: on `tmpfs`, a write to mapped pages changes no time.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::error::FetchError;
use super::shelf;
use super::slot::Slot;
use super::verify::disk;
use crate::http::zerocopy::{BaseFile, FileStamp, Lease, SIGNAL};

/// The number of attempts to take a lease, and the pause between them. Another process that waits to download the same
/// image has it open for a moment.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(10);

/// The leased files of a library.
#[derive(Debug)]
pub(super) struct Leases {
    leased: Arc<Leased>,
    /// Whether the signal is handled. Without it, a process that opens the file for writing would wait for 45 seconds,
    /// so no lease is taken.
    is_watched: bool,
}

#[derive(Debug, Default)]
struct Leased(Mutex<Vec<(Weak<BaseFile>, Weak<Slot>)>>);

impl Leases {
    /// Creates an empty set. Must be called within a Tokio runtime.
    pub(super) fn new() -> Self {
        let leased = Arc::<Leased>::default();
        let called = signal(SignalKind::from_raw(SIGNAL));
        if let Err(error) = &called {
            tracing::warn!(%error, "base images are not leased: this process gets no signals");
        }
        let is_watched = called.map(|called| tokio::spawn(watch(Arc::clone(&leased), called))).is_ok();
        Self { leased, is_watched }
    }

    /// Takes a lease of the file at a path, of which `file` is an open handle. Returns `None` if the system grants no
    /// lease for this file.
    pub(super) fn take(&self, path: &Path, file: &File) -> Result<Option<Lease>, FetchError> {
        if !self.is_watched {
            return Ok(None);
        }
        // A lease belongs to one open handle, so this one is not shared. Connections may take another lease of `file`.
        let own = File::open(path).map_err(disk("opening", path))?;
        let stamps = [&own, file].map(FileStamp::of_file);
        let [Ok(found), Ok(expected)] = stamps else { return Err(FetchError::Unstable) };
        if (found.device, found.inode) != (expected.device, expected.inode) {
            return Err(FetchError::Unstable);
        }
        let own = Arc::new(own);
        for _ in 0..ATTEMPTS {
            match Lease::take(Arc::clone(&own)) {
                Ok(lease) => return Ok(Some(lease)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(PAUSE),
                Err(error) => {
                    tracing::warn!(
                        file = %path.display(), %error,
                        "no lease of the base image: it is copied, and changes are found by its times only"
                    );
                    return Ok(None);
                }
            }
        }
        Err(FetchError::OpenForWriting { path: path.to_owned() })
    }

    /// Registers a leased file, so that its lease is returned when a process opens the file for writing.
    pub(super) fn watch(&self, file: &Arc<BaseFile>, slot: &Arc<Slot>) {
        let mut all = self.leased.lock();
        all.retain(|(file, _)| file.strong_count() > 0);
        all.push((Arc::downgrade(file), Arc::downgrade(slot)));
        drop(all);
        // The signal may have arrived before the file was registered.
        self.leased.look();
    }
}

async fn watch(leased: Arc<Leased>, mut called: Signal) {
    let unwatched = Unwatched(leased);
    while called.recv().await.is_some() {
        unwatched.0.look();
    }
}

/// Removes the protection of all files at the end of the runtime: afterwards, no task handles the signal.
struct Unwatched(Arc<Leased>);

impl Drop for Unwatched {
    fn drop(&mut self) {
        self.0.lock().drain(..).filter_map(|(file, _)| file.upgrade()).for_each(|file| file.unprotect());
    }
}

impl Leased {
    fn look(&self) {
        for (file, slot) in self.lock().iter() {
            if let Some(file) = file.upgrade().filter(|file| file.is_lease_breaking()) {
                end(&file, slot.upgrade().as_deref());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Weak<BaseFile>, Weak<Slot>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn end(file: &BaseFile, slot: Option<&Slot>) {
    let name = file.source().name();
    tracing::warn!(
        source = name,
        "a process opens the base image for writing; it is not served until it was hashed again"
    );
    if let Some(Err(error)) = slot.map(|slot| shelf::remove(&slot.shelf.image_record())) {
        tracing::warn!(source = name, %error, "the record of the base image cannot be deleted");
    }
    if let Err(error) = file.revoke() {
        tracing::error!(source = name, %error, "bytes of the base image that are being sent may change");
    }
    if let Some(slot) = slot {
        slot.doubted.notify_one();
    }
}
