//! Lists that are read page by page, and bounds of what a record may have as its parts.

use kindling::inventory::store::{
    Bound, Changes, Filter, Key, Kind, Outcome, Position, Row, Step, Store, counted_size,
};
use uuid::Uuid;

use super::{Fixture, deleted, host_of, infra_env, on_each_store, row};

fn long(key: Key, len: usize) -> Row {
    Row { document: "x".repeat(len), ..row(key) }
}

#[test]
fn pages_of_many_records_have_each_once_in_order() {
    on_each_store(async |fixture| {
        let (env, other, home) = (infra_env(), infra_env(), Uuid::new_v4());
        let mut rows = Vec::new();
        for number in 0..500 {
            let key = host_of(if number % 5 == 0 { other } else { env });
            let cluster = (number % 3 == 0).then_some(home);
            rows.push(Row { cluster, deleted: number % 7 == 0, ..row(key) });
        }
        for rows in rows.chunks(50) {
            fixture.done(rows.iter().cloned().map(Step::Insert)).await;
        }
        let hosts = Filter::all(Kind::Host);
        let filters =
            [hosts, hosts.within(env.id), hosts.of_cluster(home), hosts.within(env.id).of_cluster(home)];
        for filter in filters.into_iter().flat_map(|filter| [filter, filter.with_deleted()]) {
            let pages = fixture.pages(filter).await;
            let expected = fixture.store.list(filter).await.unwrap();
            assert!(pages.iter().all(|page| page.len() <= 64), "{filter:?}");
            assert_eq!(pages.len(), expected.len() / 64 + 1, "{filter:?}");
            assert_eq!(pages.concat(), expected, "{filter:?}");
        }
    });
}

#[test]
fn page_of_long_documents_has_few_of_them() {
    on_each_store(async |fixture| {
        let env = infra_env();
        let lengths = [1 << 10, 100 << 10, 1 << 20, 3 << 20, 200 << 10, 50 << 10, 10 << 10];
        let rows: Vec<_> = lengths.iter().map(|len| long(host_of(env), *len)).collect();
        for row in &rows {
            fixture.done([Step::Insert(row.clone())]).await;
        }
        let pages = fixture.pages(Filter::all(Kind::Host).within(env.id)).await;
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1, 2, 1]);
        assert_eq!(pages.concat(), rows);
    });
}

#[test]
fn records_may_come_and_go_between_pages() {
    on_each_store(async |fixture| {
        let env = infra_env();
        let keys: Vec<_> = (0..130).map(|_| host_of(env)).collect();
        fixture.done(keys.iter().map(|key| Step::Insert(row(*key)))).await;
        let filter = Filter::all(Kind::Host).within(env.id);
        let listed = fixture.keys(filter).await;
        let first = fixture.store.page(filter, Position::START).await.unwrap();
        let (seen, rest) = listed.split_at(first.rows.len());
        // One that was seen goes, one that follows goes and one is added.
        let added = host_of(env);
        fixture.done([Step::Remove(seen[0], 1), Step::Remove(rest[0], 1), Step::Insert(row(added))]).await;
        let (mut keys, mut next) = (Vec::new(), first.next);
        while let Some(after) = next {
            let page = fixture.store.page(filter, after).await.unwrap();
            keys.extend(page.rows.iter().map(|row| row.key));
            next = page.next;
        }
        assert_eq!(keys, [&rest[1..], &[added]].concat());
    });
}

async fn outcome(fixture: &Fixture, steps: &[Step]) -> Outcome {
    fixture.store.commit(Changes { steps: steps.to_vec(), events: Vec::new() }).await.unwrap()
}

#[test]
fn change_beyond_a_bound_leaves_nothing() {
    on_each_store(async |fixture| {
        let (env, other) = (infra_env(), infra_env());
        let within =
            |records, bytes| Step::RequireWithin(Bound { kind: Kind::Host, parent: env.id, records, bytes });
        assert_eq!(outcome(fixture, &[within(0, 0)]).await, Outcome::Done);
        let (one, two) = (host_of(env), host_of(env));
        fixture.done([Step::Insert(row(one)), Step::Insert(row(host_of(other))), within(1, 4096)]).await;
        for bound in [within(1, 1 << 30), within(2, 8191)] {
            assert_eq!(outcome(fixture, &[bound, Step::Insert(row(two))]).await, Outcome::OutOfBounds);
            assert_eq!(fixture.get(two).await, None);
        }
        fixture.done([within(2, 8192), Step::Insert(long(two, 4096))]).await;
        // What is deleted counts its bytes until it is removed.
        fixture.done([Step::Replace(deleted(one, 2)), within(1, 8192)]).await;
        assert_eq!(outcome(fixture, &[within(1, 8191)]).await, Outcome::OutOfBounds);
        let grown = Row { generation: 2, ..long(two, 4097) };
        assert_eq!(
            outcome(fixture, &[Step::Replace(grown.clone()), within(1, 8192)]).await,
            Outcome::OutOfBounds
        );
        fixture.done([Step::Remove(one, 2), Step::Replace(grown), within(1, 8192)]).await;
    });
}

#[test]
fn documents_count_in_blocks() {
    let sizes = [0, 1, 4096, 4097, 50_000].map(|len| counted_size(&"x".repeat(len)));
    assert_eq!(sizes, [0, 4096, 4096, 8192, 53_248]);
}
