//! A bounded cache of the responses of the external service.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use isogen::Digest;
use lru::LruCache;
use sha2::{Digest as _, Sha256};

use super::fingerprint::fingerprint;
use super::image_kind::ImageKind;
use super::service::{CallCondition, ConfigAnswer};
use crate::http::images::inputs::{ImageCredentials, InfraEnvSnapshot, SnapshotState};
use discovery::RenderedConfig;
use inventory::api::ApiError;
use inventory::catalogue::CpuArchitecture;
use inventory::id::InfraEnvId;
use inventory::json::to_json;

/// Maximum size of the cache in bytes. It is sufficient for hundreds of configs, each with the network configs of
/// dozens of hosts.
const ROOM: usize = 64 << 20;
/// The size of an entry in addition to the cached responses.
const ENTRY_OVERHEAD: usize = 1024;

/// The inputs of an image, with the validators (entity tag, time of the last change) that the service sent.
#[derive(Debug)]
pub(super) struct InputsMemo {
    rendered: Arc<RenderedConfig>,
    revision: Arc<str>,
    live_image: Option<(String, CpuArchitecture)>,
    fingerprint: Digest,
    last_modified: Option<DateTime<Utc>>,
    etag: Option<String>,
    changed_at: DateTime<Utc>,
    /// Whether every later change is certain to have another `Last-Modified`.
    is_settled: bool,
}

impl InputsMemo {
    /// Creates a memo. `answer` is the response with the config.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel arguments cannot be encoded as JSON, because the revision of the image depends on
    /// them.
    pub(super) fn new(
        (rendered, live_image): (RenderedConfig, Option<(String, CpuArchitecture)>),
        answer: &ConfigAnswer,
        quiet: Duration,
    ) -> Result<Self, ApiError> {
        Ok(Self {
            live_image,
            revision: inputs_digest(&rendered)?,
            fingerprint: fingerprint(&rendered.config),
            rendered: Arc::new(rendered),
            last_modified: answer.last_modified,
            etag: answer.etag.clone(),
            changed_at: answer.last_modified.unwrap_or_else(Utc::now),
            is_settled: is_settled(answer, quiet),
        })
    }

    pub(super) fn config(&self) -> Bytes {
        self.rendered.config.clone()
    }

    pub(super) fn to_snapshot(&self) -> InfraEnvSnapshot {
        let state: SnapshotState = Arc::<RenderedConfig>::clone(&self.rendered);
        let snapshot = InfraEnvSnapshot::new(Arc::clone(&self.revision), self.changed_at, state);
        match &self.live_image {
            Some((version, architecture)) => snapshot.with_live_image(version.as_str(), *architecture),
            None => snapshot,
        }
    }

    /// Returns the condition for the next request for the config.
    pub(super) fn next_condition(&self) -> CallCondition {
        // Use the time only if no further change can have the same time, and if there is no entity tag, which is more
        // precise.
        let since = self.last_modified.filter(|_| self.is_settled && self.etag.is_none());
        CallCondition { none_match: self.etag.clone(), modified_since: since }
    }

    /// Returns `true` if a new response shows that the image is unchanged.
    pub(super) fn matches_answer(&self, answer: &ConfigAnswer) -> bool {
        self.is_settled && self.has_same_time(answer) && self.has_same_config(answer)
    }

    /// Returns `true` if a new response has the same `Last-Modified`, and the same config except for signatures.
    pub(super) fn differs_in_signatures(&self, answer: &ConfigAnswer) -> bool {
        self.has_same_time(answer) && self.has_same_config(answer)
    }

    fn has_same_time(&self, answer: &ConfigAnswer) -> bool {
        self.last_modified.is_some() && self.last_modified == answer.last_modified
    }

    fn has_same_config(&self, answer: &ConfigAnswer) -> bool {
        let is_same = |body: &Bytes| *body == self.rendered.config || fingerprint(body) == self.fingerprint;
        answer.body.as_ref().is_none_or(is_same)
    }

    fn size(&self) -> usize {
        self.rendered.config.len() + self.rendered.network.as_bytes().len()
    }
}

/// Returns `true` if the call was made so long after the `Last-Modified` time that no further change can have the same
/// time.
fn is_settled(answer: &ConfigAnswer, quiet: Duration) -> bool {
    let (Some(changed_at), Some(called_at)) = (answer.last_modified, answer.called_at) else { return false };
    let quiet = TimeDelta::from_std(quiet).unwrap_or(TimeDelta::MAX);
    let end =
        changed_at.checked_add_signed(TimeDelta::seconds(1)).and_then(|end| end.checked_add_signed(quiet));
    end.is_some_and(|end| called_at >= end)
}

