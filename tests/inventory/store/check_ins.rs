//! Check-ins, which are stored in batches without a change to their hosts.

use kindling::inventory::store::{
    CheckIn, CheckInLimit, Columns, Key, Operation, Outcome, Row, Step, StoreError,
};

use super::{
    StoreFixture, deleted_row, new_host_key, new_infra_env_key, new_row, on_each_store, row_with, run_sql,
};

fn columns(checked_in_at: Option<i64>, clock: Option<i64>) -> Columns {
    Columns { checked_in_at, clock, ..Columns::default() }
}

/// Returns the check-in time and the clock in the columns of a host.
async fn stored(fixture: &StoreFixture, host: Key) -> (Option<i64>, Option<i64>) {
    let columns = fixture.get_row(host).await.unwrap().columns;
    (columns.checked_in_at, columns.clock)
}

fn check_in(host: Key, at: i64, clock: Option<i64>) -> CheckIn {
    CheckIn { host, at, clock }
}

#[test]
fn check_in_changes_only_its_columns() {
    on_each_store(async |fixture| {
        let env = new_infra_env_key();
        let (host, other) = (new_host_key(env), new_host_key(new_infra_env_key()));
        // One machine may be a host of two infra-envs, with the same id.
        let same = Key { id: host.id, ..other };
        for key in [host, other, same] {
            fixture.commit_steps([Step::Insert(new_row(key))]).await;
        }
        fixture
            .store
            .store_check_ins(&[check_in(host, 5, Some(i64::MIN)), check_in(other, i64::MAX, None)])
            .await
            .unwrap();
        let expected = row_with(host, columns(Some(5), Some(i64::MIN)));
        assert_eq!(fixture.get_row(host).await, Some(expected));
        assert_eq!(stored(fixture, other).await, (Some(i64::MAX), None));
        assert_eq!(stored(fixture, same).await, (None, None));
        fixture.store.store_check_ins(&[]).await.unwrap();
    });
}

#[test]
fn stored_check_in_is_never_lowered() {
    on_each_store(async |fixture| {
        let host = new_host_key(new_infra_env_key());
        fixture.commit_steps([Step::Insert(row_with(host, columns(Some(10), Some(1))))]).await;
        for (at, clock, expected) in
            [(9, Some(2), (10, 1)), (10, Some(2), (10, 1)), (11, None, (11, 1)), (12, Some(3), (12, 3))]
        {
            fixture.store.store_check_ins(&[check_in(host, at, clock)]).await.unwrap();
            assert_eq!(stored(fixture, host).await, (Some(expected.0), Some(expected.1)), "{at}");
        }
        // Changes that read the host before the last check-in.
        let changes = [(11, 7, (12, 3)), (12, 7, (12, 7)), (13, 8, (13, 8))];
        for (generation, (at, clock, expected)) in (2..).zip(changes) {
            let row = Row { generation, ..row_with(host, columns(Some(at), Some(clock))) };
            fixture.commit_steps([Step::Replace(row)]).await;
            assert_eq!(stored(fixture, host).await, (Some(expected.0), Some(expected.1)), "{at}");
        }
    });
}

#[test]
fn check_ins_later_than_the_limit_are_set_to_now() {
    on_each_store(async |fixture| {
        let env = new_infra_env_key();
        let insert = async |status: &str, checked_in_at| {
            let host = new_host_key(env);
            let columns = Columns { status: status.to_owned(), ..columns(checked_in_at, Some(1)) };
            fixture.commit_steps([Step::Insert(row_with(host, columns))]).await;
            host
        };
        let late = insert("known", Some(31)).await;
        let others = [
            (insert("known", Some(30)).await, Some(30)),
            (insert("known", None).await, None),
            (insert("disconnected", Some(31)).await, Some(31)),
        ];
        let limit = CheckInLimit { statuses: vec!["discovering", "known"], latest: 30, now: 10 };
        for _ in 0..2 {
            fixture.store.limit_check_ins(limit.clone()).await.unwrap();
            assert_eq!(stored(fixture, late).await, (Some(10), Some(1)));
        }
        for (host, checked_in_at) in others {
            assert_eq!(stored(fixture, host).await.0, checked_in_at);
        }
        let row = fixture.get_row(late).await.unwrap();
        assert_eq!(row.generation, 1, "the host itself has not changed");
        fixture.store.store_check_ins(&[check_in(late, 11, None)]).await.unwrap();
        assert_eq!(stored(fixture, late).await, (Some(11), Some(1)));
    });
}

