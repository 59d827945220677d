//! Statements that read and search records.

use std::sync::LazyLock;

use uuid::Uuid;

use super::joined::{self, JoinedRow};
use super::reports;
use crate::id::{ClusterId, HostId};
use crate::store::assessed::sql_generation_sum;
use crate::store::columns::COLUMNS;
use crate::store::session::{Cells, Dialect, Session, Statement, Value, Values};
use crate::store::values::{decode_error, id_of, text_of, unsigned};
use crate::store::{Bound, Columns, Filter, Key, Kind, PageQuery, Position, Reports, Row, RowPage};

/// Returns the maximum total length of the documents and reports in a page, in bytes. A page with a single record may
/// exceed it. Pages are larger for a shared server, to send it fewer queries.
fn page_bytes(dialect: Dialect) -> u32 {
    match dialect {
        Dialect::Sqlite => 256 << 10,
        Dialect::Postgres => 1 << 20,
    }
}

/// Maximum number of records in a page.
pub(in crate::store) const PAGE_ROWS: u8 = 64;

/// The names of a [`Row`]'s columns, separated by commas.
static ROW_COLUMNS: LazyLock<String> = LazyLock::new(|| {
    let columns = COLUMNS.iter().map(|column| column.name);
    let others = ["record_generation", "schema_version", "document"];
    ["parent", "id"].into_iter().chain(columns).chain(others).collect::<Vec<_>>().join(", ")
});

/// Binds the key of a record to `$1`, `$2` and `$3`.
pub(super) fn bind_key(query: Statement, key: Key) -> Statement {
    query.bind(key.kind.as_str()).bind(text_of(key.parent)).bind_id(key.id)
}

pub(super) fn select(key: Key) -> Statement {
    let columns = &*ROW_COLUMNS;
    let sql = format!("SELECT {columns} FROM records WHERE kind = $1 AND parent = $2 AND id = $3");
    bind_key(Statement::composed(sql), key)
}

pub(in crate::store) async fn get(
    connection: &mut impl Session,
    key: Key,
) -> Result<Option<Row>, sqlx::Error> {
    connection.fetch_first(select(key), |row| record(key.kind, row)).await
}

/// Returns the generations of those records of one kind and parent whose ids are in `ids`.
pub(in crate::store) async fn generations<S: Session>(
    connection: &mut S,
    (kind, parent): (Kind, Option<Uuid>),
    ids: &[String],
) -> Result<Vec<(Key, i64)>, sqlx::Error> {
    let is_listed = S::DIALECT.is_one_of("id", "$3");
    let sql =
        format!("SELECT id, record_generation FROM records WHERE kind = $1 AND parent = $2 AND {is_listed}");
    let list = S::DIALECT.list(ids.iter().map(String::as_str));
    let query = Statement::composed(sql).bind(kind.as_str()).bind(text_of(parent)).bind(list);
    let convert = |row: &S::Row| {
        let id = row.text("id")?;
        let id = id.parse().map_err(|_| decode_error("id", id))?;
        Ok((Key { kind, parent, id }, row.integer("record_generation")?))
    };
    connection.fetch(query, convert).await
}

/// Returns a statement that finds a record by its key unless the record is deleted.
pub(in crate::store) fn find(key: Key) -> Statement {
    let sql = "SELECT id FROM records WHERE kind = $1 AND parent = $2 AND id = $3 AND deleted = 0";
    bind_key(Statement::new(sql), key)
}

/// Returns a statement for the cluster of a record that is not deleted.
pub(in crate::store) fn select_cluster(key: Key) -> Statement {
    let sql = "SELECT cluster_id FROM records WHERE kind = $1 AND parent = $2 AND id = $3 AND deleted = 0";
    bind_key(Statement::new(sql), key)
}

/// Returns the SQL conditions of a filter. Each combination of conditions has its own SQL text, so that the database
/// can use an index. A condition that is always true would prevent that.
fn conditions(filter: Filter, values: &mut Values) -> String {
    let Filter { kind, parent, cluster, status, role, deleted } = filter;
    let (kind, deleted) = (values.add(kind.as_str()), values.add(i64::from(deleted)));
    let mut sql = format!("kind = {kind} AND deleted <= {deleted}");
    let optional = [
        ("parent", parent.map(Value::from)),
        ("cluster_id", cluster.map(Value::from)),
        ("status", status.map(Value::from)),
        ("role", role.map(Value::from)),
    ];
    for (column, value) in optional {
        if let Some(value) = value {
            sql.push_str(&format!(" AND {column} = {}", values.add(value)));
        }
    }
    sql
}

