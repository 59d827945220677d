//! Hosts: their reports, and searches by check-in and MAC address.

use std::collections::BTreeSet;

use chrono::DateTime;
use futures_util::StreamExt as _;
use kindling::inventory::store::{
    Bound, Change, ChangeKind, Changes, Columns, FeedEvent, Filter, Key, Kind, Outcome, PageQuery, Position,
    Record, RecordChange, ReportKind, ReportKinds, Reports, Row, SqlStore, Step, Store as _, StoreError,
};
use serde::{Deserialize, Serialize};
use sqlx::{Connection as _, Executor as _, PgConnection};
use uuid::Uuid;

use super::{
    StoreFixture, deleted_row, new_assessment_key, new_cluster_key, new_host_key, new_infra_env_key, new_row,
    on_each_store, on_postgres, on_sqlite, reported_changes, row_with,
};

const ALL: ReportKinds = ReportKinds::new(ReportKind::ALL);

fn put(host: Key, kind: ReportKind, report: &str) -> Step {
    Step::PutReport(host, kind, report.to_owned())
}

fn rewrite(host: Key, kind: ReportKind, report: &str) -> Step {
    Step::RewriteReport(host, kind, report.to_owned())
}

async fn reports(fixture: &StoreFixture, host: Key) -> Vec<(ReportKind, String)> {
    fixture.store.reports(host, ALL).await.unwrap().0.into_iter().collect()
}

#[test]
fn report_round_trips_and_is_replaced_and_removed() {
    on_each_store(async |fixture| {
        let env = new_infra_env_key();
        let (host, other) = (new_host_key(env), new_host_key(env));
        fixture.commit_steps([Step::Insert(new_row(host)), Step::Insert(new_row(other))]).await;
        assert_eq!(fixture.store.reports(host, ALL).await.unwrap(), Reports::default());
        fixture.commit_steps(ReportKind::ALL.iter().map(|kind| put(host, *kind, kind.as_str()))).await;
        assert_eq!(reports(fixture, host).await.len(), ReportKind::ALL.len());
        assert_eq!(reports(fixture, other).await, []);
        let two = ReportKinds::new(&[ReportKind::Inventory, ReportKind::FreeAddresses]);
        let stored = fixture.store.reports(host, two).await.unwrap();
        assert_eq!(stored.0.into_values().collect::<Vec<_>>(), ["inventory", "free_addresses"]);
        assert_eq!(fixture.store.reports(host, ReportKinds::NONE).await.unwrap(), Reports::default());
        let remaining = [ReportKind::Inventory];
        let rest = ReportKind::ALL.iter().filter(|kind| !remaining.contains(kind));
        let removed = rest.map(|kind| Step::RemoveReport(host, *kind));
        let text = r#"{"a": "é\\ '""#;
        fixture.commit_steps(removed.chain([put(host, ReportKind::Inventory, text)])).await;
        assert_eq!(reports(fixture, host).await, [(ReportKind::Inventory, text.to_owned())]);
    });
}

#[test]
fn reports_of_a_conflicting_change_are_not_stored() {
    on_each_store(async |fixture| {
        let host = new_host_key(new_infra_env_key());
        fixture.commit_steps([Step::Insert(new_row(host)), put(host, ReportKind::Inventory, "old")]).await;
        let stale = Row { generation: 3, ..new_row(host) };
        for steps in [
            vec![put(host, ReportKind::Inventory, "new"), Step::Replace(stale.clone())],
            vec![Step::Replace(stale), Step::RemoveReport(host, ReportKind::Inventory)],
        ] {
            assert_eq!(fixture.commit(steps).await, Outcome::Overtaken);
        }
        assert_eq!(reports(fixture, host).await, [(ReportKind::Inventory, "old".to_owned())]);
        let changes = Changes { steps: vec![put(host, ReportKind::Inventory, "a\0b")], events: Vec::new() };
        let error = fixture.store.commit(changes).await.unwrap_err();
        assert!(matches!(error, StoreError::Nul { key } if key == host), "{error}");
    });
}

