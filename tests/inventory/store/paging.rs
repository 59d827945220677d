//! Lists read page by page, and limits on the parts of a record.

use kindling::inventory::id::{ClusterId, HostId};
use kindling::inventory::store::{
    Bound, Changes, Columns, Filter, HostCount, Key, Kind, ListRange, Outcome, PageQuery, Row, Step,
    counted_size,
};
use uuid::Uuid;

use super::{StoreFixture, deleted_row, new_host_key, new_infra_env_key, new_row, on_each_store, row_with};

fn row_of_len(key: Key, len: usize) -> Row {
    Row { document: "x".repeat(len), ..new_row(key) }
}

#[test]
fn pages_list_every_record_once_in_order() {
    on_each_store(async |fixture| {
        let (env, other, home) = (new_infra_env_key(), new_infra_env_key(), Uuid::new_v4());
        let mut rows = Vec::new();
        for number in 0..500 {
            let key = new_host_key(if number % 5 == 0 { other } else { env });
            let cluster = (number % 3 == 0).then_some(home);
            let columns = Columns { cluster, deleted: number % 7 == 0, ..Columns::default() };
            rows.push(row_with(key, columns));
        }
        for rows in rows.chunks(50) {
            fixture.commit_steps(rows.iter().cloned().map(Step::Insert)).await;
        }
        let hosts = Filter::all(Kind::Host);
        let filters =
            [hosts, hosts.within(env.id), hosts.of_cluster(home), hosts.within(env.id).of_cluster(home)];
        for filter in filters.into_iter().flat_map(|filter| [filter, filter.with_deleted()]) {
            let pages = fixture.list_pages(filter).await;
            let expected = fixture.store.list(filter).await.unwrap();
            assert!(pages.iter().all(|page| page.len() <= 64), "{filter:?}");
            assert_eq!(pages.len(), expected.len() / 64 + 1, "{filter:?}");
            assert_eq!(pages.concat(), expected, "{filter:?}");
            for (offset, limit) in [(0, 1), (0, 64), (3, 64), (64, 1), (70, 1000), (1000, 1)] {
                let range = ListRange { offset: offset as u64, limit: Some(limit as u64) };
                let page = fixture.store.page(PageQuery::first(filter).in_range(range)).await.unwrap();
                let rest = &expected[offset.min(expected.len())..];
                assert_eq!(page.rows, rest[..limit.min(rest.len()).min(64)], "{filter:?} {range:?}");
                assert_eq!(page.next.is_some(), rest.len() > page.rows.len(), "{filter:?} {range:?}");
            }
        }
    });
}

#[test]
fn host_counts_are_by_cluster_and_status() {
    on_each_store(async |fixture| {
        let env = new_infra_env_key();
        let [one, two, empty] = [(); 3].map(|()| Uuid::new_v4());
        let host = |cluster, status: &str| Columns {
            cluster: Some(cluster),
            status: status.to_owned(),
            ..Columns::default()
        };
        let hosts = [
            host(one, "known"),
            host(one, "known"),
            host(one, "disabled"),
            host(two, "known"),
            Columns { deleted: true, ..host(two, "known") },
            host(Uuid::new_v4(), "known"),
        ];
        fixture.commit_steps(hosts.map(|columns| Step::Insert(row_with(new_host_key(env), columns)))).await;
        let mut counts = fixture.store.host_counts(&[one, two, empty]).await.unwrap();
        counts.sort();
        let count = |cluster, status: &str, deleted, hosts| HostCount {
            cluster,
            status: status.to_owned(),
            deleted,
            hosts,
        };
        let mut expected = [
            count(one, "known", false, 2),
            count(one, "disabled", false, 1),
            count(two, "known", false, 1),
            count(two, "known", true, 1),
        ];
        expected.sort();
        assert_eq!(counts, expected);
        assert_eq!(fixture.store.host_counts(&[]).await.unwrap(), []);
    });
}

#[test]
fn hosts_of_a_cluster_are_found_by_their_ids() {
    on_each_store(async |fixture| {
        let (cluster, other) = (ClusterId::fresh(), ClusterId::fresh());
        let of =
            |cluster: ClusterId, deleted| Columns { cluster: Some(cluster.0), deleted, ..Columns::default() };
        let mut hosts = Vec::new();
        for columns in [
            of(cluster, false),
            of(cluster, false),
            of(cluster, false),
            of(cluster, true),
            of(cluster, true),
            of(other, false),
            of(other, true),
            Columns::default(),
        ] {
            let key = new_host_key(new_infra_env_key());
            fixture.commit_steps([Step::Insert(row_with(key, columns))]).await;
            hosts.push(key);
        }
        // More than the maximum number of values in a statement.
        let unknown = (0..40_000).map(|_| HostId::fresh());
        let ids: Vec<_> = hosts.iter().map(|key| HostId(key.id)).collect();
        let requested: Vec<_> = unknown.chain(ids[1..].iter().rev().copied()).collect();
        assert_eq!(fixture.store.hosts_in_cluster(cluster, &requested).await.unwrap(), hosts[1..3]);
        assert_eq!(fixture.store.hosts_in_cluster(cluster, &[]).await.unwrap(), []);
        assert_eq!(fixture.store.deleted_hosts(cluster).await.unwrap(), ids[3..5]);
        assert_eq!(fixture.store.deleted_hosts(ClusterId::fresh()).await.unwrap(), []);
    });
}