/// Returns a statement that selects the records of a filter. `start` and `end` are the SQL before and after the
/// conditions.
fn filtered(filter: Filter, start: &str, end: &str) -> Statement {
    let mut values = Values::default();
    let conditions = conditions(filter, &mut values);
    values.into_statement(format!("{start} WHERE {conditions}{end}"))
}

pub(super) fn select_all(filter: Filter) -> Statement {
    filtered(filter, &format!("SELECT {} FROM records", *ROW_COLUMNS), " ORDER BY made_at, id")
}

pub(in crate::store) async fn list(
    connection: &mut impl Session,
    filter: Filter,
) -> Result<Vec<Row>, sqlx::Error> {
    connection.fetch(select_all(filter), |row| record(filter.kind, row)).await
}

/// Returns a statement for a page of records.
///
/// A single statement determines how many records fit into a page, and reads them with their reports. So a host and its
/// reports are from the same change without a transaction. Only sizes are read to determine the page, so documents that
/// do not fit are not read. The SQL text contains only constants of this program, and ids are bound.
///
/// SQLite joins the rows into one text, see [`joined`]. PostgreSQL would copy this text several times.
pub(super) fn select_page(query: PageQuery, dialect: Dialect) -> Statement {
    let PageQuery { filter, reports, after, offset, limit } = query;
    let (len, of_host) = if reports.is_empty() {
        ("CAST(octet_length(document) AS BIGINT)".to_owned(), "CAST(NULL AS TEXT)".to_owned())
    } else {
        // The size of a host already includes most of its reports, so only the other reports are added.
        let uncounted = reports::select_uncounted_len(reports);
        let len = uncounted.map_or_else(|| "size".to_owned(), |uncounted| format!("size + {uncounted}"));
        (len, reports::select_joined(reports))
    };
    let mut values = Values::default();
    let conditions = conditions(filter, &mut values);
    let (made_at, id) = (values.add(after.made_at), values.add(after.id));
    // If the offset saturates, it is beyond the end of every list. If the limit saturates, it exceeds every page.
    let offset = values.add(saturating_i64(offset));
    let limit = values.add(limit.map_or(i64::MAX, saturating_i64));
    let from = format!("FROM records WHERE {conditions} AND (made_at, id) > ({made_at}, {id})");
    let (columns, page_bytes) = (&*ROW_COLUMNS, page_bytes(dialect));
    let page = match dialect {
        Dialect::Sqlite => format!("{} AS page", joined::join()),
        Dialect::Postgres => "*".to_owned(),
    };
    values.into_statement(format!(
        "WITH candidates AS (SELECT made_at, id, {len} AS len {from} ORDER BY made_at, id \
         LIMIT {PAGE_ROWS} OFFSET {offset}), \
         positions AS (SELECT ROW_NUMBER() OVER ordered AS number, SUM(len) OVER ordered AS total FROM candidates \
         WINDOW ordered AS (ORDER BY made_at, id)), \
         fitting AS MATERIALIZED (SELECT COUNT(*) AS found, COUNT(CASE WHEN number <= {limit} \
         AND (number = 1 OR total <= {page_bytes}) THEN 1 END) AS fits FROM positions) \
         SELECT {page} FROM (SELECT {columns}, made_at, {of_host} AS of_host, \
         (SELECT CASE WHEN found > fits OR found = {PAGE_ROWS} THEN CAST(1 AS BIGINT) ELSE 0 END FROM fitting) AS has_more \
         {from} ORDER BY made_at, id LIMIT (SELECT fits FROM fitting) OFFSET {offset}) AS rows"
    ))
}

fn saturating_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(in crate::store) async fn page<S: Session>(
    connection: &mut S,
    query: PageQuery,
) -> Result<RowPage, sqlx::Error> {
    let mut reader = PageReader { kind: query.filter.kind, last: query.after, page: RowPage::default() };
    let statement = select_page(query, S::DIALECT);
    connection.fetch(statement, |row| reader.take(row, S::DIALECT)).await?;
    Ok(reader.page)
}

