//! Computes which rows a change writes, from its steps and the current rows.
//!
//! All requirements on single records are checked here, in memory, after the rows have been read and locked. The result
//! has at most one write for each row, so a change to many records needs only a few statements.

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::store::{Key, Kind, ReportKind, Row, Step, counted_size};

/// The parts of a stored row that affect the requirements and totals of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CurrentRow {
    pub(super) generation: i64,
    pub(super) deleted: bool,
    pub(super) size: i64,
    pub(super) checked_in_at: Option<i64>,
    pub(super) cluster: Option<Uuid>,
}

impl CurrentRow {
    fn from_written(row: &Row) -> Self {
        Self {
            generation: row.generation,
            deleted: row.columns.deleted,
            size: size_of(row),
            checked_in_at: row.columns.checked_in_at,
            cluster: row.columns.cluster,
        }
    }

    /// Returns the cluster of the row's host, or `None` if the host is deleted or in no cluster.
    fn membership(self) -> Option<Uuid> {
        self.cluster.filter(|_| !self.deleted)
    }

    /// Returns the row's share of the totals of its parent.
    fn totals(self) -> Totals {
        Totals { records: if self.deleted { 0 } else { 1 }, bytes: self.size }
    }
}

/// Returns the counted size of a row in bytes. If the writer does not know the length of the reports, the reports are
/// left out.
pub(super) fn size_of(row: &Row) -> i64 {
    // If a conversion saturates, the size exceeds every bound.
    let reports = usize::try_from(row.reports_len.unwrap_or(0)).unwrap_or(usize::MAX);
    i64::try_from(counted_size(row.document.len().saturating_add(reports))).unwrap_or(i64::MAX)
}

/// The number of records, not counting deleted ones, and the total size of all records. Also the difference between two
/// such totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) records: i64,
    pub(super) bytes: i64,
}

