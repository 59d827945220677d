//! Reads of a base image during its download.
//!
//! A reader of bytes that are not downloaded yet gets a future that completes when they are, or when the download
//! fails. The structures that are needed to open an image are scattered over it. While it is being opened, reads block
//! the thread, and blocks further on are requested from the server out of order, if it supports that, and kept in
//! memory.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use isogen::{Extent, ReadAt};
use tokio::sync::Notify;

use crate::http::zerocopy::{Available, BaseFile, Download};

/// The length of the tail that is withheld until the image is verified. So a client's download completes only if the
/// image is good.
const WITHHELD: u64 = 2048;
/// The size of a block that is requested out of order.
const BLOCK: u64 = 64 << 10;
/// The maximum number of blocks in memory. Opening an image takes a few dozen.
const MAX_BLOCKS: usize = 128;

/// The progress of a download.
#[derive(Debug, Default)]
pub(super) struct Arrival {
    progress: Mutex<Progress>,
    /// Wakes waiting threads.
    changed: Condvar,
    /// Wakes waiting tasks.
    notify: Notify,
}

#[derive(Debug, Default)]
struct Progress {
    have: u64,
    end: Option<End>,
}

#[derive(Debug)]
enum End {
    /// The downloaded image, which reports whether its file was changed afterwards.
    Good(Arc<BaseFile>),
    Bad(String),
}

impl Arrival {
    /// Reports that the first `have` bytes are downloaded.
    pub(super) fn advance(&self, have: u64) {
        self.lock().have = have;
        self.wake();
    }

    /// Reports that the download is complete and verified.
    pub(super) fn complete(&self, image: &Arc<BaseFile>) {
        self.end(End::Good(Arc::clone(image)));
    }

    /// Reports that the download failed.
    pub(super) fn fail(&self, reason: &str) {
        self.end(End::Bad(reason.to_owned()));
    }

    /// Returns an error if the file was changed after the download.
    fn require_unchanged(&self) -> io::Result<()> {
        let image = match &self.lock().end {
            Some(End::Good(image)) => Arc::clone(image),
            _ => return Ok(()),
        };
        image.stamp().map(drop)
    }

    /// Reports whether the download continues.
    pub(super) fn is_coming(&self) -> bool {
        self.lock().end.is_none()
    }

    /// Sets the end, if none is set.
    fn end(&self, end: End) {
        self.lock().end.get_or_insert(end);
        self.wake();
    }

    fn wake(&self) {
        self.changed.notify_all();
        self.notify.notify_waiters();
    }

    /// Returns the end of the readable bytes before `limit`. After a complete download, all bytes are readable.
    fn readable_end(&self, limit: u64) -> io::Result<u64> {
        self.lock().readable_end(limit)
    }

