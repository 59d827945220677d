//! Reading and changing typed records, with retries if changes conflict.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt, TryStreamExt};
use uuid::Uuid;

use super::check_ins::PendingCheckIns;
use super::key_locks::KeyLocks;
use super::read_set::{ReadSet, Reader};
use super::record::{Record, RecordPage, Stored, decode, decode_with_reports, encode, reports_of};
use super::statements::commit::unique_micros;
use super::{
    Bound, Changes, CheckIn, CheckInLimit, Filter, HostCount, Key, Outcome, PageQuery, ReportKind,
    ReportKinds, Reports, Row, RowPage, Step, Store, StoreError, counted_size,
};
use crate::error::Error;
use crate::event::Event;

/// Typed access to the records of a store.
#[derive(Clone, Debug)]
pub struct Records {
    store: Arc<dyn Store>,
    locks: KeyLocks,
    check_ins: Arc<PendingCheckIns>,
}

/// Maximum number of check-ins to store in one transaction, which locks their hosts.
const CHECK_INS_PER_BATCH: usize = 500;

/// Maximum number of reports to rewrite in one transaction, which locks their hosts.
const REPORTS_PER_BATCH: usize = 500;

/// Total length of reports, in bytes, at which a batch ends. A transaction keeps all its reports in memory.
const REPORT_BYTES_PER_BATCH: usize = 8 << 20;

/// Number of attempts without locks. Later attempts lock the keys of all earlier attempts, against other changes in
/// this process.
const OPTIMISTIC_ATTEMPTS: u64 = 2;

/// Number of attempts after which a change also locks its records in the database, against other processes.
const LOCAL_ATTEMPTS: u64 = 5;

/// Maximum number of attempts of a change.
const MAX_ATTEMPTS: u64 = 100;

