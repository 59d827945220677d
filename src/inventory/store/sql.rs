//! Records and events in SQLite or PostgreSQL: the same tables, and the same statements where the dialects agree.

use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::any::{AnyPoolOptions, AnyRow};
use sqlx::{Any, AnyConnection, AnyPool, AssertSqlSafe, Executor, Row as _, Transaction};
use uuid::Uuid;

use super::{Changes, Filter, Key, Kind, Outcome, Row, Step, Store, StoreError};
use crate::inventory::event::{Category, Event, EventPage, EventQuery, Severity};
use crate::inventory::id::{ClusterId, HostId, InfraEnvId};

/// A database that sqlx reaches.
#[derive(Debug)]
pub struct SqlStore {
    pool: AnyPool,
    dialect: Dialect,
}

/// Where the two differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Sqlite,
    Postgres,
}

fn failed(doing: &'static str) -> impl FnOnce(sqlx::Error) -> StoreError {
    move |source| StoreError::Statement { doing, source }
}

impl SqlStore {
    /// Opens a database file, and makes it if there is none.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened or is no database.
    pub async fn open_file(path: &Path) -> Result<Self, StoreError> {
        Self::open(&format!("sqlite://{}?mode=rwc", path.display())).await
    }

    /// Opens a database by URL, and makes its tables if there are none.
    ///
    /// # Errors
    ///
    /// When the URL is none of `sqlite:` and `postgres:`, or there is no such database.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        static DRIVERS: Once = Once::new();
        DRIVERS.call_once(sqlx::any::install_default_drivers);
        let dialect = if url.starts_with("sqlite:") { Dialect::Sqlite } else { Dialect::Postgres };
        let pool = AnyPoolOptions::new()
            .max_connections(8)
            .acquire_timeout(Duration::from_secs(10))
            .after_connect(move |connection, _| Box::pin(prepare(connection, dialect)))
            .connect(url)
            .await
            .map_err(|source| StoreError::Open { database: without_password(url), source })?;
        sqlx::migrate!("src/inventory/store/migrations").run(&pool).await?;
        Ok(Self { pool, dialect })
    }
}

async fn prepare(connection: &mut AnyConnection, dialect: Dialect) -> Result<(), sqlx::Error> {
    if dialect == Dialect::Sqlite {
        // Readers go on while one writes, and what is committed is on the disk.
        connection
            .execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 10000")
            .await?;
    }
    Ok(())
}

/// The URL as it may stand in a message.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "at this URL".to_owned() };
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let place = place.split_once('?').map_or(place, |(place, _)| place);
    format!("{scheme}://{place}")
}

fn text(id: Option<Uuid>) -> String {
    id.map(|id| id.to_string()).unwrap_or_default()
}

#[async_trait]
impl Store for SqlStore {
    async fn get(&self, key: Key) -> Result<Option<Row>, StoreError> {
        const DOING: &str = "a record is read";
        let row = sqlx::query(
            "SELECT parent, id, cluster_id, deleted, generation, document FROM records \
             WHERE kind = $1 AND parent = $2 AND id = $3",
        )
        .bind(key.kind.as_str())
        .bind(text(key.parent))
        .bind(key.id.to_string())
        .fetch_optional(&self.pool)
        .await
        .map_err(failed(DOING))?;
        row.map(|row| record(key.kind, &row)).transpose().map_err(failed(DOING))
    }

    async fn list(&self, filter: Filter) -> Result<Vec<Row>, StoreError> {
        const DOING: &str = "records are listed";
        let rows = select(filter).fetch_all(&self.pool).await.map_err(failed(DOING))?;
        rows.iter().map(|row| record(filter.kind, row)).collect::<Result<_, _>>().map_err(failed(DOING))
    }

    async fn is_there(&self, key: Key) -> Result<bool, StoreError> {
        let found = find(key).fetch_optional(&self.pool).await;
        found.map(|row| row.is_some()).map_err(failed("a record is looked for"))
    }

    async fn has_any(&self, filter: Filter) -> Result<bool, StoreError> {
        let found = find_any(filter).fetch_optional(&self.pool).await;
        found.map(|row| row.is_some()).map_err(failed("records are looked for"))
    }

