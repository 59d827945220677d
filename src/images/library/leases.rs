//! File leases of base images. A lease proves that no process can write to the file.
//!
//! If a process opens a leased file for writing, the kernel sends a [signal](SIGNAL) and makes that process wait. The
//! library then deletes the record of the image and revokes the file. No further byte is served from it, and the
//! waiting process continues within milliseconds. The record is deleted so that the file is hashed again even if its
//! times are unchanged. On `tmpfs`, a write to mapped pages does not change the times.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::error::FetchError;
use super::managed_image::ManagedImage;
use super::paths;
use super::verify::disk_error;
use crate::base_files::{BaseFile, Lease, SIGNAL};
use isogen::FileStamp;

/// Maximum number of attempts to take a lease. An attempt fails while another process has the file open for writing,
/// for example for a moment to try the lock of a download.
const ATTEMPTS: u32 = 10;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// The leased files of a library.
#[derive(Debug)]
pub(super) struct LibraryLeases {
    leased: Arc<LeasedFiles>,
    /// Whether the signal is handled. If not, the library takes no leases, because a process that opens a leased file
    /// for writing would wait for 45 seconds.
    is_watched: bool,
}

#[derive(Debug, Default)]
struct LeasedFiles(Mutex<Vec<(Weak<BaseFile>, Weak<ManagedImage>)>>);

impl LibraryLeases {
    /// Starts to handle the signal. Must be called within a Tokio runtime.
    pub(super) fn new() -> Self {
        let leased = Arc::<LeasedFiles>::default();
        let signals = signal(SignalKind::from_raw(SIGNAL));
        if let Err(error) = &signals {
            tracing::warn!(%error, "cannot handle signals, base images are not leased");
        }
        let is_watched =
            signals.map(|signals| tokio::spawn(watch_lease_signals(Arc::clone(&leased), signals))).is_ok();
        Self { leased, is_watched }
    }

    /// Takes a lease of the file at `path`, which must be the open file `file`. Returns `None` if the kernel does not
    /// grant leases for this file.
    pub(super) fn acquire(&self, path: &Path, file: &File) -> Result<Option<Lease>, FetchError> {
        if !self.is_watched {
            return Ok(None);
        }
        // A lease belongs to one open file description, so open the file again and keep that handle private.
        let own = File::open(path).map_err(disk_error("opening", path))?;
        let stamps = [&own, file].map(FileStamp::from_file);
        let [Ok(actual), Ok(expected)] = stamps else { return Err(FetchError::Unstable) };
        if (actual.device, actual.inode) != (expected.device, expected.inode) {
            return Err(FetchError::Unstable);
        }
        let own = Arc::new(own);
        for _ in 0..ATTEMPTS {
            match Lease::acquire(Arc::clone(&own)) {
                Ok(lease) => return Ok(Some(lease)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(PAUSE),
                Err(error) => {
                    tracing::warn!(
                        file = %path.display(), %error,
                        "cannot lease the base image: its bytes are copied, and changes are detected by timestamps only"
                    );
                    return Ok(None);
                }
            }
        }
        Err(FetchError::OpenForWriting { path: path.to_owned() })
    }

    /// Registers a leased file, so that the lease is released when a process opens the file for writing.
    pub(super) fn register(&self, file: &Arc<BaseFile>, slot: &Arc<ManagedImage>) {
        let mut all = self.leased.lock_files();
        all.retain(|(file, _)| file.strong_count() > 0);
        all.push((Arc::downgrade(file), Arc::downgrade(slot)));
        drop(all);
        // Check the lease now, because the signal may have arrived before the file was registered.
        self.leased.end_broken_leases();
    }
}

async fn watch_lease_signals(leased: Arc<LeasedFiles>, mut signals: Signal) {
    let guard = UnprotectOnDrop(leased);
    while signals.recv().await.is_some() {
        guard.0.end_broken_leases();
    }
}

/// Abandons all leases when the runtime ends, because no task handles the signal afterwards.
struct UnprotectOnDrop(Arc<LeasedFiles>);

impl Drop for UnprotectOnDrop {
    fn drop(&mut self) {
        self.0
            .lock_files()
            .drain(..)
            .filter_map(|(file, _)| file.upgrade())
            .for_each(|file| file.abandon_lease());
    }
}

impl LeasedFiles {
    fn end_broken_leases(&self) {
        for (file, slot) in self.lock_files().iter() {
            if let Some(file) = file.upgrade().filter(|file| file.is_lease_breaking()) {
                end_lease(&file, slot.upgrade().as_deref());
            }
        }
    }

    fn lock_files(&self) -> MutexGuard<'_, Vec<(Weak<BaseFile>, Weak<ManagedImage>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn end_lease(file: &BaseFile, slot: Option<&ManagedImage>) {
    let name = file.source().name();
    tracing::warn!(
        source = name,
        "base image opened for writing by another process, not served until it is hashed again"
    );
    if let Some(Err(error)) = slot.map(|slot| paths::remove_if_exists(&slot.paths.image_record())) {
        tracing::warn!(source = name, %error, "cannot delete the record of the base image");
    }
    if let Err(error) = file.revoke_lease() {
        tracing::error!(source = name, %error, "cannot revoke the base image, bytes being sent may change");
    }
    if let Some(slot) = slot {
        slot.suspected_change.notify_one();
    }
}
