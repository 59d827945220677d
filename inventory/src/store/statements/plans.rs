//! Tests of SQLite's query plans: every statement must use an index and read no whole table.

use sqlx::{AssertSqlSafe, Row as _, SqlitePool};
use tempfile::TempDir;
use uuid::Uuid;

use super::records::*;
use super::{check_ins, events, reports, writes};
use crate::event::{EventPosition, EventQuery};
use crate::id::{ClusterId, HostId, InfraEnvId};
use crate::store::schema::count_unsupported;
use crate::store::session::{Dialect, Statement};
use crate::store::sqlite::{self, SqliteParts};
use crate::store::{
    Bound, CheckIn, CheckInLimit, Feed, Filter, Key, Kind, PageQuery, ReportKind, ReportKinds, Row,
};

async fn open(directory: &TempDir) -> SqliteParts {
    sqlite::open(&directory.path().join("kindling.db"), true, Feed::of_own_database()).await.unwrap()
}

/// Returns SQLite's query plan of a statement.
async fn plan(pool: &SqlitePool, query: Statement) -> String {
    let sql = format!("EXPLAIN QUERY PLAN {}", query.sql());
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(pool).await.unwrap();
    let steps: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
    steps.join("; ")
}

#[tokio::test]
async fn record_statements_use_an_index() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory).await;
    let id = Uuid::new_v4();
    let key = Key { kind: Kind::Host, parent: Some(id), id };
    for query in [select(key), find(key), select_cluster(key)] {
        let plan = plan(&store.pool, query).await;
        assert!(
            plan.starts_with("SEARCH records USING") && plan.ends_with("(kind=? AND parent=? AND id=?)"),
            "{plan}"
        );
    }
    let kinds = ReportKinds::new(&[ReportKind::Inventory]);
    let of_host = plan(&store.pool, reports::select(key, kinds)).await;
    assert!(of_host.starts_with("SEARCH reports USING INDEX"), "{of_host}");
    let counts = plan(&store.pool, select_host_counts(&[id], Dialect::Sqlite)).await;
    assert!(counts.contains("USING INDEX records_of_cluster (kind=? AND cluster_id=?)"), "{counts}");
    let silent = plan(&store.pool, select_silent("known", 0, 1)).await;
    let index = "INDEX records_by_check_in (status=? AND checked_in_at<?)";
    assert!(silent.contains(index) && !silent.contains("TEMP B-TREE"), "{silent}");
    let stale = plan(&store.pool, select_stale_clusters(Dialect::Sqlite, (&["ready"], "a"), 1)).await;
    for step in [
        "SEARCH clusters USING INDEX records_of_parent (kind=? AND parent=?)",
        "SEARCH assessments USING INDEX sqlite_autoindex_records_1 (kind=? AND parent=? AND id=?)",
        "SEARCH hosts USING COVERING INDEX records_of_cluster (kind=? AND cluster_id=?)",
    ] {
        assert!(stale.contains(step) && !stale.contains("TEMP B-TREE"), "{stale}");
    }
    let limit = CheckInLimit { statuses: vec!["known", "discovering"], latest: 1, now: 0 };
    let index = "INDEX records_by_check_in (status=? AND checked_in_at>?)";
    for query in
        [check_ins::select_after(Dialect::Sqlite, &limit), check_ins::replace_after(Dialect::Sqlite, &limit)]
    {
        let plan = plan(&store.pool, query).await;
        assert!(plan.starts_with("SEARCH records USING ") && plan.contains(index), "{plan}");
    }
    let check_in = CheckIn { host: key, at: 1, clock: None };
    let check_ins = plan(&store.pool, check_ins::store(Dialect::Sqlite, &[check_in]).unwrap()).await;
    let of_listed =
        "SCAN list; SEARCH records USING INDEX sqlite_autoindex_records_1 (kind=? AND parent=? AND id=?)";
    assert!(check_ins.ends_with(of_listed), "{check_ins}");
    let with_mac = plan(&store.pool, select_with_mac("52:54:00:00:00:01")).await;
    assert!(
        with_mac.starts_with("SEARCH host_macs USING COVERING INDEX") && with_mac.contains("(mac=?)"),
        "{with_mac}"
    );
    let unsupported = plan(&store.pool, count_unsupported()).await;
    assert!(unsupported.contains("USING COVERING INDEX records_to_upgrade"), "{unsupported}");
    let bound = Bound { kind: Kind::Host, parent: id, records: 1, bytes: 1 };
    let plan_of_bound = plan(&store.pool, out_of_bounds(bound)).await;
    let index = "SEARCH totals USING INDEX sqlite_autoindex_totals_1 (kind=? AND parent=?)";
    assert_eq!(plan_of_bound, index);
    let deleted_plan = plan(&store.pool, select_deleted(Kind::Host)).await;
    assert!(
        deleted_plan.starts_with("SEARCH records USING COVERING INDEX records_of_parent (kind=?)"),
        "{deleted_plan}"
    );
    let plan = plan(&store.pool, select_with_other_token_key(Kind::InfraEnv, Some(id))).await;
    for range in ["(kind=? AND token_key<?)", "(kind=? AND token_key>?)"] {
        let step = format!("SEARCH records USING COVERING INDEX records_of_token_key {range}");
        assert!(plan.contains(&step), "{plan}");
    }
    store.writer.close().await;
}