#[test]
fn check_ins_of_missing_and_deleted_hosts_are_skipped() {
    on_each_store(async |fixture| {
        let env = new_infra_env_key();
        let (host, gone, deleted) = (new_host_key(env), new_host_key(env), new_host_key(env));
        fixture.commit_steps([Step::Insert(new_row(host)), Step::Insert(new_row(deleted))]).await;
        fixture.commit_steps([Step::Replace(deleted_row(deleted, 2))]).await;
        let all = [gone, deleted, host].map(|host| check_in(host, 5, Some(6)));
        fixture.store.store_check_ins(&all).await.unwrap();
        assert_eq!(fixture.get_row(gone).await, None);
        assert_eq!(stored(fixture, deleted).await, (None, None));
        assert_eq!(stored(fixture, host).await, (Some(5), Some(6)));
        // A key of another kind.
        fixture.commit_steps([Step::Insert(new_row(env))]).await;
        fixture.store.store_check_ins(&[check_in(env, 5, None)]).await.unwrap();
        assert_eq!(stored(fixture, env).await, (None, None));
    });
}

#[test]
fn host_that_checks_in_before_the_change_is_not_disconnected() {
    on_each_store(async |fixture| {
        let host = new_host_key(new_infra_env_key());
        fixture.commit_steps([Step::Insert(new_row(host))]).await;
        let disconnect = async |generation, since| {
            let row = Row { generation, ..new_row(host) };
            fixture.commit([Step::RequireSilent(host, since), Step::Replace(row)]).await
        };
        assert_eq!(disconnect(2, 0).await, Outcome::Done, "a host that has never checked in is silent");
        fixture.store.store_check_ins(&[check_in(host, 10, None)]).await.unwrap();
        assert_eq!(disconnect(3, 10).await, Outcome::Overtaken);
        assert_eq!(disconnect(3, 11).await, Outcome::Done);
        let missing = Step::RequireSilent(new_host_key(new_infra_env_key()), 10);
        assert_eq!(fixture.commit([missing]).await, Outcome::Overtaken);
    });
}

/// Each change locks its hosts in the order of their keys, like the statement for check-ins.
#[test]
fn check_ins_and_changes_do_not_wait_for_each_other() {
    on_each_store(async |fixture| {
        let env = new_infra_env_key();
        let mut hosts: Vec<Key> = (0..100).map(|_| new_host_key(env)).collect();
        fixture.commit_steps(hosts.iter().map(|host| Step::Insert(new_row(*host)))).await;
        hosts.reverse();
        let check_in_all = async |first: i64| {
            for at in first..first + 20 {
                let all: Vec<CheckIn> = hosts.iter().map(|host| check_in(*host, at, None)).collect();
                fixture.store.store_check_ins(&all).await.unwrap();
            }
        };
        let change_all = async {
            for generation in 2..22 {
                let rows = hosts
                    .iter()
                    .map(|host| Row { generation, ..row_with(*host, columns(Some(generation), None)) });
                fixture.commit_steps(rows.map(Step::Replace)).await;
            }
        };
        tokio::join!(check_in_all(100), check_in_all(105), change_all);
        for host in &hosts {
            let row = fixture.get_row(*host).await.unwrap();
            assert_eq!((row.generation, row.columns.checked_in_at), (21, Some(124)));
        }
    });
}

#[test]
fn failed_and_stored_check_ins_are_counted() {
    on_each_store(async |fixture| {
        let host = new_host_key(new_infra_env_key());
        fixture.commit_steps([Step::Insert(new_row(host))]).await;
        let metrics = fixture.store.metrics();
        let commits = metrics.durations(Operation::Commit).count();
        run_sql(&fixture.url, "ALTER TABLE records RENAME COLUMN clock TO hidden").await;
        let error = fixture.store.store_check_ins(&[check_in(host, 5, None)]).await.unwrap_err();
        assert!(matches!(error, StoreError::Statement { .. }), "{error}");
        run_sql(&fixture.url, "ALTER TABLE records RENAME COLUMN hidden TO clock").await;
        fixture.store.store_check_ins(&[check_in(host, 5, None), check_in(host, 6, None)]).await.unwrap();
        assert_eq!(metrics.durations(Operation::CheckIns).count(), 2);
        assert_eq!((metrics.failures(Operation::CheckIns), metrics.stored_check_ins()), (1, 2));
        assert_eq!(metrics.durations(Operation::Commit).count(), commits);
    });
}
