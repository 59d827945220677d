//! Assessments of clusters: which clusters must be assessed again, and what is removed with a cluster.

use kindling::inventory::store::{
    AssessedState, ChangeKind, Changes, CheckIn, Columns, Key, Outcome, RecordChange, ReportKind, Row, Step,
    generation_sum,
};
use uuid::Uuid;

use super::{
    StoreFixture, deleted_row, new_cluster_key, new_host_key, new_infra_env_key, new_row, on_each_store,
    reported_changes, row_with, run_sql,
};

const NONE: [Uuid; 0] = [];

fn cluster_row(cluster: Key, status: &str, generation: i64) -> Row {
    Row { generation, ..row_with(cluster, Columns { status: status.to_owned(), ..Columns::default() }) }
}

fn host_row(host: Key, cluster: Key, generation: i64) -> Row {
    Row { generation, ..row_with(host, Columns { cluster: Some(cluster.id), ..Columns::default() }) }
}

/// Returns an assessment with its first generation.
fn assessment_row(cluster: Key, state: AssessedState) -> Row {
    row_with(Key::of_assessment(cluster.id), state.columns())
}

async fn stale(fixture: &StoreFixture) -> Vec<Uuid> {
    fixture.store.stale_clusters(&["ready", "insufficient"], "", 100).await.unwrap()
}

/// A cluster with two hosts and a current assessment.
struct AssessedCluster {
    cluster: Key,
    hosts: [Key; 2],
    /// The generation of the assessment.
    generation: i64,
}

impl AssessedCluster {
    async fn new(fixture: &StoreFixture) -> Self {
        let (cluster, env) = (new_cluster_key(), new_infra_env_key());
        let hosts = [new_host_key(env), new_host_key(env)];
        let rows = hosts.map(|host| Step::Insert(host_row(host, cluster, 1)));
        fixture.commit_steps([Step::Insert(cluster_row(cluster, "ready", 1))].into_iter().chain(rows)).await;
        assert_eq!(stale(fixture).await, [cluster.id], "the assessment is missing");
        let assessment = assessment_row(cluster, AssessedState::new(1, &[1, 1]));
        fixture.commit_steps([Step::Insert(assessment)]).await;
        assert_eq!(stale(fixture).await, NONE);
        Self { cluster, hosts, generation: 1 }
    }

    /// Makes a change after which the cluster is stale, until an assessment has seen this state.
    async fn change(&mut self, fixture: &StoreFixture, step: Step, state: AssessedState) {
        fixture.commit_steps([step.clone()]).await;
        assert_eq!(stale(fixture).await, [self.cluster.id], "{step:?}");
        self.generation += 1;
        let assessment = Row { generation: self.generation, ..assessment_row(self.cluster, state) };
        fixture.commit_steps([Step::Replace(assessment)]).await;
        assert_eq!(stale(fixture).await, NONE, "{step:?}");
    }
}

#[test]
fn columns_of_an_assessment_round_trip() {
    on_each_store(async |fixture| {
        let cluster = new_cluster_key();
        let row = assessment_row(cluster, AssessedState { cluster: i64::MAX, hosts: 0, generations: 7 });
        fixture.commit_steps([Step::Insert(row.clone())]).await;
        assert_eq!(fixture.get_row(row.key).await, Some(row.clone()));
        let next = Row { generation: 2, ..new_row(row.key) };
        fixture.commit_steps([Step::Replace(next.clone())]).await;
        assert_eq!(fixture.get_row(row.key).await, Some(next));
    });
}

#[test]
fn cluster_is_stale_after_each_change_of_the_cluster_or_a_host() {
    on_each_store(async |fixture| {
        let mut assessed = AssessedCluster::new(fixture).await;
        let (cluster, [one, two]) = (assessed.cluster, assessed.hosts);
        let other = new_cluster_key();
        let added = new_host_key(new_infra_env_key());
        let deleted = Columns { deleted: true, cluster: Some(cluster.id), ..Columns::default() };
        for (step, state) in [
            (Step::Replace(host_row(one, cluster, 2)), AssessedState::new(1, &[2, 1])),
            (Step::Replace(cluster_row(cluster, "insufficient", 2)), AssessedState::new(2, &[2, 1])),
            // The number of hosts changes, while the sum of their generations modulo the prime stays the same.
            (
                Step::Insert(host_row(added, cluster, 1_000_000_007)),
                AssessedState::new(2, &[2, 1, 1_000_000_007]),
            ),
            (Step::Remove(added, 1_000_000_007), AssessedState::new(2, &[2, 1])),
            // The host leaves the cluster, and joins it again.
            (Step::Replace(host_row(two, other, 2)), AssessedState::new(2, &[2])),
            (Step::Replace(host_row(two, cluster, 3)), AssessedState::new(2, &[2, 3])),
            (Step::Replace(Row { generation: 3, ..row_with(one, deleted) }), AssessedState::new(2, &[3])),
            (Step::Remove(two, 3), AssessedState::new(2, &[])),
        ] {
            assessed.change(fixture, step, state).await;
        }
    });
}

