//! Tests reads of single and of many records, and changes to records.

use std::collections::BTreeSet;

use kindling::inventory::Error;
use kindling::inventory::event::{Event, EventQuery, Severity};
use kindling::inventory::store::{
    Change, Changes, Columns, Filter, Kind, Operation, Outcome, Row, Step, StoreError,
};
use uuid::Uuid;

use super::{
    CounterRecord, deleted_row, new_cluster_key, new_host_key, new_infra_env_key, new_row, on_each_store,
    row_with,
};

#[test]
fn inserted_record_round_trips() {
    on_each_store(async |fixture| {
        let key = new_host_key(new_infra_env_key());
        assert_eq!(fixture.get_row(key).await, None);
        let columns = Columns { cluster: Some(Uuid::new_v4()), ..Columns::default() };
        let host = Row { generation: 7, ..row_with(key, columns) };
        fixture.commit_steps([Step::Insert(host.clone())]).await;
        assert_eq!(fixture.get_row(key).await, Some(host));
    });
}

#[test]
fn ids_are_scoped_by_kind_and_parent() {
    on_each_store(async |fixture| {
        let (one, other) = (new_infra_env_key(), new_infra_env_key());
        let here = new_host_key(one);
        let there = kindling::inventory::store::Key { parent: Some(other.id), ..here };
        let namesake = kindling::inventory::store::Key { kind: Kind::Cluster, parent: None, ..here };
        for key in [here, there, namesake] {
            fixture.commit_steps([Step::Insert(new_row(key))]).await;
        }
        fixture.commit_steps([Step::Remove(here, 1)]).await;
        assert_eq!(fixture.get_row(here).await, None);
        assert!(fixture.get_row(there).await.is_some() && fixture.get_row(namesake).await.is_some());
    });
}

#[test]
fn lists_are_in_creation_order() {
    on_each_store(async |fixture| {
        let env = new_infra_env_key();
        let keys: Vec<_> = (0..40).map(|_| new_host_key(env)).collect();
        // One record at a time, and many records in one commit.
        for key in &keys[..20] {
            fixture.commit_steps([Step::Insert(new_row(*key))]).await;
        }
        fixture.commit_steps(keys[20..].iter().map(|key| Step::Insert(new_row(*key)))).await;
        fixture.commit_steps([Step::Replace(Row { generation: 2, ..new_row(keys[3]) })]).await;
        assert_eq!(fixture.list_keys(Filter::all(Kind::Host).within(env.id)).await, keys);
    });
}

#[test]
fn filters_select_kind_parent_cluster_and_deleted() {
    on_each_store(async |fixture| {
        let (env, other) = (new_infra_env_key(), new_infra_env_key());
        let (of, gone, alone, elsewhere) =
            (new_host_key(env), new_host_key(env), new_host_key(env), new_host_key(other));
        let cluster = Uuid::new_v4();
        let columns = |deleted| Columns { cluster: Some(cluster), deleted, ..Columns::default() };
        let member = |key| row_with(key, columns(false));
        fixture
            .commit_steps([
                Step::Insert(new_row(env)),
                Step::Insert(new_row(other)),
                Step::Insert(member(of)),
            ])
            .await;
        fixture.commit_steps([Step::Insert(row_with(gone, columns(true)))]).await;
        fixture.commit_steps([Step::Insert(new_row(alone)), Step::Insert(member(elsewhere))]).await;
        let hosts = Filter::all(Kind::Host);
        let cases = [
            (hosts, vec![of, alone, elsewhere]),
            (hosts.with_deleted(), vec![of, gone, alone, elsewhere]),
            (hosts.within(env.id), vec![of, alone]),
            (hosts.within(env.id).with_deleted(), vec![of, gone, alone]),
            (hosts.of_cluster(cluster), vec![of, elsewhere]),
            (hosts.of_cluster(cluster).with_deleted(), vec![of, gone, elsewhere]),
            (hosts.within(env.id).of_cluster(cluster), vec![of]),
            (hosts.within(env.id).of_cluster(cluster).with_deleted(), vec![of, gone]),
            (hosts.within(Uuid::new_v4()), vec![]),
            (hosts.of_cluster(Uuid::new_v4()), vec![]),
            (Filter::all(Kind::InfraEnv), vec![env, other]),
            (Filter::all(Kind::Cluster), vec![]),
        ];
        for (filter, expected) in cases {
            assert_eq!(fixture.list_keys(filter).await, expected, "{filter:?}");
            assert_eq!(fixture.store.has_any(filter).await.unwrap(), !expected.is_empty(), "{filter:?}");
            let outcome = if expected.is_empty() { Outcome::Done } else { Outcome::Overtaken };
            assert_eq!(fixture.commit([Step::RequireNone(filter)]).await, outcome, "{filter:?}");
        }
    });
}