/// Returns the digest of all inputs of an image. It is the same in every process.
fn inputs_digest(rendered: &RenderedConfig) -> Result<Arc<str>, ApiError> {
    let arguments = to_json(&rendered.kernel_arguments)?;
    let mut hash = Sha256::new();
    for part in [&rendered.config[..], rendered.network.as_bytes(), &arguments] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    Ok(Digest(hash.finalize().into()).to_string().into())
}

/// The key of cached responses: the image and the caller's credentials.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct MemoKey {
    id: InfraEnvId,
    kind: ImageKind,
    access: Digest,
}

impl MemoKey {
    pub(super) fn new(id: InfraEnvId, kind: ImageKind, access: &ImageCredentials) -> Self {
        let (form, token) = match access {
            ImageCredentials::Nothing => ("nothing", ""),
            ImageCredentials::ApiKey(token) => ("api-key", token.reveal()),
            ImageCredentials::ImageToken(token) => ("image-token", token.reveal()),
            ImageCredentials::Authorization(token) => ("authorization", token.reveal()),
        };
        Self { id, kind, access: Digest::from_data(format!("{form}:{token}").as_bytes()) }
    }
}

/// The cached responses for a key. The entry is locked during a call.
#[derive(Debug, Default)]
pub(super) struct MemoEntry {
    memo: Option<Arc<InputsMemo>>,
    /// When the service last confirmed the memo and the caller's access. `None` after a refusal.
    confirmed_at: Option<Instant>,
    last: Option<(Instant, Result<(), ApiError>)>,
    /// The end of the pause after a failed call.
    paused_until: Option<Instant>,
}

impl MemoEntry {
    /// Pauses the calls for this entry. During the pause, the memo is used.
    pub(super) fn pause_calls(&mut self, pause: Duration) {
        self.paused_until = Instant::now().checked_add(pause);
    }

    /// Returns `true` during the pause after a failed call.
    pub(super) fn is_pausing(&self) -> bool {
        self.paused_until.is_some_and(|end| Instant::now() < end)
    }

    pub(super) fn memo(&self) -> Option<&Arc<InputsMemo>> {
        self.memo.as_ref()
    }

    /// Returns the memo if the service confirmed it within the last `grace`. Used while the service cannot be reached.
    pub(super) fn confirmed_within(&self, grace: Duration) -> Option<Arc<InputsMemo>> {
        self.confirmed_at.filter(|at| at.elapsed() <= grace).and_then(|_| self.memo.clone())
    }

    /// Returns the last outcome if it applies to a request that arrived at `arrived`. A success applies if its call
    /// began at most `trust` earlier. A refusal applies only if its call began after the request arrived.
    pub(super) fn last_outcome(
        &self,
        arrived: Instant,
        trust: Duration,
    ) -> Option<Result<Arc<InputsMemo>, ApiError>> {
        let (began, outcome) = self.last.as_ref()?;
        let age = arrived.saturating_duration_since(*began);
        match outcome {
            Ok(()) if age <= trust => self.memo.clone().map(Ok),
            Err(refusal) if age.is_zero() => Some(Err(refusal.clone())),
            _ => None,
        }
    }

    pub(super) fn record_outcome(&mut self, began: Instant, outcome: &Result<Arc<InputsMemo>, ApiError>) {
        if let Ok(memo) = outcome {
            self.memo = Some(Arc::clone(memo));
        }
        self.confirmed_at = outcome.is_ok().then_some(began);
        self.last = Some((began, outcome.as_ref().map(drop).map_err(Clone::clone)));
    }
}

/// The cached entries. If the cache is full, the least recently used entries are dropped.
#[derive(Debug)]
pub(super) struct SharedMemoCache {
    cache: Mutex<MemoCache>,
    room: usize,
}

#[derive(Debug)]
struct MemoCache {
    entries: LruCache<MemoKey, MemoCacheEntry>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct MemoCacheEntry {
    entry: Arc<tokio::sync::Mutex<MemoEntry>>,
    /// The size of the entry. 0 until the first call has succeeded.
    bytes: usize,
}

impl Default for SharedMemoCache {
    fn default() -> Self {
        Self { cache: Mutex::new(MemoCache { entries: LruCache::unbounded(), bytes: 0 }), room: ROOM }
    }
}

impl SharedMemoCache {
    pub(super) fn entry(&self, key: &MemoKey) -> Arc<tokio::sync::Mutex<MemoEntry>> {
        self.with_cache(|cache| cache.entry(key))
    }

