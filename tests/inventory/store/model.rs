//! Random changes have the same effect on a store as on a map.

use std::collections::BTreeMap;

use kindling::inventory::event::{Event, EventQuery, Severity};
use kindling::inventory::id::ClusterId;
use kindling::inventory::store::{
    Bound, Changes, Columns, Filter, Key, Kind, Outcome, PageQuery, Position, ReportKind, ReportKinds,
    Reports, Row, Step, counted_size,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use uuid::Uuid;

use super::{StoreFixture, on_postgres, on_sqlite};

/// Ids of few records, so that changes conflict: two clusters, two infra-envs, and two hosts in each infra-env.
#[derive(Clone, Copy, Debug)]
struct ModelIds {
    clusters: [Uuid; 2],
    infra_envs: [Uuid; 2],
    hosts: [Uuid; 2],
}

impl ModelIds {
    fn new() -> Self {
        let ids = || [Uuid::new_v4(), Uuid::new_v4()];
        Self { clusters: ids(), infra_envs: ids(), hosts: ids() }
    }

    fn all_keys(self) -> Vec<Key> {
        let key = |kind, parent, id| Key { kind, parent, id };
        let clusters = self.clusters.map(|id| key(Kind::Cluster, None, id));
        let infra_envs = self.infra_envs.map(|id| key(Kind::InfraEnv, None, id));
        let hosts = self.infra_envs.map(|parent| self.hosts.map(|id| key(Kind::Host, Some(parent), id)));
        [clusters, infra_envs].into_iter().chain(hosts).flatten().collect()
    }

    /// Filters that contain only resources of this model.
    fn all_filters(self) -> Vec<Filter> {
        let mut filters = Vec::new();
        for kind in [Kind::Cluster, Kind::InfraEnv, Kind::Host] {
            let all = Filter::all(kind);
            filters.extend(self.clusters.map(|id| all.of_cluster(id)));
            filters.extend(self.infra_envs.map(|id| all.within(id)));
            filters.push(all.within(self.infra_envs[0]).of_cluster(self.clusters[1]));
        }
        filters.iter().flat_map(|filter| [*filter, filter.with_deleted()]).collect()
    }
}

/// Kinds of reports: each kind in the plans, the kinds that count in the size of a host, and a single kind.
const EACH: ReportKinds =
    ReportKinds::new(&[ReportKind::Inventory, ReportKind::NtpSources, ReportKind::Results]);
const BOTH: ReportKinds = ReportKinds::new(&[ReportKind::Inventory, ReportKind::NtpSources]);
const ONE: ReportKinds = ReportKinds::new(&[ReportKind::NtpSources]);

/// A step with symbolic names of resources.
#[derive(Clone, Debug)]
enum SymbolicStep {
    Insert(usize, SymbolicContent),
    Replace(usize, SymbolicContent),
    Remove(usize, i64),
    PutReport(usize, ReportKind, String),
    RewriteReport(usize, ReportKind, String),
    RemoveReport(usize, ReportKind),
    Require(usize),
    RequireAt(usize, i64),
    RequireNone(usize),
    RequireWithin { infra_env: usize, records: u64, blocks: u64 },
}

#[derive(Clone, Debug)]
struct SymbolicContent {
    cluster: Option<usize>,
    deleted: bool,
    generation: i64,
    document: String,
}

fn any_content() -> impl Strategy<Value = SymbolicContent> {
    let parts = (prop::option::of(0..2_usize), prop::bool::weighted(0.2), 1..4_i64, "[^\0]{0,12}");
    parts.prop_map(|(cluster, deleted, generation, document)| SymbolicContent {
        cluster,
        deleted,
        generation,
        document,
    })
}

fn any_step() -> impl Strategy<Value = SymbolicStep> {
    let (key, host) = (0..8_usize, 4..8_usize);
    let report = || prop::sample::select(EACH.iter().collect::<Vec<_>>());
    prop_oneof![
        4 => (key.clone(), any_content()).prop_map(|(key, content)| SymbolicStep::Insert(key, content)),
        4 => (key.clone(), any_content()).prop_map(|(key, content)| SymbolicStep::Replace(key, content)),
        2 => (key.clone(), 1..4_i64).prop_map(|(key, generation)| SymbolicStep::Remove(key, generation)),
        2 => (host.clone(), report(), "[^\0]{0,9000}")
            .prop_map(|(key, kind, text)| SymbolicStep::PutReport(key, kind, text)),
        2 => (host.clone(), report(), "[^\0]{0,9000}")
            .prop_map(|(key, kind, text)| SymbolicStep::RewriteReport(key, kind, text)),
        1 => (host, report()).prop_map(|(key, kind)| SymbolicStep::RemoveReport(key, kind)),
        1 => key.clone().prop_map(SymbolicStep::Require),
        2 => (key, 0..4_i64).prop_map(|(key, generation)| SymbolicStep::RequireAt(key, generation)),
        1 => any::<usize>().prop_map(SymbolicStep::RequireNone),
        1 => (0..2_usize, 0..3_u64, 0..12_u64)
            .prop_map(|(infra_env, records, blocks)| SymbolicStep::RequireWithin { infra_env, records, blocks }),
    ]
}

impl SymbolicStep {
    fn to_step(&self, world: ModelIds) -> Step {
        let (keys, filters) = (world.all_keys(), world.all_filters());
        let row = |key: usize, content: &SymbolicContent| {
            let columns = Columns {
                cluster: content.cluster.map(|cluster| world.clusters[cluster]),
                deleted: content.deleted,
                ..Columns::default()
            };
            Row { columns, generation: content.generation, ..Row::new(keys[key], content.document.clone()) }
        };
        match self {
            Self::Insert(key, content) => Step::Insert(row(*key, content)),
            Self::Replace(key, content) => Step::Replace(row(*key, content)),
            Self::Remove(key, generation) => Step::Remove(keys[*key], *generation),
            Self::PutReport(key, kind, text) => Step::PutReport(keys[*key], *kind, text.clone()),
            Self::RewriteReport(key, kind, text) => Step::RewriteReport(keys[*key], *kind, text.clone()),
            Self::RemoveReport(key, kind) => Step::RemoveReport(keys[*key], *kind),
            Self::Require(key) => Step::Require(keys[*key]),
            Self::RequireAt(key, generation) => Step::RequireAt(keys[*key], *generation),
            Self::RequireNone(filter) => Step::RequireNone(filters[filter % filters.len()]),
            Self::RequireWithin { infra_env, records, blocks } => {
                let parent = world.infra_envs[*infra_env];
                Step::RequireWithin(Bound {
                    kind: Kind::Host,
                    parent,
                    records: *records,
                    bytes: blocks << 12,
                })
            }
        }
    }
}

/// The simplest model of a store.
#[derive(Clone, Default)]
struct ModelStore {
    /// Rows with the number of their creation, for the order of lists.
    rows: BTreeMap<Key, (usize, Row)>,
    made: usize,
    reports: BTreeMap<Key, Reports>,
    events: u64,
}

impl ModelStore {
    fn list(&self, filter: Filter) -> Vec<Row> {
        let mut rows: Vec<_> =
            self.rows.values().filter(|(_, row)| matches_filter(row, filter)).cloned().collect();
        rows.sort_by_key(|(order, _)| *order);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    fn apply_step(&mut self, step: &Step) -> bool {
        let fits = match step {
            Step::Insert(row) => {
                self.made += 1;
                let fits = !self.rows.contains_key(&row.key);
                if fits {
                    self.rows.insert(row.key, (self.made, row.clone()));
                }
                fits
            }
            Step::Replace(row) => match self.rows.get_mut(&row.key) {
                Some((_, stored)) if stored.generation + 1 == row.generation => {
                    *stored = row.clone();
                    true
                }
                _ => false,
            },
            Step::Remove(key, generation) => {
                let fits = self.rows.get(key).is_some_and(|(_, row)| row.generation == *generation);
                if fits {
                    self.rows.remove(key);
                    self.reports.remove(key);
                }
                fits
            }
            Step::PutReport(key, kind, _) if *kind == ReportKind::Results && !self.is_present(*key) => true,
            Step::PutReport(key, kind, text) => {
                self.reports.entry(*key).or_default().0.insert(*kind, text.clone());
                true
            }
            Step::RewriteReport(key, kind, text) => {
                if self.is_present(*key)
                    && let Some(report) =
                        self.reports.get_mut(key).and_then(|reports| reports.0.get_mut(kind))
                {
                    report.clone_from(text);
                }
                true
            }
            Step::RemoveReport(key, kind) => {
                self.reports.entry(*key).or_default().0.remove(kind);
                true
            }
            Step::Require(key) => self.is_present(*key),
            Step::RequireAt(key, generation) => {
                self.rows.get(key).map_or(0, |(_, row)| row.generation) == *generation
            }
            Step::RequireSilent(key, since) => self
                .rows
                .get(key)
                .is_some_and(|(_, row)| row.columns.checked_in_at.is_none_or(|at| at < *since)),
            Step::RequireNone(_) | Step::RequireWithin(_) | Step::RequireMembership(..) => true,
            // No plan of the model contains these steps.
            Step::StoreCheckIns(_) | Step::LimitCheckIns(_) | Step::ForgetEvents(_) => {
                unreachable!("{step:?}")
            }
        };
        if let Step::Insert(row) | Step::Replace(row) = step
            && row.columns.deleted
            && let Some(reports) = self.reports.get_mut(&row.key)
        {
            reports.0.remove(&ReportKind::Results);
        }
        fits
    }

    fn is_present(&self, key: Key) -> bool {
        self.rows.get(&key).is_some_and(|(_, row)| !row.columns.deleted)
    }

    fn reports_of(&self, key: Key, kinds: ReportKinds) -> Reports {
        let mut reports = self.reports.get(&key).cloned().unwrap_or_default();
        reports.0.retain(|kind, _| kinds.iter().any(|one| one == *kind));
        reports
    }

    /// Returns the outcome of a step after all other steps are applied.
    fn step_outcome(&self, step: &Step) -> Outcome {
        match step {
            Step::RequireNone(filter) if !self.list(*filter).is_empty() => Outcome::Overtaken,
            Step::RequireWithin(bound) => {
                let all = self.list(Filter::all(bound.kind).within(bound.parent).with_deleted());
                let record_count = all.iter().filter(|row| !row.columns.deleted).count() as u64;
                let reports = |key| self.reports_of(key, BOTH).0.values().map(String::len).sum::<usize>();
                let bytes: u64 =
                    all.iter().map(|row| counted_size(row.document.len() + reports(row.key))).sum();
                let is_within = record_count <= bound.records && bytes <= bound.bytes;
                if is_within { Outcome::Done } else { Outcome::OutOfBounds }
            }
            _ => Outcome::Done,
        }
    }

    fn commit(&mut self, changes: &Changes) -> Outcome {
        let mut next = self.clone();
        if !changes.steps.iter().all(|step| next.apply_step(step)) {
            return Outcome::Overtaken;
        }
        let conclusions = changes.steps.iter().map(|step| next.step_outcome(step));
        if let Some(outcome) = conclusions.into_iter().find(|outcome| *outcome != Outcome::Done) {
            return outcome;
        }
        next.events += changes.events.len() as u64;
        *self = next;
        Outcome::Done
    }
}

fn matches_filter(row: &Row, filter: Filter) -> bool {
    row.key.kind == filter.kind
        && filter.parent.is_none_or(|parent| row.key.parent == Some(parent))
        && filter.cluster.is_none_or(|cluster| row.columns.cluster == Some(cluster))
        && (filter.deleted || !row.columns.deleted)
}

/// Returns the rows and reports of a list, read page by page.
async fn list_with_reports(
    fixture: &StoreFixture,
    filter: Filter,
    kinds: ReportKinds,
) -> (Vec<Row>, BTreeMap<Key, Reports>) {
    let (mut rows, mut reports, mut next) = (Vec::new(), BTreeMap::new(), Some(Position::START));
    while let Some(after) = next {
        let query = PageQuery::first(filter).with_reports(kinds).after(after);
        let page = fixture.store.page(query).await.unwrap();
        rows.extend(page.rows);
        reports.extend(page.reports);
        next = page.next;
    }
    (rows, reports)
}

async fn assert_agreement(fixture: &StoreFixture, plans: &[Vec<SymbolicStep>]) {
    let (world, mut model) = (ModelIds::new(), ModelStore::default());
    let mark = ClusterId::fresh();
    for plan in plans {
        let changes = Changes {
            steps: plan.iter().map(|plan| plan.to_step(world)).collect(),
            events: vec![
                Event::new("changed", Severity::Info, "", chrono::Utc::now()).of_cluster(Some(mark)),
            ],
        };
        let expected = model.commit(&changes);
        assert_eq!(fixture.store.commit(changes).await.unwrap(), expected);
    }
    for key in world.all_keys() {
        let expected = model.rows.get(&key).map(|(_, row)| row.clone());
        assert_eq!(fixture.get_row(key).await, expected, "{key}");
        for kinds in [EACH, ONE] {
            let reports = fixture.store.reports(key, kinds).await.unwrap();
            assert_eq!(reports, model.reports_of(key, kinds), "{key}");
        }
    }
    for filter in world.all_filters() {
        let expected = model.list(filter);
        assert_eq!(fixture.store.list(filter).await.unwrap(), expected, "{filter:?}");
        assert_eq!(fixture.store.count(filter).await.unwrap(), expected.len() as u64, "{filter:?}");
        assert_eq!(fixture.list_pages(filter).await.concat(), expected, "{filter:?}");
        if filter.kind == Kind::Host {
            for kinds in [EACH, ONE] {
                let (rows, streamed) = list_with_reports(fixture, filter, kinds).await;
                assert_eq!(rows, expected, "{filter:?}");
                let mut reports = BTreeMap::new();
                for row in &expected {
                    reports.insert(row.key, model.reports_of(row.key, kinds));
                }
                reports.retain(|_, reports| *reports != Reports::default());
                assert_eq!(streamed, reports, "{filter:?}");
            }
        }
    }
    let query = EventQuery { cluster: Some(mark), ..EventQuery::default() };
    assert_eq!(fixture.store.events(&query).await.unwrap().count, model.events);
}

async fn assert_agreement_on_random_steps(fixture: &StoreFixture) {
    let config = Config { cases: 64, failure_persistence: None, ..Config::default() };
    let plans = prop::collection::vec(prop::collection::vec(any_step(), 1..5), 1..40);
    let handle = tokio::runtime::Handle::current();
    let run = |plans: Vec<Vec<SymbolicStep>>| {
        tokio::task::block_in_place(|| handle.block_on(assert_agreement(fixture, &plans)));
        Ok(())
    };
    TestRunner::new(config).run(&plans, run).unwrap();
}

#[test]
fn sqlite_matches_the_map_model() {
    on_sqlite(assert_agreement_on_random_steps);
}

#[test]
fn postgres_matches_the_map_model() {
    on_postgres(assert_agreement_on_random_steps);
}
