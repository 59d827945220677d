//! Hosts: their reports, and searches by check-in and MAC address.

use std::collections::BTreeSet;

use chrono::DateTime;
use kindling::inventory::store::{
    Bound, Changes, Columns, Filter, Key, Kind, Outcome, PageQuery, Position, ReportKind, ReportKinds,
    Reports, Row, Step, StoreError,
};

use sqlx::{Connection as _, Executor as _, PgConnection};

use super::{
    StoreFixture, deleted_row, new_cluster_key, new_host_key, new_infra_env_key, new_row, on_each_store,
    on_postgres, on_sqlite, row_with,
};

const ALL: ReportKinds = ReportKinds::new(ReportKind::ALL);

fn put(host: Key, kind: ReportKind, report: &str) -> Step {
    Step::PutReport(host, kind, report.to_owned())
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
        let found = fixture.store.reports(host, two).await.unwrap();
        assert_eq!(found.0.into_values().collect::<Vec<_>>(), ["inventory", "free_addresses"]);
        assert_eq!(fixture.store.reports(host, ReportKinds::NONE).await.unwrap(), Reports::default());
        let kept = [ReportKind::Inventory];
        let rest = ReportKind::ALL.iter().filter(|kind| !kept.contains(kind));
        let removed = rest.map(|kind| Step::RemoveReport(host, *kind));
        let text = r#"{"a": "é\\ '""#;
        fixture.commit_steps(removed.chain([put(host, ReportKind::Inventory, text)])).await;
        assert_eq!(reports(fixture, host).await, [(ReportKind::Inventory, text.to_owned())]);
    });
}

#[test]
fn reports_of_an_overtaken_change_are_not_stored() {
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
        // The same machine in two infra-envs.
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
        // A change of the host alone keeps the size of its reports.
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
        // PostgreSQL has pages of 1 MiB, SQLite of 256 KiB.
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
            let (mut found, mut next, mut counts) = (Vec::new(), Some(Position::START), Vec::new());
            while let Some(after) = next {
                let page = fixture
                    .store
                    .page(PageQuery::first(filter).with_reports(kinds).after(after))
                    .await
                    .unwrap();
                counts.push(page.rows.len());
                for row in &page.rows {
                    let reports = page.reports.get(&row.key).map(|reports| reports.0.len());
                    found.push((row.key, reports));
                }
                next = page.next;
            }
            // A page has few bytes with reports.
            assert_eq!(counts, lengths);
            let expected = hosts
                .iter()
                .enumerate()
                .map(|(number, host)| (*host, (number % 2 == 0 && kinds == inventory).then_some(1)));
            assert_eq!(found, expected.collect::<Vec<_>>());
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
        let gone = Columns { deleted: true, ..columns("known", Some(1)) };
        steps.push(Step::Insert(row_with(new_host_key(env), gone)));
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
        let found = async || {
            let mut found = Vec::new();
            for mac in ["52:54:00:00:00:0a", "52:54:00:00:00:0B", "52:54:00:00:00:0c"] {
                found.push(fixture.store.hosts_with_mac(mac).await.unwrap().contains(&host));
            }
            found
        };
        let (a, b) = ("52:54:00:00:00:0a", "52:54:00:00:00:0b");
        fixture.commit_steps([Step::Insert(with(1, Some(&[a, b])))]).await;
        assert_eq!(found().await, [true, true, false]);
        fixture.commit_steps([Step::Replace(with(2, None))]).await;
        assert_eq!(found().await, [true, true, false]);
        fixture.commit_steps([Step::Replace(with(3, Some(&[b])))]).await;
        assert_eq!(found().await, [false, true, false]);
        fixture.commit_steps([Step::Replace(with(4, Some(&[])))]).await;
        assert_eq!(found().await, [false, false, false]);
    });
}

#[test]
fn required_generation_must_be_the_present_one() {
    on_each_store(async |fixture| {
        let (there, gone, beside) = (new_cluster_key(), new_cluster_key(), new_cluster_key());
        fixture.commit_steps([Step::Insert(new_row(there)), Step::RequireAt(gone, 0)]).await;
        for (key, generation) in [(there, 0), (there, 2), (gone, 1)] {
            let steps = [Step::Insert(new_row(beside)), Step::RequireAt(key, generation)];
            assert_eq!(fixture.commit(steps).await, Outcome::Overtaken, "{generation}");
            assert_eq!(fixture.get_row(beside).await, None);
        }
        // A deleted record has a generation too.
        fixture.commit_steps([Step::RequireAt(there, 1), Step::Replace(deleted_row(there, 2))]).await;
        fixture.commit_steps([Step::RequireAt(there, 2), Step::Insert(new_row(beside))]).await;
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

/// A change that removes and inserts a record takes the locks of the record in the same order as a reservation.
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
            // The replacement waits for the first lock by then, and has not locked the row.
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
        let held = fixture.store.reserve(&BTreeSet::from([key])).await.unwrap().unwrap();
        // PostgreSQL's lock_timeout of a connection is 10 seconds.
        assert!(fixture.store.reserve(&BTreeSet::from([key])).await.unwrap().is_none());
        drop(held);
    });
}