    /// Blocks this thread until the byte at `offset` is readable, and returns the end of the readable bytes.
    fn wait(&self, offset: u64, limit: u64) -> io::Result<u64> {
        let mut progress = self.lock();
        loop {
            let there = progress.readable_end(limit)?;
            if there > offset {
                return Ok(there);
            }
            progress = self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until all bytes before `end` are readable, or the download failed.
    async fn until(&self, end: u64, limit: u64) {
        loop {
            let notified = self.notify.notified();
            // After a failure, no more bytes arrive.
            if self.readable_end(limit).map_or(true, |there| there >= end) {
                return;
            }
            notified.await;
        }
    }

    /// A panic elsewhere leaves the progress valid, because every change is one assignment.
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    fn readable_end(&self, limit: u64) -> io::Result<u64> {
        match &self.end {
            Some(End::Good(_)) => Ok(u64::MAX),
            Some(End::Bad(reason)) => Err(io::Error::other(reason.clone())),
            None => Ok(self.have.min(limit)),
        }
    }
}

/// Requests the bytes of a range from the server, and waits for them.
pub(super) type Ask = Box<dyn Fn(std::ops::Range<u64>) -> io::Result<Bytes> + Send + Sync>;

/// A partly downloaded file that is read like a complete one.
pub(super) struct ArrivingFile {
    file: File,
    len: u64,
    arrival: Arc<Arrival>,
    opening: Arc<AtomicBool>,
    blocks: Mutex<BTreeMap<u64, Bytes>>,
    ask: Option<Ask>,
    /// A server that refused one request is not asked again.
    is_refused: AtomicBool,
}

/// Marks a file as being opened, until it is dropped. Meanwhile reads block, blocks are requested out of order, and no
/// bytes are withheld.
#[derive(Debug)]
pub(super) struct Opening(Arc<AtomicBool>);

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl ArrivingFile {
    /// Creates a partly downloaded file of `len` bytes.
    pub(super) fn new(file: File, len: u64, arrival: Arc<Arrival>, ask: Option<Ask>) -> (Self, Opening) {
        let opening = Arc::new(AtomicBool::new(true));
        let blocks = Mutex::default();
        let is_refused = AtomicBool::new(false);
        let file = Self { file, len, arrival, opening: Arc::clone(&opening), blocks, ask, is_refused };
        (file, Opening(opening))
    }

    /// Returns the bytes from `offset` to the end of its block or `limit`, if the block was received out of order or
    /// can be requested.
    fn ahead(&self, offset: u64, limit: u64, is_opening: bool) -> Option<Bytes> {
        let start = offset - offset % BLOCK;
        if offset >= limit {
            return None;
        }
        let found = self.blocks().get(&start).cloned();
        let block = found.or_else(|| if is_opening { self.ask_for(start) } else { None })?;
        let [first, end] = [offset, limit].map(|at| usize::try_from(at - start).unwrap_or(usize::MAX));
        let end = end.min(block.len());
        (first < end).then(|| block.slice(first..end))
    }

    /// Returns the start of the tail that is withheld until the image is verified.
    fn limit(&self, is_opening: bool) -> u64 {
        if is_opening { self.len } else { self.len.saturating_sub(WITHHELD) }
    }

    fn ask_for(&self, start: u64) -> Option<Bytes> {
        let ask = self.ask.as_ref().filter(|_| !self.is_refused.load(Ordering::Relaxed))?;
        if self.blocks().len() >= MAX_BLOCKS {
            return None;
        }
        match ask(start..self.len.min(start + BLOCK)) {
            Ok(block) => {
                self.blocks().insert(start, block.clone());
                Some(block)
            }
            Err(error) => {
                tracing::debug!(start, %error, "the server does not send this now; it is waited for");
                self.is_refused.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    fn blocks(&self) -> MutexGuard<'_, BTreeMap<u64, Bytes>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadAt for ArrivingFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if buf.is_empty() || offset >= self.len {
            return Ok(0);
        }
        let is_opening = self.opening.load(Ordering::Acquire);
        let limit = self.limit(is_opening);
        let mut end = self.arrival.readable_end(limit)?;
        if end <= offset {
            // If the server does not send the block out of order, the bytes arrive in order.
            if let Some(ahead) = self.ahead(offset, limit, is_opening) {
                return ahead.read_at(buf, 0);
            }
            if !is_opening {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            end = self.arrival.wait(offset, limit)?;
        }
        let there = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX).min(buf.len());
        let len = ReadAt::read_at(&self.file, buf.get_mut(..there).unwrap_or_default(), offset)?;
        self.arrival.require_unchanged()?;
        Ok(len)
    }
}

impl Download for ArrivingFile {
    fn available(&self, extent: Extent) -> Option<Available> {
        let (end, limit) = (extent.end().min(self.len), self.limit(false));
        let mut there = extent.offset();
        loop {
            // A failed download is not waited for: the read reports the reason.
            there = there.max(self.arrival.readable_end(limit).ok()?);
            if there >= end {
                return None;
            }
            let Some(ahead) = self.ahead(there, limit, false) else { break };
            there += ahead.len() as u64;
        }
        let arrival = Arc::clone(&self.arrival);
        Some(Box::pin(async move { arrival.until(end, limit).await }))
    }
}

impl fmt::Debug for ArrivingFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrivingFile")
            .field("len", &self.len)
            .field("arrival", &self.arrival)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Context, Waker};
    use std::thread;

    use isogen::Source;

    use super::*;

    const LEN: u64 = 300_000;

    fn bytes() -> Vec<u8> {
        (0..LEN).map(|number| u8::try_from(number % 251).unwrap()).collect()
    }

    fn file(have: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes()[..have]).unwrap();
        file
    }

    fn arrival(have: u64) -> Arc<Arrival> {
        let arrival = Arc::new(Arrival::default());
        arrival.advance(have);
        arrival
    }

    fn whole() -> Arc<BaseFile> {
        Arc::new(BaseFile::new(Arc::new(Source::from_bytes("image", bytes()))))
    }

    fn read(file: &ArrivingFile, offset: u64) -> io::Result<u8> {
        let mut buf = [0];
        assert_eq!(file.read_at(&mut buf, offset)?, 1);
        Ok(buf[0])
    }

    fn available(file: &ArrivingFile, offset: u64, len: u64) -> Option<Available> {
        file.available(Extent::new(offset, len).unwrap())
    }

