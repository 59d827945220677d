//! Records: one, many, and changes of them.

use std::collections::BTreeSet;

use kindling::api_error::ApiError;
use kindling::inventory::event::{Event, EventQuery, Severity};
use kindling::inventory::store::{Change, Changes, Filter, Kind, Outcome, Row, Step, Store, StoreError};
use uuid::Uuid;

use super::{Counter, cluster, deleted, host_of, infra_env, on_each_store, row};

#[test]
fn what_is_inserted_is_there_as_it_was() {
    on_each_store(async |fixture| {
        let key = host_of(infra_env());
        assert_eq!(fixture.get(key).await, None);
        let host = Row { cluster: Some(Uuid::new_v4()), ..row(key) };
        fixture.done([Step::Insert(Row { generation: 7, ..host.clone() })]).await;
        assert_eq!(fixture.get(key).await, Some(host));
    });
}

#[test]
fn ids_are_of_a_kind_and_a_parent() {
    on_each_store(async |fixture| {
        let (one, other) = (infra_env(), infra_env());
        let here = host_of(one);
        let there = kindling::inventory::store::Key { parent: Some(other.id), ..here };
        let namesake = kindling::inventory::store::Key { kind: Kind::Cluster, parent: None, ..here };
        for key in [here, there, namesake] {
            fixture.done([Step::Insert(row(key))]).await;
        }
        fixture.done([Step::Remove(here, 1)]).await;
        assert_eq!(fixture.get(here).await, None);
        assert!(fixture.get(there).await.is_some() && fixture.get(namesake).await.is_some());
    });
}

#[test]
fn lists_are_in_the_order_of_making() {
    on_each_store(async |fixture| {
        let env = infra_env();
        let keys: Vec<_> = (0..40).map(|_| host_of(env)).collect();
        // One by one, and many at once.
        for key in &keys[..20] {
            fixture.done([Step::Insert(row(*key))]).await;
        }
        fixture.done(keys[20..].iter().map(|key| Step::Insert(row(*key)))).await;
        fixture.done([Step::Replace(Row { generation: 2, ..row(keys[3]) })]).await;
        assert_eq!(fixture.keys(Filter::all(Kind::Host).within(env.id)).await, keys);
    });
}

#[test]
fn filters_name_kind_parent_cluster_and_what_is_deleted() {
    on_each_store(async |fixture| {
        let (env, other) = (infra_env(), infra_env());
        let (of, gone, alone, elsewhere) = (host_of(env), host_of(env), host_of(env), host_of(other));
        let cluster = Uuid::new_v4();
        let member = |key| Row { cluster: Some(cluster), ..row(key) };
        fixture.done([Step::Insert(row(env)), Step::Insert(row(other)), Step::Insert(member(of))]).await;
        fixture.done([Step::Insert(Row { deleted: true, ..member(gone) })]).await;
        fixture.done([Step::Insert(row(alone)), Step::Insert(member(elsewhere))]).await;
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
            assert_eq!(fixture.keys(filter).await, expected, "{filter:?}");
            assert_eq!(fixture.store.has_any(filter).await.unwrap(), !expected.is_empty(), "{filter:?}");
            let outcome = if expected.is_empty() { Outcome::Done } else { Outcome::Overtaken };
            assert_eq!(fixture.commit([Step::RequireNone(filter)]).await, outcome, "{filter:?}");
        }
    });
}