#[test]
fn removed_host_leaves_no_reports_and_addresses() {
    on_each_store(async |fixture| {
        let (host, other) = (new_host_key(new_infra_env_key()), new_host_key(new_infra_env_key()));
        // One machine may be a host of two infra-envs, with the same id.
        let other = Key { id: host.id, ..other };
        for key in [host, other] {
            let columns = Columns { macs: Some(BTreeSet::from(["a".to_owned()])), ..Columns::default() };
            fixture
                .commit_steps([Step::Insert(row_with(key, columns)), put(key, ReportKind::Inventory, "x")])
                .await;
        }
        fixture.commit_steps([Step::Remove(host, 1)]).await;
        assert_eq!(reports(fixture, host).await, []);
        assert_eq!(reports(fixture, other).await.len(), 1);
        assert_eq!(fixture.store.hosts_with_mac("a").await.unwrap(), [other]);
    });
}

#[test]
fn size_limits_include_reports() {
    on_each_store(async |fixture| {
        let env = new_infra_env_key();
        let host = new_host_key(env);
        let within =
            |bytes| Step::RequireWithin(Bound { kind: Kind::Host, parent: env.id, records: 9, bytes });
        let long = "x".repeat(8 << 10);
        let steps = [Step::Insert(new_row(host)), put(host, ReportKind::Inventory, &long)];
        assert_eq!(
            fixture.commit(steps.iter().cloned().chain([within(8 << 10)])).await,
            Outcome::OutOfBounds
        );
        fixture.commit_steps(steps.into_iter().chain([within(12 << 10)])).await;
        // A change to only the host keeps the size of its reports.
        let next = |generation| Step::Replace(Row { generation, ..new_row(host) });
        assert_eq!(fixture.commit([next(2), within(8 << 10)]).await, Outcome::OutOfBounds);
        fixture.commit_steps([next(2), within(12 << 10)]).await;
        fixture
            .commit_steps([next(3), Step::RemoveReport(host, ReportKind::Inventory), within(4 << 10)])
            .await;
    });
}

#[test]
fn page_has_the_reports_of_its_hosts() {
    on_each_store(async |fixture| {
        let env = new_infra_env_key();
        let hosts: Vec<_> = (0..10).map(|_| new_host_key(env)).collect();
        // The maximum length of a page is 1 MiB on PostgreSQL, and 256 KiB on SQLite.
        let len = if fixture.url.starts_with("postgres:") { 400 << 10 } else { 100 << 10 };
        for (number, host) in hosts.iter().enumerate() {
            let mut steps = vec![Step::Insert(new_row(*host)), put(*host, ReportKind::NtpSources, "ntp")];
            if number % 2 == 0 {
                steps.push(put(*host, ReportKind::Inventory, &number.to_string().repeat(len)));
            }
            fixture.commit_steps(steps).await;
        }
        let filter = Filter::all(Kind::Host).within(env.id);
        let inventory = ReportKinds::new(&[ReportKind::Inventory]);
        for (kinds, lengths) in [(inventory, vec![4, 4, 2]), (ReportKinds::NONE, vec![10])] {
            let (mut actual, mut next, mut counts) = (Vec::new(), Some(Position::START), Vec::new());
            while let Some(after) = next {
                let page = fixture
                    .store
                    .page(PageQuery::first(filter).with_reports(kinds).after(after))
                    .await
                    .unwrap();
                counts.push(page.rows.len());
                for row in &page.rows {
                    let reports = page.reports.get(&row.key).map(|reports| reports.0.len());
                    actual.push((row.key, reports));
                }
                next = page.next;
            }
            // A page with reports is limited in bytes.
            assert_eq!(counts, lengths);
            let expected = hosts
                .iter()
                .enumerate()
                .map(|(number, host)| (*host, (number % 2 == 0 && kinds == inventory).then_some(1)));
            assert_eq!(actual, expected.collect::<Vec<_>>());
        }
    });
}

#[test]
fn columns_round_trip() {
    on_each_store(async |fixture| {
        let host = new_host_key(new_infra_env_key());
        let columns = Columns {
            cluster: Some(new_cluster_key().id),
            status: "known".to_owned(),
            role: "master".to_owned(),
            checked_in_at: Some(-5),
            ..Columns::default()
        };
        fixture.commit_steps([Step::Insert(row_with(host, columns.clone()))]).await;
        assert_eq!(fixture.get_row(host).await, Some(row_with(host, columns.clone())));
        let changed = Columns { status: "installed".to_owned(), checked_in_at: None, ..columns };
        let changed = Row { generation: 2, schema_version: 7, ..row_with(host, changed) };
        fixture.commit_steps([Step::Replace(changed.clone())]).await;
        assert_eq!(fixture.get_row(host).await, Some(changed));
    });
}

