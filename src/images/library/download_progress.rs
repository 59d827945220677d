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

use crate::http::zerocopy::{AvailableFuture, BaseFile, DownloadingBytes};

/// The length of the tail that is withheld until the image is verified. So a client's download completes only if the
/// image is good.
const WITHHELD: u64 = 2048;
/// The size of a block that is requested out of order.
const BLOCK: u64 = 64 << 10;
/// The maximum number of blocks in memory. Opening an image takes a few dozen.
const MAX_BLOCKS: usize = 128;

/// The progress of a download.
#[derive(Debug, Default)]
pub(super) struct DownloadProgress {
    progress: Mutex<DownloadState>,
    /// Wakes waiting threads.
    changed: Condvar,
    /// Wakes waiting tasks.
    notify: Notify,
}

#[derive(Debug, Default)]
struct DownloadState {
    have: u64,
    end: Option<DownloadEnd>,
}

#[derive(Debug)]
enum DownloadEnd {
    /// The downloaded image, which reports whether its file was changed afterwards.
    Good(Arc<BaseFile>),
    Bad(String),
}

impl DownloadProgress {
    /// Reports that the first `have` bytes are downloaded.
    pub(super) fn advance(&self, have: u64) {
        self.lock_received().have = have;
        self.wake_waiters();
    }

    /// Reports that the download is complete and verified.
    pub(super) fn complete(&self, image: &Arc<BaseFile>) {
        self.set_end(DownloadEnd::Good(Arc::clone(image)));
    }

    /// Reports that the download failed.
    pub(super) fn fail(&self, reason: &str) {
        self.set_end(DownloadEnd::Bad(reason.to_owned()));
    }

    /// Returns an error if the file was changed after the download.
    fn require_unchanged(&self) -> io::Result<()> {
        let image = match &self.lock_received().end {
            Some(DownloadEnd::Good(image)) => Arc::clone(image),
            _ => return Ok(()),
        };
        image.stamp().map(drop)
    }

    /// Reports whether the download continues.
    pub(super) fn is_in_progress(&self) -> bool {
        self.lock_received().end.is_none()
    }

    /// Sets the end, if none is set.
    fn set_end(&self, end: DownloadEnd) {
        self.lock_received().end.get_or_insert(end);
        self.wake_waiters();
    }

    fn wake_waiters(&self) {
        self.changed.notify_all();
        self.notify.notify_waiters();
    }

    /// Returns the end of the readable bytes before `limit`. After a complete download, all bytes are readable.
    fn readable_end(&self, limit: u64) -> io::Result<u64> {
        self.lock_received().readable_end(limit)
    }