#[test]
fn a_change_has_to_start_from_what_is_there() {
    on_each_store(async |fixture| {
        let key = cluster();
        let at = |generation| Row { generation, document: format!("{generation}"), ..row(key) };
        assert_eq!(fixture.commit([Step::Replace(at(1))]).await, Outcome::Overtaken);
        assert_eq!(fixture.commit([Step::Remove(key, 1)]).await, Outcome::Overtaken);
        fixture.done([Step::Insert(at(1))]).await;
        for step in [Step::Insert(at(1)), Step::Replace(at(1)), Step::Replace(at(3)), Step::Remove(key, 2)] {
            assert_eq!(fixture.commit([step.clone()]).await, Outcome::Overtaken, "{step:?}");
        }
        fixture.done([Step::Replace(at(2))]).await;
        assert_eq!(fixture.get(key).await, Some(at(2)));
        fixture.done([Step::Replace(at(3)), Step::Replace(at(4))]).await;
        assert_eq!(fixture.get(key).await, Some(at(4)));
        fixture.done([Step::Remove(key, 4), Step::Insert(at(1))]).await;
        assert_eq!(fixture.get(key).await.unwrap().generation, 1);
    });
}

#[test]
fn the_columns_follow_the_record() {
    on_each_store(async |fixture| {
        let (key, home) = (cluster(), Uuid::new_v4());
        fixture.done([Step::Insert(row(key))]).await;
        let moved = Row { cluster: Some(home), deleted: true, generation: 2, ..row(key) };
        fixture.done([Step::Replace(moved.clone())]).await;
        assert_eq!(fixture.get(key).await, Some(moved));
        fixture.done([Step::Replace(Row { generation: 3, ..row(key) })]).await;
        assert_eq!(fixture.get(key).await, Some(Row { generation: 3, ..row(key) }));
    });
}

#[test]
fn records_are_found_by_the_key_that_is_not_theirs() {
    on_each_store(async |fixture| {
        let (old, new) = (Uuid::new_v4(), Uuid::new_v4());
        let [unsigned, by_old, by_new, moving] = [infra_env(), infra_env(), infra_env(), infra_env()];
        let signed = |key, by| Step::Insert(Row { token_key: Some(by), ..row(key) });
        let other_kind = signed(cluster(), old);
        let steps =
            [Step::Insert(row(unsigned)), signed(by_old, old), signed(by_new, new), signed(moving, old)];
        fixture.done(steps.into_iter().chain([other_kind])).await;
        let otherwise = async |key| {
            let found = fixture.store.signed_otherwise(Kind::InfraEnv, key).await.unwrap();
            found.into_iter().collect::<BTreeSet<_>>()
        };
        assert_eq!(otherwise(Some(new)).await, BTreeSet::from([unsigned, by_old, moving]));
        assert_eq!(otherwise(None).await, BTreeSet::from([by_old, by_new, moving]));
        fixture.done([Step::Replace(Row { token_key: Some(new), generation: 2, ..row(moving) })]).await;
        assert_eq!(otherwise(Some(new)).await, BTreeSet::from([unsigned, by_old]));
    });
}

#[test]
fn an_overtaken_change_leaves_nothing() {
    on_each_store(async |fixture| {
        let (old, new, gone) = (cluster(), cluster(), infra_env());
        fixture.done([Step::Insert(row(old)), Step::Insert(row(gone))]).await;
        let changes = Changes {
            steps: vec![
                Step::Insert(row(new)),
                Step::Replace(deleted(old, 2)),
                Step::Remove(gone, 1),
                Step::RequireNone(Filter::all(Kind::Cluster)),
            ],
            events: vec![Event::now("told", Severity::Info, "all of it happened")],
        };
        assert_eq!(fixture.store.commit(changes).await.unwrap(), Outcome::Overtaken);
        assert_eq!(fixture.get(old).await, Some(row(old)));
        assert_eq!(fixture.get(new).await, None);
        assert_eq!(fixture.get(gone).await, Some(row(gone)));
        assert_eq!(fixture.store.events(&EventQuery::default()).await.unwrap().count, 0);
    });
}