#[test]
fn silent_hosts_are_found_by_status_longest_first() {
    on_each_store(async |fixture| {
        let env = new_infra_env_key();
        let mut steps = Vec::new();
        let columns = |status: &str, checked_in_at| Columns {
            status: status.to_owned(),
            checked_in_at,
            ..Columns::default()
        };
        let mut hosts = Vec::new();
        for time in [30, 10, 20, 40] {
            let host = new_host_key(env);
            hosts.push(host);
            steps.push(Step::Insert(row_with(host, columns("known", Some(time)))));
        }
        for others in [columns("installed", Some(1)), columns("known", None)] {
            steps.push(Step::Insert(row_with(new_host_key(env), others)));
        }
        let deleted = Columns { deleted: true, ..columns("known", Some(1)) };
        steps.push(Step::Insert(row_with(new_host_key(env), deleted)));
        steps.push(Step::Insert(row_with(new_cluster_key(), columns("known", Some(1)))));
        fixture.commit_steps(steps).await;
        let silent = async |before, most| {
            let before = DateTime::from_timestamp_micros(before).unwrap();
            fixture.store.silent_hosts("known", before, most).await.unwrap()
        };
        assert_eq!(silent(40, 100).await, [hosts[1], hosts[2], hosts[0]]);
        assert_eq!(silent(40, 2).await, [hosts[1], hosts[2]]);
        assert_eq!(silent(10, 2).await, []);
    });
}

#[test]
fn host_is_found_by_its_present_mac_addresses() {
    on_each_store(async |fixture| {
        let host = new_host_key(new_infra_env_key());
        let with = |generation, macs: Option<&[&str]>| {
            let macs = macs.map(|macs| macs.iter().map(|mac| (*mac).to_owned()).collect());
            Row { generation, ..row_with(host, Columns { macs, ..Columns::default() }) }
        };
        let matching_macs = async || {
            let mut matching_macs = Vec::new();
            for mac in ["52:54:00:00:00:0a", "52:54:00:00:00:0B", "52:54:00:00:00:0c"] {
                matching_macs.push(fixture.store.hosts_with_mac(mac).await.unwrap().contains(&host));
            }
            matching_macs
        };
        let (a, b) = ("52:54:00:00:00:0a", "52:54:00:00:00:0b");
        fixture.commit_steps([Step::Insert(with(1, Some(&[a, b])))]).await;
        assert_eq!(matching_macs().await, [true, true, false]);
        fixture.commit_steps([Step::Replace(with(2, None))]).await;
        assert_eq!(matching_macs().await, [true, true, false]);
        fixture.commit_steps([Step::Replace(with(3, Some(&[b])))]).await;
        assert_eq!(matching_macs().await, [false, true, false]);
        fixture.commit_steps([Step::Replace(with(4, Some(&[])))]).await;
        assert_eq!(matching_macs().await, [false, false, false]);
    });
}

#[test]
fn required_generation_must_be_the_present_one() {
    on_each_store(async |fixture| {
        let (existing, missing, added) = (new_cluster_key(), new_cluster_key(), new_cluster_key());
        fixture.commit_steps([Step::Insert(new_row(existing)), Step::RequireAt(missing, 0)]).await;
        for (key, generation) in [(existing, 0), (existing, 2), (missing, 1)] {
            let steps = [Step::Insert(new_row(added)), Step::RequireAt(key, generation)];
            assert_eq!(fixture.commit(steps).await, Outcome::Overtaken, "{generation}");
            assert_eq!(fixture.get_row(added).await, None);
        }
        // A deleted record has a generation too.
        fixture.commit_steps([Step::RequireAt(existing, 1), Step::Replace(deleted_row(existing, 2))]).await;
        fixture.commit_steps([Step::RequireAt(existing, 2), Step::Insert(new_row(added))]).await;
    });
}

