//! Sends pages of base images without copying them, while a lease protects the files from writers.
//!
//! A plain write to a socket copies the bytes. Instead, the kernel can move the pages of a file through a pipe, which
//! takes half of the CPU time or less. But pages in a socket still belong to the file. If a process wrote to the file,
//! the bytes in the socket would change, and nothing would detect it.
//!
//! So the server lends pages to a connection only while it holds a [lease](super::lease) of the file. A process that
//! opens the file for writing then has to wait. In this time, the server closes the connections that still have unsent
//! pages. Afterwards, it copies the bytes of this file. A file that cannot be leased is always copied.
//!
//! A [`LendableFile`] and the connections that borrow its pages share the descriptor and the lease of the file. When
//! the base image is dropped, these connections are woken, so that they return the pages that their clients have
//! received.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep};

use super::lease::{Lease, SIGNAL};

/// How long to wait before the next attempt to lease a file, after the kernel refused or broke its lease.
const RETRY_DELAY: Duration = Duration::from_secs(30);
/// The interval between checks for pages that connections have not returned.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// The time after which the lease is returned to the kernel even if connections still have pages. It must be less than
/// 45 seconds, when the kernel removes the lease.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time for clients on the same machine to read bytes from their sockets. These sockets share the pages too, and
/// the server cannot see when a client has read the bytes.
const LOCAL_READ_TIME: Duration = Duration::from_secs(1);

/// The files whose pages a server lends to its connections. Clones share the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageLending(Arc<LendingState>);

#[derive(Debug, Default)]
struct LendingState {
    files: Mutex<Vec<(Weak<File>, LeaseState)>>,
    is_watched: OnceLock<bool>,
}

#[derive(Debug)]
enum LeaseState {
    Leased(Weak<LentFile>),
    Refused(Instant),
}

/// A file whose pages the server may lend. It keeps the lease while no connection uses it.
#[derive(Debug)]
pub(crate) struct LendableFile {
    file: Arc<File>,
    /// The leased handles. More than one only if several servers use the file.
    lent: Mutex<Vec<Arc<LentFile>>>,
}

#[derive(Debug)]
struct LentFile {
    file: Arc<File>,
    /// `None` after the lease was returned to the kernel.
    lease: Mutex<Option<Lease>>,
    name: String,
    is_recalled: AtomicBool,
    /// Whether the base image was dropped, so that only connections with unacknowledged pages still use the file.
    is_unused: AtomicBool,
    /// The connections that borrow pages, by number, with the wakers of their tasks.
    borrowers: Mutex<Vec<(u64, Waker)>>,
    next: AtomicU64,
}

/// The right of a connection to send pages of a file. Dropping it returns the pages.
#[derive(Debug)]
pub(crate) struct LentPages {
    lent: Arc<LentFile>,
    number: u64,
}

impl PageLending {
    /// Lends pages of a file to a connection. `waker` wakes the task of the connection when the pages are recalled.
    /// Returns `None` if the bytes must be copied.
    pub(crate) fn borrow(&self, file: &LendableFile, waker: &Waker) -> Option<LentPages> {
        let lent = self.lent_file(file)?;
        let number = lent.next.fetch_add(1, Ordering::Relaxed);
        lock_unpoisoned(&lent.borrowers).push((number, waker.clone()));
        Some(LentPages { lent, number })
    }

    fn lent_file(&self, lendable: &LendableFile) -> Option<Arc<LentFile>> {
        let file = &lendable.file;
        let mut files = lock_unpoisoned(&self.0.files);
        let entry = files.iter().find(|(entry, _)| entry.as_ptr() == Arc::as_ptr(file));
        match entry.map(|(_, state)| state) {
            Some(LeaseState::Leased(lent)) if lent.strong_count() > 0 => return lent.upgrade(),
            Some(LeaseState::Refused(until)) if Instant::now() < *until => return None,
            _ => {}
        }
        let watched = self.0.is_watched.get_or_init(|| self.start_watching().is_ok());
        let lent = watched.then(|| LentFile::acquire_lease(file)).and_then(Result::ok).map(Arc::new);
        let state = match &lent {
            Some(lent) => LeaseState::Leased(lendable.keep_lease(lent)),
            None => LeaseState::Refused(Instant::now() + RETRY_DELAY),
        };
        files.retain(|(entry, _)| entry.as_ptr() != Arc::as_ptr(file) && entry.strong_count() > 0);
        files.push((Arc::downgrade(file), state));
        lent
    }

