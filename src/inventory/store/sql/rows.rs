//! Statements that read records.

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};
use uuid::Uuid;

use super::AnyQuery;
use crate::inventory::store::{Filter, Key, Kind, Row};

/// The parent as its column has it.
pub(super) fn parent_text(parent: Option<Uuid>) -> String {
    parent.map(|id| id.to_string()).unwrap_or_default()
}

pub(super) async fn get(pool: &AnyPool, key: Key) -> Result<Option<Row>, sqlx::Error> {
    let row = sqlx::query(
        "SELECT parent, id, cluster_id, deleted, generation, document FROM records \
         WHERE kind = $1 AND parent = $2 AND id = $3",
    )
    .bind(key.kind.as_str())
    .bind(parent_text(key.parent))
    .bind(key.id.to_string())
    .fetch_optional(pool)
    .await?;
    row.map(|row| record(key.kind, &row)).transpose()
}

/// A statement that finds a record which is not deleted.
pub(super) fn find(key: Key) -> AnyQuery {
    sqlx::query("SELECT id FROM records WHERE kind = $1 AND parent = $2 AND id = $3 AND deleted = 0")
        .bind(key.kind.as_str())
        .bind(parent_text(key.parent))
        .bind(key.id.to_string())
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

pub(super) async fn list(pool: &AnyPool, filter: Filter) -> Result<Vec<Row>, sqlx::Error> {
    let query: AnyQuery = filtered!(
        filter,
        "SELECT parent, id, cluster_id, deleted, generation, document FROM records",
        " ORDER BY made_at, id"
    );
    query.fetch_all(pool).await?.iter().map(|row| record(filter.kind, row)).collect()
}

/// A statement that finds one of the records of a filter.
pub(super) fn any_of(filter: Filter) -> AnyQuery {
    filtered!(filter, "SELECT id FROM records", " LIMIT 1")
}

fn record(kind: Kind, row: &AnyRow) -> Result<Row, sqlx::Error> {
    let id = |text: String| text.parse::<Uuid>().map_err(|error| sqlx::Error::Decode(Box::new(error)));
    let parent: String = row.try_get("parent")?;
    let parent = Some(parent).filter(|parent| !parent.is_empty()).map(id).transpose()?;
    let cluster: Option<String> = row.try_get("cluster_id")?;
    Ok(Row {
        key: Key { kind, parent, id: id(row.try_get("id")?)? },
        cluster: cluster.map(id).transpose()?,
        deleted: row.try_get::<i64, _>("deleted")? != 0,
        generation: row.try_get("generation")?,
        document: row.try_get("document")?,
    })
}