#[test]
fn cluster_of_a_record_is_found_by_its_key() {
    on_each_store(async |fixture| {
        let cluster = ClusterId::fresh();
        let of = |cluster: Option<ClusterId>, deleted| Columns {
            cluster: cluster.map(|id| id.0),
            deleted,
            ..Columns::default()
        };
        for (columns, expected) in [
            (of(Some(cluster), false), Some(cluster)),
            (of(Some(cluster), true), None),
            (of(None, false), None),
        ] {
            let env = new_infra_env_key();
            for key in [env, new_host_key(env)] {
                assert_eq!(fixture.store.cluster_of(key).await.unwrap(), None);
                fixture.commit_steps([Step::Insert(row_with(key, columns.clone()))]).await;
                assert_eq!(fixture.store.cluster_of(key).await.unwrap(), expected);
            }
        }
    });
}

#[test]
fn page_of_long_documents_is_short() {
    on_each_store(async |fixture| {
        let env = new_infra_env_key();
        let lengths = [1 << 10, 100 << 10, 1 << 20, 3 << 20, 200 << 10, 50 << 10, 10 << 10];
        let rows: Vec<_> = lengths.iter().map(|len| row_of_len(new_host_key(env), *len)).collect();
        for row in &rows {
            fixture.commit_steps([Step::Insert(row.clone())]).await;
        }
        let pages = fixture.list_pages(Filter::all(Kind::Host).within(env.id)).await;
        // The maximum length of a page is 1 MiB on PostgreSQL, and 256 KiB on SQLite.
        let counts: &[usize] =
            if fixture.url.starts_with("postgres:") { &[2, 1, 1, 3] } else { &[2, 1, 1, 2, 1] };
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), counts);
        assert_eq!(pages.concat(), rows);
    });
}

#[test]
fn paging_survives_inserts_and_deletes() {
    on_each_store(async |fixture| {
        let env = new_infra_env_key();
        let keys: Vec<_> = (0..130).map(|_| new_host_key(env)).collect();
        fixture.commit_steps(keys.iter().map(|key| Step::Insert(new_row(*key)))).await;
        let filter = Filter::all(Kind::Host).within(env.id);
        let listed = fixture.list_keys(filter).await;
        let first = fixture.store.page(PageQuery::first(filter)).await.unwrap();
        let (seen, rest) = listed.split_at(first.rows.len());
        // Between two pages, an earlier record and a later record are deleted, and one is added.
        let added = new_host_key(env);
        fixture
            .commit_steps([Step::Remove(seen[0], 1), Step::Remove(rest[0], 1), Step::Insert(new_row(added))])
            .await;
        let (mut keys, mut next) = (Vec::new(), first.next);
        while let Some(after) = next {
            let page = fixture.store.page(PageQuery::first(filter).after(after)).await.unwrap();
            keys.extend(page.rows.iter().map(|row| row.key));
            next = page.next;
        }
        assert_eq!(keys, [&rest[1..], &[added]].concat());
    });
}

async fn commit_outcome(fixture: &StoreFixture, steps: &[Step]) -> Outcome {
    fixture.store.commit(Changes { steps: steps.to_vec(), events: Vec::new() }).await.unwrap()
}

#[test]
fn change_beyond_a_bound_is_rolled_back() {
    on_each_store(async |fixture| {
        let (env, other) = (new_infra_env_key(), new_infra_env_key());
        let within =
            |records, bytes| Step::RequireWithin(Bound { kind: Kind::Host, parent: env.id, records, bytes });
        assert_eq!(commit_outcome(fixture, &[within(0, 0)]).await, Outcome::Done);
        let (one, two) = (new_host_key(env), new_host_key(env));
        fixture
            .commit_steps([
                Step::Insert(new_row(one)),
                Step::Insert(new_row(new_host_key(other))),
                within(1, 4096),
            ])
            .await;
        for bound in [within(1, 1 << 30), within(2, 8191)] {
            assert_eq!(
                commit_outcome(fixture, &[bound, Step::Insert(new_row(two))]).await,
                Outcome::OutOfBounds
            );
            assert_eq!(fixture.get_row(two).await, None);
        }
        fixture.commit_steps([within(2, 8192), Step::Insert(row_of_len(two, 4096))]).await;
        // Deleted records count their bytes until they are purged.
        fixture.commit_steps([Step::Replace(deleted_row(one, 2)), within(1, 8192)]).await;
        assert_eq!(commit_outcome(fixture, &[within(1, 8191)]).await, Outcome::OutOfBounds);
        let grown = Row { generation: 2, ..row_of_len(two, 4097) };
        assert_eq!(
            commit_outcome(fixture, &[Step::Replace(grown.clone()), within(1, 8192)]).await,
            Outcome::OutOfBounds
        );
        fixture.commit_steps([Step::Remove(one, 2), Step::Replace(grown), within(1, 8192)]).await;
    });
}

#[test]
fn document_sizes_are_counted_in_blocks() {
    let sizes = [0, 1, 4096, 4097, 50_000].map(counted_size);
    assert_eq!(sizes, [0, 4096, 4096, 8192, 53_248]);
}