    /// Starts a task that checks all leases whenever the kernel signals a waiting writer. The task ends when this
    /// `PageLending` is dropped.
    fn start_watching(&self) -> io::Result<()> {
        let signals = signal(SignalKind::from_raw(SIGNAL))?;
        tokio::spawn(watch_leases(Arc::downgrade(&self.0), signals));
        Ok(())
    }
}

async fn watch_leases(lending: Weak<LendingState>, mut signals: Signal) {
    while signals.recv().await.is_some() {
        let Some(lending) = lending.upgrade() else { return };
        for (_, state) in lock_unpoisoned(&lending.files).iter_mut() {
            if let LeaseState::Leased(lent) = state
                && let Some(lent) = lent.upgrade()
                && lock_unpoisoned(&lent.lease).as_ref().is_some_and(Lease::is_breaking)
            {
                *state = LeaseState::Refused(Instant::now() + RETRY_DELAY);
                tokio::spawn(lent.end_lease());
            }
        }
    }
}

impl LendableFile {
    pub(super) fn new(file: File) -> Self {
        Self { file: Arc::new(file), lent: Mutex::default() }
    }

    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Keeps a lease until the file is dropped or the lease is recalled.
    fn keep_lease(&self, lent: &Arc<LentFile>) -> Weak<LentFile> {
        let mut leases = lock_unpoisoned(&self.lent);
        leases.retain(|lent| !lent.is_recalled.load(Ordering::SeqCst));
        leases.push(Arc::clone(lent));
        Arc::downgrade(lent)
    }
}

impl Drop for LendableFile {
    /// Wakes the connections that borrow pages. They return the pages that their clients have acknowledged.
    fn drop(&mut self) {
        for lent in self.lent.get_mut().unwrap_or_else(PoisonError::into_inner) {
            lent.is_unused.store(true, Ordering::SeqCst);
            lent.wake_borrowers();
        }
    }
}

impl LentFile {
    fn acquire_lease(file: &Arc<File>) -> io::Result<Self> {
        let lease = Lease::acquire(Arc::clone(file))?;
        let name = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let name = name.map_or_else(|_| String::new(), |path| path.display().to_string());
        Ok(Self {
            file: Arc::clone(file),
            lease: Mutex::new(Some(lease)),
            name,
            is_recalled: AtomicBool::new(false),
            is_unused: AtomicBool::new(false),
            borrowers: Mutex::default(),
            next: AtomicU64::new(0),
        })
    }

    fn wake_borrowers(&self) {
        lock_unpoisoned(&self.borrowers).iter().for_each(|(_, waker)| waker.wake_by_ref());
    }

    /// Recalls all pages, then returns the lease to the kernel.
    async fn end_lease(self: Arc<Self>) {
        let start = Instant::now();
        self.is_recalled.store(true, Ordering::SeqCst);
        let connections = lock_unpoisoned(&self.borrowers).len();
        tracing::warn!(
            source = self.name,
            connections,
            "base image opened for writing, draining zero-copy connections"
        );
        self.wake_borrowers();
        while !lock_unpoisoned(&self.borrowers).is_empty() && start.elapsed() < PATIENCE {
            sleep(CHECK_INTERVAL).await;
        }
        if connections > 0 {
            sleep(LOCAL_READ_TIME).await;
        }
        *lock_unpoisoned(&self.lease) = None;
    }
}

impl LentPages {
    /// Returns `true` if the pages belong to `lendable`.
    pub(crate) fn belong_to(&self, lendable: &LendableFile) -> bool {
        Arc::ptr_eq(&self.lent.file, &lendable.file)
    }

    /// Returns `true` if the base image was dropped, so that only connections use the file.
    pub(crate) fn is_unused(&self) -> bool {
        self.lent.is_unused.load(Ordering::SeqCst)
    }

    /// Returns `true` if the connection must return the pages because a writer waits.
    pub(crate) fn is_recalled(&self) -> bool {
        self.lent.is_recalled.load(Ordering::SeqCst)
    }

    pub(crate) fn file_name(&self) -> &str {
        &self.lent.name
    }
}

impl Drop for LentPages {
    fn drop(&mut self) {
        lock_unpoisoned(&self.lent.borrowers).retain(|(number, _)| *number != self.number);
    }
}

fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