    fn is_done(available: &mut Available) -> bool {
        available.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn futures_complete_when_bytes_arrive_or_the_download_fails() {
        let arrival = arrival(10);
        let (file, opening) = ArrivingFile::new(file(200_000), LEN, Arc::clone(&arrival), None);
        drop(opening);
        assert!(available(&file, 0, 10).is_none());
        assert_eq!(read(&file, 9).unwrap(), bytes()[9]);
        let mut both = [(9, 2), (150_000, 100)].map(|(offset, len)| available(&file, offset, len).unwrap());
        assert_eq!(both.each_mut().map(is_done), [false, false]);
        assert_eq!(read(&file, 10).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        arrival.advance(150_099);
        assert_eq!(both.each_mut().map(is_done), [true, false], "one byte is not there yet");
        let mut failed = available(&file, 150_000, 100).unwrap();
        arrival.fail("the mirror is gone");
        assert!(is_done(&mut both[1]) && is_done(&mut failed));
        assert!(available(&file, 150_000, 100).is_none(), "reading tells why");
        assert_eq!(read(&file, 150_099).unwrap_err().to_string(), "the mirror is gone");
    }

    #[test]
    fn task_is_woken_when_its_bytes_arrive() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let arrival = arrival(10);
            let (file, _) = ArrivingFile::new(file(10), LEN, Arc::clone(&arrival), None);
            let waiting = tokio::spawn(available(&file, 100, 100).unwrap());
            for have in [11, 199, 200] {
                tokio::task::yield_now().await;
                assert!(!waiting.is_finished(), "before byte {have}");
                arrival.advance(have);
            }
            waiting.await.unwrap();
        });
    }

    #[test]
    fn read_blocks_while_the_image_is_opened() {
        let arrival = arrival(10);
        let (file, _opening) = ArrivingFile::new(file(200_000), LEN, Arc::clone(&arrival), None);
        let mut buf = [0; 100];
        assert_eq!(file.read_at(&mut buf, 5).unwrap(), 5, "no more than is there");
        thread::scope(|scope| {
            let reader = scope.spawn(|| read(&file, 150_000).unwrap());
            arrival.advance(150_000);
            arrival.advance(150_001);
            assert_eq!(reader.join().unwrap(), bytes()[150_000]);
        });
        assert_eq!(file.read_at(&mut buf, LEN).unwrap(), 0);
    }

    #[test]
    fn readers_fail_with_the_download() {
        let arrival = arrival(10);
        let (file, _opening) = ArrivingFile::new(file(10), LEN, Arc::clone(&arrival), None);
        thread::scope(|scope| {
            let reader = scope.spawn(|| read(&file, 11).unwrap_err());
            arrival.fail("the mirror is gone");
            arrival.complete(&whole());
            assert_eq!(reader.join().unwrap().to_string(), "the mirror is gone");
        });
        assert!(read(&file, 1).is_err(), "a bad image is not to be read at all");
    }

    #[test]
    fn tail_is_withheld_until_the_image_is_verified() {
        let arrival = arrival(LEN);
        let (file, opening) = ArrivingFile::new(file(300_000), LEN, Arc::clone(&arrival), None);
        assert_eq!(
            read(&file, LEN - 1).unwrap(),
            bytes()[299_999],
            "while it is opened, nothing is held back"
        );
        drop(opening);
        let mut buf = [0; 4096];
        assert_eq!(file.read_at(&mut buf, LEN - 4096).unwrap(), 2048);
        assert_eq!(read(&file, LEN - 1).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let mut end = available(&file, LEN - 1, 1).unwrap();
        assert!(!is_done(&mut end));
        arrival.complete(&whole());
        assert!(is_done(&mut end));
        assert_eq!(read(&file, LEN - 1).unwrap(), bytes()[299_999]);
    }

    #[test]
    fn blocks_are_requested_once_and_only_during_opening() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let ask: Ask = Box::new(move |range| {
            counter.fetch_add(1, Ordering::Relaxed);
            let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
            Ok(Bytes::copy_from_slice(&bytes()[range]))
        });
        let arrival = arrival(10);
        let (file, opening) = ArrivingFile::new(file(10), LEN, Arc::clone(&arrival), Some(ask));
        for offset in [LEN - 1, LEN - 2, 100_000, 100_001] {
            assert_eq!(read(&file, offset).unwrap(), bytes()[usize::try_from(offset).unwrap()]);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        drop(opening);
        read(&file, 100_002).unwrap();
        assert!(available(&file, 65_536, 65_536).is_none(), "it came out of order");
        let held_back = LEN - WITHHELD;
        assert!(available(&file, held_back - 1, 1).is_none() && available(&file, held_back - 1, 2).is_some());
        let mut buf = [0; 100];
        assert_eq!(file.read_at(&mut buf, held_back - 1).unwrap(), 1, "the end is held back of these, too");
        arrival.fail("over");
        assert!(read(&file, 200_000).is_err());
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn in_order_server_is_asked_once_and_waited_for() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let ask: Ask = Box::new(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            Err(io::ErrorKind::Unsupported.into())
        });
        let arrival = arrival(0);
        let (file, _opening) = ArrivingFile::new(file(300_000), LEN, Arc::clone(&arrival), Some(ask));
        thread::scope(|scope| {
            let reader = scope.spawn(|| [250_000, 100].map(|offset| read(&file, offset).unwrap()));
            while asked.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            arrival.advance(LEN);
            assert_eq!(reader.join().unwrap(), [bytes()[250_000], bytes()[100]]);
        });
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }
}
