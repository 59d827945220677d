//! A common interface for the drivers of SQLite and PostgreSQL: connections that run statements, and rows with typed
//! columns.
//!
//! A [`Statement`] is an SQL text with the values of its placeholders. Both databases accept `$1`, `$2` and so on, so
//! most statements have one text for both. Other statements depend on [`Session::DIALECT`].

use futures_util::TryStreamExt as _;
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::query::Query;
use sqlx::sqlite::SqliteRow;
use sqlx::{
    AssertSqlSafe, Connection, Database, PgConnection, Row as _, SqlSafeStr as _, SqlStr, SqliteConnection,
};
use uuid::Uuid;

/// The SQL dialect of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Encodes texts without commas and quotes as a single bound value. So the SQL text does not depend on the number
    /// of texts, and the databases' limits on bound values do not apply.
    pub(super) fn list<'a>(self, texts: impl IntoIterator<Item = &'a str>) -> String {
        let texts: Vec<_> = texts.into_iter().collect();
        match self {
            Self::Sqlite if texts.is_empty() => "[]".to_owned(),
            Self::Sqlite => format!(r#"["{}"]"#, texts.join(r#"",""#)),
            Self::Postgres => texts.join(","),
        }
    }

    /// Returns a query that decodes a list from [`list`](Self::list) into rows with the column `text`.
    pub(super) fn select_list(self, list: &str) -> String {
        match self {
            Self::Sqlite => format!("SELECT value AS text FROM json_each({list})"),
            Self::Postgres => format!("SELECT unnest(string_to_array({list}, ',')) AS text"),
        }
    }

    /// Returns the condition that a column equals one of the texts in a list from [`list`](Self::list).
    pub(super) fn is_one_of(self, column: &str, list: &str) -> String {
        match self {
            Self::Sqlite => format!("{column} IN ({})", self.select_list(list)),
            Self::Postgres => format!("{column} = ANY (string_to_array({list}, ','))"),
        }
    }
}

/// The type of a bound value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueType {
    Text,
    Integer,
}

impl ValueType {
    /// Returns the SQL name of the type, which is the same in both dialects.
    fn as_sql(self) -> &'static str {
        match self {
            Self::Text => "TEXT",
            Self::Integer => "BIGINT",
        }
    }
}

/// The value bound to a placeholder. `None` stands for NULL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Value {
    Text(Option<String>),
    Integer(Option<i64>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Uuid> for Value {
    fn from(id: Uuid) -> Self {
        Self::from(id.to_string())
    }
}

impl From<i64> for Value {
    fn from(integer: i64) -> Self {
        Self::Integer(Some(integer))
    }
}

/// Collects the bound values of a statement while its SQL text is composed.
#[derive(Clone, Debug, Default)]
pub(super) struct Values(Vec<Value>);

impl Values {
    /// Adds a value and returns its placeholder.
    pub(super) fn add(&mut self, value: impl Into<Value>) -> String {
        self.0.push(value.into());
        format!("${}", self.0.len())
    }

    /// Returns the statement with the collected values. `sql` must be composed only of constants of this program and
    /// placeholders.
    pub(super) fn into_statement(self, sql: String) -> Statement {
        Statement { sql: AssertSqlSafe(sql).into_sql_str(), values: self.0 }
    }
}

/// An SQL text and the values of its placeholders.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    sql: SqlStr,
    values: Vec<Value>,
}

impl Statement {
    /// Returns a statement with a constant SQL text.
    pub(super) fn new(sql: &'static str) -> Self {
        Self { sql: sql.into_sql_str(), values: Vec::new() }
    }

    /// Returns a statement with an SQL text composed of constants of this program. All other values must be bound.
    pub(super) fn composed(sql: String) -> Self {
        Self { sql: AssertSqlSafe(sql).into_sql_str(), values: Vec::new() }
    }

