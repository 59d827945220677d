//! A bounded cache of the answers of the service.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use isogen::Digest;
use sha2::{Digest as _, Sha256};

use super::fingerprint::fingerprint;
use super::image_kind::ImageKind;
use super::service::{Condition, ConfigAnswer};
use crate::api_error::ApiError;
use crate::discovery::RenderedConfig;
use crate::http::images::inputs::{Access, Current, Origin};
use crate::images::CpuArchitecture;
use crate::inventory::id::InfraEnvId;

/// Enough for hundreds of configs with the networks of dozens of hosts.
const ROOM: usize = 64 << 20;
/// The size of an entry without the answers in it.
const ENTRY_OVERHEAD: usize = 1024;

/// The inputs of an image, and the validators that the service sent with them.
#[derive(Debug)]
pub(super) struct Memo {
    rendered: Arc<RenderedConfig>,
    revision: Arc<str>,
    live_image: Option<(String, CpuArchitecture)>,
    fingerprint: Digest,
    last_modified: Option<DateTime<Utc>>,
    etag: Option<String>,
    changed_at: DateTime<Utc>,
    /// Whether any later change is certain to have another time.
    is_settled: bool,
}

impl Memo {
    /// Creates a memo from answers. `answer` is the answer with the config.
    pub(super) fn new(
        (rendered, live_image): (RenderedConfig, Option<(String, CpuArchitecture)>),
        answer: &ConfigAnswer,
        quiet: Duration,
    ) -> Self {
        Self {
            live_image,
            revision: revision(&rendered),
            fingerprint: fingerprint(&rendered.config),
            rendered: Arc::new(rendered),
            last_modified: answer.last_modified,
            etag: answer.etag.clone(),
            changed_at: answer.last_modified.unwrap_or_else(Utc::now),
            is_settled: is_settled(answer, quiet),
        }
    }

    pub(super) fn config(&self) -> Bytes {
        self.rendered.config.clone()
    }

    pub(super) fn current(&self) -> Current {
        Current {
            revision: Arc::clone(&self.revision),
            changed_at: self.changed_at,
            seen: 0,
            live_image: self.live_image.clone(),
            origin: Origin::Rendered(Arc::clone(&self.rendered)),
        }
    }

    /// Returns the condition of the next call.
    pub(super) fn condition(&self) -> Condition {
        // If a second change followed within the same second, the time would hide it.
        let since = self.last_modified.filter(|_| self.is_settled && self.etag.is_none());
        Condition { none_match: self.etag.clone(), modified_since: since }
    }

    /// Reports whether a new answer shows that the image is unchanged.
    pub(super) fn holds(&self, answer: &ConfigAnswer) -> bool {
        self.is_settled && self.has_same_time(answer) && self.has_same_config(answer)
    }

    /// Reports whether a new answer has the same time, and the same config except for signatures.
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

    fn bytes(&self) -> usize {
        self.rendered.config.len() + self.rendered.network.as_bytes().len()
    }
}

/// Reports whether an answer was requested so late that no further change can have its `Last-Modified`.
fn is_settled(answer: &ConfigAnswer, quiet: Duration) -> bool {
    let (Some(changed), Some(asked)) = (answer.last_modified, answer.asked_at) else { return false };
    let quiet = TimeDelta::from_std(quiet).unwrap_or(TimeDelta::MAX);
    let end = changed.checked_add_signed(TimeDelta::seconds(1)).and_then(|end| end.checked_add_signed(quiet));
    end.is_some_and(|end| asked >= end)
}

/// Returns the digest of all inputs of an image. It is the same in every process.
fn revision(rendered: &RenderedConfig) -> Arc<str> {
    let arguments = serde_json::to_vec(&rendered.kernel_arguments).unwrap_or_default();
    let mut hash = Sha256::new();
    for part in [&rendered.config[..], rendered.network.as_bytes(), &arguments] {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(part);
    }
    Digest(hash.finalize().into()).to_string().into()
}

/// The key of cached answers: the image, and the caller's credentials.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    id: InfraEnvId,
    kind: ImageKind,
    access: Digest,
}

impl Key {
    pub(super) fn new(id: InfraEnvId, kind: ImageKind, access: &Access) -> Self {
        let (form, token) = match access {
            Access::Nothing => ("nothing", ""),
            Access::ApiKey(token) => ("api-key", token.reveal()),
            Access::ImageToken(token) => ("image-token", token.reveal()),
            Access::Authorization(token) => ("authorization", token.reveal()),
        };
        Self { id, kind, access: Digest::of(format!("{form}:{token}").as_bytes()) }
    }
}

/// The cached answers for a key. It is locked during a call.
#[derive(Debug, Default)]
pub(super) struct Entry {
    memo: Option<Arc<Memo>>,
    last: Option<(Instant, Result<(), ApiError>)>,
}

impl Entry {
    pub(super) fn memo(&self) -> Option<&Arc<Memo>> {
        self.memo.as_ref()
    }

