//! Statements that list, insert and delete events.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::event::{Category, Event, EventPosition, EventQuery, Severity};
use crate::id::{ClusterId, HostId, InfraEnvId};
use crate::store::session::{Cells, Dialect, Statement, Value, ValueType};
use crate::store::values::decode_error;

/// Maximum number of events in a page.
const PAGE_EVENTS: u64 = 50;
/// Maximum total length of the texts in a page, in bytes. A page with a single event may exceed it.
const PAGE_BYTES: u32 = 64 << 10;

/// The columns of an [`Event`] and its [`EventPosition`].
const COLUMNS: &str = "id, event_time, name, severity, category, cluster_id, host_id, infra_env_id, request_id, \
                       message, props";

/// Replaces NUL, which PostgreSQL does not allow in text. Messages may quote client input that contains NUL.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Returns the lower-case form of a message that case-insensitive searches use.
fn searchable_text(text: &str) -> String {
    without_nul(text).to_lowercase()
}

/// Returns a statement that inserts events, each with its unique `asked_at` number. The id of an event starts with this
/// number, so events with the same time keep their order.
pub(super) fn insert(dialect: Dialect, events: &[(i64, Event)]) -> Result<Statement, sqlx::Error> {
    const INSERTED_COLUMNS: [(&str, ValueType); 12] = [
        ("id", ValueType::Text),
        ("event_time", ValueType::Integer),
        ("name", ValueType::Text),
        ("severity", ValueType::Text),
        ("category", ValueType::Text),
        ("cluster_id", ValueType::Text),
        ("host_id", ValueType::Text),
        ("infra_env_id", ValueType::Text),
        ("request_id", ValueType::Text),
        ("message", ValueType::Text),
        ("searched", ValueType::Text),
        ("props", ValueType::Text),
    ];
    let values = |(asked_at, event): &(i64, Event)| {
        let (_, random) = Uuid::new_v4().as_u64_pair();
        let id = Uuid::from_u64_pair(asked_at.cast_unsigned(), random);
        let optional = |id: Option<Uuid>| Value::Text(id.map(|id| id.to_string()));
        vec![
            Value::from(id),
            Value::from(event.time.timestamp_micros()),
            Value::from(without_nul(&event.name)),
            Value::from(event.severity.as_str()),
            Value::from(event.category.as_str()),
            optional(event.cluster.map(|id| id.0)),
            optional(event.host.map(|id| id.0)),
            optional(event.infra_env.map(|id| id.0)),
            optional(event.request),
            Value::from(without_nul(&event.message)),
            Value::from(searchable_text(&event.message)),
            Value::Text(event.props.as_deref().map(without_nul)),
        ]
    };
    let names = INSERTED_COLUMNS.map(|(name, _)| name).join(", ");
    let sql = format!("INSERT INTO events ({names}) SELECT {names} FROM list");
    Statement::over(dialect, &INSERTED_COLUMNS, events.iter().map(values).collect(), &sql)
}

/// The conditions of an event query, with their bound values.
#[derive(Debug)]
pub(in crate::store) struct EventConditions {
    dialect: Dialect,
    sql: String,
    values: Vec<String>,
}

impl EventConditions {
    /// Returns all conditions of a query except the severities.
    pub(in crate::store) fn from_query(query: &EventQuery, dialect: Dialect) -> Self {
        let mut all = Self { dialect, sql: String::new(), values: Vec::new() };
        if let Some(cluster) = query.cluster {
            let name = all.value(cluster.to_string());
            all.add_condition(&format!("cluster_id = {name}"));
        }
        if let Some(infra_env) = query.infra_env {
            let name = all.value(infra_env.to_string());
            all.add_condition(&format!("infra_env_id = {name}"));
        }
        let hosts = (!query.hosts.is_empty()).then(|| all.one_of("host_id", &query.hosts));
        match (hosts, query.cluster_level) {
            (Some(hosts), true) => all.add_condition(&format!("({hosts} OR host_id IS NULL)")),
            (Some(hosts), false) => all.add_condition(&hosts),
            (None, true) => all.add_condition("host_id IS NULL"),
            (None, false) => {}
        }
        if query.live_hosts {
            all.add_condition("host_id IN (SELECT id FROM records WHERE kind = 'host' AND deleted = 0)");
        }
        if !query.categories.is_empty() {
            all.add_constants_condition("category", query.categories.iter().map(|one| one.as_str()));
        }
        if let Some(text) = &query.message {
            let name = all.value(searchable_text(text));
            // Not `LIKE`: the text would need escapes, and SQLite limits the length of a pattern.
            let position = if dialect == Dialect::Sqlite { "INSTR" } else { "STRPOS" };
            all.add_condition(&format!("{position}(searched, {name}) > 0"));
        }
        all
    }