#[test]
fn reservation_delays_changes_of_its_records_only() {
    on_sqlite(async |fixture| {
        assert!(fixture.store.reserve(&BTreeSet::from([new_cluster_key()])).await.unwrap().is_none());
    });
    on_postgres(async |fixture| {
        let (reserved, absent, other) = (new_cluster_key(), new_cluster_key(), new_cluster_key());
        fixture.commit_steps([Step::Insert(new_row(reserved)), Step::Insert(new_row(other))]).await;
        let next = |key, generation| Step::Replace(Row { generation, ..new_row(key) });
        let reservation = fixture.store.reserve(&BTreeSet::from([reserved, absent])).await.unwrap().unwrap();
        fixture.commit_steps([next(other, 2)]).await;
        let overtaken = async {
            tokio::join!(fixture.commit([next(reserved, 2)]), fixture.commit([Step::Insert(new_row(absent))]))
        };
        let commit = async {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            let steps = vec![next(reserved, 2), Step::Insert(new_row(absent))];
            reservation.commit(Changes { steps, events: Vec::new() }).await.unwrap()
        };
        let (overtaken, committed) = tokio::join!(overtaken, commit);
        assert_eq!((overtaken, committed), ((Outcome::Overtaken, Outcome::Overtaken), Outcome::Done));
        // A dropped reservation changes nothing.
        drop(fixture.store.reserve(&BTreeSet::from([reserved])).await.unwrap().unwrap());
        fixture.commit_steps([next(reserved, 3)]).await;
    });
}

/// A change that removes and inserts a record locks the record in the same order as a reservation.
#[test]
fn reservation_and_replacement_of_a_record_do_not_deadlock() {
    on_postgres(async |fixture| {
        let key = new_cluster_key();
        fixture.commit_steps([Step::Insert(new_row(key))]).await;
        let mut session = PgConnection::connect(&fixture.url).await.unwrap();
        session.execute("BEGIN").await.unwrap();
        let name = format!("cluster//{}", key.id);
        let lock = format!("SELECT pg_advisory_xact_lock(hashtextextended('{name}', 0))");
        session.execute(sqlx::AssertSqlSafe(lock)).await.unwrap();
        let replacement = fixture.commit([Step::Remove(key, 1), Step::Insert(new_row(key))]);
        let reservation = async {
            // Wait until the replacement waits for the advisory lock. It has not locked the row yet.
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            let row = format!("SELECT 1 FROM records WHERE id = '{}' FOR UPDATE NOWAIT", key.id);
            session.execute(sqlx::AssertSqlSafe(row)).await.unwrap();
            session.execute("COMMIT").await.unwrap();
        };
        let (outcome, ()) = tokio::join!(replacement, reservation);
        assert_eq!(outcome, Outcome::Done);
        session.close().await.unwrap();
    });
}

#[test]
fn reservation_that_waits_too_long_is_not_granted() {
    on_postgres(async |fixture| {
        let key = new_cluster_key();
        fixture.commit_steps([Step::Insert(new_row(key))]).await;
        let reservation = fixture.store.reserve(&BTreeSet::from([key])).await.unwrap().unwrap();
        // PostgreSQL's `lock_timeout` of a connection is 10 seconds.
        assert!(fixture.store.reserve(&BTreeSet::from([key])).await.unwrap().is_none());
        drop(reservation);
    });
}