#[test]
fn change_with_a_stale_generation_conflicts() {
    on_each_store(async |fixture| {
        let key = new_cluster_key();
        let at = |generation| Row { generation, document: format!("{generation}"), ..new_row(key) };
        assert_eq!(fixture.commit([Step::Replace(at(1))]).await, Outcome::Overtaken);
        assert_eq!(fixture.commit([Step::Remove(key, 1)]).await, Outcome::Overtaken);
        fixture.commit_steps([Step::Insert(at(1))]).await;
        for step in [Step::Insert(at(1)), Step::Replace(at(1)), Step::Replace(at(3)), Step::Remove(key, 2)] {
            assert_eq!(fixture.commit([step.clone()]).await, Outcome::Overtaken, "{step:?}");
        }
        fixture.commit_steps([Step::Replace(at(2))]).await;
        assert_eq!(fixture.get_row(key).await, Some(at(2)));
        fixture.commit_steps([Step::Replace(at(3)), Step::Replace(at(4))]).await;
        assert_eq!(fixture.get_row(key).await, Some(at(4)));
        fixture.commit_steps([Step::Remove(key, 4), Step::Insert(at(1))]).await;
        assert_eq!(fixture.get_row(key).await.unwrap().generation, 1);
    });
}

#[test]
fn columns_follow_the_record() {
    on_each_store(async |fixture| {
        let (key, home) = (new_cluster_key(), Uuid::new_v4());
        fixture.commit_steps([Step::Insert(new_row(key))]).await;
        let columns = Columns { cluster: Some(home), deleted: true, ..Columns::default() };
        let moved = Row { generation: 2, ..row_with(key, columns) };
        fixture.commit_steps([Step::Replace(moved.clone())]).await;
        assert_eq!(fixture.get_row(key).await, Some(moved));
        fixture.commit_steps([Step::Replace(Row { generation: 3, ..new_row(key) })]).await;
        assert_eq!(fixture.get_row(key).await, Some(Row { generation: 3, ..new_row(key) }));
    });
}

#[test]
fn records_signed_with_another_key_are_found() {
    on_each_store(async |fixture| {
        let (old, new) = (Uuid::new_v4(), Uuid::new_v4());
        let [unsigned, by_old, by_new, moving] =
            [new_infra_env_key(), new_infra_env_key(), new_infra_env_key(), new_infra_env_key()];
        let columns = |by| Columns { token_key: Some(by), ..Columns::default() };
        let signed = |key, by| Step::Insert(row_with(key, columns(by)));
        let other_kind = signed(new_cluster_key(), old);
        let steps =
            [Step::Insert(new_row(unsigned)), signed(by_old, old), signed(by_new, new), signed(moving, old)];
        fixture.commit_steps(steps.into_iter().chain([other_kind])).await;
        let otherwise = async |key| {
            let rows = fixture.store.with_other_token_key(Kind::InfraEnv, key).await.unwrap();
            rows.into_iter().collect::<BTreeSet<_>>()
        };
        assert_eq!(otherwise(Some(new)).await, BTreeSet::from([unsigned, by_old, moving]));
        assert_eq!(otherwise(None).await, BTreeSet::from([by_old, by_new, moving]));
        fixture.commit_steps([Step::Replace(Row { generation: 2, ..row_with(moving, columns(new)) })]).await;
        assert_eq!(otherwise(Some(new)).await, BTreeSet::from([unsigned, by_old]));
    });
}