    async fn commit(&self, changes: Changes) -> Result<Outcome, StoreError> {
        const DOING: &str = "a change is written";
        let mut transaction = self.begin().await.map_err(failed(DOING))?;
        if self.apply(&mut transaction, &changes).await.map_err(failed(DOING))? == Outcome::Overtaken {
            transaction.rollback().await.map_err(failed(DOING))?;
            return Ok(Outcome::Overtaken);
        }
        transaction.commit().await.map_err(failed(DOING))?;
        Ok(Outcome::Done)
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage, StoreError> {
        self.find_events(query).await.map_err(failed("events are read"))
    }

    async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1").execute(&self.pool).await.map_err(failed("the database is asked"))?;
        Ok(())
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}

type AnyQuery = sqlx::query::Query<'static, Any, sqlx::any::AnyArguments>;

/// The records of a filter: the part of the WHERE clause that all statements share.
macro_rules! filtered {
    ($start:literal, $end:literal) => {
        concat!(
            $start,
            " WHERE kind = $1 AND ($2 = '' OR parent = $2) AND ($3 = '' OR cluster_id = $3)",
            " AND (deleted = 0 OR $4 = 1)",
            $end
        )
    };
}

fn bound(query: AnyQuery, filter: Filter) -> AnyQuery {
    query
        .bind(filter.kind.as_str())
        .bind(text(filter.parent))
        .bind(text(filter.cluster))
        .bind(i64::from(filter.deleted))
}

fn select(filter: Filter) -> AnyQuery {
    const SQL: &str = filtered!(
        "SELECT parent, id, cluster_id, deleted, generation, document FROM records",
        " ORDER BY made_at, id"
    );
    bound(sqlx::query(SQL), filter)
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

impl SqlStore {
    async fn begin(&self) -> Result<Transaction<'static, Any>, sqlx::Error> {
        match self.dialect {
            // Who reads first and writes then may find that another wrote in between, and fails.
            Dialect::Sqlite => self.pool.begin_with("BEGIN IMMEDIATE").await,
            Dialect::Postgres => self.pool.begin().await,
        }
    }

    async fn apply(&self, connection: &mut AnyConnection, changes: &Changes) -> Result<Outcome, sqlx::Error> {
        for step in &changes.steps {
            if !self.step(&mut *connection, step).await? {
                return Ok(Outcome::Overtaken);
            }
        }
        for event in &changes.events {
            insert_event(event).execute(&mut *connection).await?;
        }
        Ok(Outcome::Done)
    }

    /// Does one step. False if what it takes for granted is not so.
    async fn step(&self, connection: &mut AnyConnection, step: &Step) -> Result<bool, sqlx::Error> {
        let changed = match step {
            Step::Insert(row) => insert(row).execute(connection).await?.rows_affected(),
            Step::Replace(row) => replace(row).execute(connection).await?.rows_affected(),
            Step::Remove(key, generation) => {
                remove(*key, *generation).execute(connection).await?.rows_affected()
            }
            Step::Require(key) => return self.keep(connection, *key).await,
            Step::RequireNone(filter) => {
                return Ok(find_any(*filter).fetch_optional(connection).await?.is_none());
            }
        };
        Ok(changed == 1)
    }

    /// Whether a record is there, and stays so until the change is done.
    async fn keep(&self, connection: &mut AnyConnection, key: Key) -> Result<bool, sqlx::Error> {
        let query = if self.dialect == Dialect::Postgres { find_locked(key) } else { find(key) };
        Ok(query.fetch_optional(connection).await?.is_some())
    }
}

/// One record that is not deleted, by its name.
macro_rules! finding {
    ($end:literal) => {
        concat!("SELECT id FROM records WHERE kind = $1 AND parent = $2 AND id = $3 AND deleted = 0", $end)
    };
}

fn find(key: Key) -> AnyQuery {
    named(sqlx::query(finding!("")), key)
}

fn find_locked(key: Key) -> AnyQuery {
    named(sqlx::query(finding!(" FOR SHARE")), key)
}

fn named(query: AnyQuery, key: Key) -> AnyQuery {
    query.bind(key.kind.as_str()).bind(text(key.parent)).bind(key.id.to_string())
}

fn find_any(filter: Filter) -> AnyQuery {
    const SQL: &str = filtered!("SELECT id FROM records", " LIMIT 1");
    bound(sqlx::query(SQL), filter)
}

fn insert(row: &Row) -> AnyQuery {
    sqlx::query(
        "INSERT INTO records (kind, parent, id, cluster_id, deleted, generation, made_at, document) \
         VALUES ($1, $2, $3, $4, $5, 1, $6, $7) ON CONFLICT DO NOTHING",
    )
    .bind(row.key.kind.as_str())
    .bind(text(row.key.parent))
    .bind(row.key.id.to_string())
    .bind(row.cluster.map(|id| id.to_string()))
    .bind(i64::from(row.deleted))
    .bind(Utc::now().timestamp_micros())
    .bind(row.document.clone())
}

fn replace(row: &Row) -> AnyQuery {
    sqlx::query(
        "UPDATE records SET cluster_id = $1, deleted = $2, generation = $3, document = $4 \
         WHERE kind = $5 AND parent = $6 AND id = $7 AND generation = $3 - 1",
    )
    .bind(row.cluster.map(|id| id.to_string()))
    .bind(i64::from(row.deleted))
    .bind(row.generation)
    .bind(row.document.clone())
    .bind(row.key.kind.as_str())
    .bind(text(row.key.parent))
    .bind(row.key.id.to_string())
}

fn remove(key: Key, generation: i64) -> AnyQuery {
    sqlx::query("DELETE FROM records WHERE kind = $1 AND parent = $2 AND id = $3 AND generation = $4")
        .bind(key.kind.as_str())
        .bind(text(key.parent))
        .bind(key.id.to_string())
        .bind(generation)
}

fn insert_event(event: &Event) -> AnyQuery {
    sqlx::query(
        "INSERT INTO events (id, event_time, name, severity, category, cluster_id, host_id, infra_env_id, \
         request_id, message, props) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind(Uuid::new_v4().to_string())
    .bind(event.time.timestamp_micros())
    .bind(event.name.clone())
    .bind(event.severity.as_str())
    .bind(event.category.as_str())
    .bind(event.cluster.map(|id| id.to_string()))
    .bind(event.host.map(|id| id.to_string()))
    .bind(event.infra_env.map(|id| id.to_string()))
    .bind(event.request.map(|id| id.to_string()))
    .bind(event.message.clone())
    .bind(event.props.clone())
}

/// The conditions of a query on events, with the values that they are bound to.
#[derive(Debug, Default)]
struct Conditions {
    sql: String,
    values: Vec<String>,
}

impl Conditions {
    fn and(&mut self, condition: &str) {
        self.sql.push_str(if self.sql.is_empty() { " WHERE " } else { " AND " });
        self.sql.push_str(condition);
    }

    /// The name of a further value.
    fn value(&mut self, value: impl Into<String>) -> String {
        self.values.push(value.into());
        format!("${}", self.values.len())
    }

    fn one_of(&mut self, column: &str, values: impl IntoIterator<Item = String>) -> Option<String> {
        let names: Vec<_> = values.into_iter().map(|value| self.value(value)).collect();
        (!names.is_empty()).then(|| format!("{column} IN ({})", names.join(", ")))
    }

    fn of(query: &EventQuery) -> Self {
        let mut all = Self::default();
        if let Some(cluster) = query.cluster {
            let name = all.value(cluster.to_string());
            all.and(&format!("cluster_id = {name}"));
        }
        if let Some(infra_env) = query.infra_env {
            let name = all.value(infra_env.to_string());
            all.and(&format!("infra_env_id = {name}"));
        }
        let hosts = all.one_of("host_id", query.hosts.iter().map(HostId::to_string));
        match (hosts, query.cluster_level) {
            (Some(hosts), true) => all.and(&format!("({hosts} OR host_id IS NULL)")),
            (Some(hosts), false) => all.and(&hosts),
            (None, true) => all.and("host_id IS NULL"),
            (None, false) => {}
        }
        if let Some(one) = all.one_of("category", query.categories.iter().map(|one| one.as_str().to_owned()))
        {
            all.and(&one);
        }
        if let Some(text) = &query.message {
            let pattern = text.to_lowercase().replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
            let name = all.value(format!("%{pattern}%"));
            all.and(&format!(r"LOWER(message) LIKE {name} ESCAPE '\'"));
        }
        all
    }

    /// A statement from parts that are ours; values of others are bound, never written.
    fn query(&self, start: &str, end: &str) -> AnyQuery {
        let query = sqlx::query(AssertSqlSafe(format!("{start}{}{end}", self.sql)));
        self.values.iter().fold(query, |query, value| query.bind(value.clone()))
    }
}

impl SqlStore {
    async fn find_events(&self, query: &EventQuery) -> Result<EventPage, sqlx::Error> {
        let mut conditions = Conditions::of(query);
        let counted =
            conditions.query("SELECT severity, COUNT(*) AS found FROM events", " GROUP BY severity");
        let mut page = EventPage::default();
        for row in counted.fetch_all(&self.pool).await? {
            let severity = severity(&row)?;
            let found = u64::try_from(row.try_get::<i64, _>("found")?).unwrap_or(0);
            if let Some(count) = page.by_severity.get_mut(severity as usize) {
                *count = found;
            }
            if query.severities.is_empty() || query.severities.contains(&severity) {
                page.count += found;
            }
        }
        let severities = query.severities.iter().map(|one| one.as_str().to_owned());
        if let Some(one) = conditions.one_of("severity", severities) {
            conditions.and(&one);
        }
        let order = if query.descending { "DESC" } else { "ASC" };
        let most = i64::try_from(query.limit.unwrap_or(u64::MAX)).unwrap_or(i64::MAX);
        let skipped = i64::try_from(query.offset).unwrap_or(i64::MAX);
        let end = format!(" ORDER BY event_time {order}, id LIMIT {most} OFFSET {skipped}");
        let rows = conditions.query("SELECT * FROM events", &end).fetch_all(&self.pool).await?;
        page.events = rows.iter().map(event).collect::<Result<_, _>>()?;
        Ok(page)
    }
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