    /// Returns a statement that reads rows of values from a table named `list`. `sql` is the text after the definition
    /// of this table, composed of constants of this program.
    ///
    /// Several rows are bound as one JSON value, so that the SQL text does not depend on their number. The values of a
    /// single row are bound individually, because JSON would escape long documents.
    pub(super) fn over(
        dialect: Dialect,
        columns: &[(&'static str, ValueType)],
        mut rows: Vec<Vec<Value>>,
        sql: &str,
    ) -> Result<Self, sqlx::Error> {
        let select = |value: &dyn Fn(usize) -> String| {
            let columns = columns.iter().enumerate().map(|(index, (name, value_type))| {
                format!("CAST({} AS {}) AS {name}", value(index), value_type.as_sql())
            });
            columns.collect::<Vec<_>>().join(", ")
        };
        let (table, values) = match rows.as_mut_slice() {
            [only] => {
                let values = std::mem::take(only);
                let columns = select(&|index| format!("${}", index.saturating_add(1)));
                (format!("(SELECT {columns})"), values)
            }
            rows => {
                let rows = serde_json::to_string(rows).map_err(|error| sqlx::Error::Encode(error.into()))?;
                let columns = select(&|index| format!("value ->> {index}"));
                let source = match dialect {
                    Dialect::Sqlite => "json_each($1)",
                    Dialect::Postgres => "jsonb_array_elements(CAST($1 AS JSONB)) AS row (value)",
                };
                // Otherwise SQLite would parse the JSON again for each use of a column.
                (format!("MATERIALIZED (SELECT {columns} FROM {source})"), vec![Value::from(rows)])
            }
        };
        Ok(Values(values).into_statement(format!("WITH list AS {table} {sql}")))
    }

    /// Binds a text to the next placeholder.
    pub(super) fn bind(self, text: impl Into<String>) -> Self {
        self.bind_optional(Some(text.into()))
    }

    /// Binds a text or NULL to the next placeholder.
    pub(super) fn bind_optional(mut self, text: Option<String>) -> Self {
        self.values.push(Value::Text(text));
        self
    }

    /// Binds an id to the next placeholder.
    pub(super) fn bind_id(self, id: Uuid) -> Self {
        self.bind(id.to_string())
    }

    /// Binds an integer to the next placeholder.
    pub(super) fn bind_integer(mut self, integer: i64) -> Self {
        self.values.push(Value::Integer(Some(integer)));
        self
    }

    #[cfg(test)]
    pub(super) fn sql(&self) -> &str {
        self.sql.as_str()
    }
}

/// Typed access to the columns of a result row.
pub(super) trait Cells {
    /// Returns the text in a column that is never NULL.
    fn text(&self, column: &'static str) -> Result<&str, sqlx::Error>;

    /// Returns the text in a column, or `None` for NULL.
    fn optional_text(&self, column: &'static str) -> Result<Option<&str>, sqlx::Error>;

    /// Returns the integer in a column that is never NULL.
    fn integer(&self, column: &'static str) -> Result<i64, sqlx::Error>;

    /// Returns the integer in a column, or `None` for NULL.
    fn optional_integer(&self, column: &'static str) -> Result<Option<i64>, sqlx::Error>;
}

/// A connection through one of the two drivers.
pub(super) trait Session: Connection<Database: Database<Connection = Self>> {
    /// The dialect of the database.
    const DIALECT: Dialect;

    /// The statement that begins a transaction in which all queries see the same state of the database.
    const BEGIN_SNAPSHOT: &'static str = match Self::DIALECT {
        Dialect::Sqlite => "BEGIN",
        Dialect::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    };

    /// The driver's type for a result row.
    type Row: Cells;

    /// Runs a statement and returns the number of changed rows.
    fn execute(&mut self, statement: Statement) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    /// Runs a query and converts its rows one by one, because the driver's rows need more memory.
    fn fetch<T: Send>(
        &mut self,
        statement: Statement,
        convert: impl FnMut(&Self::Row) -> Result<T, sqlx::Error> + Send,
    ) -> impl Future<Output = Result<Vec<T>, sqlx::Error>> + Send;

    /// Runs a query and returns its first row, converted.
    fn fetch_first<T: Send>(
        &mut self,
        statement: Statement,
        convert: impl FnMut(&Self::Row) -> Result<T, sqlx::Error> + Send,
    ) -> impl Future<Output = Result<Option<T>, sqlx::Error>> + Send {
        async move { Ok(self.fetch(statement, convert).await?.into_iter().next()) }
    }

    /// Returns `true` if the query returns at least one row.
    fn has_row(&mut self, statement: Statement) -> impl Future<Output = Result<bool, sqlx::Error>> + Send {
        async move { Ok(!self.fetch(statement, |_| Ok(())).await?.is_empty()) }
    }
}

/// Implements [`Session`] and [`Cells`] for a driver. A macro, because generic code would have to repeat the driver's
/// trait bounds for every type that it binds or reads.
macro_rules! session {
    ($connection:ty, $row:ty, $dialect:expr, $bound:ident) => {
        /// Converts a statement to the driver's type.
        fn $bound(
            statement: Statement,
        ) -> Query<'static, <$connection as Connection>::Database, Arguments<$connection>> {
            statement.values.into_iter().fold(sqlx::query(statement.sql), |query, value| match value {
                Value::Text(text) => query.bind(text),
                Value::Integer(integer) => query.bind(integer),
            })
        }

        impl Session for $connection {
            const DIALECT: Dialect = $dialect;

            type Row = $row;

            async fn execute(&mut self, statement: Statement) -> Result<u64, sqlx::Error> {
                #[cfg(test)]
                count_statement();
                Ok($bound(statement).execute(self).await?.rows_affected())
            }

            async fn fetch<T: Send>(
                &mut self,
                statement: Statement,
                mut convert: impl FnMut(&Self::Row) -> Result<T, sqlx::Error> + Send,
            ) -> Result<Vec<T>, sqlx::Error> {
                #[cfg(test)]
                count_statement();
                let mut rows = $bound(statement).fetch(self);
                let mut converted = Vec::new();
                while let Some(row) = rows.try_next().await? {
                    converted.push(convert(&row)?);
                }
                Ok(converted)
            }
        }

        impl Cells for $row {
            fn text(&self, column: &'static str) -> Result<&str, sqlx::Error> {
                self.try_get(column)
            }

            fn optional_text(&self, column: &'static str) -> Result<Option<&str>, sqlx::Error> {
                self.try_get(column)
            }

            fn integer(&self, column: &'static str) -> Result<i64, sqlx::Error> {
                self.try_get(column)
            }

            fn optional_integer(&self, column: &'static str) -> Result<Option<i64>, sqlx::Error> {
                self.try_get(column)
            }
        }
    };
}

#[cfg(test)]
thread_local! {
    static STATEMENTS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
fn count_statement() {
    STATEMENTS.set(STATEMENTS.get() + 1);
}

/// Returns the number of statements that this thread has run.
#[cfg(test)]
pub(super) fn statement_count() -> usize {
    STATEMENTS.get()
}

type Arguments<C> = <<C as Connection>::Database as Database>::Arguments;

session!(SqliteConnection, SqliteRow, Dialect::Sqlite, bound_for_sqlite);
session!(PgConnection, PgRow, Dialect::Postgres, bound_for_postgres);