impl Records {
    /// Returns typed access to the records of `store`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, locks: KeyLocks::default(), check_ins: Arc::default() }
    }

    /// Returns the underlying store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the record with the given key, even if it is deleted.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails or contains an invalid record.
    pub async fn find<R: Record>(
        &self,
        parent: Option<Uuid>,
        id: Uuid,
    ) -> Result<Option<Stored<R>>, StoreError> {
        let stored = self.find_with_len(Key { kind: R::KIND, parent, id }).await?;
        Ok(stored.map(|(stored, _)| stored))
    }

    /// Returns the record with the given key, even if it is deleted, and the length of its document in bytes.
    pub(super) async fn find_with_len<R: Record>(
        &self,
        key: Key,
    ) -> Result<Option<(Stored<R>, usize)>, StoreError> {
        let Some(mut row) = self.store.get(key).await? else { return Ok(None) };
        let len = row.document.len();
        Ok(Some((decode(&mut row, &self.check_ins)?, len)))
    }

    /// Returns the records that match a filter, in the order of their creation.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails or contains an invalid record.
    pub async fn list<R: Record>(&self, filter: Filter) -> Result<Vec<Stored<R>>, StoreError> {
        self.store.list(filter).await?.iter_mut().map(|row| decode(row, &self.check_ins)).collect()
    }

    /// Returns a stream of the records that match a filter, in the order of their creation. The stream reads page by
    /// page, so records added or removed meanwhile may or may not be included.
    pub fn stream<R: Record>(&self, filter: Filter) -> BoxStream<'static, Result<Stored<R>, StoreError>> {
        self.stream_with_reports(PageQuery::first(filter)).map_ok(|(stored, _)| stored).boxed()
    }

    /// Returns a stream of the records that `query` selects, with the reports of hosts. A host and its reports are from
    /// the same change.
    pub fn stream_with_reports<R: Record>(
        &self,
        query: PageQuery,
    ) -> BoxStream<'static, Result<(Stored<R>, Reports), StoreError>> {
        // Records are decoded one by one, so a slow client keeps only the undecoded rows of a page in memory.
        let (check_ins, kinds) = (Arc::clone(&self.check_ins), query.reports);
        let pages = self.row_pages(query).map_ok(move |page| {
            let check_ins = Arc::clone(&check_ins);
            stream::iter(page.into_iter().map(move |read| decode_with_reports(read, kinds, &check_ins)))
        });
        pages.try_flatten().boxed()
    }

    /// Returns the records that `query` selects, page by page, with the reports of hosts. The next page is read only
    /// when the reader asks for it, so a reader that stops between two pages holds no database connection.
    pub fn pages_with_reports<R: Record>(
        &self,
        query: PageQuery,
    ) -> BoxStream<'static, Result<RecordPage<R>, StoreError>> {
        let (check_ins, kinds) = (Arc::clone(&self.check_ins), query.reports);
        let decoded = move |page: Vec<_>| {
            page.into_iter().map(|read| decode_with_reports(read, kinds, &check_ins)).collect()
        };
        self.row_pages(query).map(move |page| page.and_then(&decoded)).boxed()
    }

    fn row_pages(
        &self,
        query: PageQuery,
    ) -> impl Stream<Item = Result<Vec<(Row, Reports)>, StoreError>> + Send + use<> {
        let store = Arc::clone(&self.store);
        stream::try_unfold(Some(query), move |query| {
            let store = Arc::clone(&store);
            async move {
                let Some(query) = query else { return Ok(None) };
                let RowPage { rows, mut reports, next } = store.page(query).await?;
                let limit = query.limit.map(|limit| limit.saturating_sub(rows.len() as u64));
                let next = next.filter(|_| limit != Some(0));
                // `reports` has no entry for a host without reports.
                let page = rows.into_iter().map(|row| {
                    let reports = reports.remove(&row.key).unwrap_or_default();
                    (row, reports)
                });
                Ok(Some((page.collect(), next.map(|next| PageQuery { limit, ..query.after(next) }))))
            }
        })
    }

    /// Returns the stored reports of a host that have one of `kinds`.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn reports(&self, host: Key, kinds: ReportKinds) -> Result<Reports, StoreError> {
        self.store.reports(host, kinds).await
    }

    /// Returns the numbers of hosts in these clusters. Each number covers one cluster, one status, and either deleted
    /// or other hosts.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn host_counts(&self, clusters: &[Uuid]) -> Result<Vec<HostCount>, StoreError> {
        self.store.host_counts(clusters).await
    }

    /// Returns at most `most` hosts in a status whose last check-in was before a time, the longest silent first.
    /// Check-ins that are not stored yet count too.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn silent_hosts(
        &self,
        status: &str,
        before: DateTime<Utc>,
        most: usize,
    ) -> Result<Vec<Key>, StoreError> {
        let mut hosts = self.store.silent_hosts(status, before, most).await?;
        hosts.retain(|host| self.check_ins.last(*host).is_none_or(|last| last < before.timestamp_micros()));
        Ok(hosts)
    }

    /// Returns how many times hosts have joined or left a cluster.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn membership_changes(&self, cluster: Uuid) -> Result<i64, StoreError> {
        self.store.membership_changes(cluster).await
    }

    /// Returns at most `most` clusters in some statuses whose assessment is missing or outdated, in the order of their
    /// creation. An assessment is outdated if its basis or its [state](super::AssessedState) differs from the current
    /// one. Deleted clusters are left out.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn stale_clusters(
        &self,
        statuses: &[&str],
        basis: &str,
        most: usize,
    ) -> Result<Vec<Uuid>, StoreError> {
        self.store.stale_clusters(statuses, basis, most).await
    }

    /// Replaces stored check-ins that are later than `now` by more than a tolerance, for hosts in some statuses.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub(crate) async fn end_future_check_ins(
        &self,
        statuses: Vec<&'static str>,
        now: DateTime<Utc>,
        tolerance: Duration,
    ) -> Result<(), StoreError> {
        let now = now.timestamp_micros();
        // If the conversion saturates, the limit is beyond the calendar and no check-in exceeds it.
        let tolerance = i64::try_from(tolerance.as_micros()).unwrap_or(i64::MAX);
        self.store
            .limit_check_ins(CheckInLimit { statuses, latest: now.saturating_add(tolerance), now })
            .await
    }

    /// Queues a check-in to be stored later. Returns `true` if the caller must start a task that calls
    /// [`store_check_ins`](Self::store_check_ins) until [`has_stored_all`](Self::has_stored_all) returns `true`.
    pub(crate) fn add_check_in(&self, check_in: CheckIn) -> bool {
        self.store.metrics().add_check_in();
        self.check_ins.add(check_in)
    }

    /// Stores the queued check-ins. If that fails, they stay in the queue.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn store_check_ins(&self) -> Result<(), StoreError> {
        for batch in self.check_ins.all().chunks(CHECK_INS_PER_BATCH) {
            self.store.store_check_ins(batch).await?;
            self.check_ins.remove(batch);
        }
        Ok(())
    }

    /// Returns `true` if the task that stores check-ins may end because the queue is empty. The next check-in then
    /// starts a new task.
    pub(crate) fn has_stored_all(&self) -> bool {
        self.check_ins.end_task()
    }

    /// Reads the reports of a host that the caller has read before. If the host has changed since then, returns its
    /// current state with matching reports. If the host has been removed, returns no reports.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails, or if a report that the host names is missing.
    pub async fn with_reports<R: Record>(
        &self,
        mut host: R,
        kinds: ReportKinds,
    ) -> Result<(R, Reports), StoreError> {
        let key = host.key();
        let mut read_at = None;
        for _ in 0..MAX_ATTEMPTS {
            // Another change may have added or removed reports since the host was read.
            let kind = match reports_of(&host, kinds, self.store.reports(key, kinds).await?) {
                Ok(reports) => return Ok((host, reports)),
                Err(kind) => kind,
            };
            let Some(stored) = self.find::<R>(key.parent, key.id).await? else {
                return Ok((host, Reports::default()));
            };
            if read_at == Some(stored.generation) {
                return Err(StoreError::MissingReport { key, kind });
            }
            read_at = Some(stored.generation);
            host = stored.record;
        }
        Err(StoreError::Contended)
    }

    /// Makes the change that `plan` returns, and returns the value that `plan` returns with it.
    ///
    /// `plan` reads the records that it needs through the [`ReadSet`]. It must have no side effects, because it is
    /// called again if one of these records changes before the commit. If a record changes between two reads, `plan` is
    /// called again even if it returned an error.
    ///
    /// # Errors
    ///
    /// Returns an error if `plan` does, if the database fails, or if every attempt conflicts with another change.
    pub async fn change<T, F>(&self, plan: impl Fn(ReadSet) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<(Change, T), Error>>,
    {
        self.change_after(OPTIMISTIC_ATTEMPTS, BTreeSet::new(), plan).await
    }

    /// Makes a change as [`change`](Self::change) does, for a record that often has several changes at the same time.
    /// In this process, changes to the record are planned one after the other.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`change`](Self::change).
    pub async fn change_in_turn<T, F>(&self, key: Key, plan: impl Fn(ReadSet) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<(Change, T), Error>>,
    {
        self.change_after(0, BTreeSet::from([key]), plan).await
    }

    /// Makes a change. After `optimistic_attempts`, each attempt locks `contended` and the keys of all earlier
    /// attempts.
    async fn change_after<T, F>(
        &self,
        optimistic_attempts: u64,
        mut contended: BTreeSet<Key>,
        plan: impl Fn(ReadSet) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<(Change, T), Error>>,
    {
        for attempt in 0..MAX_ATTEMPTS {
            let locked =
                if attempt < optimistic_attempts { None } else { Some(self.locks.lock(&contended).await) };
            let reserved =
                if attempt < LOCAL_ATTEMPTS { None } else { self.store.reserve(&contended).await? };
            let reads = ReadSet::new(Arc::clone(&self.store), Arc::clone(&self.check_ins));
            let planned = plan(reads.clone()).await;
            if reads.is_overtaken() {
                // The plan or its error is based on different states of one record, so the change is planned again.
                self.store.metrics().add_retry();
                drop((locked, reserved));
                contended.extend(reads.keys());
                continue;
            }
            let (change, value) = planned?;
            if change.is_empty() {
                return Ok(value);
            }
            let changes = reads.guard(change.changes)?;
            let keys = changes.keys();
            let outcome = match (locked, reserved) {
                (Some(_locked), Some(reserved)) => {
                    self.store.metrics().measure_commit(reserved.commit(changes)).await?
                }
                (Some(_locked), None) => self.store.commit(changes).await?,
                (None, _) => {
                    let _others = self.locks.wait(&keys).await;
                    self.store.commit(changes).await?
                }
            };
            match (outcome, change.out_of_bounds) {
                (Outcome::Done, _) => return Ok(value),
                (Outcome::OutOfBounds, Some(refusal)) => return Err(refusal),
                (Outcome::Overtaken | Outcome::OutOfBounds, _) => {
                    self.store.metrics().add_retry();
                    contended.extend(keys);
                }
            }
        }
        Err(StoreError::Contended.into())
    }

    /// Replaces reports of hosts without writing the hosts, as [`Step::RewriteReport`] does. A report is skipped if its
    /// host does not exist, is deleted, or has no report of this kind.
    ///
    /// The reports are rewritten in several transactions. The limits of infra-envs are not checked. The hosts'
    /// documents still contain the lengths of the old reports, which count again at the next change to the host. So a
    /// new report must be about as long as the old one.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails. Some of the reports may have been rewritten.
    pub async fn put_reports(&self, batch: Vec<(Key, ReportKind, String)>) -> Result<(), StoreError> {
        for batch in report_batches(batch) {
            let steps = batch.into_iter().map(|(host, kind, report)| Step::RewriteReport(host, kind, report));
            let changes = Changes { steps: steps.collect(), events: Vec::new() };
            self.store.commit(changes).await?.require_done()?;
        }
        Ok(())
    }

    /// Stores an event that is not part of a change to a record.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn add_event(&self, event: Event) -> Result<(), StoreError> {
        let changes = Changes { steps: Vec::new(), events: vec![event] };
        self.store.commit(changes).await?.require_done()
    }
}

/// Splits reports into batches, one for each transaction.
fn report_batches(reports: Vec<(Key, ReportKind, String)>) -> Vec<Vec<(Key, ReportKind, String)>> {
    let (mut batches, mut batch, mut bytes) = (Vec::new(), Vec::new(), 0_usize);
    for report in reports {
        bytes = bytes.saturating_add(report.2.len());
        batch.push(report);
        if batch.len() >= REPORTS_PER_BATCH || bytes >= REPORT_BYTES_PER_BATCH {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
    }
    batches.extend(Some(batch).filter(|batch| !batch.is_empty()));
    batches
}

impl Reader for Records {
    async fn find<R: Record>(&self, parent: Option<Uuid>, id: Uuid) -> Result<Option<Stored<R>>, StoreError> {
        Self::find(self, parent, id).await
    }

    async fn list<R: Record>(&self, filter: Filter) -> Result<Vec<Stored<R>>, StoreError> {
        Self::list(self, filter).await
    }
}

/// The planned changes by one operation, which the store makes together.
#[derive(Debug, Default)]
pub struct Change {
    changes: Changes,
    /// The error to return if the commit fails with [`Outcome::OutOfBounds`].
    out_of_bounds: Option<Error>,
}

impl Change {
    /// Returns a change without steps or events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn is_empty(&self) -> bool {
        self.changes.steps.is_empty() && self.changes.events.is_empty()
    }

    /// Adds a new record. Its first generation is the current time in microseconds, so it differs from every generation
    /// of an earlier record with the same id. If this change also removes that record, the new generation is larger.
    ///
    /// # Errors
    ///
    /// Returns an error if the record cannot be serialized as JSON.
    pub fn insert<R: Record>(&mut self, record: &R) -> Result<(), StoreError> {
        let key = record.key();
        let removed = self.changes.steps.iter().filter_map(|step| match step {
            Step::Remove(removed, generation) if *removed == key => Some(generation.saturating_add(1)),
            _ => None,
        });
        let generation = removed.fold(unique_micros(1), i64::max);
        self.changes.steps.push(Step::Insert(encode(record, generation)?));
        Ok(())
    }

    /// Replaces a record, which must still have the generation `read_at`. Returns the new [counted size](counted_size),
    /// including reports.
    ///
    /// # Errors
    ///
    /// Returns an error if the record cannot be serialized as JSON.
    pub fn replace<R: Record>(&mut self, record: &R, read_at: i64) -> Result<u64, StoreError> {
        let row = encode(record, read_at.saturating_add(1))?;
        let size = counted_size(row.document.len().saturating_add(record.reports_len()));
        self.changes.steps.push(Step::Replace(row));
        Ok(size)
    }

    /// Removes a record, which must still have the generation of `stored`.
    pub fn remove<R: Record>(&mut self, stored: &Stored<R>) {
        self.changes.steps.push(Step::Remove(stored.record.key(), stored.generation));
    }

    /// Stores a report of a host. If the host [names](ReportKind::is_named_by_host) reports of this kind, the change
    /// must also write the host.
    pub fn put_report<R: Record>(&mut self, host: &R, kind: ReportKind, report: String) {
        self.changes.steps.push(Step::PutReport(host.key(), kind, report));
    }

    /// Removes a report of a host. If the host names reports of this kind, the change must also write the host.
    pub fn remove_report<R: Record>(&mut self, host: &R, kind: ReportKind) {
        self.changes.steps.push(Step::RemoveReport(host.key(), kind));
    }

    /// Stores the validation results of a host without writing the host. The results are skipped if the host does not
    /// exist or is deleted.
    pub fn put_results(&mut self, host: Key, results: String) {
        self.changes.steps.push(Step::PutReport(host, ReportKind::Results, results));
    }

    /// Removes the validation results of a host, if they exist.
    pub fn remove_results(&mut self, host: Key) {
        self.changes.steps.push(Step::RemoveReport(host, ReportKind::Results));
    }

    /// Requires that a record exists and is not deleted when the change is committed.
    pub fn require<R: Record>(&mut self, record: &R) {
        self.changes.steps.push(Step::Require(record.key()));
    }

    /// Requires that the host has not checked in since the time `since` when the change is committed. Must be called
    /// before [`replace`](Self::replace).
    pub(crate) fn require_silent<R: Record>(&mut self, host: &R, since: DateTime<Utc>) {
        self.changes.steps.push(Step::RequireSilent(host.key(), since.timestamp_micros()));
    }

    /// Requires that no host has joined or left the cluster since [`Records::membership_changes`] returned `changes`.
    pub(crate) fn require_membership(&mut self, cluster: Uuid, changes: i64) {
        self.changes.steps.push(Step::RequireMembership(cluster, changes));
    }

    /// Requires that no record matches the filter when the change is committed.
    pub(crate) fn require_none(&mut self, filter: Filter) {
        self.changes.steps.push(Step::RequireNone(filter));
    }

    /// Requires that the records of a parent stay within a bound. Otherwise the change fails with `refusal`.
    pub(crate) fn require_within(&mut self, bound: Bound, refusal: Error) {
        self.changes.steps.push(Step::RequireWithin(bound));
        self.out_of_bounds = Some(refusal);
    }

    /// Adds an event, which is stored together with the change.
    pub fn add_event(&mut self, event: Event) {
        self.changes.events.push(event);
    }
}

#[cfg(test)]
mod tests {
    use serde::ser::Error as _;
    use serde::{Deserialize, Serialize, Serializer};

    use super::*;
    use crate::error::ErrorKind;
    use crate::store::Kind;

    #[derive(Clone, Debug, Serialize, Deserialize)]
    struct Unwritable {
        #[serde(serialize_with = "fail", default)]
        value: u8,
    }

    fn fail<S: Serializer>(_: &u8, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("has no JSON form"))
    }

    impl Record for Unwritable {
        const KIND: Kind = Kind::Host;

        fn id(&self) -> Uuid {
            Uuid::nil()
        }
    }

    #[test]
    fn report_batches_are_bounded() {
        let host = Key { kind: Kind::Host, parent: Some(Uuid::nil()), id: Uuid::nil() };
        let report = |len: usize| (host, ReportKind::Connectivity, "x".repeat(len));
        let lengths = |reports: Vec<_>| report_batches(reports).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(Vec::new()), [0; 0]);
        assert_eq!(lengths(vec![report(1); 1001]), [500, 500, 1]);
        assert_eq!(lengths(vec![report(1); 500]), [500]);
        assert_eq!(lengths(vec![report(5 << 20), report(5 << 20), report(9 << 20), report(1)]), [2, 1, 1]);
    }

    #[test]
    fn unserializable_record_is_an_error_and_adds_no_step() {
        let (record, mut change) = (Unwritable { value: 0 }, Change::new());
        for error in [change.insert(&record).unwrap_err(), change.replace(&record, 1).unwrap_err()] {
            assert!(matches!(error, StoreError::Unwritable { key, .. } if key == record.key()), "{error}");
            assert_eq!(Error::from(error).kind(), ErrorKind::Internal);
        }
        assert!(change.is_empty());
    }
}
