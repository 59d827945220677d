//! Statements on events.

use chrono::{DateTime, Utc};
use sqlx::any::AnyRow;
use sqlx::{AnyPool, AssertSqlSafe, Row as _};
use uuid::Uuid;

use super::{AnyQuery, Dialect};
use crate::inventory::event::{Category, Event, EventPage, EventPosition, EventQuery, Severity};
use crate::inventory::id::{ClusterId, HostId, InfraEnvId};

/// PostgreSQL has no NUL in texts. What clients sent may be quoted in a message, which is told nevertheless.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A message as it is searched.
fn searched(text: &str) -> String {
    without_nul(text).to_lowercase()
}

/// Events of one time are kept in the order in which they were told: `asked_at` is no other's of this process.
pub(super) fn insert(event: &Event, asked_at: i64) -> AnyQuery {
    let (_, random) = Uuid::new_v4().as_u64_pair();
    let id = Uuid::from_u64_pair(asked_at.cast_unsigned(), random);
    sqlx::query(
        "INSERT INTO events (id, event_time, name, severity, category, cluster_id, host_id, infra_env_id, \
         request_id, message, searched, props) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind(id.to_string())
    .bind(event.time.timestamp_micros())
    .bind(without_nul(&event.name))
    .bind(event.severity.as_str())
    .bind(event.category.as_str())
    .bind(event.cluster.map(|id| id.to_string()))
    .bind(event.host.map(|id| id.to_string()))
    .bind(event.infra_env.map(|id| id.to_string()))
    .bind(event.request.map(|id| id.to_string()))
    .bind(without_nul(&event.message))
    .bind(searched(&event.message))
    .bind(event.props.as_deref().map(without_nul))
}

/// The conditions of a query, with the values that they are bound to.
#[derive(Debug)]
struct Conditions {
    dialect: Dialect,
    sql: String,
    values: Vec<String>,
}

impl Conditions {
    /// All that a query says, but for severities.
    fn of(query: &EventQuery, dialect: Dialect) -> Self {
        let mut all = Self { dialect, sql: String::new(), values: Vec::new() };
        if let Some(cluster) = query.cluster {
            let name = all.value(cluster.to_string());
            all.and(&format!("cluster_id = {name}"));
        }
        if let Some(infra_env) = query.infra_env {
            let name = all.value(infra_env.to_string());
            all.and(&format!("infra_env_id = {name}"));
        }
        let hosts = (!query.hosts.is_empty()).then(|| all.one_of("host_id", &query.hosts));
        match (hosts, query.cluster_level) {
            (Some(hosts), true) => all.and(&format!("({hosts} OR host_id IS NULL)")),
            (Some(hosts), false) => all.and(&hosts),
            (None, true) => all.and("host_id IS NULL"),
            (None, false) => {}
        }
        if query.live_hosts {
            all.and("host_id IN (SELECT id FROM records WHERE kind = 'host' AND deleted = 0)");
        }
        if !query.categories.is_empty() {
            all.and_one_of_ours("category", query.categories.iter().map(|one| one.as_str()));
        }
        if let Some(text) = &query.message {
            let name = all.value(searched(text));
            // No pattern: it would have to be escaped, and SQLite bounds its length.
            let position = if dialect == Dialect::Sqlite { "INSTR" } else { "STRPOS" };
            all.and(&format!("{position}(searched, {name}) > 0"));
        }
        all
    }

    fn and(&mut self, condition: &str) {
        self.sql.push_str(if self.sql.is_empty() { " WHERE " } else { " AND " });
        self.sql.push_str(condition);
    }

    /// The name of a further value.
    fn value(&mut self, value: String) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    fn one_of(&mut self, column: &str, ids: &[HostId]) -> String {
        let ids: Vec<_> = ids.iter().map(HostId::to_string).collect();
        let name = self.value(list_of(self.dialect, &ids));
        is_one_of(self.dialect, column, &name)
    }

    /// For words of ours, which may stand in a statement.
    fn and_one_of_ours(&mut self, column: &str, words: impl Iterator<Item = &'static str>) {
        let words: Vec<_> = words.map(|word| format!("'{word}'")).collect();
        self.and(&format!("{column} IN ({})", words.join(", ")));
    }

    /// A statement from parts that are ours; values of others are bound, never written.
    fn query(&self, start: &str, end: &str) -> AnyQuery {
        let query = sqlx::query(AssertSqlSafe(format!("{start}{}{end}", self.sql)));
        self.values.iter().fold(query, |query, value| query.bind(value.clone()))
    }

    /// The statement for the events between offset and limit.
    fn page(mut self, query: &EventQuery) -> AnyQuery {
        if !query.severities.is_empty() {
            self.and_one_of_ours("severity", query.severities.iter().map(|one| one.as_str()));
        }
        let (order, beyond) = if query.descending { ("DESC", "<") } else { ("ASC", ">") };
        if let Some(after) = query.after {
            let id = self.value(after.id.to_string());
            // A number of ours, which may be in a statement.
            self.and(&format!("(event_time, id) {beyond} ({}, {id})", after.micros));
        }
        let most = i64::try_from(query.limit.unwrap_or(u64::MAX)).unwrap_or(i64::MAX);
        let skipped = i64::try_from(query.offset).unwrap_or(i64::MAX);
        let bound = self.values.len();
        let end = format!(
            " ORDER BY event_time {order}, id {order} LIMIT ${} OFFSET ${}",
            bound.saturating_add(1),
            bound.saturating_add(2)
        );
        let start = "SELECT id, event_time, name, severity, category, cluster_id, host_id, infra_env_id, \
                     request_id, message, props FROM events";
        self.query(start, &end).bind(most).bind(skipped)
    }
}

/// However many ids there are, they are one value: the statement is the same, and no bound on values is met.
fn list_of(dialect: Dialect, ids: &[String]) -> String {
    match dialect {
        Dialect::Sqlite => format!(r#"["{}"]"#, ids.join(r#"",""#)),
        Dialect::Postgres => ids.join(","),
    }
}

/// The condition that a column has one of the ids of such a value.
fn is_one_of(dialect: Dialect, column: &str, value: &str) -> String {
    match dialect {
        Dialect::Sqlite => format!("{column} IN (SELECT value FROM json_each({value}))"),
        Dialect::Postgres => format!("{column} = ANY (string_to_array({value}, ','))"),
    }
}

/// The ids of events from before a time that name no record which is still there. A host goes before its infra-env. Records
/// have a `cluster_id` as well: columns of events are named in full.
pub(super) async fn forgettable(
    pool: &AnyPool,
    before: DateTime<Utc>,
    most: usize,
) -> Result<Vec<String>, sqlx::Error> {
    let query: AnyQuery = sqlx::query(
        "SELECT id FROM events WHERE event_time < $1 \
         AND NOT EXISTS (SELECT 1 FROM records \
                         WHERE kind = 'cluster' AND parent = '' AND records.id = events.cluster_id) \
         AND NOT EXISTS (SELECT 1 FROM records \
                         WHERE kind = 'infra-env' AND parent = '' AND records.id = events.infra_env_id) \
         AND (events.infra_env_id IS NOT NULL OR events.host_id IS NULL \
              OR NOT EXISTS (SELECT 1 FROM records WHERE kind = 'host' AND records.id = events.host_id)) LIMIT $2",
    );
    let query = query.bind(before.timestamp_micros()).bind(i64::try_from(most).unwrap_or(i64::MAX));
    query.fetch_all(pool).await?.iter().map(|row| row.try_get("id")).collect()
}

/// The statement that deletes events.
pub(super) fn forget(dialect: Dialect, ids: &[String]) -> AnyQuery {
    let sql = format!("DELETE FROM events WHERE {}", is_one_of(dialect, "id", "$1"));
    sqlx::query(AssertSqlSafe(sql)).bind(list_of(dialect, ids))
}

/// The statement for the events of a page alone.
#[cfg(test)]
pub(super) fn page(query: &EventQuery, dialect: Dialect) -> AnyQuery {
    Conditions::of(query, dialect).page(query)
}

pub(super) async fn find(
    pool: &AnyPool,
    dialect: Dialect,
    query: &EventQuery,
) -> Result<EventPage, sqlx::Error> {
    let conditions = Conditions::of(query, dialect);
    if query.after.is_some() {
        let rows = conditions.page(query).fetch_all(pool).await?;
        return page_of(&rows, EventPage::default());
    }
    let mut page = EventPage::default();
    // The events and their number are those of one moment.
    let mut transaction = match dialect {
        Dialect::Sqlite => pool.begin().await?,
        Dialect::Postgres => pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?,
    };
    let counted = conditions.query("SELECT severity, COUNT(*) AS found FROM events", " GROUP BY severity");
    for row in counted.fetch_all(&mut *transaction).await? {
        let severity = severity(&row)?;
        let found = u64::try_from(row.try_get::<i64, _>("found")?).unwrap_or(0);
        if let Some(count) = page.by_severity.get_mut(severity as usize) {
            *count = found;
        }
        if query.severities.is_empty() || query.severities.contains(&severity) {
            page.count += found;
        }
    }
    if query.limit != Some(0) && query.offset < page.count {
        let rows = conditions.page(query).fetch_all(&mut *transaction).await?;
        page = page_of(&rows, page)?;
    }
    transaction.commit().await?;
    Ok(page)
}

/// A page with its events.
fn page_of(rows: &[AnyRow], page: EventPage) -> Result<EventPage, sqlx::Error> {
    let events = rows.iter().map(event).collect::<Result<_, _>>()?;
    Ok(EventPage { events, last: rows.last().map(position).transpose()?, ..page })
}

fn position(row: &AnyRow) -> Result<EventPosition, sqlx::Error> {
    let id: String = row.try_get("id")?;
    let id = id.parse().map_err(|_| decode_error("id", &id))?;
    Ok(EventPosition { micros: row.try_get("event_time")?, id })
}

fn decode_error(what: &str, found: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("{found:?} is no {what}").into())
}

fn severity(row: &AnyRow) -> Result<Severity, sqlx::Error> {
    let text: String = row.try_get("severity")?;
    let severity = Severity::ALL.into_iter().find(|one| one.as_str() == text);
    severity.ok_or_else(|| decode_error("severity", &text))
}

fn event(row: &AnyRow) -> Result<Event, sqlx::Error> {
    let id = |column: &str| -> Result<Option<Uuid>, sqlx::Error> {
        let text: Option<String> = row.try_get(column)?;
        text.map(|text| text.parse().map_err(|_| decode_error("id", &text))).transpose()
    };
    let micros: i64 = row.try_get("event_time")?;
    let category: String = row.try_get("category")?;
    Ok(Event {
        name: row.try_get("name")?,
        severity: severity(row)?,
        category: if category == Category::Metrics.as_str() { Category::Metrics } else { Category::User },
        cluster: id("cluster_id")?.map(ClusterId),
        host: id("host_id")?.map(HostId),
        infra_env: id("infra_env_id")?.map(InfraEnvId),
        message: row.try_get("message")?,
        time: DateTime::from_timestamp_micros(micros)
            .ok_or_else(|| decode_error("time", &micros.to_string()))?,
        request: id("request_id")?,
        props: row.try_get("props")?,
    })
}
