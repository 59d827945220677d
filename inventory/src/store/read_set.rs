//! The records that the planning of a change has read. The commit requires that they are unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

use super::check_ins::PendingCheckIns;
use super::newer::NewerDocument;
use super::record::{Record, Stored, decode, reports_of};
use super::{Changes, Filter, Key, ReportKinds, Reports, Row, Step, Store, StoreError};

/// A source of records: [`Records`](super::Records) for requests that change nothing, and a [`ReadSet`] for the
/// planning of a change.
pub trait Reader: Sync {
    /// Returns the record with the given parent and id, even if it is deleted.
    fn find<R: Record>(
        &self,
        parent: Option<Uuid>,
        id: Uuid,
    ) -> impl Future<Output = Result<Option<Stored<R>>, StoreError>> + Send;

    /// Returns the records that match a filter, in the order of their creation.
    fn list<R: Record>(
        &self,
        filter: Filter,
    ) -> impl Future<Output = Result<Vec<Stored<R>>, StoreError>> + Send;
}

/// The records that one attempt to plan a change has read.
///
/// The commit requires that each record still has the generation it was read with, and that each missing record still
/// does not exist. So a decision based on several records is still valid at the commit. Two concurrent changes cannot
/// both be based on records that the other one writes.
///
/// A list is protected record by record, so a record that another change adds to the list is not detected. If a
/// decision depends on the absence of further records, both changes must write or require a common record, or the
/// change must require that no record matches the filter.
///
/// Clones share the same records.
#[derive(Clone, Debug)]
pub struct ReadSet {
    store: Arc<dyn Store>,
    check_ins: Arc<PendingCheckIns>,
    reads: Arc<Mutex<BTreeMap<Key, ReadRecord>>>,
    /// Whether the generation of a record differed between two reads.
    overtaken: Arc<AtomicBool>,
}

/// The state of a record at its first read.
#[derive(Clone, Debug)]
struct ReadRecord {
    /// The generation, or 0 if the record does not exist.
    generation: i64,
    is_deleted: bool,
    /// The MAC addresses of a host.
    macs: Option<BTreeSet<String>>,
    newer: Option<NewerDocument>,
}

impl ReadSet {
    pub(super) fn new(store: Arc<dyn Store>, check_ins: Arc<PendingCheckIns>) -> Self {
        Self { store, check_ins, reads: Arc::default(), overtaken: Arc::default() }
    }

    /// Returns reports of a host that the caller has read through this set.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails, or if a report that the host names is missing. If the reason is a
    /// concurrent change, [`Records::change`](super::Records::change) plans the change again.
    pub async fn reports<R: Record>(
        &self,
        host: &Stored<R>,
        kinds: ReportKinds,
    ) -> Result<Reports, StoreError> {
        let key = host.record.key();
        let reports = self.store.reports(key, kinds).await?;
        match reports_of(&host.record, kinds, reports) {
            Ok(reports) => Ok(reports),
            Err(kind) => {
                // Reading the host again detects a concurrent change.
                self.find::<R>(key.parent, key.id).await?;
                Err(StoreError::MissingReport { key, kind })
            }
        }
    }

    /// Returns `true` if a record changed between two reads. A plan from such reads cannot be committed.
    pub(super) fn is_overtaken(&self) -> bool {
        self.overtaken.load(Ordering::Acquire)
    }

    pub(super) fn keys(&self) -> Vec<Key> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    fn remember<R: Record>(&self, mut row: Row) -> Result<Stored<R>, StoreError> {
        let stored: Stored<R> = decode(&mut row, &self.check_ins)?;
        let newer = NewerDocument::from_row(&row, &stored.record);
        let read = ReadRecord {
            generation: stored.generation,
            is_deleted: row.columns.deleted,
            macs: stored.record.columns().macs,
            newer: newer.map_err(|source| StoreError::Damaged { key: row.key, source })?,
        };
        self.note(row.key, read);
        Ok(stored)
    }

    fn note(&self, key: Key, read: ReadRecord) {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = read.generation;
        if reads.entry(key).or_insert(read).generation != generation {
            self.overtaken.store(true, Ordering::Release);
        }
    }

    /// Adds a requirement for every record read and drops requirements that another step implies. Also copies fields
    /// that only newer releases support into the replacing documents.
    pub(super) fn guard(&self, mut changes: Changes) -> Result<Changes, StoreError> {
        let reads = std::mem::take(&mut *self.reads.lock().unwrap_or_else(PoisonError::into_inner));
        changes.steps.retain(|step| match step {
            Step::Require(key) => reads.get(key).is_none_or(|read| read.generation == 0 || read.is_deleted),
            _ => true,
        });
        let mut written_keys = BTreeSet::new();
        for step in &mut changes.steps {
            match step {
                Step::Replace(row) => {
                    written_keys.insert(row.key);
                    let Some(read) = reads.get(&row.key) else { continue };
                    if read.macs == row.columns.macs {
                        row.columns.macs = None;
                    }
                    if let Some(newer) = &read.newer {
                        let key = row.key;
                        newer.merge_into(row).map_err(|source| StoreError::Unwritable { key, source })?;
                    }
                }
                Step::Insert(row) => {
                    written_keys.insert(row.key);
                }
                Step::Remove(key, _) => {
                    written_keys.insert(*key);
                }
                _ => {}
            }
        }
        let unwritten = reads.into_iter().filter(|(key, _)| !written_keys.contains(key));
        changes.steps.extend(unwritten.map(|(key, read)| Step::RequireAt(key, read.generation)));
        Ok(changes)
    }
}

impl Reader for ReadSet {
    async fn find<R: Record>(&self, parent: Option<Uuid>, id: Uuid) -> Result<Option<Stored<R>>, StoreError> {
        let key = Key { kind: R::KIND, parent, id };
        match self.store.get(key).await? {
            Some(row) => self.remember(row).map(Some),
            None => {
                self.note(key, ReadRecord { generation: 0, is_deleted: false, macs: None, newer: None });
                Ok(None)
            }
        }
    }

    async fn list<R: Record>(&self, filter: Filter) -> Result<Vec<Stored<R>>, StoreError> {
        self.store.list(filter).await?.into_iter().map(|row| self.remember(row)).collect()
    }
}