impl Totals {
    fn minus(self, other: Self) -> Self {
        Self {
            records: self.records.saturating_sub(other.records),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            records: self.records.saturating_add(other.records),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

/// A row to write.
#[derive(Debug)]
enum Write<'a> {
    /// Inserts a row with its time of creation.
    Insert(i64, Cow<'a, Row>),
    Replace(Cow<'a, Row>),
}

impl<'a> Write<'a> {
    fn row(&self) -> &Row {
        match self {
            Self::Insert(_, row) | Self::Replace(row) => row,
        }
    }

    /// Returns the write that combines this write with a later replacement of the row.
    fn replaced_by(self, row: &'a Row) -> Self {
        let columns = row.columns.clone().after(&self.row().columns);
        let row = Cow::Owned(Row { columns, ..row.clone() });
        match self {
            Self::Insert(made_at, _) => Self::Insert(made_at, row),
            Self::Replace(_) => Self::Replace(row),
        }
    }
}

/// The state of one record during the evaluation of the steps.
#[derive(Debug, Default)]
struct RecordState<'a> {
    before: Option<CurrentRow>,
    now: Option<CurrentRow>,
    /// Whether the change deletes the row that existed before, with all reports and MAC addresses of a host.
    is_removed: bool,
    write: Option<Write<'a>>,
}

/// The write of a report.
#[derive(Clone, Copy, Debug)]
enum ReportWrite<'a> {
    Put(&'a str),
    /// Has an effect only if the host has a report of this kind.
    Rewrite(&'a str),
    Remove,
}

impl<'a> ReportWrite<'a> {
    /// Returns the write that combines this write with a later rewrite of the report.
    fn rewritten_by(self, document: &'a str) -> Self {
        match self {
            Self::Put(_) => Self::Put(document),
            Self::Rewrite(_) => Self::Rewrite(document),
            Self::Remove => Self::Remove,
        }
    }
}

type ReportWrites<'a> = BTreeMap<(Key, ReportKind), ReportWrite<'a>>;

/// All writes of a change.
#[derive(Debug, Default)]
pub(super) struct Effects<'a> {
    pub(super) removed: Vec<Key>,
    /// Rows to insert, with their times of creation.
    pub(super) inserted: Vec<(i64, Cow<'a, Row>)>,
    pub(super) replaced: Vec<Cow<'a, Row>>,
    pub(super) put_reports: Vec<(Key, ReportKind, &'a str)>,
    pub(super) rewritten_reports: Vec<(Key, ReportKind, &'a str)>,
    pub(super) removed_reports: Vec<(Key, ReportKind)>,
    /// The hosts whose sizes the database must compute, with their previous sizes.
    pub(super) resized: BTreeMap<Key, i64>,
    /// The differences to add to the totals of parents.
    pub(super) totals: BTreeMap<(Kind, Uuid), Totals>,
    /// The clusters that hosts join or leave, with the number of joins and leaves.
    pub(super) memberships: BTreeMap<Uuid, i64>,
}

impl<'a> Effects<'a> {
    /// Evaluates timestamped steps on the existing rows. Returns `None` if a requirement is not met.
    pub(super) fn evaluate(steps: &'a [(i64, Step)], rows: &BTreeMap<Key, CurrentRow>) -> Option<Self> {
        let mut records = BTreeMap::new();
        let mut reports = ReportWrites::new();
        for (made_at, step) in steps {
            let Some(key) = step.key() else { continue };
            let record = match records.entry(key) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let before = rows.get(&key).copied();
                    entry.insert(RecordState { before, now: before, ..RecordState::default() })
                }
            };
            record.apply(step, *made_at)?;
            let is_present = record.now.is_some_and(|now| !now.deleted);
            apply_to_reports(&mut reports, step, is_present);
        }
        let mut effects = Self { resized: hosts_to_resize(&records, &reports), ..Self::default() };
        for ((host, kind), write) in reports {
            match write {
                ReportWrite::Put(document) => effects.put_reports.push((host, kind, document)),
                ReportWrite::Rewrite(document) => effects.rewritten_reports.push((host, kind, document)),
                ReportWrite::Remove => effects.removed_reports.push((host, kind)),
            }
        }
        for (key, record) in records {
            effects.add_record(key, record);
        }
        Some(effects)
    }

    fn add_record(&mut self, key: Key, record: RecordState<'a>) {
        if let Some(parent) = key.parent {
            let totals = |row: Option<CurrentRow>| row.map(CurrentRow::totals).unwrap_or_default();
            self.add_totals(key.kind, parent, totals(record.now).minus(totals(record.before)));
        }
        if key.kind == Kind::Host {
            self.add_membership(record.before, record.now);
        }
        if record.is_removed {
            self.removed.push(key);
        }
        match record.write {
            Some(Write::Insert(made_at, row)) => self.inserted.push((made_at, row)),
            Some(Write::Replace(row)) => self.replaced.push(row),
            None => {}
        }
    }

    /// Counts a host that joins or leaves a cluster.
    fn add_membership(&mut self, before: Option<CurrentRow>, now: Option<CurrentRow>) {
        let [before, now] = [before, now].map(|row| row.and_then(CurrentRow::membership));
        if before == now {
            return;
        }
        for cluster in [before, now].into_iter().flatten() {
            let changes = self.memberships.entry(cluster).or_default();
            *changes = changes.saturating_add(1);
        }
    }

    /// Adds the size of a host that the database has computed.
    pub(super) fn add_size(&mut self, host: Key, size: i64) {
        if let (Some(before), Some(parent)) = (self.resized.get(&host), host.parent) {
            let bytes = size.saturating_sub(*before);
            self.add_totals(host.kind, parent, Totals { records: 0, bytes });
        }
    }

    fn add_totals(&mut self, kind: Kind, parent: Uuid, change: Totals) {
        let totals = self.totals.entry((kind, parent)).or_default();
        *totals = totals.plus(change);
    }
}

/// Applies a step to the writes of reports. `is_present` is `true` if the host exists after the step and is not
/// deleted.
fn apply_to_reports<'a>(reports: &mut ReportWrites<'a>, step: &'a Step, is_present: bool) {
    match step {
        Step::PutReport(host, kind, document) if is_present || kind.is_named_by_host() => {
            reports.insert((*host, *kind), ReportWrite::Put(document));
        }
        Step::RewriteReport(host, kind, document) if is_present => {
            let write = reports.entry((*host, *kind));
            let write = write.and_modify(|write| *write = write.rewritten_by(document));
            write.or_insert(ReportWrite::Rewrite(document));
        }
        Step::RemoveReport(host, kind) => {
            reports.insert((*host, *kind), ReportWrite::Remove);
        }
        // The removal of a host removes all its stored reports.
        Step::Remove(key, _) => reports.retain(|(host, _), _| host != key),
        Step::Insert(row) | Step::Replace(row) if row.key.kind == Kind::Host && row.columns.deleted => {
            reports.extend(ReportKind::all_unnamed().map(|kind| ((row.key, kind), ReportWrite::Remove)));
        }
        _ => {}
    }
}

/// Returns the hosts whose size the database must compute, because the writer does not know the total length of their
/// reports. Each host has the size in the row to write, or else the size in the stored row.
fn hosts_to_resize(
    records: &BTreeMap<Key, RecordState<'_>>,
    reports: &ReportWrites<'_>,
) -> BTreeMap<Key, i64> {
    let counted = reports.keys().filter(|(_, kind)| kind.is_named_by_host());
    let with_reports: BTreeSet<_> = counted.map(|(host, _)| *host).collect();
    let resized = records.iter().filter(|(key, record)| match &record.write {
        Some(write) => key.kind == Kind::Host && write.row().reports_len.is_none(),
        None => with_reports.contains(key),
    });
    resized.filter_map(|(key, record)| Some((*key, record.now?.size))).collect()
}

impl<'a> RecordState<'a> {
    /// Evaluates a step on the record. Returns `None` if its requirement is not met.
    fn apply(&mut self, step: &'a Step, made_at: i64) -> Option<()> {
        let holds = match step {
            Step::Insert(row) => {
                let is_absent = self.now.is_none();
                self.now = Some(CurrentRow::from_written(row));
                self.write = Some(Write::Insert(made_at, Cow::Borrowed(row)));
                is_absent
            }
            Step::Replace(row) => {
                let is_next =
                    self.now.is_some_and(|now| Some(row.generation) == now.generation.checked_add(1));
                self.now = Some(CurrentRow::from_written(row));
                self.write = Some(match self.write.take() {
                    Some(write) => write.replaced_by(row),
                    None => Write::Replace(Cow::Borrowed(row)),
                });
                is_next
            }
            Step::Remove(_, generation) => {
                let is_same = self.now.is_some_and(|now| now.generation == *generation);
                self.is_removed = true;
                (self.now, self.write) = (None, None);
                is_same
            }
            Step::Require(_) => self.now.is_some_and(|now| !now.deleted),
            Step::RequireAt(_, generation) => self.now.map_or(0, |now| now.generation) == *generation,
            Step::RequireSilent(_, since) => {
                self.now.is_some_and(|now| now.checked_in_at.is_none_or(|at| at < *since))
            }
            Step::PutReport(..) | Step::RewriteReport(..) | Step::RemoveReport(..) => true,
            // These steps address no single record.
            Step::RequireNone(_) | Step::RequireWithin(_) | Step::RequireMembership(..) => true,
            Step::StoreCheckIns(_) | Step::LimitCheckIns(_) | Step::ForgetEvents(_) => true,
        };
        holds.then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: Uuid = Uuid::from_u128(1);

    fn host(id: u128) -> Key {
        Key { kind: Kind::Host, parent: Some(PARENT), id: Uuid::from_u128(id) }
    }

    fn row(id: u128, generation: i64) -> Row {
        Row { generation, reports_len: Some(0), ..Row::new(host(id), "{}".to_owned()) }
    }

    fn stored(generation: i64) -> CurrentRow {
        CurrentRow { generation, deleted: false, size: 4096, checked_in_at: None, cluster: None }
    }

    fn totals(effects: &Effects<'_>) -> Totals {
        effects.totals[&(Kind::Host, PARENT)]
    }

    #[test]
    fn steps_on_one_record_become_one_write() {
        let rows = BTreeMap::from([(host(1), stored(4))]);
        let steps = [
            (1, Step::PutReport(host(1), ReportKind::Inventory, "old".to_owned())),
            (2, Step::Remove(host(1), 4)),
            (3, Step::Insert(row(1, 7))),
            (4, Step::Replace(row(1, 8))),
            (5, Step::Insert(row(2, 1))),
            (6, Step::Remove(host(2), 1)),
        ];
        let effects = Effects::evaluate(&steps, &rows).unwrap();
        assert_eq!(effects.removed, [host(1), host(2)]);
        let inserted: Vec<_> = effects.inserted.iter().map(|(at, row)| (*at, row.generation)).collect();
        assert_eq!(inserted, [(3, 8)]);
        assert!(effects.replaced.is_empty() && effects.put_reports.is_empty() && effects.resized.is_empty());
        assert_eq!(totals(&effects), Totals::default());
    }

    #[test]
    fn check_in_and_macs_survive_a_second_write_of_the_change() {
        let rows = BTreeMap::from([(host(1), stored(1))]);
        let with = |generation, checked_in_at, macs| {
            let mut row = row(1, generation);
            row.columns.checked_in_at = checked_in_at;
            row.columns.macs = macs;
            row
        };
        let macs = Some(BTreeSet::from(["52:54:00:00:00:01".to_owned()]));
        let steps =
            [(1, Step::Replace(with(2, Some(9), macs.clone()))), (2, Step::Replace(with(3, Some(5), None)))];
        let effects = Effects::evaluate(&steps, &rows).unwrap();
        let [written] = effects.replaced.as_slice() else { panic!("{effects:?}") };
        assert_eq!((written.generation, written.columns.checked_in_at), (3, Some(9)));
        assert_eq!(written.columns.macs, macs);
    }

    #[test]
    fn totals_are_the_difference_of_rows_before_and_after() {
        let rows = BTreeMap::from([(host(1), stored(1)), (host(2), stored(1)), (host(3), stored(1))]);
        let mut deleted = row(1, 2);
        deleted.columns.deleted = true;
        let long = Row { reports_len: Some(4096), ..row(3, 2) };
        let steps = [
            (1, Step::Replace(deleted)),
            (2, Step::Remove(host(2), 1)),
            (3, Step::Replace(long)),
            (4, Step::Insert(row(4, 1))),
        ];
        let effects = Effects::evaluate(&steps, &rows).unwrap();
        assert_eq!(totals(&effects), Totals { records: -1, bytes: 4096 });
    }

    #[test]
    fn host_that_joins_leaves_or_moves_changes_memberships() {
        let [one, other] = [7, 8].map(Uuid::from_u128);
        let of = |cluster| CurrentRow { cluster, ..stored(1) };
        let to = |id, cluster, deleted| {
            let mut row = row(id, 2);
            (row.columns.cluster, row.columns.deleted) = (cluster, deleted);
            Step::Replace(row)
        };
        let memberships = |before, step| {
            let rows = BTreeMap::from([(host(1), of(before))]);
            Effects::evaluate(&[(1, step)], &rows).unwrap().memberships
        };
        for (before, step, expected) in [
            (None, to(1, None, false), vec![]),
            (Some(one), to(1, Some(one), false), vec![]),
            (None, to(1, Some(one), false), vec![(one, 1)]),
            (Some(one), to(1, None, false), vec![(one, 1)]),
            (Some(one), to(1, Some(other), false), vec![(one, 1), (other, 1)]),
            (Some(one), to(1, Some(one), true), vec![(one, 1)]),
            (Some(one), Step::Remove(host(1), 1), vec![(one, 1)]),
        ] {
            assert_eq!(memberships(before, step), expected.into_iter().collect());
        }
    }

    #[test]
    fn host_is_resized_if_only_its_reports_change() {
        let rows = BTreeMap::from([(host(1), stored(1))]);
        let put_inventory = |id| Step::PutReport(host(id), ReportKind::Inventory, "{}".to_owned());
        let steps = [(1, put_inventory(1)), (2, put_inventory(2))];
        let mut effects = Effects::evaluate(&steps, &rows).unwrap();
        assert_eq!(effects.resized, BTreeMap::from([(host(1), 4096)]));
        effects.add_size(host(1), 8192);
        assert_eq!(totals(&effects), Totals { records: 0, bytes: 4096 });
        let steps = [(1, put_inventory(1)), (2, Step::Replace(row(1, 2)))];
        assert!(Effects::evaluate(&steps, &rows).unwrap().resized.is_empty());
    }

    #[test]
    fn rewrite_follows_earlier_steps_on_the_report() {
        let kinds = [ReportKind::Inventory, ReportKind::Connectivity, ReportKind::NtpSources];
        let [put_kind, removed_kind, rewritten_kind] = kinds;
        let rewrite = |id, kind, text: &str| Step::RewriteReport(host(id), kind, text.to_owned());
        let rows = BTreeMap::from([(host(1), stored(1))]);
        let steps = [
            (1, Step::PutReport(host(1), put_kind, "old".to_owned())),
            (2, Step::RemoveReport(host(1), removed_kind)),
            (3, rewrite(1, rewritten_kind, "old")),
            (4, rewrite(1, put_kind, "a")),
            (5, rewrite(1, removed_kind, "b")),
            (6, rewrite(1, rewritten_kind, "c")),
        ];
        let effects = Effects::evaluate(&steps, &rows).unwrap();
        assert_eq!(effects.put_reports, [(host(1), put_kind, "a")]);
        assert_eq!(effects.removed_reports, [(host(1), removed_kind)]);
        assert_eq!(effects.rewritten_reports, [(host(1), rewritten_kind, "c")]);
        assert_eq!(effects.resized, BTreeMap::from([(host(1), 4096)]));
    }

    #[test]
    fn missing_and_deleted_hosts_get_no_results_and_no_rewrites() {
        let rows =
            BTreeMap::from([(host(1), stored(1)), (host(2), CurrentRow { deleted: true, ..stored(1) })]);
        let mut deleted = row(1, 2);
        deleted.columns.deleted = true;
        let writes = |id| {
            let put_report = |kind| Step::PutReport(host(id), kind, "{}".to_owned());
            let rewrite = Step::RewriteReport(host(id), ReportKind::Connectivity, "{}".to_owned());
            [put_report(ReportKind::Results), rewrite]
        };
        let steps = [writes(1), writes(2), writes(3)].concat().into_iter().chain([Step::Replace(deleted)]);
        let steps: Vec<_> = (1..).zip(steps).collect();
        let effects = Effects::evaluate(&steps, &rows).unwrap();
        assert!(effects.put_reports.is_empty(), "{effects:?}");
        let rewritten: Vec<_> = effects.rewritten_reports.iter().map(|(host, ..)| *host).collect();
        assert_eq!(rewritten, [host(1)]);
        // Deleting the host removes its validation results.
        assert_eq!(effects.removed_reports, [(host(1), ReportKind::Results)]);
        let effects = Effects::evaluate(&steps[..2], &rows).unwrap();
        assert_eq!(effects.put_reports, [(host(1), ReportKind::Results, "{}")]);
        assert_eq!(effects.rewritten_reports, [(host(1), ReportKind::Connectivity, "{}")]);
    }

    #[test]
    fn results_do_not_count_in_the_size_of_their_host() {
        let rows = BTreeMap::from([(host(1), stored(1))]);
        let steps = [(1, Step::PutReport(host(1), ReportKind::Results, "{}".to_owned()))];
        assert!(Effects::evaluate(&steps, &rows).unwrap().resized.is_empty());
    }

    #[test]
    fn failed_requirement_has_no_effects() {
        let rows = BTreeMap::from([(host(1), CurrentRow { checked_in_at: Some(7), ..stored(2) })]);
        for step in [
            Step::Insert(row(1, 1)),
            Step::Replace(row(1, 2)),
            Step::Replace(row(2, 1)),
            Step::Remove(host(1), 1),
            Step::Require(host(2)),
            Step::RequireAt(host(1), 0),
            Step::RequireAt(host(2), 1),
            Step::RequireSilent(host(1), 7),
            Step::RequireSilent(host(2), 7),
        ] {
            assert!(Effects::evaluate(&[(1, step.clone())], &rows).is_none(), "{step:?}");
        }
        let all = [Step::Require(host(1)), Step::RequireAt(host(2), 0), Step::RequireSilent(host(1), 8)];
        let all = all.map(|step| (1, step));
        assert!(Effects::evaluate(&all, &rows).is_some());
    }
}
