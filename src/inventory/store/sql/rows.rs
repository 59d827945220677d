//! Statements that read records.

use futures_util::{StreamExt as _, TryStreamExt as _};
use sqlx::any::AnyRow;
use sqlx::{AnyPool, AssertSqlSafe, Row as _};
use uuid::Uuid;

use super::AnyQuery;
use crate::inventory::store::{Bound, Filter, Key, Kind, Position, Row, RowPage};

/// The documents of a page have at most this many bytes together, unless there is only one.
const PAGE_BYTES: u64 = 256 << 10;
/// The most records of a page.
const PAGE_ROWS: i64 = 64;

/// An id as a column has it in which '' stands for none.
pub(super) fn text_of(id: Option<Uuid>) -> String {
    id.map(|id| id.to_string()).unwrap_or_default()
}

fn id_of(text: &str) -> Result<Option<Uuid>, sqlx::Error> {
    let id = Some(text).filter(|text| !text.is_empty()).map(str::parse).transpose();
    id.map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// Binds the values of a statement that names a record with `$1` to `$3`.
pub(super) fn named(query: AnyQuery, key: Key) -> AnyQuery {
    query.bind(key.kind.as_str()).bind(text_of(key.parent)).bind(key.id.to_string())
}

fn select(key: Key) -> AnyQuery {
    let query = sqlx::query(
        "SELECT parent, id, cluster_id, token_key, deleted, generation, document FROM records \
         WHERE kind = $1 AND parent = $2 AND id = $3",
    );
    named(query, key)
}

pub(super) async fn get(pool: &AnyPool, key: Key) -> Result<Option<Row>, sqlx::Error> {
    let row = select(key).fetch_optional(pool).await?;
    row.map(|row| record(key.kind, &row)).transpose()
}

/// A statement that finds a record which is not deleted.
pub(super) fn find(key: Key) -> AnyQuery {
    let sql = "SELECT id FROM records WHERE kind = $1 AND parent = $2 AND id = $3 AND deleted = 0";
    named(sqlx::query(sql), key)
}

/// A statement on the records of a filter. Each set of conditions is a statement of its own, for which the database finds
/// an index; a condition that is there and says nothing would hide it.
macro_rules! filtered {
    ($filter:expr, $start:literal, $end:literal) => {{
        let filter: Filter = $filter;
        let sql = match (filter.parent, filter.cluster) {
            (None, None) => concat!($start, " WHERE kind = $1 AND deleted <= $2", $end),
            (Some(_), None) => concat!($start, " WHERE kind = $1 AND deleted <= $2 AND parent = $3", $end),
            (None, Some(_)) => {
                concat!($start, " WHERE kind = $1 AND deleted <= $2 AND cluster_id = $3", $end)
            }
            (Some(_), Some(_)) => {
                concat!(
                    $start,
                    " WHERE kind = $1 AND deleted <= $2 AND parent = $3 AND cluster_id = $4",
                    $end
                )
            }
        };
        let query = sqlx::query(sql).bind(filter.kind.as_str()).bind(i64::from(filter.deleted));
        filter.parent.into_iter().chain(filter.cluster).fold(query, |query, id| query.bind(id.to_string()))
    }};
}

fn select_all(filter: Filter) -> AnyQuery {
    filtered!(
        filter,
        "SELECT parent, id, cluster_id, token_key, deleted, generation, document FROM records",
        " ORDER BY made_at, id"
    )
}

pub(super) async fn list(pool: &AnyPool, filter: Filter) -> Result<Vec<Row>, sqlx::Error> {
    // One by one: a row as the driver has it takes more memory than what becomes of it.
    select_all(filter).fetch(pool).map(|row| record(filter.kind, &row?)).try_collect().await
}

/// A statement on the next records of a filter after a position. It is made of texts of ours; ids are bound.
fn select_page(columns: &str, filter: Filter, after: Position, most: i64) -> AnyQuery {
    let conditions = [("parent", filter.parent), ("cluster_id", filter.cluster)];
    let conditions: Vec<_> = conditions.into_iter().filter_map(|(name, id)| Some((name, id?))).collect();
    let mut sql = format!(
        "SELECT {columns} FROM records WHERE kind = $1 AND deleted <= $2 AND (made_at, id) > ($3, $4)"
    );
    for (number, (name, _)) in (6..).zip(&conditions) {
        sql.push_str(&format!(" AND {name} = ${number}"));
    }
    sql.push_str(" ORDER BY made_at, id LIMIT $5");
    let query = sqlx::query(AssertSqlSafe(sql))
        .bind(filter.kind.as_str())
        .bind(i64::from(filter.deleted))
        .bind(after.made_at)
        .bind(after.id.to_string())
        .bind(most);
    conditions.into_iter().fold(query, |query, (_, id)| query.bind(id.to_string()))
}

fn select_lengths(filter: Filter, after: Position) -> AnyQuery {
    select_page("CAST(octet_length(document) AS BIGINT) AS len", filter, after, PAGE_ROWS)
}

fn select_rows(filter: Filter, after: Position, most: i64) -> AnyQuery {
    const COLUMNS: &str = "parent, id, cluster_id, token_key, deleted, generation, document, made_at";
    select_page(COLUMNS, filter, after, most)
}

/// Lengths are read first: drivers read ahead, and a few documents may be long.
pub(super) async fn page(pool: &AnyPool, filter: Filter, after: Position) -> Result<RowPage, sqlx::Error> {
    let mut connection = pool.acquire().await?;
    let lengths = select_lengths(filter, after).fetch_all(&mut *connection).await?;
    let lengths = lengths.iter().map(|row| row.try_get("len")).collect::<Result<Vec<i64>, _>>()?;
    let count = count_that_fits(&lengths);
    if count == 0 {
        return Ok(RowPage { rows: Vec::new(), next: None });
    }
    let found = select_rows(filter, after, count).fetch_all(&mut *connection).await?;
    drop(connection);
    let rows = found.iter().map(|row| record(filter.kind, row)).collect::<Result<Vec<_>, _>>()?;
    let last = match (found.last(), rows.last()) {
        (Some(found), Some(row)) => Position { made_at: found.try_get("made_at")?, id: row.key.id },
        // These were removed a moment ago.
        _ => after,
    };
    let seen = i64::try_from(lengths.len()).unwrap_or(i64::MAX);
    Ok(RowPage { rows, next: (count < seen || seen == PAGE_ROWS).then_some(last) })
}

/// How many documents of these lengths fit in a page, from the first on. One always does.
fn count_that_fits(lengths: &[i64]) -> i64 {
    let (mut total, mut count) = (0_u64, 0);
    for len in lengths {
        total = total.saturating_add(u64::try_from(*len).unwrap_or(0));
        if count > 0 && total > PAGE_BYTES {
            break;
        }
        count += 1;
    }
    count
}

fn select_count(filter: Filter) -> AnyQuery {
    filtered!(filter, "SELECT COUNT(*) AS found FROM records", "")
}

pub(super) async fn count(pool: &AnyPool, filter: Filter) -> Result<u64, sqlx::Error> {
    let found: i64 = select_count(filter).fetch_one(pool).await?.try_get("found")?;
    Ok(u64::try_from(found).unwrap_or(0))
}

/// A statement that finds a row if the parts of a record are not within a bound.
pub(super) fn out_of_bounds(bound: Bound) -> AnyQuery {
    let most = |most: u64| i64::try_from(most).unwrap_or(i64::MAX);
    sqlx::query(
        "SELECT 1 FROM (SELECT SUM(1 - deleted) AS found, SUM(size) AS bytes FROM records \
         WHERE kind = $1 AND parent = $2) AS parts WHERE found > $3 OR bytes > $4",
    )
    .bind(bound.kind.as_str())
    .bind(bound.parent.to_string())
    .bind(most(bound.records))
    .bind(most(bound.bytes))
}

/// A statement that finds one of the records of a filter.
pub(super) fn any_of(filter: Filter) -> AnyQuery {
    filtered!(filter, "SELECT id FROM records", " LIMIT 1")
}

/// A statement that names the records of a kind with a token of another key.
fn select_signed_otherwise(kind: Kind, key: Option<Uuid>) -> AnyQuery {
    // All others are before or behind it in the index.
    let sql = "SELECT parent, id FROM records WHERE kind = $1 AND token_key < $2 \
               UNION ALL SELECT parent, id FROM records WHERE kind = $1 AND token_key > $2";
    sqlx::query(sql).bind(kind.as_str()).bind(text_of(key))
}

pub(super) async fn signed_otherwise(
    pool: &AnyPool,
    kind: Kind,
    key: Option<Uuid>,
) -> Result<Vec<Key>, sqlx::Error> {
    let rows = select_signed_otherwise(kind, key).fetch_all(pool).await?;
    rows.iter().map(|row| name(kind, row)).collect()
}

/// A statement that names the records of a kind that are deleted.
fn select_deleted(kind: Kind) -> AnyQuery {
    sqlx::query("SELECT parent, id FROM records WHERE kind = $1 AND deleted = 1").bind(kind.as_str())
}

pub(super) async fn deleted(pool: &AnyPool, kind: Kind) -> Result<Vec<Key>, sqlx::Error> {
    let rows = select_deleted(kind).fetch_all(pool).await?;
    rows.iter().map(|row| name(kind, row)).collect()
}

fn name(kind: Kind, row: &AnyRow) -> Result<Key, sqlx::Error> {
    let id: &str = row.try_get("id")?;
    let id = id.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    Ok(Key { kind, parent: id_of(row.try_get("parent")?)?, id })
}

fn record(kind: Kind, row: &AnyRow) -> Result<Row, sqlx::Error> {
    let cluster: Option<&str> = row.try_get("cluster_id")?;
    Ok(Row {
        key: name(kind, row)?,
        cluster: id_of(cluster.unwrap_or_default())?,
        token_key: id_of(row.try_get("token_key")?)?,
        deleted: row.try_get::<i64, _>("deleted")? != 0,
        generation: row.try_get("generation")?,
        document: row.try_get("document")?,
    })
}

#[cfg(test)]
mod tests {
    use sqlx::{AnyPool, AssertSqlSafe, Execute as _};
    use tempfile::TempDir;

    use super::*;
    use crate::inventory::event::EventQuery;
    use crate::inventory::id::{ClusterId, HostId, InfraEnvId};
    use crate::inventory::store::sql::{Dialect, events};
    use crate::inventory::store::{SqlStore, Store};

    /// How SQLite is going to find what a statement asks for.
    async fn plan(pool: &AnyPool, query: AnyQuery) -> String {
        let sql = format!("EXPLAIN QUERY PLAN {}", query.sql().as_str());
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(pool).await.unwrap();
        let steps: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        steps.join("; ")
    }

    #[tokio::test]
    async fn every_statement_finds_its_records_by_an_index() {
        let directory = TempDir::new().unwrap();
        let store = SqlStore::open_file(&directory.path().join("kindling.db")).await.unwrap();
        let id = Uuid::new_v4();
        let key = Key { kind: Kind::Host, parent: Some(id), id };
        for query in [select(key), find(key)] {
            let plan = plan(&store.pool, query).await;
            assert!(
                plan.starts_with("SEARCH records USING") && plan.ends_with("(kind=? AND parent=? AND id=?)"),
                "{plan}"
            );
        }
        let all = Filter::all(Kind::Host);
        let filters = [
            (all, "(kind=?"),
            (all.within(id), "(kind=? AND parent=?"),
            (all.within(id).of_cluster(id), "(kind=? AND "),
            (all.of_cluster(id), "records_of_cluster (kind=? AND cluster_id=?"),
        ];
        for (filter, index) in filters {
            for query in [select_all(filter), any_of(filter), select_all(filter.with_deleted())] {
                let plan = plan(&store.pool, query).await;
                assert!(plan.starts_with("SEARCH records USING ") && plan.contains(index), "{plan}");
            }
            for query in [select_lengths(filter, Position::START), select_rows(filter, Position::START, 1)] {
                let plan = plan(&store.pool, query).await;
                assert!(plan.starts_with("SEARCH records USING INDEX") && plan.contains(index), "{plan}");
                assert!(plan.contains("(made_at,id)>(?,?)") && !plan.contains("TEMP B-TREE"), "{plan}");
            }
        }
        let bound = Bound { kind: Kind::Host, parent: id, records: 1, bytes: 1 };
        let plan_of_bound = plan(&store.pool, out_of_bounds(bound)).await;
        let index = "SEARCH records USING COVERING INDEX records_sizes (kind=? AND parent=?)";
        assert!(plan_of_bound.contains(index), "{plan_of_bound}");
        let found = plan(&store.pool, select_deleted(Kind::Host)).await;
        assert!(found.starts_with("SEARCH records USING INDEX") && found.contains("(kind=?)"), "{found}");
        let plan = plan(&store.pool, select_signed_otherwise(Kind::InfraEnv, Some(id))).await;
        for range in ["(kind=? AND token_key<?)", "(kind=? AND token_key>?)"] {
            let step = format!("SEARCH records USING COVERING INDEX records_of_token_key {range}");
            assert!(plan.contains(&step), "{plan}");
        }
        store.close().await;
    }

    #[test]
    fn page_has_few_bytes_or_one_record() {
        assert_eq!(count_that_fits(&[]), 0);
        assert_eq!(count_that_fits(&[1 << 30, 1]), 1);
        assert_eq!(count_that_fits(&[1, 1 << 30, 1]), 1);
        assert_eq!(count_that_fits(&[64 << 10; 10]), 4);
        assert_eq!(count_that_fits(&[2 << 10; 64]), 64);
    }

    #[tokio::test]
    async fn events_come_out_of_an_index_in_their_order() {
        let directory = TempDir::new().unwrap();
        let store = SqlStore::open_file(&directory.path().join("kindling.db")).await.unwrap();
        let id = Uuid::new_v4();
        let queries = [
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
                let query = EventQuery { descending, limit: Some(10), ..query.clone() };
                let plan = plan(&store.pool, events::page(&query, Dialect::Sqlite)).await;
                assert!(plan.starts_with("SEARCH events USING INDEX") && plan.contains(index), "{plan}");
                // The events of several hosts have to be put in order.
                assert_eq!(plan.contains("TEMP B-TREE"), !query.hosts.is_empty(), "{plan}");
            }
        }
        store.close().await;
    }
}