#[test]
fn only_changes_of_results_are_reported_without_their_host() {
    on_each_store(async |fixture| {
        let host = new_host_key(new_infra_env_key());
        fixture.commit_steps([Step::Insert(new_row(host)), put(host, ReportKind::Connectivity, "a")]).await;
        let quiet = [put(host, ReportKind::Summary, "s"), rewrite(host, ReportKind::Connectivity, "b")];
        assert_eq!(reported_changes(fixture, quiet).await, []);
        let results = Key { kind: Kind::HostResults, ..host };
        let mut last = 0;
        for (step, kind) in [
            (put(host, ReportKind::Results, "1"), ChangeKind::Written),
            (put(host, ReportKind::Results, "1"), ChangeKind::Written),
            (rewrite(host, ReportKind::Results, "2"), ChangeKind::Written),
            (Step::RemoveReport(host, ReportKind::Results), ChangeKind::Removed),
        ] {
            let changes = reported_changes(fixture, [step]).await;
            let [change] = changes.as_slice() else { panic!("{changes:?}") };
            assert_eq!((change.key, change.kind), (results, kind));
            assert!(change.generation > last, "{change:?}");
            last = change.generation;
        }
        let both =
            [Step::Replace(Row { generation: 2, ..new_row(host) }), put(host, ReportKind::Results, "3")];
        let keys: Vec<_> = reported_changes(fixture, both).await.iter().map(|change| change.key).collect();
        assert_eq!(keys, [host, results]);
        let changes = reported_changes(fixture, [Step::Replace(deleted_row(host, 3))]).await;
        assert_eq!(changes, [RecordChange { key: host, generation: 3, kind: ChangeKind::Written }]);
    });
}

#[test]
fn other_replica_is_notified_of_results() {
    on_postgres(async |fixture| {
        let replica = SqlStore::open(&fixture.url).await.unwrap();
        let mut reader = replica.feed().subscribe();
        let host = new_host_key(new_infra_env_key());
        fixture.commit_steps([Step::Insert(new_row(host))]).await;
        fixture.commit_steps([put(host, ReportKind::Results, "{}")]).await;
        let results = Key { kind: Kind::HostResults, ..host };
        let expected = [host, results];
        for key in expected {
            match reader.next().await {
                Some(FeedEvent::Changed(change)) => assert_eq!(change.key, key),
                other => panic!("{other:?}"),
            }
        }
        replica.close().await;
    });
}

#[test]
fn results_are_kept_until_their_host_is_deleted() {
    on_each_store(async |fixture| {
        let host = new_host_key(new_infra_env_key());
        let results = ReportKinds::new(&[ReportKind::Results]);
        let stored = async || fixture.store.reports(host, results).await.unwrap().0.into_values().next();
        // The results of a missing host are not stored, because no removal of a host would remove them.
        fixture.commit_steps([put(host, ReportKind::Results, "lost")]).await;
        assert_eq!(stored().await, None);
        fixture.commit_steps([Step::Insert(new_row(host)), put(host, ReportKind::Results, "1")]).await;
        fixture.commit_steps([Step::Replace(Row { generation: 2, ..new_row(host) })]).await;
        assert_eq!(stored().await.as_deref(), Some("1"));
        fixture.commit_steps([Step::Replace(deleted_row(host, 3))]).await;
        assert_eq!(stored().await, None);
        fixture.commit_steps([put(host, ReportKind::Results, "late")]).await;
        assert_eq!(stored().await, None);
        // The agent registers the deleted host again.
        let again = Row { generation: 9, ..new_row(host) };
        let steps = [Step::Remove(host, 3), Step::Insert(again), put(host, ReportKind::Results, "2")];
        fixture.commit_steps(steps).await;
        assert_eq!(stored().await.as_deref(), Some("2"));
        fixture.commit_steps([Step::Remove(host, 9)]).await;
        assert_eq!(stored().await, None);
    });
}

#[test]
fn results_of_many_hosts_are_one_change_with_a_required_generation() {
    on_each_store(async |fixture| {
        let (env, assessment) = (new_infra_env_key(), new_assessment_key());
        let hosts: Vec<_> = (0..600).map(|_| new_host_key(env)).collect();
        let inserted = hosts.iter().map(|host| Step::Insert(new_row(*host)));
        fixture.commit_steps(inserted.chain([Step::Insert(new_row(assessment))])).await;
        let assess = async |generation, text: &str| {
            let next = Step::Replace(Row { generation, ..new_row(assessment) });
            let results = hosts.iter().map(|host| put(*host, ReportKind::Results, text));
            fixture.commit(results.chain([next])).await
        };
        assert_eq!(assess(2, "new").await, Outcome::Done);
        assert_eq!(assess(2, "stale").await, Outcome::Overtaken);
        for host in [hosts[0], hosts[599]] {
            assert_eq!(reports(fixture, host).await, [(ReportKind::Results, "new".to_owned())]);
            assert_eq!(fixture.get_row(host).await.unwrap().generation, 1);
        }
    });
}