/// A collector of the rows of a page.
struct PageReader {
    kind: Kind,
    /// The position of the last collected record.
    last: Position,
    page: RowPage,
}

impl PageReader {
    /// Adds a result row to the page: in SQLite all records as one text, in PostgreSQL one record.
    fn take(&mut self, row: &dyn Cells, dialect: Dialect) -> Result<(), sqlx::Error> {
        match dialect {
            Dialect::Sqlite => {
                // An empty page is NULL.
                let mut rows = row.optional_text("page")?.unwrap_or_default();
                while !rows.is_empty() {
                    let mut row = JoinedRow::take(&mut rows)?;
                    let of_host = std::mem::take(&mut row.of_host);
                    self.add(&row, of_host)?;
                }
                Ok(())
            }
            Dialect::Postgres => {
                // The column is NULL for a host without reports.
                let mut of_host = row.optional_text("of_host")?.unwrap_or_default();
                let reports = reports::take(&mut of_host)?;
                self.add(row, reports)
            }
        }
    }

    fn add(&mut self, row: &dyn Cells, of_host: Reports) -> Result<(), sqlx::Error> {
        let record = record(self.kind, row)?;
        let position = Position { made_at: row.integer("made_at")?, id: record.key.id };
        // SQLite joins rows in the order of the subquery but does not guarantee this order, so the order is checked.
        if position <= self.last {
            return Err(decode_error("order of records", (self.last, position)));
        }
        self.last = position;
        self.page.next = (row.integer("has_more")? != 0).then_some(position);
        if !of_host.0.is_empty() {
            self.page.reports.insert(record.key, of_host);
        }
        self.page.rows.push(record);
        Ok(())
    }
}

pub(in crate::store) fn select_count(filter: Filter) -> Statement {
    filtered(filter, "SELECT COUNT(*) AS found FROM records", "")
}

/// Returns a statement that counts the hosts of clusters by status and by whether they are deleted.
pub(in crate::store) fn select_host_counts(clusters: &[Uuid], dialect: Dialect) -> Statement {
    let clusters: Vec<_> = clusters.iter().map(Uuid::to_string).collect();
    let of_clusters = dialect.is_one_of("cluster_id", "$1");
    let sql = format!(
        "SELECT cluster_id, status, deleted, COUNT(*) AS hosts FROM records \
         WHERE kind = 'host' AND {of_clusters} GROUP BY cluster_id, status, deleted"
    );
    Statement::composed(sql).bind(dialect.list(clusters.iter().map(String::as_str)))
}

/// Returns a statement for the keys of the given hosts that are in a cluster. It finds them in the index, and reads the
/// rows of these hosts only.
pub(in crate::store) fn select_in_cluster(
    cluster: ClusterId,
    hosts: &[HostId],
    dialect: Dialect,
) -> Statement {
    let hosts: Vec<_> = hosts.iter().map(HostId::to_string).collect();
    let is_listed = dialect.is_one_of("id", "$2");
    let sql = format!(
        "SELECT parent, id FROM records WHERE kind = 'host' AND cluster_id = $1 AND {is_listed} AND deleted = 0 \
         ORDER BY made_at, id"
    );
    Statement::composed(sql).bind_id(cluster.0).bind(dialect.list(hosts.iter().map(String::as_str)))
}

/// Returns a statement for the ids of the deleted hosts of a cluster.
pub(in crate::store) fn select_deleted_of_cluster(cluster: ClusterId) -> Statement {
    let sql =
        "SELECT id FROM records WHERE kind = 'host' AND cluster_id = $1 AND deleted = 1 ORDER BY made_at, id";
    Statement::new(sql).bind_id(cluster.0)
}

/// Returns a statement that returns a row if the totals of a parent exceed a bound. Negative totals are damaged, and
/// exceed every bound.
pub(super) fn out_of_bounds(bound: Bound) -> Statement {
    // If a bound saturates, no sum exceeds it.
    let most = |most: u64| i64::try_from(most).unwrap_or(i64::MAX);
    Statement::new(
        "SELECT records, bytes FROM totals WHERE kind = $1 AND parent = $2 \
         AND (records > $3 OR bytes > $4 OR records < 0 OR bytes < 0)",
    )
    .bind(bound.kind.as_str())
    .bind_id(bound.parent)
    .bind_integer(most(bound.records))
    .bind_integer(most(bound.bytes))
}