    /// Returns the last outcome if it applies to a request that arrived at `arrived`: a success of a call that began at
    /// most `trust` before, or any outcome of a call that began later.
    pub(super) fn known(&self, arrived: Instant, trust: Duration) -> Option<Result<Arc<Memo>, ApiError>> {
        let (began, outcome) = self.last.as_ref()?;
        let age = arrived.saturating_duration_since(*began);
        match outcome {
            Ok(()) if age <= trust => self.memo.clone().map(Ok),
            Err(refusal) if age.is_zero() => Some(Err(refusal.clone())),
            _ => None,
        }
    }

    pub(super) fn note(&mut self, began: Instant, outcome: &Result<Arc<Memo>, ApiError>) {
        if let Ok(memo) = outcome {
            self.memo = Some(Arc::clone(memo));
        }
        self.last = Some((began, outcome.as_ref().map(drop).map_err(Clone::clone)));
    }
}

/// Entries by key. If the cache is full, the least recently used entries are dropped.
#[derive(Debug)]
pub(super) struct Memos {
    cache: Mutex<MemoCache>,
    room: usize,
}

#[derive(Debug, Default)]
struct MemoCache {
    entries: HashMap<Key, CacheEntry>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct CacheEntry {
    entry: Arc<tokio::sync::Mutex<Entry>>,
    bytes: usize,
    used_at: u64,
}

impl Default for Memos {
    fn default() -> Self {
        Self { cache: Mutex::default(), room: ROOM }
    }
}

impl Memos {
    pub(super) fn entry(&self, key: &Key) -> Arc<tokio::sync::Mutex<Entry>> {
        self.with(|cache| cache.entry(key))
    }

