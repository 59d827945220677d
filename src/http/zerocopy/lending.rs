//! Pages of live images, lent to the kernel in the place of copies.
//!
//! What is written to a socket is copied. The kernel can be given the pages of a file as they are, by way of a [pipe](super::pipe), which
//! takes half of the processor or less. But pages that wait in a socket are still the file's: were it written to, they would
//! change on their way, and nobody could tell. So pages are lent only while the server has a [lease](super::lease) of the file.
//! Whoever wants to write to it waits then, while connections that have not sent everything are cut; and bytes are copied from
//! then on. Files that cannot be leased are copied always.

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

/// How long a file that could not be leased, or is no longer, is not asked for again.
const REFUSED: Duration = Duration::from_secs(30);
/// How often connections are looked at that are to give pages back, and how long at most. The kernel takes a lease away after 45
/// seconds.
const LOOK: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(20);
/// How long clients on this machine have to take what they were sent: no copy is made on the way to them either, and nobody sees
/// when they have it.
const TAKING: Duration = Duration::from_secs(1);

/// The pages that are lent by a server. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(in crate::http) struct Lending(Arc<Parts>);

#[derive(Debug, Default)]
struct Parts {
    files: Mutex<Vec<(Weak<File>, Standing)>>,
    is_watched: OnceLock<bool>,
}

/// How it is with a file.
#[derive(Debug)]
enum Standing {
    Leased(Arc<Loan>),
    Refused(Instant),
}

/// The pages of one file that are lent.
#[derive(Debug)]
struct Loan {
    file: Arc<File>,
    /// Given up when the pages are back.
    lease: Mutex<Option<Lease>>,
    /// What the file is called, for the log.
    name: String,
    is_called_in: AtomicBool,
    /// The connections that have pages, and how each is told.
    borrowers: Mutex<Vec<(u64, Waker)>>,
    next: AtomicU64,
}

/// Pages of a file that a connection may have on their way.
#[derive(Debug)]
pub(in crate::http) struct Borrowed {
    loan: Arc<Loan>,
    number: u64,
}

impl Lending {
    /// Lends pages of a file to a connection, which is woken when they are called in. Nothing where its bytes have to be copied.
    pub(in crate::http) fn borrow(&self, file: &Arc<File>, waker: &Waker) -> Option<Borrowed> {
        let loan = self.loan(file)?;
        let number = loan.next.fetch_add(1, Ordering::Relaxed);
        lock(&loan.borrowers).push((number, waker.clone()));
        Some(Borrowed { loan, number })
    }

    fn loan(&self, file: &Arc<File>) -> Option<Arc<Loan>> {
        let mut files = lock(&self.0.files);
        let known = files.iter_mut().find(|(known, _)| known.as_ptr() == Arc::as_ptr(file));
        match known {
            Some((_, Standing::Leased(loan))) => return Some(Arc::clone(loan)),
            Some((_, Standing::Refused(until))) if Instant::now() < *until => return None,
            _ => {}
        }
        let watched = self.0.is_watched.get_or_init(|| self.watch().is_ok());
        let loan = watched.then(|| Loan::of(file)).and_then(Result::ok).map(Arc::new);
        let standing = match &loan {
            Some(loan) => Standing::Leased(Arc::clone(loan)),
            None => Standing::Refused(Instant::now() + REFUSED),
        };
        files.retain(|(known, standing)| known.as_ptr() != Arc::as_ptr(file) && !standing.is_over(known));
        files.push((Arc::downgrade(file), standing));
        loan
    }

    /// Looks at all leases whenever one may be called in, as long as there is this.
    fn watch(&self) -> io::Result<()> {
        let called = signal(SignalKind::from_raw(SIGNAL))?;
        tokio::spawn(watch(Arc::downgrade(&self.0), called));
        Ok(())
    }
}

async fn watch(parts: Weak<Parts>, mut called: Signal) {
    while called.recv().await.is_some() {
        let Some(parts) = parts.upgrade() else { return };
        for (_, standing) in lock(&parts.files).iter_mut() {
            if let Standing::Leased(loan) = standing
                && lock(&loan.lease).as_ref().is_some_and(Lease::is_breaking)
            {
                let loan = Arc::clone(loan);
                *standing = Standing::Refused(Instant::now() + REFUSED);
                tokio::spawn(loan.end());
            }
        }
    }
}

impl Standing {
    /// Whether nobody has the file any more but its lease.
    fn is_over(&self, file: &Weak<File>) -> bool {
        match self {
            // The loan has it once, and the lease.
            Self::Leased(loan) => Arc::strong_count(loan) == 1 && file.strong_count() == 2,
            Self::Refused(_) => file.strong_count() == 0,
        }
    }
}

impl Loan {
    fn of(file: &Arc<File>) -> io::Result<Self> {
        let lease = Lease::take(Arc::clone(file))?;
        let name = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let name = name.map_or_else(|_| String::new(), |path| path.display().to_string());
        let (is_called_in, borrowers) = (AtomicBool::new(false), Mutex::default());
        let (file, lease) = (Arc::clone(file), Mutex::new(Some(lease)));
        Ok(Self { file, lease, name, is_called_in, borrowers, next: AtomicU64::new(0) })
    }

    /// Gets all pages back, and gives up the lease.
    async fn end(self: Arc<Self>) {
        let begun = Instant::now();
        self.is_called_in.store(true, Ordering::SeqCst);
        let connections = lock(&self.borrowers).len();
        tracing::warn!(
            source = self.name,
            connections,
            "another process wants to write to a base image and waits until its pages are acknowledged"
        );
        lock(&self.borrowers).iter().for_each(|(_, waker)| waker.wake_by_ref());
        while !lock(&self.borrowers).is_empty() && begun.elapsed() < PATIENCE {
            sleep(LOOK).await;
        }
        if connections > 0 {
            sleep(TAKING).await;
        }
        *lock(&self.lease) = None;
    }
}

impl Borrowed {
    /// Whether they are pages of this file.
    pub(in crate::http) fn is_of(&self, file: &Arc<File>) -> bool {
        Arc::ptr_eq(&self.loan.file, file)
    }

    /// Whether they are wanted back.
    pub(in crate::http) fn is_called_in(&self) -> bool {
        self.loan.is_called_in.load(Ordering::SeqCst)
    }

    /// What their file is called, for the log.
    pub(in crate::http) fn name(&self) -> &str {
        &self.loan.name
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        lock(&self.loan.borrowers).retain(|(number, _)| *number != self.number);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