/// The document of a host with an inventory report.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct NamedReports {
    infra_env: Uuid,
    id: Uuid,
}

impl Record for NamedReports {
    const KIND: Kind = Kind::Host;

    fn id(&self) -> Uuid {
        self.id
    }

    fn parent(&self) -> Option<Uuid> {
        Some(self.infra_env)
    }

    fn has_report(&self, kind: ReportKind) -> bool {
        // The store returns results whether or not the host's document names them, and they may be absent.
        [ReportKind::Inventory, ReportKind::Results].contains(&kind)
    }
}

#[test]
fn results_are_read_with_a_host_that_does_not_name_them() {
    on_each_store(async |fixture| {
        let (env, records) = (new_infra_env_key(), fixture.records());
        let host = NamedReports { infra_env: env.id, id: Uuid::new_v4() };
        let row = Row::new(host.key(), serde_json::to_string(&host).unwrap());
        let inventory = put(host.key(), ReportKind::Inventory, "i");
        fixture.commit_steps([Step::Insert(row), inventory]).await;
        let kinds = async || {
            let (_, actual) = records.with_reports(host.clone(), ALL).await.unwrap();
            let query = PageQuery::first(Filter::all(Kind::Host).within(env.id)).with_reports(ALL);
            let mut streamed = records.stream_with_reports::<NamedReports>(query);
            let (_, streamed) = streamed.next().await.unwrap().unwrap();
            let kinds = |reports: Reports| reports.0.into_keys().collect::<Vec<_>>();
            (kinds(actual), kinds(streamed))
        };
        let inventory = vec![ReportKind::Inventory];
        assert_eq!(kinds().await, (inventory.clone(), inventory));
        let put_results = records.change(|_| async {
            let mut change = Change::new();
            change.put_results(host.key(), "r".to_owned());
            Ok((change, ()))
        });
        put_results.await.unwrap();
        let both = vec![ReportKind::Inventory, ReportKind::Results];
        assert_eq!(kinds().await, (both.clone(), both));
        let remove_both = records.change(|_| async {
            let mut change = Change::new();
            change.remove_results(host.key());
            change.remove_report(&host, ReportKind::Inventory);
            Ok((change, ()))
        });
        remove_both.await.unwrap();
        assert_eq!(reports(fixture, host.key()).await, []);
        let error = records.with_reports(host.clone(), ALL).await.unwrap_err();
        assert!(matches!(error, StoreError::MissingReport { kind: ReportKind::Inventory, .. }), "{error}");
    });
}

#[test]
fn page_with_results_is_limited_by_their_length() {
    on_each_store(async |fixture| {
        let env = new_infra_env_key();
        // The maximum length of a page is 1 MiB on PostgreSQL, and 256 KiB on SQLite.
        let len = if fixture.url.starts_with("postgres:") { 400 << 10 } else { 100 << 10 };
        for _ in 0..3 {
            let host = new_host_key(env);
            let results = put(host, ReportKind::Results, &"x".repeat(len));
            fixture.commit_steps([Step::Insert(new_row(host)), results]).await;
        }
        let query = PageQuery::first(Filter::all(Kind::Host).within(env.id));
        for (kinds, rows) in [(ALL, 2), (ReportKinds::new(&[ReportKind::Inventory]), 3)] {
            assert_eq!(fixture.store.page(query.with_reports(kinds)).await.unwrap().rows.len(), rows);
        }
    });
}

/// Asserts that the totals of an infra-env are exactly these.
async fn assert_totals(fixture: &StoreFixture, env: Key, records: u64, blocks: u64) {
    let outcome = async |records, bytes| {
        let bound = Bound { kind: Kind::Host, parent: env.id, records, bytes };
        fixture.commit([Step::RequireWithin(bound)]).await
    };
    let bytes = blocks << 12;
    assert_eq!(outcome(records, bytes).await, Outcome::Done, "at most {records}, {blocks}");
    assert_eq!(outcome(records - 1, bytes).await, Outcome::OutOfBounds, "at least {records}");
    assert_eq!(outcome(records, bytes - 1).await, Outcome::OutOfBounds, "at least {blocks} blocks");
}