#[test]
fn check_ins_and_reports_leave_an_assessment_current() {
    on_each_store(async |fixture| {
        let AssessedCluster { hosts: [host, _], .. } = AssessedCluster::new(fixture).await;
        fixture.store.store_check_ins(&[CheckIn { host, at: 5, clock: None }]).await.unwrap();
        let put_report = |kind| Step::PutReport(host, kind, "{}".to_owned());
        fixture.commit_steps([put_report(ReportKind::Results), put_report(ReportKind::Connectivity)]).await;
        assert_eq!(stale(fixture).await, NONE);
    });
}

#[test]
fn only_clusters_in_the_statuses_are_stale_oldest_first() {
    on_each_store(async |fixture| {
        let clusters: Vec<_> = (0..5).map(|_| new_cluster_key()).collect();
        let rows = clusters.iter().map(|cluster| Step::Insert(cluster_row(*cluster, "ready", 1)));
        fixture.commit_steps(rows).await;
        let ids: Vec<_> = clusters.iter().map(|cluster| cluster.id).collect();
        assert_eq!(stale(fixture).await, ids);
        fixture.commit_steps([Step::Replace(cluster_row(clusters[1], "installed", 2))]).await;
        fixture.commit_steps([Step::Replace(cluster_row(clusters[2], "insufficient", 2))]).await;
        let mut deleted = cluster_row(clusters[3], "ready", 2);
        deleted.columns.deleted = true;
        fixture.commit_steps([Step::Replace(deleted)]).await;
        assert_eq!(stale(fixture).await, [ids[0], ids[2], ids[4]]);
        let records = fixture.records();
        assert_eq!(
            records.stale_clusters(&["ready", "insufficient"], "", 2).await.unwrap(),
            [ids[0], ids[2]]
        );
        assert_eq!(records.stale_clusters(&["installed"], "", 9).await.unwrap(), [ids[1]]);
        for (statuses, most) in [(&["ready"] as &[&str], 0), (&[], 9), (&["read"], 9)] {
            assert_eq!(records.stale_clusters(statuses, "", most).await.unwrap(), NONE);
        }
    });
}

#[test]
fn deleted_assessment_or_assessment_without_numbers_does_not_count() {
    on_each_store(async |fixture| {
        let cluster = new_cluster_key();
        let assessment = Key::of_assessment(cluster.id);
        let steps = [Step::Insert(cluster_row(cluster, "ready", 1)), Step::Insert(new_row(assessment))];
        fixture.commit_steps(steps).await;
        assert_eq!(stale(fixture).await, [cluster.id]);
        let current = AssessedState::new(1, &[]).columns();
        let next = Row { generation: 2, ..row_with(assessment, current.clone()) };
        fixture.commit_steps([Step::Replace(next)]).await;
        assert_eq!(stale(fixture).await, NONE);
        for column in ["seen_hosts", "seen_generations", "seen_cluster"] {
            run_sql(&fixture.url, format!("UPDATE records SET {column} = NULL WHERE kind = 'assessment'"))
                .await;
            assert_eq!(stale(fixture).await, [cluster.id], "{column}");
            let repaired = format!(
                "UPDATE records SET {column} = {} WHERE kind = 'assessment'",
                if column == "seen_cluster" { 1 } else { 0 }
            );
            run_sql(&fixture.url, repaired).await;
            assert_eq!(stale(fixture).await, NONE, "{column}");
        }
        let deleted = Row { generation: 3, ..row_with(assessment, Columns { deleted: true, ..current }) };
        fixture.commit_steps([Step::Replace(deleted)]).await;
        assert_eq!(stale(fixture).await, [cluster.id]);
    });
}

#[test]
fn assessment_of_another_basis_is_stale() {
    on_each_store(async |fixture| {
        let mut assessed = AssessedCluster::new(fixture).await;
        let stale_for = async |basis| {
            fixture.store.stale_clusters(&["ready"], basis, 100).await.unwrap() == [assessed.cluster.id]
        };
        assert!(!stale_for("").await);
        assert!(stale_for("other").await);
        assessed.generation += 1;
        let columns = Columns { seen_basis: "other".to_owned(), ..AssessedState::new(1, &[1, 1]).columns() };
        let row = Row {
            generation: assessed.generation,
            ..row_with(Key::of_assessment(assessed.cluster.id), columns)
        };
        fixture.commit_steps([Step::Replace(row)]).await;
        assert!(!stale_for("other").await);
        assert!(stale_for("").await);
    });
}