    /// Records the size of an outcome, and drops entries if the cache is too big. Nothing is kept for a caller that
    /// never had access.
    pub(super) fn weigh(&self, key: &Key, outcome: &Result<Arc<Memo>, ApiError>) {
        let bytes = outcome.as_ref().ok().map(|memo| memo.bytes());
        self.with(|cache| {
            match bytes {
                Some(bytes) => cache.weigh(key, bytes + ENTRY_OVERHEAD),
                None => cache.forget_if_empty(key),
            }
            cache.make_room(self.room);
        });
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut MemoCache) -> T) -> T {
        // A panic leaves the map valid, because everything in it can be requested again.
        use_it(&mut self.cache.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl MemoCache {
    fn entry(&mut self, key: &Key) -> Arc<tokio::sync::Mutex<Entry>> {
        self.clock += 1;
        let used_at = self.clock;
        let entry = self.entries.entry(key.clone()).or_insert_with(|| CacheEntry {
            entry: Arc::default(),
            bytes: 0,
            used_at,
        });
        entry.used_at = used_at;
        Arc::clone(&entry.entry)
    }

    fn weigh(&mut self, key: &Key, bytes: usize) {
        if let Some(entry) = self.entries.get_mut(key) {
            self.bytes = self.bytes - entry.bytes + bytes;
            entry.bytes = bytes;
        }
    }

    fn forget_if_empty(&mut self, key: &Key) {
        if self.entries.get(key).is_some_and(|entry| entry.bytes == 0) {
            self.entries.remove(key);
        }
    }

    fn make_room(&mut self, room: usize) {
        while self.bytes > room && self.entries.len() > 1 {
            let weighed = self.entries.iter().filter(|(_, entry)| entry.bytes > 0);
            let oldest = weighed.min_by_key(|(_, entry)| entry.used_at).map(|(key, _)| key.clone());
            let Some(entry) = oldest.and_then(|oldest| self.entries.remove(&oldest)) else { return };
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use ignition::discovery::kernel_arguments::KernelArguments;
    use isogen::Packed;

    use super::*;
    use crate::inventory::Secret;

    const QUIET: Duration = Duration::from_secs(10);

    fn time(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + second, 0).unwrap()
    }

    fn answer(config: &str, changed: Option<i64>, asked: Option<i64>) -> ConfigAnswer {
        ConfigAnswer {
            body: Some(Bytes::from(config.to_owned())),
            etag: None,
            last_modified: changed.map(time),
            asked_at: asked.map(time),
        }
    }

    fn rendered(config: &str) -> RenderedConfig {
        let kernel_arguments = KernelArguments::default();
        RenderedConfig {
            config: Bytes::from(config.to_owned()),
            network: Packed::default(),
            kernel_arguments,
        }
    }

    fn memo(config: &str, changed: Option<i64>, asked: Option<i64>) -> Memo {
        Memo::new((rendered(config), None), &answer(config, changed, asked), QUIET)
    }

    fn signed(by: char) -> String {
        format!("eyJhIjoxfQ.eyJiIjoyfQ.{}", by.to_string().repeat(86))
    }

    #[test]
    fn memo_holds_until_a_change_is_possible() {
        let kept = memo("a", Some(0), Some(11));
        assert!(kept.holds(&answer("a", Some(0), Some(20))));
        assert!(!kept.holds(&answer("b", Some(0), Some(20))), "another config");
        assert!(!kept.holds(&answer("a", Some(1), Some(20))), "another time");
        assert!(!kept.holds(&answer("a", None, Some(20))), "no time");
        let not_sent = ConfigAnswer { body: None, ..answer("", Some(0), Some(20)) };
        assert!(kept.holds(&not_sent));
        assert!(
            !kept.holds(&ConfigAnswer { last_modified: Some(time(5)), ..not_sent }),
            "304 is about the config alone"
        );
        for (changed, asked) in [(Some(0), Some(10)), (Some(0), None), (None, Some(99)), (Some(99), Some(0))]
        {
            let early = memo("a", changed, asked);
            assert!(!early.holds(&answer("a", changed, Some(200))), "{changed:?} {asked:?}");
        }
    }

    #[test]
    fn time_is_a_condition_only_once_settled() {
        assert_eq!(memo("a", Some(0), Some(11)).condition().modified_since, Some(time(0)));
        assert_eq!(memo("a", Some(0), Some(10)).condition().modified_since, None);
        let tagged = ConfigAnswer { etag: Some("\"a\"".to_owned()), ..answer("a", Some(0), Some(11)) };
        let condition = Memo::new((rendered("a"), None), &tagged, QUIET).condition();
        assert_eq!((condition.none_match.as_deref(), condition.modified_since), (Some("\"a\""), None));
    }

    #[test]
    fn new_signature_keeps_the_image_unless_the_record_changed() {
        let (one, other) = (signed('a'), signed('b'));
        let kept = memo(&one, Some(0), Some(11));
        assert!(kept.holds(&answer(&other, Some(0), Some(20))));
        assert!(kept.differs_in_signatures(&answer(&other, Some(0), Some(20))));
        assert!(!kept.differs_in_signatures(&answer(&other, Some(1), Some(20))));
        assert!(!memo(&one, None, Some(11)).differs_in_signatures(&answer(&other, None, Some(20))));
    }

    #[test]
    fn revision_depends_only_on_the_inputs() {
        let revision = |rendered| Memo::new((rendered, None), &answer("", Some(3), None), QUIET).revision;
        let of = |config| rendered(config);
        assert_eq!(revision(of("a")), memo("a", None, None).revision);
        assert_ne!(revision(of("a")), revision(of("b")));
        let network = Packed::from_encoded(Bytes::from_static(b"aaaa"));
        let moved = RenderedConfig { config: Bytes::new(), network, ..of("") };
        assert_ne!(revision(of("aaaa")), revision(moved));
        let kernel_arguments = KernelArguments::parse(r#"[{"value": "quiet"}]"#).unwrap();
        assert_ne!(revision(of("a")), revision(RenderedConfig { kernel_arguments, ..of("a") }));
    }

    #[test]
    fn success_is_reused_and_refusal_only_answers_waiting_requests() {
        let trust = Duration::from_secs(1);
        let began = Instant::now();
        let mut entry = Entry::default();
        assert!(entry.known(began, trust).is_none());
        entry.note(began, &Ok(Arc::new(memo("a", None, None))));
        for (after, is_known) in [(0, true), (1000, true), (1001, false), (60_000, false)] {
            let known = entry.known(began + Duration::from_millis(after), trust);
            assert_eq!(known.is_some(), is_known, "{after} ms");
        }
        entry.note(began + trust, &Err(ApiError::not_found("gone")));
        assert!(
            entry.known(began, trust).unwrap().is_err(),
            "who came before the call hears what it was told"
        );
        assert!(entry.known(began + trust, trust).unwrap().is_err());
        assert!(entry.known(began + trust + Duration::from_nanos(1), trust).is_none());
        assert!(entry.memo().is_some(), "it is of use when the caller is let in again");
    }

    #[test]
    fn cache_is_bounded_and_keeps_nothing_for_refused_callers() {
        let memos = Memos { cache: Mutex::default(), room: 10 * (ENTRY_OVERHEAD + 1000) };
        let id: InfraEnvId = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11".parse().unwrap();
        let key =
            |token: usize| Key::new(id, ImageKind::Full, &Access::ApiKey(Secret::new(token.to_string())));
        let count = || memos.with(|cache| cache.entries.len());
        for token in 0..100 {
            memos.entry(&key(token));
            memos.weigh(&key(token), &Ok(Arc::new(memo(&"a".repeat(1000), None, None))));
            memos.entry(&key(0));
            assert!(count() <= 10 && memos.with(|cache| cache.bytes <= memos.room));
        }
        assert!(
            memos.with(|cache| cache.entries.contains_key(&key(0)) && cache.entries.contains_key(&key(99)))
        );
        let before = count();
        memos.entry(&key(1000));
        memos.weigh(&key(1000), &Err(ApiError::not_found("no")));
        assert_eq!(count(), before);
        memos.weigh(&key(99), &Err(ApiError::not_found("no")));
        assert_eq!(count(), before, "what was known is known until it is too much");
        let forms = [Access::Nothing, Access::ApiKey(Secret::new("t")), Access::ImageToken(Secret::new("t"))];
        let keys: std::collections::HashSet<_> =
            forms.iter().map(|form| Key::new(id, ImageKind::Full, form)).collect();
        assert_eq!(keys.len(), 3);
    }
}
