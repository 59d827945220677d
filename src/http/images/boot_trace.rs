//! The boot trace: a record of how much of its image each host has read. Hosts read every byte from this server, so
//! their progress is visible here.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use isogen::{Extent, Segment};
use lru::LruCache;
use serde::Serialize;
use utoipa::ToSchema;

use super::plans::{PlanKind, PlannedFile};
use crate::http::content::AnswerBody;
use crate::http::listener::ClientAddress;
use inventory::id::InfraEnvId;

/// Maximum number of readers in memory. Each takes a few kilobytes.
const MAX_READERS: NonZero<usize> = NonZero::new(2048).unwrap();
/// The block size in which progress is counted.
const BLOCK: u64 = 64 << 10;
/// Maximum number of ranges in the report on a reader.
const MAX_RANGES: usize = 256;
/// A reader without traffic for this long is idle or stalled. A host that is still booting requests bytes sooner.
const SILENCE: Duration = Duration::from_secs(60);

/// A client and the file that it reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ReaderKey {
    pub(super) infra_env: InfraEnvId,
    pub(super) client: ClientAddress,
    pub(super) what: PlanKind,
}

/// The progress of recent readers. If there are too many, a new reader replaces the one whose last response began
/// first.
#[derive(Debug)]
pub(super) struct ReaderTraces(Mutex<LruCache<ReaderKey, Arc<ReaderTrace>>>);

impl Default for ReaderTraces {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_READERS)))
    }
}

impl ReaderTraces {
    fn with_cache<T>(&self, use_it: impl FnOnce(&mut LruCache<ReaderKey, Arc<ReaderTrace>>) -> T) -> T {
        // A panic leaves the map valid.
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the trace of a reader. Starts a new trace if the image has changed.
    pub(super) fn get_or_start(&self, reader: ReaderKey, planned: &Arc<PlannedFile>) -> Arc<ReaderTrace> {
        let etag = planned.content.representation().etag();
        self.with_cache(|traces| {
            if let Some(trace) = traces.get(&reader).filter(|trace| trace.etag == etag) {
                return Arc::clone(trace);
            }
            let trace = Arc::new(ReaderTrace::new(reader.clone(), planned));
            traces.put(reader, Arc::clone(&trace));
            trace
        })
    }
}

/// The progress of one reader with one image.
#[derive(Debug)]
pub(super) struct ReaderTrace {
    reader: ReaderKey,
    etag: String,
    len: u64,
    /// The plan, to find the files of the base image. The reference is weak, so a trace does not keep the plan in
    /// memory.
    planned: Weak<PlannedFile>,
    progress: Mutex<TraceState>,
}

#[derive(Debug)]
struct TraceState {
    begun_at: DateTime<Utc>,
    moved_at: Instant,
    answers: u64,
    under_way: u32,
    sent: u64,
    last: Range<u64>,
    /// Whether the last finished response ended before its last byte.
    is_cut: bool,
    blocks: Vec<u64>,
}

impl ReaderTrace {
    fn new(reader: ReaderKey, planned: &Arc<PlannedFile>) -> Self {
        let len = planned.content.representation().plan().len();
        let now = Utc::now();
        // If the image is too large for the address space, its trace has no blocks. The image is still served.
        let words = usize::try_from(len.div_ceil(BLOCK).div_ceil(64)).unwrap_or(0);
        let progress = TraceState {
            begun_at: now,
            moved_at: Instant::now(),
            answers: 0,
            under_way: 0,
            sent: 0,
            last: 0..0,
            is_cut: false,
            blocks: vec![0; words],
        };
        tracing::info!(
            infra_env = %reader.infra_env, client = %reader.client, file = reader.what.name(), len,
            "client started to read"
        );
        Self {
            etag: planned.content.representation().etag().to_owned(),
            len,
            planned: Arc::downgrade(planned),
            progress: Mutex::new(progress),
            reader,
        }
    }