#[test]
fn hosts_that_join_or_leave_change_the_membership_of_their_cluster() {
    on_each_store(async |fixture| {
        let (cluster, other, env) = (new_cluster_key(), new_cluster_key(), new_infra_env_key());
        let hosts = [new_host_key(env), new_host_key(env)];
        let memberships = async || {
            let of = async |cluster: Key| fixture.store.membership_changes(cluster.id).await.unwrap();
            [of(cluster).await, of(other).await]
        };
        let clusters = [cluster, other].map(|key| Step::Insert(cluster_row(key, "ready", 1)));
        fixture.commit_steps(clusters).await;
        assert_eq!(memberships().await, [0, 0]);
        fixture.commit_steps(hosts.map(|host| Step::Insert(host_row(host, cluster, 1)))).await;
        assert_eq!(memberships().await, [2, 0]);
        fixture.commit_steps([Step::Replace(host_row(hosts[0], cluster, 2))]).await;
        assert_eq!(memberships().await, [2, 0], "the host stays");
        fixture.commit_steps([Step::Replace(host_row(hosts[0], other, 3))]).await;
        assert_eq!(memberships().await, [3, 1]);
        fixture.commit_steps([Step::Replace(deleted_row(hosts[0], 4))]).await;
        assert_eq!(memberships().await, [3, 2]);
        fixture.commit_steps([Step::Remove(hosts[0], 4), Step::Remove(hosts[1], 1)]).await;
        assert_eq!(memberships().await, [4, 2], "a deleted host has left before");
        fixture.commit_steps([Step::Remove(cluster, 1)]).await;
        assert_eq!(memberships().await, [0, 2]);
    });
}

#[test]
fn change_that_requires_a_membership_fails_after_a_host_joined() {
    on_each_store(async |fixture| {
        let (cluster, env) = (new_cluster_key(), new_infra_env_key());
        fixture.commit_steps([Step::Insert(cluster_row(cluster, "ready", 1))]).await;
        let require = async |changes| {
            let steps = vec![Step::RequireMembership(cluster.id, changes)];
            fixture.store.commit(Changes { steps, events: Vec::new() }).await.unwrap()
        };
        assert_eq!(require(0).await, Outcome::Done);
        fixture.commit_steps([Step::Insert(host_row(new_host_key(env), cluster, 1))]).await;
        assert_eq!(require(0).await, Outcome::Overtaken);
        assert_eq!(require(1).await, Outcome::Done);
    });
}

#[test]
fn database_and_program_compute_the_same_sum() {
    on_each_store(async |fixture| {
        let (cluster, env) = (new_cluster_key(), new_infra_env_key());
        let generations: Vec<i64> = (0..200)
            .map(|number| i64::MAX - number * 7_919_000_000_123)
            .chain([1, 1_000_000_006, 1_000_000_007, 1_000_000_008])
            .collect();
        let hosts =
            generations.iter().map(|number| Step::Insert(host_row(new_host_key(env), cluster, *number)));
        let state = AssessedState::new(i64::MAX, &generations);
        assert_eq!(state.generations, generation_sum(&generations));
        let cluster_and_assessment = [
            Step::Insert(cluster_row(cluster, "ready", i64::MAX)),
            Step::Insert(assessment_row(cluster, state)),
        ];
        fixture.commit_steps(hosts.chain(cluster_and_assessment)).await;
        assert_eq!(stale(fixture).await, NONE);
    });
}

#[test]
fn assessment_is_removed_with_its_cluster_only() {
    on_each_store(async |fixture| {
        let (cluster, other) = (new_cluster_key(), new_cluster_key());
        let assessment = |cluster: Key| Key::of_assessment(cluster.id);
        for key in [cluster, other] {
            let row = assessment_row(key, AssessedState::new(1, &[]));
            fixture.commit_steps([Step::Insert(new_row(key)), Step::Insert(row)]).await;
        }
        fixture.commit_steps([Step::Replace(deleted_row(cluster, 2))]).await;
        assert!(fixture.get_row(assessment(cluster)).await.is_some());
        let changes = reported_changes(fixture, [Step::Remove(cluster, 2)]).await;
        assert_eq!(fixture.get_row(assessment(cluster)).await, None);
        assert!(fixture.get_row(assessment(other)).await.is_some());
        let [first, second] = changes.as_slice() else { panic!("{changes:?}") };
        assert_eq!(*first, RecordChange { key: cluster, generation: 2, kind: ChangeKind::Removed });
        assert_eq!((second.key, second.kind), (assessment(cluster), ChangeKind::Removed));
        // An assessment can be removed alone, like every record.
        fixture.commit_steps([Step::Remove(assessment(other), 1)]).await;
        assert_eq!(fixture.get_row(assessment(other)).await, None);
    });
}