#[tokio::test]
async fn writes_look_up_each_row_by_its_key() {
    const DIALECT: Dialect = Dialect::Sqlite;
    let directory = TempDir::new().unwrap();
    let store = open(&directory).await;
    for count in [1, 3] {
        let host = || Key { kind: Kind::Host, parent: Some(Uuid::new_v4()), id: Uuid::new_v4() };
        let hosts: Vec<_> = (0..count).map(|_| host()).collect();
        let rows: Vec<_> = hosts.iter().map(|host| Row::new(*host, "{}".to_owned())).collect();
        let reports: Vec<_> = hosts.iter().map(|host| (*host, ReportKind::Inventory)).collect();
        let of_key = "SEARCH records USING INDEX sqlite_autoindex_records_1 (kind=? AND parent=? AND id=?)";
        for statement in [
            writes::select_current(DIALECT, &hosts, writes::Lock::Exclusive),
            writes::replace(DIALECT, rows.iter()),
            writes::remove(DIALECT, &hosts),
            writes::resize(DIALECT, &hosts),
        ] {
            let plan = plan(&store.pool, statement.unwrap()).await.replace("COVERING INDEX", "INDEX");
            assert!(plan.contains(of_key) && !plan.contains("SCAN records"), "{plan}");
        }
        let of_host = "INDEX sqlite_autoindex_reports_1 (infra_env_id=? AND host_id=?";
        for (statement, index) in [
            (writes::remove_all_reports(DIALECT, &hosts), of_host),
            (writes::remove_reports(DIALECT, &reports), of_host),
            (writes::remove_macs(DIALECT, &hosts), "INDEX macs_of_host (infra_env_id=? AND host_id=?)"),
        ] {
            let plan = plan(&store.pool, statement.unwrap()).await;
            assert!(plan.contains(index), "{plan}");
            assert!(!plan.contains("SCAN reports") && !plan.contains("SCAN host_macs"), "{plan}");
        }
        let rewritten: Vec<_> = hosts.iter().map(|host| (*host, ReportKind::Connectivity, "{}")).collect();
        let rewritten = writes::rewrite_reports(DIALECT, &rewritten).unwrap();
        let rewritten = plan(&store.pool, rewritten).await.replace("COVERING INDEX", "INDEX");
        let of_report = "SEARCH reports USING INDEX sqlite_autoindex_reports_1 \
                         (infra_env_id=? AND host_id=? AND kind=?)";
        assert!(rewritten.contains(of_report) && !rewritten.contains("SCAN reports"), "{rewritten}");
        let inserted = plan(&store.pool, writes::insert(DIALECT, (1..).zip(&rows)).unwrap()).await;
        assert!(!inserted.contains("records"), "{inserted}");
    }
    store.writer.close().await;
}

#[tokio::test]
async fn lists_of_records_use_an_index() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory).await;
    let id = Uuid::new_v4();
    let all = Filter::all(Kind::Host);
    let filters = [
        (all, "(kind=?"),
        (all.within(id), "(kind=? AND parent=?"),
        (all.within(id).of_cluster(id), "(kind=? AND "),
        (all.of_cluster(id), "records_of_cluster (kind=? AND cluster_id=?"),
    ];
    for (filter, index) in filters {
        for query in [select_all(filter), select_any(filter), select_all(filter.with_deleted())] {
            let plan = plan(&store.pool, query).await;
            assert!(plan.starts_with("SEARCH records USING ") && plan.contains(index), "{plan}");
        }
        let results = ReportKinds::new(&[ReportKind::Inventory, ReportKind::Results]);
        let plan_with_results =
            plan(&store.pool, select_page(PageQuery::first(filter).with_reports(results), Dialect::Sqlite))
                .await;
        assert!(!plan_with_results.contains("SCAN re"), "{plan_with_results}");
        assert_eq!(plan_with_results.matches("SEARCH reports USING INDEX").count(), 2, "{plan_with_results}");
        let reports = ReportKinds::new(&[ReportKind::Inventory]);
        for reports in [ReportKinds::NONE, reports] {
            let plan = plan(
                &store.pool,
                select_page(PageQuery::first(filter).with_reports(reports), Dialect::Sqlite),
            )
            .await;
            assert!(plan.contains("SEARCH records USING INDEX") && plan.contains(index), "{plan}");
            // The indexes over the hosts of an infra-env or a cluster contain the sizes, so no host row is read to sum
            // the sizes.
            let is_counted_in_index = plan.contains("SEARCH records USING COVERING INDEX");
            let has_one_index = filter.parent.is_some() != filter.cluster.is_some();
            assert_eq!(is_counted_in_index, has_one_index && !reports.is_empty(), "{plan}");
            assert!(plan.contains("(made_at,id)>(?,?)") && !plan.contains("SCAN records"), "{plan}");
            // The sort covers only the sizes of a page, not its documents.
            assert!(
                plan.contains("MATERIALIZE fitting") && plan.matches("TEMP B-TREE").count() == 0,
                "{plan}"
            );
            assert_eq!(plan.contains("SEARCH reports USING INDEX"), !reports.is_empty(), "{plan}");
        }
    }
    store.writer.close().await;
}