    fn with_state<T>(&self, use_it: impl FnOnce(&mut TraceState) -> T) -> T {
        use_it(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records the start of a response. Returns the recorder for its bytes, or `None` if the response has no bytes of
    /// the image.
    pub(super) fn begin_transfer(
        this: &Arc<Self>,
        body: &AnswerBody,
        now: Instant,
    ) -> Option<TracedTransfer> {
        let span = body.byte_span()?;
        this.with_state(|progress| {
            progress.answers += 1;
            progress.under_way += 1;
            progress.last = span;
            progress.moved_at = now;
        });
        Some(TracedTransfer { trace: Arc::clone(this), is_now: true, is_over: false })
    }

    /// Returns the file of the base image at an offset. `None` if the plan is no longer cached.
    fn file_at(&self, offset: u64) -> Option<String> {
        let planned = self.planned.upgrade()?;
        let end = offset.checked_add(1)?;
        let base = match planned.content.representation().plan().segments(offset..end).next()? {
            Segment::Base(extent) => extent,
            Segment::Bytes(_) | Segment::Zero(_) => Extent::new(offset, 1)?,
        };
        planned.base.file_at(base)
    }

    /// Returns the files of the base image in a range. Empty if the plan is no longer cached.
    fn files_in(&self, range: Range<u64>) -> Vec<String> {
        let Some(planned) = self.planned.upgrade() else { return Vec::new() };
        let mut files = Vec::new();
        for segment in planned.content.representation().plan().segments(range) {
            if let Segment::Base(extent) = segment {
                files.extend(planned.base.files_in(extent));
            }
        }
        // A modified file consists of several consecutive segments.
        files.dedup();
        files
    }
}

impl TraceState {
    fn record_sent(&mut self, range: Range<u64>, now: Instant) {
        self.sent = self.sent.saturating_add(range.end.saturating_sub(range.start));
        for block in range.start / BLOCK..range.end.div_ceil(BLOCK) {
            let word = usize::try_from(block / 64).ok().and_then(|word| self.blocks.get_mut(word));
            if let Some(word) = word {
                *word |= 1 << (block % 64);
            }
        }
        self.moved_at = now;
    }

    fn record_end(&mut self, is_cut: bool) {
        self.under_way = self.under_way.saturating_sub(1);
        self.is_cut = is_cut;
    }

    fn reader_state(&self, blocks: u64) -> ReaderState {
        if self.read_block_count() >= blocks {
            ReaderState::Complete
        } else if self.moved_at.elapsed() < SILENCE {
            ReaderState::Reading
        } else if self.under_way > 0 || self.is_cut {
            ReaderState::Stalled
        } else {
            ReaderState::Idle
        }
    }

    /// Returns runs of consecutive blocks. A block counts as sent if at least one byte of it was sent.
    fn sent_ranges(&self, len: u64) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let bits = self.blocks.iter().flat_map(|word| (0..64).map(move |bit| word >> bit & 1 == 1));
        for (block, _) in (0..).zip(bits).filter(|(_, is_sent)| *is_sent) {
            let (start, end) = (block * BLOCK, (block * BLOCK + BLOCK).min(len));
            let is_full = ranges.len() == MAX_RANGES;
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ if is_full => break,
                _ => ranges.push(start..end),
            }
        }
        ranges
    }