#[test]
fn conflicting_change_is_rolled_back() {
    on_each_store(async |fixture| {
        let (old, new, gone) = (new_cluster_key(), new_cluster_key(), new_infra_env_key());
        fixture.commit_steps([Step::Insert(new_row(old)), Step::Insert(new_row(gone))]).await;
        let changes = Changes {
            steps: vec![
                Step::Insert(new_row(new)),
                Step::Replace(deleted_row(old, 2)),
                Step::Remove(gone, 1),
                Step::RequireNone(Filter::all(Kind::Cluster)),
            ],
            events: vec![Event::new("told", Severity::Info, "all of it happened", chrono::Utc::now())],
        };
        assert_eq!(fixture.store.commit(changes).await.unwrap(), Outcome::Overtaken);
        assert_eq!(fixture.get_row(old).await, Some(new_row(old)));
        assert_eq!(fixture.get_row(new).await, None);
        assert_eq!(fixture.get_row(gone).await, Some(new_row(gone)));
        assert_eq!(fixture.store.events(&EventQuery::default()).await.unwrap().count, 0);
    });
}

#[test]
fn required_record_must_exist_and_not_be_deleted() {
    on_each_store(async |fixture| {
        let (there, gone) = (new_infra_env_key(), new_infra_env_key());
        fixture.commit_steps([Step::Insert(new_row(there)), Step::Insert(deleted_row(gone, 1))]).await;
        fixture.commit_steps([Step::Require(there), Step::Insert(new_row(new_host_key(there)))]).await;
        assert!(fixture.store.exists(there).await.unwrap());
        for missing in [gone, new_infra_env_key()] {
            assert!(!fixture.store.exists(missing).await.unwrap());
            let host = new_host_key(missing);
            let outcome = fixture.commit([Step::Insert(new_row(host)), Step::Require(missing)]).await;
            assert_eq!(outcome, Outcome::Overtaken);
            assert_eq!(fixture.get_row(host).await, None);
        }
    });
}

#[test]
fn require_none_is_checked_after_all_other_steps() {
    on_each_store(async |fixture| {
        let env = new_infra_env_key();
        let host = new_host_key(env);
        let none = Step::RequireNone(Filter::all(Kind::Host).within(env.id));
        fixture.commit_steps([Step::Insert(new_row(env)), Step::Insert(new_row(host))]).await;
        assert_eq!(fixture.commit([none.clone(), Step::Remove(env, 1)]).await, Outcome::Overtaken);
        fixture.commit_steps([none.clone(), Step::Remove(env, 1), Step::Remove(host, 1)]).await;
        assert_eq!(fixture.commit([none, Step::Insert(new_row(host))]).await, Outcome::Overtaken);
    });
}

#[test]
fn any_text_round_trips() {
    on_each_store(async |fixture| {
        let long = format!("{{\"long\":\"{}\"}}", "0123456789abcdef".repeat(3 << 16));
        let texts = [
            "",
            "'); DROP TABLE records; --",
            r#"{"a":"$1 ? :b @c %s \\ \" '' `x` [y]"}"#,
            "{\"a\":\"Ärger 日本語 \u{1F525} \u{200f}\u{feff}e\u{301}\"}",
            "{\"a\":\"\\u0000\"}\r\n\t\u{1}\u{7f}",
            &long,
        ];
        let mut keys = Vec::new();
        for document in texts {
            keys.push(new_cluster_key());
            let stored = Row { document: document.to_owned(), ..new_row(*keys.last().unwrap()) };
            fixture.commit_steps([Step::Insert(stored.clone())]).await;
            assert_eq!(fixture.get_row(stored.key).await, Some(stored));
        }
        assert_eq!(fixture.list_keys(Filter::all(Kind::Cluster)).await, keys);
    });
}