#[test]
fn what_is_required_is_there_and_not_deleted() {
    on_each_store(async |fixture| {
        let (there, gone) = (infra_env(), infra_env());
        fixture.done([Step::Insert(row(there)), Step::Insert(Row { deleted: true, ..row(gone) })]).await;
        fixture.done([Step::Require(there), Step::Insert(row(host_of(there)))]).await;
        assert!(fixture.store.is_there(there).await.unwrap());
        for missing in [gone, infra_env()] {
            assert!(!fixture.store.is_there(missing).await.unwrap());
            let host = host_of(missing);
            let outcome = fixture.commit([Step::Insert(row(host)), Step::Require(missing)]).await;
            assert_eq!(outcome, Outcome::Overtaken);
            assert_eq!(fixture.get(host).await, None);
        }
    });
}

#[test]
fn none_is_left_after_all_other_steps() {
    on_each_store(async |fixture| {
        let env = infra_env();
        let host = host_of(env);
        let none = Step::RequireNone(Filter::all(Kind::Host).within(env.id));
        fixture.done([Step::Insert(row(env)), Step::Insert(row(host))]).await;
        assert_eq!(fixture.commit([none.clone(), Step::Remove(env, 1)]).await, Outcome::Overtaken);
        fixture.done([none.clone(), Step::Remove(env, 1), Step::Remove(host, 1)]).await;
        assert_eq!(fixture.commit([none, Step::Insert(row(host))]).await, Outcome::Overtaken);
    });
}

#[test]
fn any_text_comes_back_as_it_was() {
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
            keys.push(cluster());
            let stored = Row { document: document.to_owned(), ..row(*keys.last().unwrap()) };
            fixture.done([Step::Insert(stored.clone())]).await;
            assert_eq!(fixture.get(stored.key).await, Some(stored));
        }
        assert_eq!(fixture.keys(Filter::all(Kind::Cluster)).await, keys);
    });
}

#[test]
fn a_document_with_nul_is_refused_before_anything_is_written() {
    on_each_store(async |fixture| {
        let (key, beside) = (cluster(), cluster());
        let steps =
            vec![Step::Insert(row(beside)), Step::Insert(Row { document: "a\0b".into(), ..row(key) })];
        let error = fixture.store.commit(Changes { steps, events: Vec::new() }).await.unwrap_err();
        assert!(matches!(error, StoreError::Nul { key: found } if found == key), "{error}");
        assert_eq!(fixture.get(beside).await, None);
        // A record with it in a text is JSON, which escapes it.
        let records = fixture.records();
        let counter = Counter::new(&records).await;
        Counter::increment(counter.id, &records).await;
        assert_eq!(Counter::count(counter.id, &records).await, 1);
    });
}

#[test]
fn a_plan_that_refuses_changes_nothing() {
    on_each_store(async |fixture| {
        let records = fixture.records();
        let counter = Counter { id: Uuid::new_v4(), count: 0 };
        let planned = records.change(|| async {
            let mut change = Change::new();
            change.insert(&counter);
            Err::<(Change, ()), _>(ApiError::conflict("no"))
        });
        let refused = planned.await;
        assert_eq!(refused, Err(ApiError::conflict("no")));
        assert!(records.find::<Counter>(None, counter.id).await.unwrap().is_none());
    });
}

#[test]
fn what_is_no_such_record_is_damaged() {
    on_each_store(async |fixture| {
        let key = cluster();
        fixture.done([Step::Insert(row(key))]).await;
        let error = fixture.records().find::<Counter>(None, key.id).await.unwrap_err();
        assert!(matches!(error, StoreError::Damaged { key: found, .. } if found == key), "{error}");
    });
}

#[test]
fn a_closed_store_says_so() {
    on_each_store(async |fixture| {
        fixture.store.ping().await.unwrap();
        fixture.store.close().await;
        fixture.store.close().await;
        let key = cluster();
        let changes = Changes { steps: vec![Step::Insert(row(key))], events: Vec::new() };
        assert!(matches!(fixture.store.commit(changes).await, Err(StoreError::Closed)));
        assert!(matches!(fixture.store.get(key).await, Err(StoreError::Closed)));
        assert!(matches!(fixture.store.ping().await, Err(StoreError::Closed)));
    });
}
