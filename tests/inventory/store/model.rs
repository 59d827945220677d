//! Random changes do to a store what they do to a map.

use std::collections::BTreeMap;

use kindling::inventory::event::{Event, EventQuery, Severity};
use kindling::inventory::id::ClusterId;
use kindling::inventory::store::{
    Bound, Changes, Filter, Key, Kind, Outcome, Row, Step, Store, counted_size,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use uuid::Uuid;

use super::{Fixture, on_postgres, on_sqlite};

/// Few records, so that changes meet: two clusters, two infra-envs, and two hosts in each of these.
#[derive(Clone, Copy, Debug)]
struct World {
    clusters: [Uuid; 2],
    infra_envs: [Uuid; 2],
    hosts: [Uuid; 2],
}

impl World {
    fn new() -> Self {
        let ids = || [Uuid::new_v4(), Uuid::new_v4()];
        Self { clusters: ids(), infra_envs: ids(), hosts: ids() }
    }

    fn keys(self) -> Vec<Key> {
        let key = |kind, parent, id| Key { kind, parent, id };
        let clusters = self.clusters.map(|id| key(Kind::Cluster, None, id));
        let infra_envs = self.infra_envs.map(|id| key(Kind::InfraEnv, None, id));
        let hosts = self.infra_envs.map(|parent| self.hosts.map(|id| key(Kind::Host, Some(parent), id)));
        [clusters, infra_envs].into_iter().chain(hosts).flatten().collect()
    }

    /// All that name something of this world alone.
    fn filters(self) -> Vec<Filter> {
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

/// One step, of a world that is not made yet.
#[derive(Clone, Debug)]
enum Plan {
    Insert(usize, Content),
    Replace(usize, Content),
    Remove(usize, i64),
    Require(usize),
    RequireNone(usize),
    RequireWithin { infra_env: usize, records: u64, blocks: u64 },
}

#[derive(Clone, Debug)]
struct Content {
    cluster: Option<usize>,
    deleted: bool,
    generation: i64,
    document: String,
}

fn content() -> impl Strategy<Value = Content> {
    let parts = (prop::option::of(0..2_usize), prop::bool::weighted(0.2), 1..4_i64, "[^\0]{0,12}");
    parts.prop_map(|(cluster, deleted, generation, document)| Content {
        cluster,
        deleted,
        generation,
        document,
    })
}

fn plan() -> impl Strategy<Value = Plan> {
    let key = 0..8_usize;
    prop_oneof![
        4 => (key.clone(), content()).prop_map(|(key, content)| Plan::Insert(key, content)),
        4 => (key.clone(), content()).prop_map(|(key, content)| Plan::Replace(key, content)),
        2 => (key.clone(), 1..4_i64).prop_map(|(key, generation)| Plan::Remove(key, generation)),
        1 => key.prop_map(Plan::Require),
        1 => any::<usize>().prop_map(Plan::RequireNone),
        1 => (0..2_usize, 0..3_u64, 0..4_u64)
            .prop_map(|(infra_env, records, blocks)| Plan::RequireWithin { infra_env, records, blocks }),
    ]
}

impl Plan {
    fn step(&self, world: World) -> Step {
        let (keys, filters) = (world.keys(), world.filters());
        let row = |key: usize, content: &Content| Row {
            key: keys[key],
            cluster: content.cluster.map(|cluster| world.clusters[cluster]),
            token_key: None,
            deleted: content.deleted,
            generation: content.generation,
            document: content.document.clone(),
        };
        match self {
            Self::Insert(key, content) => Step::Insert(row(*key, content)),
            Self::Replace(key, content) => Step::Replace(row(*key, content)),
            Self::Remove(key, generation) => Step::Remove(keys[*key], *generation),
            Self::Require(key) => Step::Require(keys[*key]),
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

/// What a store has, as simple as can be.
#[derive(Clone, Default)]
struct Model {
    /// With the time of their making.
    rows: BTreeMap<Key, (usize, Row)>,
    made: usize,
    events: u64,
}

impl Model {
    fn list(&self, filter: Filter) -> Vec<Row> {
        let mut found: Vec<_> = self.rows.values().filter(|(_, row)| is_of(row, filter)).cloned().collect();
        found.sort_by_key(|(made, _)| *made);
        found.into_iter().map(|(_, row)| row).collect()
    }

    fn step(&mut self, step: &Step) -> bool {
        match step {
            Step::Insert(row) => {
                self.made += 1;
                let fits = !self.rows.contains_key(&row.key);
                if fits {
                    self.rows.insert(row.key, (self.made, Row { generation: 1, ..row.clone() }));
                }
                fits
            }
            Step::Replace(row) => match self.rows.get_mut(&row.key) {
                Some((_, found)) if found.generation + 1 == row.generation => {
                    *found = row.clone();
                    true
                }
                _ => false,
            },
            Step::Remove(key, generation) => {
                let fits = self.rows.get(key).is_some_and(|(_, row)| row.generation == *generation);
                fits && self.rows.remove(key).is_some()
            }
            Step::Require(key) => self.rows.get(key).is_some_and(|(_, row)| !row.deleted),
            Step::RequireNone(_) | Step::RequireWithin(_) => true,
        }
    }

    /// What a step says when all others are done.
    fn conclusion(&self, step: &Step) -> Outcome {
        match step {
            Step::RequireNone(filter) if !self.list(*filter).is_empty() => Outcome::Overtaken,
            Step::RequireWithin(bound) => {
                let all = self.list(Filter::all(bound.kind).within(bound.parent).with_deleted());
                let found = all.iter().filter(|row| !row.deleted).count() as u64;
                let bytes: u64 = all.iter().map(|row| counted_size(&row.document)).sum();
                let is_within = found <= bound.records && bytes <= bound.bytes;
                if is_within { Outcome::Done } else { Outcome::OutOfBounds }
            }
            _ => Outcome::Done,
        }
    }

    fn commit(&mut self, changes: &Changes) -> Outcome {
        let mut next = self.clone();
        if !changes.steps.iter().all(|step| next.step(step)) {
            return Outcome::Overtaken;
        }
        let conclusions = changes.steps.iter().map(|step| next.conclusion(step));
        if let Some(outcome) = conclusions.into_iter().find(|outcome| *outcome != Outcome::Done) {
            return outcome;
        }
        next.events += changes.events.len() as u64;
        *self = next;
        Outcome::Done
    }
}

fn is_of(row: &Row, filter: Filter) -> bool {
    row.key.kind == filter.kind
        && filter.parent.is_none_or(|parent| row.key.parent == Some(parent))
        && filter.cluster.is_none_or(|cluster| row.cluster == Some(cluster))
        && (filter.deleted || !row.deleted)
}

async fn agree(fixture: &Fixture, plans: &[Vec<Plan>]) {
    let (world, mut model) = (World::new(), Model::default());
    let mark = ClusterId::fresh();
    for plan in plans {
        let changes = Changes {
            steps: plan.iter().map(|plan| plan.step(world)).collect(),
            events: vec![Event::now("changed", Severity::Info, "").of_cluster(Some(mark))],
        };
        let expected = model.commit(&changes);
        assert_eq!(fixture.store.commit(changes).await.unwrap(), expected);
    }
    for key in world.keys() {
        let expected = model.rows.get(&key).map(|(_, row)| row.clone());
        assert_eq!(fixture.get(key).await, expected, "{key}");
    }
    for filter in world.filters() {
        let expected = model.list(filter);
        assert_eq!(fixture.store.list(filter).await.unwrap(), expected, "{filter:?}");
        assert_eq!(fixture.store.count(filter).await.unwrap(), expected.len() as u64, "{filter:?}");
        assert_eq!(fixture.pages(filter).await.concat(), expected, "{filter:?}");
    }
    let told = EventQuery { cluster: Some(mark), ..EventQuery::default() };
    assert_eq!(fixture.store.events(&told).await.unwrap().count, model.events);
}

async fn agree_often(fixture: &Fixture) {
    let config = Config { cases: 64, failure_persistence: None, ..Config::default() };
    let plans = prop::collection::vec(prop::collection::vec(plan(), 1..5), 1..40);
    let handle = tokio::runtime::Handle::current();
    let run = |plans: Vec<Vec<Plan>>| {
        tokio::task::block_in_place(|| handle.block_on(agree(fixture, &plans)));
        Ok(())
    };
    TestRunner::new(config).run(&plans, run).unwrap();
}

#[test]
fn sqlite_agrees_with_a_map() {
    on_sqlite(agree_often);
}

#[test]
fn postgres_agrees_with_a_map() {
    on_postgres(agree_often);
}