#[test]
fn reports_are_rewritten_only_where_they_exist() {
    on_each_store(async |fixture| {
        let env = new_infra_env_key();
        let [host, without, deleted, missing] = [(); 4].map(|()| new_host_key(env));
        let (long, longer) = ("x".repeat(4000), "y".repeat(9000));
        for host in [host, deleted] {
            let report = put(host, ReportKind::Connectivity, &long);
            fixture.commit_steps([Step::Insert(new_row(host)), report]).await;
        }
        fixture.commit_steps([Step::Insert(new_row(without)), Step::Replace(deleted_row(deleted, 2))]).await;
        assert_totals(fixture, env, 2, 3).await;
        let rewritten = |host| (host, ReportKind::Connectivity, longer.clone());
        let batch = vec![rewritten(missing), rewritten(host), rewritten(deleted), rewritten(without)];
        fixture.records().put_reports(batch).await.unwrap();
        assert_eq!(reports(fixture, host).await, [(ReportKind::Connectivity, longer.clone())]);
        assert_eq!(reports(fixture, deleted).await, [(ReportKind::Connectivity, long)]);
        for host in [without, missing] {
            assert_eq!(reports(fixture, host).await, []);
        }
        // The host itself has not changed, and its size includes the longer report.
        assert_eq!(fixture.get_row(host).await, Some(new_row(host)));
        assert_totals(fixture, env, 2, 5).await;
        let short = (host, ReportKind::Connectivity, "z".to_owned());
        fixture.records().put_reports(vec![rewritten(host), short]).await.unwrap();
        assert_eq!(reports(fixture, host).await, [(ReportKind::Connectivity, "z".to_owned())]);
        assert_totals(fixture, env, 2, 3).await;
        // After a change to the host, its reports count with the length in the new row. The totals change accordingly.
        let next = Row { generation: 2, reports_len: Some(8000), ..new_row(host) };
        fixture.commit_steps([Step::Replace(next)]).await;
        assert_totals(fixture, env, 2, 4).await;
        fixture.records().put_reports(Vec::new()).await.unwrap();
    });
}

#[test]
fn rewritten_reports_do_not_return_to_a_wiped_host() {
    on_each_store(async |fixture| {
        let host = new_host_key(new_infra_env_key());
        let report = put(host, ReportKind::Connectivity, "old");
        fixture.commit_steps([Step::Insert(new_row(host)), report]).await;
        let wiped = Step::Replace(Row { generation: 2, ..new_row(host) });
        fixture.commit_steps([wiped, Step::RemoveReport(host, ReportKind::Connectivity)]).await;
        let batch = vec![(host, ReportKind::Connectivity, "late".to_owned())];
        fixture.records().put_reports(batch).await.unwrap();
        assert_eq!(reports(fixture, host).await, []);
        let batch = vec![(host, ReportKind::Connectivity, "a\0b".to_owned())];
        let error = fixture.records().put_reports(batch).await.unwrap_err();
        assert!(matches!(error, StoreError::Nul { key } if key == host), "{error}");
    });
}

#[test]
fn more_reports_than_a_batch_are_rewritten_while_their_hosts_change() {
    on_each_store(async |fixture| {
        let env = new_infra_env_key();
        let hosts: Vec<_> = (0..1100).map(|_| new_host_key(env)).collect();
        let steps = hosts
            .iter()
            .flat_map(|host| [Step::Insert(new_row(*host)), put(*host, ReportKind::Connectivity, "old")]);
        fixture.commit_steps(steps).await;
        let batch = hosts.iter().rev().map(|host| (*host, ReportKind::Connectivity, "new".to_owned()));
        let (records, batch) = (fixture.records(), batch.collect::<Vec<_>>());
        let change_all = async {
            for generation in 2..6 {
                let rows = hosts.iter().map(|host| Row { generation, ..new_row(*host) });
                fixture.commit_steps(rows.map(Step::Replace)).await;
            }
        };
        let (rewritten, ()) = tokio::join!(records.put_reports(batch), change_all);
        rewritten.unwrap();
        for host in &hosts {
            assert_eq!(reports(fixture, *host).await, [(ReportKind::Connectivity, "new".to_owned())]);
        }
        assert_totals(fixture, env, 1100, 1100).await;
    });
}