    fn add_condition(&mut self, condition: &str) {
        self.sql.push_str(if self.sql.is_empty() { " WHERE " } else { " AND " });
        self.sql.push_str(condition);
    }

    /// Adds a value and returns its placeholder.
    fn value(&mut self, value: String) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    fn one_of(&mut self, column: &str, ids: &[HostId]) -> String {
        let ids: Vec<_> = ids.iter().map(HostId::to_string).collect();
        let name = self.value(self.dialect.list(ids.iter().map(String::as_str)));
        self.dialect.is_one_of(column, &name)
    }

    /// Adds a condition on a column that must equal one of `words`. The words are constants of this program, so they
    /// need not be bound.
    fn add_constants_condition(&mut self, column: &str, words: impl Iterator<Item = &'static str>) {
        let words: Vec<_> = words.map(|word| format!("'{word}'")).collect();
        self.add_condition(&format!("{column} IN ({})", words.join(", ")));
    }

    /// Returns a statement from the texts before and after the conditions. The SQL text contains only constants of this
    /// program, and all other values are bound.
    fn query(&self, start: &str, end: &str) -> Statement {
        let query = Statement::composed(format!("{start}{}{end}", self.sql));
        self.values.iter().fold(query, |query, value| query.bind(value.clone()))
    }

    /// Returns a statement that counts the events of each severity.
    pub(in crate::store) fn count(&self) -> Statement {
        self.query("SELECT severity, COUNT(*) AS found FROM events", " GROUP BY severity")
    }

    /// Returns a statement for the events after the offset of a query. If the query has a limit, the result is one
    /// page.
    ///
    /// The statement first sums the text lengths of the events in index order, so it reads no text that does not fit
    /// into the page.
    pub(in crate::store) fn page(mut self, query: &EventQuery) -> Statement {
        if !query.severities.is_empty() {
            self.add_constants_condition("severity", query.severities.iter().map(|one| one.as_str()));
        }
        let (order, beyond) = if query.descending { ("DESC", "<") } else { ("ASC", ">") };
        if let Some(after) = query.after {
            // Bound as text, like all other values.
            let micros = self.value(after.micros.to_string());
            let id = self.value(after.id.to_string());
            self.add_condition(&format!("(event_time, id) {beyond} (CAST({micros} AS BIGINT), {id})"));
        }
        // If the offset saturates, it is still beyond the end of every list.
        let skipped = i64::try_from(query.offset).unwrap_or(i64::MAX);
        let offset = self.values.len().saturating_add(1);
        let in_order = format!("ORDER BY event_time {order}, id {order}");
        let Some(limit) = query.limit else {
            let end = format!(" {in_order} LIMIT {} OFFSET ${offset}", i64::MAX);
            return self.query(&format!("SELECT {COLUMNS} FROM events"), &end).bind_integer(skipped);
        };
        let most = offset.saturating_add(1);
        let start = "WITH candidates AS (SELECT event_time AS at, id AS event, \
                     octet_length(name) + octet_length(message) + COALESCE(octet_length(props), 0) AS len FROM events";
        // With a cross join, SQLite looks up the events of the page. Otherwise it would look up the page position of
        // every event.
        let end = format!(
            " {in_order} LIMIT ${most} OFFSET ${offset}), \
             sums AS (SELECT event, ROW_NUMBER() OVER ordered AS number, SUM(len) OVER ordered AS total \
             FROM candidates WINDOW ordered AS (ORDER BY at {order}, event {order})) \
             SELECT {COLUMNS} FROM sums CROSS JOIN events \
             WHERE events.id = sums.event AND (number = 1 OR total <= {PAGE_BYTES}) {in_order}"
        );
        let limit = i64::try_from(limit.min(PAGE_EVENTS)).unwrap_or(i64::MAX);
        self.query(start, &end).bind_integer(skipped).bind_integer(limit)
    }
}