    fn read_block_count(&self) -> u64 {
        self.blocks.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// A response in progress.
#[derive(Debug)]
pub(super) struct TracedTransfer {
    trace: Arc<ReaderTrace>,
    /// Whether the time of the last clock reading still counts as now. Most responses end without a wait, so the clock
    /// is read only once.
    is_now: bool,
    is_over: bool,
}

impl TracedTransfer {
    /// Records that the connection waits for the next bytes of the body.
    pub(super) fn record_wait(&mut self) {
        self.is_now = false;
    }

    /// Records that the body returned a range of bytes to the connection. `is_over` is `true` for the last range.
    pub(super) fn record_sent(&mut self, range: Range<u64>, is_over: bool) {
        let ends = is_over && !self.is_over;
        self.is_over |= is_over;
        let now = (!std::mem::take(&mut self.is_now)).then(Instant::now);
        self.trace.with_state(|progress| {
            progress.record_sent(range, now.unwrap_or(progress.moved_at));
            if ends {
                progress.record_end(false);
            }
        });
    }
}

impl Drop for TracedTransfer {
    fn drop(&mut self) {
        if !self.is_over {
            self.trace.with_state(|progress| progress.record_end(true));
        }
    }
}

/// Download progress of the clients that read an infra-env's images.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = boot_trace)]
pub(super) struct BootTrace {
    #[schema(value_type = String, format = Uuid)]
    infra_env_id: InfraEnvId,
    readers: Vec<ReaderProgress>,
}

/// The progress of one client in reading one file.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = boot_trace_reader)]
struct ReaderProgress {
    client: String,
    file: &'static str,
    /// MAC address of the host, if the image is for one host only.
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    state: ReaderState,
    etag: String,
    size: u64,
    /// Percentage of the file's 64 KiB blocks sent at least in part.
    percent: u8,
    /// Number of bytes sent, including repeated ones.
    bytes_sent: u64,
    answers: u64,
    last_range: LastRange,
    /// The first 256 ranges sent at least once, in blocks of 64 KiB. Present only if requested, because finding the
    /// files of that many ranges is slow.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranges: Option<Vec<SentRange>>,
    begun_at: DateTime<Utc>,
    last_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = boot_trace_last_range)]
struct LastRange {
    first: u64,
    last: u64,
    /// File of the base image in which the range begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = boot_trace_range)]
struct SentRange {
    first: u64,
    last: u64,
    /// Files of the base image that overlap the range.
    files: Vec<String>,
}

impl From<Range<u64>> for SentRange {
    fn from(range: Range<u64>) -> Self {
        Self { first: range.start, last: range.end.saturating_sub(1), files: Vec::new() }
    }
}

/// State of a client's download.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = boot_trace_state)]
#[serde(rename_all = "lowercase")]
enum ReaderState {
    /// The client received bytes within the last minute.
    Reading,
    /// The client received at least a part of every block of the file.
    Complete,
    /// The client received nothing for a minute, in the middle of a response or after an incomplete one.
    Stalled,
    /// The client received everything that it requested, and has requested nothing for a minute. A host that needs only
    /// a part of the image to boot ends in this state.
    Idle,
}

impl ReaderTraces {
    /// Returns the progress of all readers of an infra-env's images. `with_ranges` adds the ranges sent to each reader.
    pub(super) fn boot_trace(&self, id: InfraEnvId, with_ranges: bool) -> BootTrace {
        let traces: Vec<_> = self.with_cache(|cache| {
            let traces = cache.iter().map(|(_, trace)| trace);
            traces.filter(|trace| trace.reader.infra_env == id).map(Arc::clone).collect()
        });
        let readers: BTreeMap<_, _> = traces.iter().map(|trace| trace.report(with_ranges)).collect();
        BootTrace { infra_env_id: id, readers: readers.into_values().collect() }
    }
}

impl ReaderTrace {
    /// Returns the report on this reader, and a key that sorts readers by their start.
    fn report(&self, with_ranges: bool) -> ((DateTime<Utc>, String), ReaderProgress) {
        let blocks = self.len.div_ceil(BLOCK);
        let mut reading = self.with_state(|progress| ReaderProgress {
            client: self.reader.client.to_string(),
            file: self.reader.what.name(),
            machine: self.reader.what.host_mac().map(|mac| mac.to_string()),
            state: progress.reader_state(blocks),
            etag: self.etag.clone(),
            size: self.len,
            // A trace never has more blocks than its image.
            percent: u8::try_from(progress.read_block_count() * 100 / blocks.max(1)).unwrap_or(100),
            bytes_sent: progress.sent,
            answers: progress.answers,
            last_range: LastRange {
                first: progress.last.start,
                last: progress.last.end.saturating_sub(1),
                file: None,
            },
            ranges: with_ranges
                .then(|| progress.sent_ranges(self.len).into_iter().map(SentRange::from).collect()),
            begun_at: progress.begun_at,
            last_at: Utc::now() - progress.moved_at.elapsed(),
        });
        reading.last_range.file = self.file_at(reading.last_range.first);
        for range in reading.ranges.iter_mut().flatten() {
            range.files = self.files_in(range.first..range.last.saturating_add(1));
        }
        let name = format!("{} {}", reading.client, reading.file);
        ((reading.begun_at, name), reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state_after_silence(blocks: u64, silence: Duration) -> TraceState {
        let now = Utc::now();
        let words = usize::try_from(blocks.div_ceil(64)).unwrap();
        let mut progress = TraceState {
            begun_at: now,
            moved_at: Instant::now(),
            answers: 1,
            under_way: 0,
            sent: 0,
            last: 0..0,
            is_cut: false,
            blocks: vec![0; words],
        };
        progress.record_sent(0..1, Instant::now());
        progress.moved_at = progress.moved_at.checked_sub(silence).unwrap();
        progress
    }

    #[test]
    fn progress_is_counted_in_blocks() {
        let mut progress = state_after_silence(100, Duration::ZERO);
        assert_eq!(progress.read_block_count(), 1);
        progress.record_sent(BLOCK - 1..BLOCK + 1, Instant::now());
        assert_eq!(progress.read_block_count(), 2);
        progress.record_sent(BLOCK * 64..BLOCK * 66, Instant::now());
        progress.record_sent(BLOCK * 64..BLOCK * 65, Instant::now());
        assert_eq!((progress.read_block_count(), progress.sent), (4, 3 + 3 * BLOCK));
        assert_eq!(progress.sent_ranges(BLOCK * 65 + 7), [0..2 * BLOCK, 64 * BLOCK..65 * BLOCK + 7]);
        assert_eq!(progress.reader_state(100), ReaderState::Reading);
        progress.record_sent(0..BLOCK * 100, Instant::now());
        assert_eq!(progress.reader_state(100), ReaderState::Complete);
    }

    #[test]
    fn silent_reader_is_stalled_only_if_its_response_is_incomplete() {
        let mut progress = state_after_silence(100, SILENCE);
        assert_eq!(progress.reader_state(100), ReaderState::Idle);
        progress.under_way = 1;
        assert_eq!(progress.reader_state(100), ReaderState::Stalled);
        (progress.under_way, progress.is_cut) = (0, true);
        assert_eq!(progress.reader_state(100), ReaderState::Stalled);
        progress.record_sent(5..6, Instant::now());
        assert_eq!(progress.reader_state(100), ReaderState::Reading);
    }
}