    /// Blocks this thread until the byte at `offset` is readable, and returns the end of the readable bytes.
    fn block_until_readable(&self, offset: u64, limit: u64) -> io::Result<u64> {
        let mut progress = self.lock_received();
        loop {
            let there = progress.readable_end(limit)?;
            if there > offset {
                return Ok(there);
            }
            progress = self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until all bytes before `end` are readable, or the download failed.
    async fn wait_until_readable(&self, end: u64, limit: u64) {
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
    fn lock_received(&self) -> MutexGuard<'_, DownloadState> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DownloadState {
    fn readable_end(&self, limit: u64) -> io::Result<u64> {
        match &self.end {
            Some(DownloadEnd::Good(_)) => Ok(u64::MAX),
            Some(DownloadEnd::Bad(reason)) => Err(io::Error::other(reason.clone())),
            None => Ok(self.have.min(limit)),
        }
    }
}

/// Requests the bytes of a range from the server, and waits for them.
pub(super) type RangeRequester = Box<dyn Fn(std::ops::Range<u64>) -> io::Result<Bytes> + Send + Sync>;

/// A partly downloaded file that is read like a complete one.
pub(super) struct DownloadingFile {
    file: File,
    len: u64,
    arrival: Arc<DownloadProgress>,
    opening: Arc<AtomicBool>,
    blocks: Mutex<BTreeMap<u64, Bytes>>,
    ask: Option<RangeRequester>,
    /// A server that refused one request is not asked again.
    is_refused: AtomicBool,
}

/// Marks a file as being opened, until it is dropped. Meanwhile reads block, blocks are requested out of order, and no
/// bytes are withheld.
#[derive(Debug)]
pub(super) struct OpeningGuard(Arc<AtomicBool>);

impl Drop for OpeningGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl DownloadingFile {
    /// Creates a partly downloaded file of `len` bytes.
    pub(super) fn new(
        file: File,
        len: u64,
        arrival: Arc<DownloadProgress>,
        ask: Option<RangeRequester>,
    ) -> (Self, OpeningGuard) {
        let opening = Arc::new(AtomicBool::new(true));
        let blocks = Mutex::default();
        let is_refused = AtomicBool::new(false);
        let file = Self { file, len, arrival, opening: Arc::clone(&opening), blocks, ask, is_refused };
        (file, OpeningGuard(opening))
    }

    /// Returns the bytes from `offset` to the end of its block or `limit`, if the block was received out of order or
    /// can be requested.
    fn out_of_order_bytes(&self, offset: u64, limit: u64, is_opening: bool) -> Option<Bytes> {
        let start = offset - offset % BLOCK;
        if offset >= limit {
            return None;
        }
        let found = self.lock_blocks().get(&start).cloned();
        let block = found.or_else(|| if is_opening { self.request_block(start) } else { None })?;
        let [first, end] = [offset, limit].map(|at| usize::try_from(at - start).unwrap_or(usize::MAX));
        let end = end.min(block.len());
        (first < end).then(|| block.slice(first..end))
    }

    /// Returns the start of the tail that is withheld until the image is verified.
    fn withheld_from(&self, is_opening: bool) -> u64 {
        if is_opening { self.len } else { self.len.saturating_sub(WITHHELD) }
    }

    fn request_block(&self, start: u64) -> Option<Bytes> {
        let ask = self.ask.as_ref().filter(|_| !self.is_refused.load(Ordering::Relaxed))?;
        if self.lock_blocks().len() >= MAX_BLOCKS {
            return None;
        }
        match ask(start..self.len.min(start + BLOCK)) {
            Ok(block) => {
                self.lock_blocks().insert(start, block.clone());
                Some(block)
            }
            Err(error) => {
                tracing::debug!(start, %error, "cannot request this block now, waiting for the download");
                self.is_refused.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    fn lock_blocks(&self) -> MutexGuard<'_, BTreeMap<u64, Bytes>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadAt for DownloadingFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if buf.is_empty() || offset >= self.len {
            return Ok(0);
        }
        let is_opening = self.opening.load(Ordering::Acquire);
        let limit = self.withheld_from(is_opening);
        let mut end = self.arrival.readable_end(limit)?;
        if end <= offset {
            // If the server does not send the block out of order, the bytes arrive in order.
            if let Some(ahead) = self.out_of_order_bytes(offset, limit, is_opening) {
                return ahead.read_at(buf, 0);
            }
            if !is_opening {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            end = self.arrival.block_until_readable(offset, limit)?;
        }
        let there = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX).min(buf.len());
        let part = buf.get_mut(..there).ok_or(io::ErrorKind::InvalidInput)?;
        let len = ReadAt::read_at(&self.file, part, offset)?;
        self.arrival.require_unchanged()?;
        Ok(len)
    }
}

impl DownloadingBytes for DownloadingFile {
    fn when_available(&self, extent: Extent) -> Option<AvailableFuture> {
        let (end, limit) = (extent.end().min(self.len), self.withheld_from(false));
        let mut there = extent.offset();
        loop {
            // A failed download is not waited for: the read reports the reason.
            there = there.max(self.arrival.readable_end(limit).ok()?);
            if there >= end {
                return None;
            }
            let Some(ahead) = self.out_of_order_bytes(there, limit, false) else { break };
            there += ahead.len() as u64;
        }
        let arrival = Arc::clone(&self.arrival);
        Some(Box::pin(async move { arrival.wait_until_readable(end, limit).await }))
    }
}

impl fmt::Debug for DownloadingFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DownloadingFile")
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

    fn image_bytes() -> Vec<u8> {
        (0..LEN).map(|number| u8::try_from(number % 251).unwrap()).collect()
    }

    fn file_with_len(have: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&image_bytes()[..have]).unwrap();
        file
    }

    fn progress_with_len(have: u64) -> Arc<DownloadProgress> {
        let arrival = Arc::new(DownloadProgress::default());
        arrival.advance(have);
        arrival
    }

    fn complete_file() -> Arc<BaseFile> {
        Arc::new(BaseFile::new(Arc::new(Source::from_bytes("image", image_bytes()))))
    }

    fn read_byte(file: &DownloadingFile, offset: u64) -> io::Result<u8> {
        let mut buf = [0];
        assert_eq!(file.read_at(&mut buf, offset)?, 1);
        Ok(buf[0])
    }

    fn when_byte_available(file: &DownloadingFile, offset: u64, len: u64) -> Option<AvailableFuture> {
        file.when_available(Extent::new(offset, len).unwrap())
    }

    fn is_completed(available: &mut AvailableFuture) -> bool {
        available.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn futures_complete_when_bytes_arrive_or_the_download_fails() {
        let arrival = progress_with_len(10);
        let (file, opening) = DownloadingFile::new(file_with_len(200_000), LEN, Arc::clone(&arrival), None);
        drop(opening);
        assert!(when_byte_available(&file, 0, 10).is_none());
        assert_eq!(read_byte(&file, 9).unwrap(), image_bytes()[9]);
        let mut both =
            [(9, 2), (150_000, 100)].map(|(offset, len)| when_byte_available(&file, offset, len).unwrap());
        assert_eq!(both.each_mut().map(is_completed), [false, false]);
        assert_eq!(read_byte(&file, 10).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        arrival.advance(150_099);
        assert_eq!(both.each_mut().map(is_completed), [true, false], "one byte is not there yet");
        let mut failed = when_byte_available(&file, 150_000, 100).unwrap();
        arrival.fail("the mirror is gone");
        assert!(is_completed(&mut both[1]) && is_completed(&mut failed));
        assert!(when_byte_available(&file, 150_000, 100).is_none(), "reading tells why");
        assert_eq!(read_byte(&file, 150_099).unwrap_err().to_string(), "the mirror is gone");
    }

    #[test]
    fn task_is_woken_when_its_bytes_arrive() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let arrival = progress_with_len(10);
            let (file, _) = DownloadingFile::new(file_with_len(10), LEN, Arc::clone(&arrival), None);
            let waiting = tokio::spawn(when_byte_available(&file, 100, 100).unwrap());
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
        let arrival = progress_with_len(10);
        let (file, _opening) = DownloadingFile::new(file_with_len(200_000), LEN, Arc::clone(&arrival), None);
        let mut buf = [0; 100];
        assert_eq!(file.read_at(&mut buf, 5).unwrap(), 5, "no more than is there");
        thread::scope(|scope| {
            let reader = scope.spawn(|| read_byte(&file, 150_000).unwrap());
            arrival.advance(150_000);
            arrival.advance(150_001);
            assert_eq!(reader.join().unwrap(), image_bytes()[150_000]);
        });
        assert_eq!(file.read_at(&mut buf, LEN).unwrap(), 0);
    }

    #[test]
    fn readers_fail_with_the_download() {
        let arrival = progress_with_len(10);
        let (file, _opening) = DownloadingFile::new(file_with_len(10), LEN, Arc::clone(&arrival), None);
        thread::scope(|scope| {
            let reader = scope.spawn(|| read_byte(&file, 11).unwrap_err());
            arrival.fail("the mirror is gone");
            arrival.complete(&complete_file());
            assert_eq!(reader.join().unwrap().to_string(), "the mirror is gone");
        });
        assert!(read_byte(&file, 1).is_err(), "a bad image is not to be read at all");
    }

    #[test]
    fn tail_is_withheld_until_the_image_is_verified() {
        let arrival = progress_with_len(LEN);
        let (file, opening) = DownloadingFile::new(file_with_len(300_000), LEN, Arc::clone(&arrival), None);
        assert_eq!(
            read_byte(&file, LEN - 1).unwrap(),
            image_bytes()[299_999],
            "while it is opened, nothing is held back"
        );
        drop(opening);
        let mut buf = [0; 4096];
        assert_eq!(file.read_at(&mut buf, LEN - 4096).unwrap(), 2048);
        assert_eq!(read_byte(&file, LEN - 1).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let mut end = when_byte_available(&file, LEN - 1, 1).unwrap();
        assert!(!is_completed(&mut end));
        arrival.complete(&complete_file());
        assert!(is_completed(&mut end));
        assert_eq!(read_byte(&file, LEN - 1).unwrap(), image_bytes()[299_999]);
    }

    #[test]
    fn blocks_are_requested_once_and_only_during_opening() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let ask: RangeRequester = Box::new(move |range| {
            counter.fetch_add(1, Ordering::Relaxed);
            let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
            Ok(Bytes::copy_from_slice(&image_bytes()[range]))
        });
        let arrival = progress_with_len(10);
        let (file, opening) = DownloadingFile::new(file_with_len(10), LEN, Arc::clone(&arrival), Some(ask));
        for offset in [LEN - 1, LEN - 2, 100_000, 100_001] {
            assert_eq!(read_byte(&file, offset).unwrap(), image_bytes()[usize::try_from(offset).unwrap()]);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        drop(opening);
        read_byte(&file, 100_002).unwrap();
        assert!(when_byte_available(&file, 65_536, 65_536).is_none(), "it came out of order");
        let held_back = LEN - WITHHELD;
        assert!(
            when_byte_available(&file, held_back - 1, 1).is_none()
                && when_byte_available(&file, held_back - 1, 2).is_some()
        );
        let mut buf = [0; 100];
        assert_eq!(file.read_at(&mut buf, held_back - 1).unwrap(), 1, "the end is held back of these, too");
        arrival.fail("over");
        assert!(read_byte(&file, 200_000).is_err());
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn reader_asks_a_server_without_ranges_once_and_waits() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let ask: RangeRequester = Box::new(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            Err(io::ErrorKind::Unsupported.into())
        });
        let arrival = progress_with_len(0);
        let (file, _opening) =
            DownloadingFile::new(file_with_len(300_000), LEN, Arc::clone(&arrival), Some(ask));
        thread::scope(|scope| {
            let reader = scope.spawn(|| [250_000, 100].map(|offset| read_byte(&file, offset).unwrap()));
            while asked.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            arrival.advance(LEN);
            assert_eq!(reader.join().unwrap(), [image_bytes()[250_000], image_bytes()[100]]);
        });
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }
}