#[tokio::test]
async fn statements_for_ids_of_hosts_use_an_index() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory).await;
    let (cluster, host) = (ClusterId(Uuid::new_v4()), HostId(Uuid::new_v4()));
    for query in [select_in_cluster(cluster, &[host], Dialect::Sqlite), select_deleted_of_cluster(cluster)] {
        let plan = plan(&store.pool, query).await;
        let index = "INDEX records_of_cluster (kind=? AND cluster_id=?)";
        assert!(plan.starts_with("SEARCH records USING ") && plan.contains(index), "{plan}");
        assert!(!plan.contains("SCAN records") && !plan.contains("TEMP B-TREE"), "{plan}");
    }
    store.writer.close().await;
}

#[test]
fn pages_of_events_are_one_statement() {
    let sql = |micros: i64, limit: u64, dialect: Dialect| {
        let after = Some(EventPosition { micros, id: Uuid::from_u128(micros.unsigned_abs().into()) });
        events::page(&EventQuery { after, limit: Some(limit), ..EventQuery::default() }, dialect)
            .sql()
            .to_owned()
    };
    // The driver caches every distinct statement text of a connection, so the text must not depend on the values.
    for dialect in [Dialect::Sqlite, Dialect::Postgres] {
        assert_eq!(sql(1, 10, dialect), sql(2, 20, dialect));
    }
}

/// The end of the query plan for a page of events. The events are looked up and sorted after the page is determined.
const EVENTS_OF_PAGE: &str =
    "SEARCH events USING INDEX sqlite_autoindex_events_1 (id=?); USE TEMP B-TREE FOR ORDER BY";

#[tokio::test]
async fn event_statements_use_an_index_in_order() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory).await;
    let id = Uuid::new_v4();
    let queries = [
        (EventQuery::default(), "events_in_order"),
        (
            EventQuery { cluster: Some(ClusterId(id)), ..EventQuery::default() },
            "events_of_cluster (cluster_id=?)",
        ),
        (
            EventQuery { infra_env: Some(InfraEnvId(id)), ..EventQuery::default() },
            "events_of_infra_env (infra_env_id=?)",
        ),
        (EventQuery { hosts: vec![HostId(id)], ..EventQuery::default() }, "events_of_host (host_id=?)"),
    ];
    for (query, index) in queries {
        for descending in [false, true] {
            // The events are read in index order until the limit is reached.
            let access = if index == "events_in_order" { "SCAN" } else { "SEARCH" };
            let access = format!("{access} events USING INDEX {index}");
            let query = EventQuery { descending, ..query.clone() };
            let all = plan(&store.pool, events::page(&query, Dialect::Sqlite)).await;
            assert!(all.starts_with(&access), "{all}");
            // Only the events of several hosts must be sorted.
            assert_eq!(all.contains("TEMP B-TREE"), !query.hosts.is_empty(), "{all}");
            let query = EventQuery { limit: Some(10), ..query };
            let page = plan(&store.pool, events::page(&query, Dialect::Sqlite)).await;
            assert!(page.contains(&format!("CO-ROUTINE candidates; {access}")), "{page}");
            let counting = page.strip_suffix(EVENTS_OF_PAGE).unwrap_or_else(|| panic!("{page}"));
            assert_eq!(counting.contains("TEMP B-TREE"), !query.hosts.is_empty(), "{page}");
        }
    }
    let after = EventPosition { micros: 1, id };
    let next_page = EventQuery { after: Some(after), limit: Some(10), ..EventQuery::default() };
    let now = chrono::Utc::now();
    let next_page = plan(&store.pool, events::page(&next_page, Dialect::Sqlite)).await;
    let counting = next_page.strip_suffix(EVENTS_OF_PAGE).unwrap_or_else(|| panic!("{next_page}"));
    assert!(
        counting.contains("CO-ROUTINE candidates; SEARCH events USING INDEX events_in_order"),
        "{counting}"
    );
    assert!(!counting.contains("SCAN events") && !counting.contains("TEMP B-TREE"), "{counting}");
    let forgettable = plan(&store.pool, events::select_forgettable(after, now, 10)).await;
    assert!(forgettable.starts_with("SEARCH events USING INDEX events_in_order"), "{forgettable}");
    assert!(!forgettable.contains("SCAN") && !forgettable.contains("TEMP B-TREE"), "{forgettable}");
    store.writer.close().await;
}