pub(super) async fn is_out_of_bounds<S: Session>(
    connection: &mut S,
    bound: Bound,
) -> Result<bool, sqlx::Error> {
    let totals = |row: &S::Row| {
        unsigned("number of records", row.integer("records")?)?;
        unsigned("size of records", row.integer("bytes")?)
    };
    Ok(connection.fetch_first(out_of_bounds(bound), totals).await?.is_some())
}

/// Returns a statement that finds any record that matches a filter.
pub(in crate::store) fn select_any(filter: Filter) -> Statement {
    filtered(filter, "SELECT id FROM records", " LIMIT 1")
}

/// Returns a statement for the keys of records whose URL token is signed with a key other than `key`.
pub(in crate::store) fn select_with_other_token_key(kind: Kind, key: Option<Uuid>) -> Statement {
    // Two ranges of the index: before the key and after it.
    let sql = "SELECT parent, id FROM records WHERE kind = $1 AND token_key < $2 \
               UNION ALL SELECT parent, id FROM records WHERE kind = $1 AND token_key > $2";
    Statement::new(sql).bind(kind.as_str()).bind(text_of(key))
}

/// Returns a statement for the keys of deleted records of a kind.
pub(in crate::store) fn select_deleted(kind: Kind) -> Statement {
    Statement::new("SELECT parent, id FROM records WHERE kind = $1 AND deleted = 1").bind(kind.as_str())
}

/// Returns a statement for at most `most` hosts in a status whose last check-in was before a time.
pub(in crate::store) fn select_silent(status: &str, before: i64, most: i64) -> Statement {
    let query = Statement::new(
        "SELECT parent, id FROM records WHERE kind = 'host' AND deleted = 0 AND status = $1 AND checked_in_at < $2 \
         ORDER BY checked_in_at LIMIT $3",
    );
    query.bind(status).bind_integer(before).bind_integer(most)
}

/// Returns a statement that reads how many times hosts have joined or left a cluster. It returns no row if the cluster
/// never had a host.
pub(in crate::store) fn select_membership(cluster: Uuid) -> Statement {
    Statement::new("SELECT changes FROM memberships WHERE cluster_id = $1").bind_id(cluster)
}

/// Returns the statement of [`select_membership`] with a row lock until the transaction ends. The statement waits for a
/// transaction that changes the row.
pub(super) fn select_locked_membership(dialect: Dialect, cluster: Uuid) -> Statement {
    match dialect {
        // SQLite has only one writer.
        Dialect::Sqlite => select_membership(cluster),
        Dialect::Postgres => {
            Statement::new("SELECT changes FROM memberships WHERE cluster_id = $1 FOR SHARE").bind_id(cluster)
        }
    }
}

/// Returns a statement for the ids of clusters in some statuses whose assessment is missing or outdated, in the order
/// of their creation. An assessment is outdated if its basis, or its state of the cluster and the hosts, differs from
/// the current one.
pub(in crate::store) fn select_stale_clusters(
    dialect: Dialect,
    (statuses, basis): (&[&str], &str),
    most: i64,
) -> Statement {
    let has_status = dialect.is_one_of("clusters.status", "$1");
    let generations = sql_generation_sum("hosts.record_generation");
    // NULL never compares as equal, so a missing number is replaced by a number that no state has.
    let sql = format!(
        "SELECT clusters.id AS id FROM records AS clusters LEFT JOIN records AS assessments \
         ON assessments.kind = 'assessment' AND assessments.parent = '' AND assessments.id = clusters.id \
         AND assessments.deleted = 0 \
         WHERE clusters.kind = 'cluster' AND clusters.parent = '' AND clusters.deleted = 0 AND {has_status} \
         AND (COALESCE(assessments.seen_cluster, -1) <> clusters.record_generation \
         OR assessments.seen_basis <> $2 \
         OR (COALESCE(assessments.seen_hosts, -1), COALESCE(assessments.seen_generations, -1)) \
         <> (SELECT COUNT(*), {generations} FROM records AS hosts \
         WHERE hosts.kind = 'host' AND hosts.cluster_id = clusters.id AND hosts.deleted = 0)) \
         ORDER BY clusters.made_at, clusters.id LIMIT $3"
    );
    Statement::composed(sql).bind(dialect.list(statuses.iter().copied())).bind(basis).bind_integer(most)
}