    /// Records the size of an outcome, and drops entries if the cache is full. Also drops the entry of a caller that
    /// never had access.
    pub(super) fn record_size(&self, key: &MemoKey, outcome: &Result<Arc<InputsMemo>, ApiError>) {
        let bytes = outcome.as_ref().ok().map(|memo| memo.size());
        self.with_cache(|cache| {
            match bytes {
                Some(bytes) => cache.record_size(key, bytes + ENTRY_OVERHEAD),
                None => cache.forget_if_empty(key),
            }
            cache.make_room(self.room);
        });
    }

    fn with_cache<T>(&self, use_it: impl FnOnce(&mut MemoCache) -> T) -> T {
        // A panic leaves the map valid, because every entry can be requested again.
        use_it(&mut self.cache.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl MemoCache {
    fn entry(&mut self, key: &MemoKey) -> Arc<tokio::sync::Mutex<MemoEntry>> {
        Arc::clone(&self.entries.get_or_insert_mut_ref(key, MemoCacheEntry::default).entry)
    }

    fn record_size(&mut self, key: &MemoKey, bytes: usize) {
        if let Some(entry) = self.entries.peek_mut(key) {
            self.bytes = self.bytes - entry.bytes + bytes;
            entry.bytes = bytes;
        }
    }

    fn forget_if_empty(&mut self, key: &MemoKey) {
        if self.entries.peek(key).is_some_and(|entry| entry.bytes == 0) {
            self.entries.pop(key);
        }
    }

    fn make_room(&mut self, room: usize) {
        while self.bytes > room && self.entries.len() > 1 {
            // The cache iterates from the most to the least recently used entry.
            let oldest = self.entries.iter().rev().find(|(_, entry)| entry.bytes > 0);
            let oldest = oldest.map(|(key, _)| key.clone());
            let Some(entry) = oldest.and_then(|oldest| self.entries.pop(&oldest)) else { return };
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use ignition::discovery::kernel_arguments::KernelArguments;
    use isogen::PackedArchive;

    use super::*;
    use inventory::Secret;

    const QUIET: Duration = Duration::from_secs(10);

    fn time_at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + second, 0).unwrap()
    }

    fn config_answer(config: &str, changed_at: Option<i64>, called_at: Option<i64>) -> ConfigAnswer {
        ConfigAnswer {
            body: Some(Bytes::from(config.to_owned())),
            etag: None,
            last_modified: changed_at.map(time_at),
            called_at: called_at.map(time_at),
        }
    }

    fn rendered_config(config: &str) -> RenderedConfig {
        let kernel_arguments = KernelArguments::default();
        RenderedConfig {
            config: Bytes::from(config.to_owned()),
            network: PackedArchive::default(),
            kernel_arguments,
        }
    }

    fn memo_of_config(config: &str, changed_at: Option<i64>, called_at: Option<i64>) -> InputsMemo {
        InputsMemo::new((rendered_config(config), None), &config_answer(config, changed_at, called_at), QUIET)
            .unwrap()
    }

    fn signed_config(by: char) -> String {
        format!("eyJhIjoxfQ.eyJiIjoyfQ.{}", by.to_string().repeat(86))
    }

    #[test]
    fn memo_is_valid_until_a_change_is_possible() {
        let memo = memo_of_config("a", Some(0), Some(11));
        assert!(memo.matches_answer(&config_answer("a", Some(0), Some(20))));
        assert!(!memo.matches_answer(&config_answer("b", Some(0), Some(20))), "another config");
        assert!(!memo.matches_answer(&config_answer("a", Some(1), Some(20))), "another time");
        assert!(!memo.matches_answer(&config_answer("a", None, Some(20))), "no time");
        let not_sent = ConfigAnswer { body: None, ..config_answer("", Some(0), Some(20)) };
        assert!(memo.matches_answer(&not_sent));
        assert!(
            !memo.matches_answer(&ConfigAnswer { last_modified: Some(time_at(5)), ..not_sent }),
            "a 304 response covers only the config"
        );
        for (changed_at, called_at) in
            [(Some(0), Some(10)), (Some(0), None), (None, Some(99)), (Some(99), Some(0))]
        {
            let early = memo_of_config("a", changed_at, called_at);
            assert!(
                !early.matches_answer(&config_answer("a", changed_at, Some(200))),
                "{changed_at:?} {called_at:?}"
            );
        }
    }

    #[test]
    fn last_modified_is_used_as_condition_only_once_settled() {
        assert_eq!(memo_of_config("a", Some(0), Some(11)).next_condition().modified_since, Some(time_at(0)));
        assert_eq!(memo_of_config("a", Some(0), Some(10)).next_condition().modified_since, None);
        let tagged = ConfigAnswer { etag: Some("\"a\"".to_owned()), ..config_answer("a", Some(0), Some(11)) };
        let condition =
            InputsMemo::new((rendered_config("a"), None), &tagged, QUIET).unwrap().next_condition();
        assert_eq!((condition.none_match.as_deref(), condition.modified_since), (Some("\"a\""), None));
    }

    #[test]
    fn new_signature_keeps_the_image_unless_the_record_changed() {
        let (one, other) = (signed_config('a'), signed_config('b'));
        let memo = memo_of_config(&one, Some(0), Some(11));
        assert!(memo.matches_answer(&config_answer(&other, Some(0), Some(20))));
        assert!(memo.differs_in_signatures(&config_answer(&other, Some(0), Some(20))));
        assert!(!memo.differs_in_signatures(&config_answer(&other, Some(1), Some(20))));
        assert!(!memo_of_config(&one, None, Some(11)).differs_in_signatures(&config_answer(
            &other,
            None,
            Some(20)
        )));
    }

    #[test]
    fn revision_depends_only_on_the_inputs() {
        let revision = |rendered| {
            InputsMemo::new((rendered, None), &config_answer("", Some(3), None), QUIET).unwrap().revision
        };
        let of = |config| rendered_config(config);
        assert_eq!(revision(of("a")), memo_of_config("a", None, None).revision);
        assert_ne!(revision(of("a")), revision(of("b")));
        let network = PackedArchive::from_encoded(Bytes::from_static(b"aaaa"));
        let moved = RenderedConfig { config: Bytes::new(), network, ..of("") };
        assert_ne!(revision(of("aaaa")), revision(moved));
        let kernel_arguments = KernelArguments::parse(r#"[{"value": "quiet"}]"#).unwrap();
        assert_ne!(revision(of("a")), revision(RenderedConfig { kernel_arguments, ..of("a") }));
    }

    #[test]
    fn success_is_reused_and_refusal_only_for_waiting_requests() {
        let trust = Duration::from_secs(1);
        let began = Instant::now();
        let mut entry = MemoEntry::default();
        assert!(entry.last_outcome(began, trust).is_none());
        entry.record_outcome(began, &Ok(Arc::new(memo_of_config("a", None, None))));
        for (after, is_known) in [(0, true), (1000, true), (1001, false), (60_000, false)] {
            let outcome = entry.last_outcome(began + Duration::from_millis(after), trust);
            assert_eq!(outcome.is_some(), is_known, "{after} ms");
        }
        entry.record_outcome(began + trust, &Err(ApiError::not_found("gone")));
        assert!(
            entry.last_outcome(began, trust).unwrap().is_err(),
            "a request that arrived before the call gets its outcome"
        );
        assert!(entry.last_outcome(began + trust, trust).unwrap().is_err());
        assert!(entry.last_outcome(began + trust + Duration::from_nanos(1), trust).is_none());
        assert!(entry.memo().is_some(), "the memo is useful if the caller regains access");
    }

    #[test]
    fn cache_is_bounded_and_keeps_nothing_for_refused_callers() {
        let memos = SharedMemoCache { room: 10 * (ENTRY_OVERHEAD + 1000), ..SharedMemoCache::default() };
        let id: InfraEnvId = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11".parse().unwrap();
        let key = |token: usize| {
            MemoKey::new(id, ImageKind::Full, &ImageCredentials::ApiKey(Secret::new(token.to_string())))
        };
        let count = || memos.with_cache(|cache| cache.entries.len());
        for token in 0..100 {
            memos.entry(&key(token));
            memos.record_size(&key(token), &Ok(Arc::new(memo_of_config(&"a".repeat(1000), None, None))));
            memos.entry(&key(0));
            assert!(count() <= 10 && memos.with_cache(|cache| cache.bytes <= memos.room));
        }
        assert!(
            memos.with_cache(|cache| cache.entries.contains(&key(0)) && cache.entries.contains(&key(99)))
        );
        let before = count();
        memos.entry(&key(1000));
        memos.record_size(&key(1000), &Err(ApiError::not_found("no")));
        assert_eq!(count(), before);
        memos.record_size(&key(99), &Err(ApiError::not_found("no")));
        assert_eq!(count(), before, "memos stay until the limit is exceeded");
        let forms = [
            ImageCredentials::Nothing,
            ImageCredentials::ApiKey(Secret::new("t")),
            ImageCredentials::ImageToken(Secret::new("t")),
        ];
        let keys: std::collections::HashSet<_> =
            forms.iter().map(|form| MemoKey::new(id, ImageKind::Full, form)).collect();
        assert_eq!(keys.len(), 3);
    }
}