#[test]
fn document_with_nul_is_refused_before_anything_is_written() {
    on_each_store(async |fixture| {
        let (key, beside) = (new_cluster_key(), new_cluster_key());
        let steps = vec![
            Step::Insert(new_row(beside)),
            Step::Insert(Row { document: "a\0b".into(), ..new_row(key) }),
        ];
        let error = fixture.store.commit(Changes { steps, events: Vec::new() }).await.unwrap_err();
        assert!(matches!(error, StoreError::Nul { key: found } if found == key), "{error}");
        assert_eq!(fixture.get_row(beside).await, None);
        // A record with a NUL in a text is valid JSON, which escapes the NUL.
        let records = fixture.records();
        let counter = CounterRecord::new(&records).await;
        CounterRecord::increment(counter.id, &records).await;
        assert_eq!(CounterRecord::count(counter.id, &records).await, 1);
    });
}

#[test]
fn refused_plan_changes_nothing() {
    on_each_store(async |fixture| {
        let records = fixture.records();
        let counter = CounterRecord { id: Uuid::new_v4(), count: 0 };
        let planned = records.change(|_| async {
            let mut change = Change::new();
            change.insert(&counter)?;
            Err::<(Change, ()), _>(Error::conflict("no"))
        });
        let refused = planned.await;
        assert_eq!(refused, Err(Error::conflict("no")));
        assert!(records.find::<CounterRecord>(None, counter.id).await.unwrap().is_none());
    });
}

#[test]
fn undecodable_record_is_reported_as_damaged() {
    on_each_store(async |fixture| {
        let key = new_cluster_key();
        fixture.commit_steps([Step::Insert(new_row(key))]).await;
        let error = fixture.records().find::<CounterRecord>(None, key.id).await.unwrap_err();
        assert!(matches!(error, StoreError::Damaged { key: found, .. } if found == key), "{error}");
    });
}

#[test]
fn closed_store_is_reported() {
    on_each_store(async |fixture| {
        fixture.store.check_usable().await.unwrap();
        fixture.store.close().await;
        fixture.store.close().await;
        let key = new_cluster_key();
        let changes = Changes { steps: vec![Step::Insert(new_row(key))], events: Vec::new() };
        assert!(matches!(fixture.store.commit(changes).await, Err(StoreError::Closed)));
        assert!(matches!(fixture.store.get(key).await, Err(StoreError::Closed)));
        assert!(matches!(fixture.store.check_usable().await, Err(StoreError::Closed)));
    });
}

#[test]
fn metrics_count_operations_and_conflicts() {
    on_each_store(async |fixture| {
        let metrics = fixture.store.metrics();
        let (reads, commits) = (Operation::Read, Operation::Commit);
        let before = (metrics.durations(reads).count(), metrics.durations(commits).count());
        let key = new_cluster_key();
        fixture.commit_steps([Step::Insert(new_row(key))]).await;
        assert_eq!(fixture.commit([Step::Insert(new_row(key))]).await, Outcome::Overtaken);
        fixture.get_row(key).await;
        assert_eq!(metrics.durations(reads).count(), before.0 + 1);
        assert_eq!(metrics.durations(commits).count(), before.1 + 2);
        assert_eq!((metrics.conflicts(), metrics.failures(commits), metrics.retries()), (1, 0, 0));
        let records = fixture.records();
        let id = CounterRecord::new(&records).await.id;
        futures_util::future::join_all((0..20).map(|_| CounterRecord::increment(id, &records))).await;
        assert!(metrics.retries() > 0 && metrics.conflicts() > metrics.retries() / 2);
        fixture.store.close().await;
        fixture.store.get(key).await.unwrap_err();
        assert_eq!(metrics.failures(reads), 1);
    });
}