/// Returns a statement for the keys of hosts that have an interface with this MAC address.
pub(in crate::store) fn select_with_mac(mac: &str) -> Statement {
    let query = Statement::new(
        "SELECT infra_env_id AS parent, host_id AS id FROM host_macs WHERE mac = $1 ORDER BY infra_env_id, host_id",
    );
    query.bind(mac.to_ascii_lowercase())
}

fn key_of(kind: Kind, parent: &str, id: &str) -> Result<Key, sqlx::Error> {
    let id = id.parse().map_err(|_| decode_error("id", id))?;
    Ok(Key { kind, parent: id_of(parent)?, id })
}

pub(in crate::store) fn row_key(kind: Kind, row: &dyn Cells) -> Result<Key, sqlx::Error> {
    key_of(kind, row.text("parent")?, row.text("id")?)
}

fn record(kind: Kind, row: &dyn Cells) -> Result<Row, sqlx::Error> {
    // The generation of a stored record is at least 1. Generation 0 means that a record does not exist.
    let generation = row.integer("record_generation")?;
    if generation < 1 {
        return Err(decode_error("generation", generation));
    }
    Ok(Row {
        key: row_key(kind, row)?,
        columns: Columns::read(row)?,
        generation,
        schema_version: row.integer("schema_version")?,
        document: row.text("document")?.to_owned(),
        reports_len: None,
    })
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection as _, SqliteConnection};
    use tempfile::TempDir;

    use super::*;
    use crate::store::{Changes, Outcome, ReportKind, ReportKinds, SqlStore, Step, Store as _, StoreError};

    #[tokio::test]
    async fn damaged_number_of_a_record_is_an_error() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("kindling.db");
        let store = SqlStore::open_file(&path).await.unwrap();
        let id = Uuid::new_v4();
        let key = Key { kind: Kind::Host, parent: Some(id), id };
        let row = Row::new(key, "{}".to_owned());
        let commit = async |step| store.commit(Changes { steps: vec![step], events: Vec::new() }).await;
        assert_eq!(commit(Step::Insert(row.clone())).await.unwrap(), Outcome::Done);
        let mut raw = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.unwrap();
        let mut set = async |column: &str| {
            raw.execute(Statement::composed(format!("UPDATE records SET {column}"))).await.unwrap();
        };
        let (filter, all_reports) =
            (Filter::all(Kind::Host).with_deleted(), ReportKinds::new(ReportKind::ALL));
        for (damage, repair) in [
            ("record_generation = 0", "record_generation = 1"),
            ("record_generation = -7", "record_generation = 1"),
            ("deleted = -1", "deleted = 0"),
        ] {
            set(damage).await;
            for error in [
                store.get(key).await.unwrap_err(),
                store.list(filter).await.unwrap_err(),
                store.page(PageQuery::first(filter)).await.unwrap_err(),
                store.page(PageQuery::first(filter).with_reports(all_reports)).await.unwrap_err(),
            ] {
                assert!(matches!(error, StoreError::Statement { .. }), "{damage}: {error}");
            }
            set(repair).await;
        }
        set("deleted = 2").await;
        assert!(matches!(store.get(key).await, Err(StoreError::Statement { .. })));
        set("deleted = 0").await;
        assert_eq!(store.get(key).await.unwrap(), Some(row));
        let bound = |bytes| Step::RequireWithin(Bound { kind: Kind::Host, parent: id, records: 9, bytes });
        assert_eq!(commit(bound(4096)).await.unwrap(), Outcome::Done);
        assert_eq!(commit(bound(4095)).await.unwrap(), Outcome::OutOfBounds);
        raw.execute(Statement::new("UPDATE totals SET bytes = -4096")).await.unwrap();
        let error = commit(bound(4096)).await.unwrap_err();
        assert!(matches!(error, StoreError::Statement { .. }), "{error}");
        raw.close().await.unwrap();
        store.close().await;
    }
}