/// Returns a statement for events before a time that refer to no existing record, in order, starting after a position.
///
/// A host is removed before its infra-env, so the host of an event with an infra-env need not be looked up. The columns
/// need the prefix `events.`, because records also have a `cluster_id`.
pub(in crate::store) fn select_forgettable(
    after: EventPosition,
    before: DateTime<Utc>,
    most: usize,
) -> Statement {
    let query = Statement::new(
        "SELECT id, event_time FROM events WHERE event_time < $1 AND (event_time, id) > ($2, $3) \
         AND NOT EXISTS (SELECT 1 FROM records \
                         WHERE kind = 'cluster' AND parent = '' AND records.id = events.cluster_id) \
         AND NOT EXISTS (SELECT 1 FROM records \
                         WHERE kind = 'infra-env' AND parent = '' AND records.id = events.infra_env_id) \
         AND (events.infra_env_id IS NOT NULL OR events.host_id IS NULL \
              OR NOT EXISTS (SELECT 1 FROM records WHERE kind = 'host' AND records.id = events.host_id)) \
         ORDER BY event_time, id LIMIT $4",
    );
    // If the limit saturates, it still exceeds every number of events.
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let query = query.bind_integer(before.timestamp_micros()).bind_integer(after.micros);
    query.bind_id(after.id).bind_integer(most)
}

pub(super) fn forget(dialect: Dialect, events: &[EventPosition]) -> Statement {
    let ids: Vec<_> = events.iter().map(|event| event.id.to_string()).collect();
    let sql = format!("DELETE FROM events WHERE {}", dialect.is_one_of("id", "$1"));
    Statement::composed(sql).bind(dialect.list(ids.iter().map(String::as_str)))
}

#[cfg(test)]
pub(super) fn page(query: &EventQuery, dialect: Dialect) -> Statement {
    EventConditions::from_query(query, dialect).page(query)
}

pub(in crate::store) fn position(row: &dyn Cells) -> Result<EventPosition, sqlx::Error> {
    let id = row.text("id")?;
    let id = id.parse().map_err(|_| decode_error("id", id))?;
    Ok(EventPosition { micros: row.integer("event_time")?, id })
}

pub(in crate::store) fn severity(row: &dyn Cells) -> Result<Severity, sqlx::Error> {
    let text = row.text("severity")?;
    let severity = Severity::ALL.iter().find(|one| one.as_str() == text);
    severity.copied().ok_or_else(|| decode_error("severity", text))
}

fn category(row: &dyn Cells) -> Result<Category, sqlx::Error> {
    let text = row.text("category")?;
    let category = Category::ALL.iter().find(|one| one.as_str() == text);
    category.copied().ok_or_else(|| decode_error("category", text))
}

pub(in crate::store) fn event(row: &dyn Cells) -> Result<Event, sqlx::Error> {
    let id = |column| -> Result<Option<Uuid>, sqlx::Error> {
        let text = row.optional_text(column)?;
        text.map(|text| text.parse().map_err(|_| decode_error("id", text))).transpose()
    };
    let micros = row.integer("event_time")?;
    Ok(Event {
        name: row.text("name")?.to_owned(),
        severity: severity(row)?,
        category: category(row)?,
        cluster: id("cluster_id")?.map(ClusterId),
        host: id("host_id")?.map(HostId),
        infra_env: id("infra_env_id")?.map(InfraEnvId),
        message: row.text("message")?.to_owned(),
        time: DateTime::from_timestamp_micros(micros).ok_or_else(|| decode_error("time", micros))?,
        request: id("request_id")?,
        props: row.optional_text("props")?.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection as _, Executor as _, SqliteConnection};
    use tempfile::TempDir;

    use crate::event::{Event, EventQuery, Severity};
    use crate::store::{Changes, Outcome, SqlStore, Store, StoreError};

    #[tokio::test]
    async fn unknown_value_of_a_column_is_an_error() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("kindling.db");
        let store: &dyn Store = &SqlStore::open_file(&path).await.unwrap();
        let changes = Changes {
            steps: Vec::new(),
            events: vec![Event::new("a", Severity::Info, "b", chrono::Utc::now())],
        };
        assert_eq!(store.commit(changes).await.unwrap(), Outcome::Done);
        let mut raw = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.unwrap();
        assert_eq!(store.events(&EventQuery::default()).await.unwrap().count, 1);
        for (damage, repair) in [
            ("category = 'robots'", "category = 'user'"),
            ("severity = 'loud'", "severity = 'info'"),
            ("cluster_id = 'x'", "cluster_id = NULL"),
            ("event_time = 9223372036854775807", "event_time = 0"),
            ("event_time = -9223372036854775808", "event_time = 0"),
        ] {
            raw.execute(sqlx::AssertSqlSafe(format!("UPDATE events SET {damage}"))).await.unwrap();
            let error = store.events(&EventQuery::default()).await.unwrap_err();
            assert!(matches!(error, StoreError::Statement { .. }), "{damage}: {error}");
            raw.execute(sqlx::AssertSqlSafe(format!("UPDATE events SET {repair}"))).await.unwrap();
        }
        assert_eq!(store.events(&EventQuery::default()).await.unwrap().count, 1);
        raw.close().await.unwrap();
        store.close().await;
    }
}
