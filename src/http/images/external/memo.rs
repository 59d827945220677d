//! What the service has said lately, in bounded memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use isogen::Digest;
use sha2::{Digest as _, Sha256};

use super::fingerprint::fingerprint;
use super::image_kind::ImageKind;
use super::service::{Condition, Told};
use crate::api_error::ApiError;
use crate::discovery::RenderedConfig;
use crate::http::images::inputs::{Access, Current, Origin};
use crate::images::CpuArchitecture;
use crate::inventory::id::InfraEnvId;

/// Room for hundreds of configs with the networks of dozens of machines.
const ROOM: usize = 64 << 20;
/// What an entry takes beside the answers in it.
const BESIDE: usize = 1024;

/// What an image is made of, and what the service has said about it.
#[derive(Debug)]
pub(super) struct Memo {
    rendered: Arc<RenderedConfig>,
    revision: Arc<str>,
    live_image: Option<(String, CpuArchitecture)>,
    fingerprint: Digest,
    last_modified: Option<DateTime<Utc>>,
    etag: Option<String>,
    changed_at: DateTime<Utc>,
    /// Whether a later change has another time for certain.
    is_settled: bool,
}

impl Memo {
    /// What was made of answers, of which the first one was `told`.
    pub(super) fn new(
        (rendered, live_image): (RenderedConfig, Option<(String, CpuArchitecture)>),
        told: &Told,
        quiet: Duration,
    ) -> Self {
        Self {
            live_image,
            revision: revision(&rendered),
            fingerprint: fingerprint(&rendered.config),
            rendered: Arc::new(rendered),
            last_modified: told.last_modified,
            etag: told.etag.clone(),
            changed_at: told.last_modified.unwrap_or_else(Utc::now),
            is_settled: is_settled(told, quiet),
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

    /// What the next call asks for the config by.
    pub(super) fn condition(&self) -> Condition {
        // Of two changes within a second, the time would hide the second one.
        let since = self.last_modified.filter(|_| self.is_settled && self.etag.is_none());
        Condition { none_match: self.etag.clone(), modified_since: since }
    }

    /// Whether the image is still the same after another answer.
    pub(super) fn holds(&self, told: &Told) -> bool {
        self.is_settled && self.is_of_time(told) && self.has_config(told)
    }

    /// Whether another answer, of the same time, may differ from this in its signatures alone.
    pub(super) fn differs_in_signatures(&self, told: &Told) -> bool {
        self.is_of_time(told) && self.has_config(told)
    }

    fn is_of_time(&self, told: &Told) -> bool {
        self.last_modified.is_some() && self.last_modified == told.last_modified
    }

    fn has_config(&self, told: &Told) -> bool {
        let is_same = |body: &Bytes| *body == self.rendered.config || fingerprint(body) == self.fingerprint;
        told.body.as_ref().is_none_or(is_same)
    }

    fn bytes(&self) -> usize {
        self.rendered.config.len() + self.rendered.network.as_bytes().len()
    }
}

/// Whether an answer was asked for when no further change could have the time of the one that it tells.
fn is_settled(told: &Told, quiet: Duration) -> bool {
    let (Some(changed), Some(asked)) = (told.last_modified, told.asked_at) else { return false };
    let quiet = TimeDelta::from_std(quiet).unwrap_or(TimeDelta::MAX);
    let end = changed.checked_add_signed(TimeDelta::seconds(1)).and_then(|end| end.checked_add_signed(quiet));
    end.is_some_and(|end| asked >= end)
}

/// The digest of all that goes into an image: the same in each process.
fn revision(rendered: &RenderedConfig) -> Arc<str> {
    let arguments = serde_json::to_vec(&rendered.kernel_arguments).unwrap_or_default();
    let mut hash = Sha256::new();
    for part in [&rendered.config[..], rendered.network.as_bytes(), &arguments] {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(part);
    }
    Digest(hash.finalize().into()).to_string().into()
}

/// What an answer is kept under: the image, and what the caller has shown.
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

/// What is known under a key. It is locked while the service is asked.
#[derive(Debug, Default)]
pub(super) struct Entry {
    memo: Option<Arc<Memo>>,
    last: Option<(Instant, Result<(), ApiError>)>,
}

impl Entry {
    pub(super) fn memo(&self) -> Option<&Arc<Memo>> {
        self.memo.as_ref()
    }

    /// The last outcome, if it is one for a request that came at a time: a yes of up to `trust` before, or whatever was
    /// said to a call that began since.
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

/// Entries by key. Those that were not used for the longest time go when there is no more room.
#[derive(Debug)]
pub(super) struct Memos {
    known: Mutex<Known>,
    room: usize,
}

#[derive(Debug, Default)]
struct Known {
    places: HashMap<Key, Place>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Place {
    entry: Arc<tokio::sync::Mutex<Entry>>,
    bytes: usize,
    used_at: u64,
}

impl Default for Memos {
    fn default() -> Self {
        Self { known: Mutex::default(), room: ROOM }
    }
}

impl Memos {
    pub(super) fn entry(&self, key: &Key) -> Arc<tokio::sync::Mutex<Entry>> {
        self.with(|known| known.entry(key))
    }

    /// Notes how much room an outcome takes, and makes room for it. Of a caller who was never let in, nothing is kept.
    pub(super) fn weigh(&self, key: &Key, outcome: &Result<Arc<Memo>, ApiError>) {
        let bytes = outcome.as_ref().ok().map(|memo| memo.bytes());
        self.with(|known| {
            match bytes {
                Some(bytes) => known.weigh(key, bytes + BESIDE),
                None => known.forget_if_empty(key),
            }
            known.make_room(self.room);
        });
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut Known) -> T) -> T {
        // Whoever panicked over the map left it whole: everything in it can be asked for again.
        use_it(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Known {
    fn entry(&mut self, key: &Key) -> Arc<tokio::sync::Mutex<Entry>> {
        self.clock += 1;
        let used_at = self.clock;
        let place = self.places.entry(key.clone()).or_insert_with(|| Place {
            entry: Arc::default(),
            bytes: 0,
            used_at,
        });
        place.used_at = used_at;
        Arc::clone(&place.entry)
    }

    fn weigh(&mut self, key: &Key, bytes: usize) {
        if let Some(place) = self.places.get_mut(key) {
            self.bytes = self.bytes - place.bytes + bytes;
            place.bytes = bytes;
        }
    }

    fn forget_if_empty(&mut self, key: &Key) {
        if self.places.get(key).is_some_and(|place| place.bytes == 0) {
            self.places.remove(key);
        }
    }

    fn make_room(&mut self, room: usize) {
        while self.bytes > room && self.places.len() > 1 {
            let weighed = self.places.iter().filter(|(_, place)| place.bytes > 0);
            let oldest = weighed.min_by_key(|(_, place)| place.used_at).map(|(key, _)| key.clone());
            let Some(place) = oldest.and_then(|oldest| self.places.remove(&oldest)) else { return };
            self.bytes -= place.bytes;
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

    fn told(config: &str, changed: Option<i64>, asked: Option<i64>) -> Told {
        Told {
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
        Memo::new((rendered(config), None), &told(config, changed, asked), QUIET)
    }

    fn signed(by: char) -> String {
        format!("eyJhIjoxfQ.eyJiIjoyfQ.{}", by.to_string().repeat(86))
    }

    #[test]
    fn a_memo_holds_as_long_as_nothing_can_have_changed() {
        let kept = memo("a", Some(0), Some(11));
        assert!(kept.holds(&told("a", Some(0), Some(20))));
        assert!(!kept.holds(&told("b", Some(0), Some(20))), "another config");
        assert!(!kept.holds(&told("a", Some(1), Some(20))), "another time");
        assert!(!kept.holds(&told("a", None, Some(20))), "no time");
        let not_sent = Told { body: None, ..told("", Some(0), Some(20)) };
        assert!(kept.holds(&not_sent));
        assert!(
            !kept.holds(&Told { last_modified: Some(time(5)), ..not_sent }),
            "304 is about the config alone"
        );
        for (changed, asked) in [(Some(0), Some(10)), (Some(0), None), (None, Some(99)), (Some(99), Some(0))]
        {
            let early = memo("a", changed, asked);
            assert!(!early.holds(&told("a", changed, Some(200))), "{changed:?} {asked:?}");
        }
    }

    #[test]
    fn times_are_conditions_once_their_second_is_over() {
        assert_eq!(memo("a", Some(0), Some(11)).condition().modified_since, Some(time(0)));
        assert_eq!(memo("a", Some(0), Some(10)).condition().modified_since, None);
        let tagged = Told { etag: Some("\"a\"".to_owned()), ..told("a", Some(0), Some(11)) };
        let condition = Memo::new((rendered("a"), None), &tagged, QUIET).condition();
        assert_eq!((condition.none_match.as_deref(), condition.modified_since), (Some("\"a\""), None));
    }

    #[test]
    fn a_signature_makes_no_other_image_unless_the_record_has_changed() {
        let (one, other) = (signed('a'), signed('b'));
        let kept = memo(&one, Some(0), Some(11));
        assert!(kept.holds(&told(&other, Some(0), Some(20))));
        assert!(kept.differs_in_signatures(&told(&other, Some(0), Some(20))));
        assert!(!kept.differs_in_signatures(&told(&other, Some(1), Some(20))));
        assert!(!memo(&one, None, Some(11)).differs_in_signatures(&told(&other, None, Some(20))));
    }

    #[test]
    fn a_revision_is_of_the_contents_alone() {
        let revision = |rendered| Memo::new((rendered, None), &told("", Some(3), None), QUIET).revision;
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
    fn a_yes_holds_for_a_while_and_a_no_for_those_who_waited() {
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
    fn memory_is_bounded_and_strangers_take_none() {
        let memos = Memos { known: Mutex::default(), room: 10 * (BESIDE + 1000) };
        let id: InfraEnvId = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11".parse().unwrap();
        let key =
            |token: usize| Key::new(id, ImageKind::Full, &Access::ApiKey(Secret::new(token.to_string())));
        let count = || memos.with(|known| known.places.len());
        for token in 0..100 {
            memos.entry(&key(token));
            memos.weigh(&key(token), &Ok(Arc::new(memo(&"a".repeat(1000), None, None))));
            memos.entry(&key(0));
            assert!(count() <= 10 && memos.with(|known| known.bytes <= memos.room));
        }
        assert!(
            memos.with(|known| known.places.contains_key(&key(0)) && known.places.contains_key(&key(99)))
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
