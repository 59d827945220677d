//! The two drivers behind one interface: connections that run statements, and rows with typed columns.
//!
//! A [`Statement`] is data: its SQL text and the values of its placeholders. Both databases take `$1`, `$2` and so on,
//! so most statements exist once. Where the dialects differ, the statement depends on [`Session::DIALECT`].

use futures_util::TryStreamExt as _;
use sqlx::postgres::PgRow;
use sqlx::query::Query;
use sqlx::sqlite::SqliteRow;
use sqlx::{
    AssertSqlSafe, Connection, Database, PgConnection, Row as _, SqlSafeStr as _, SqlStr, SqliteConnection,
};
use uuid::Uuid;

/// A SQL dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Encodes texts without commas and quotes as one value. So the statement does not depend on their number, and no
    /// limit on bound values applies.
    pub(super) fn list<'a>(self, texts: impl IntoIterator<Item = &'a str>) -> String {
        let texts: Vec<_> = texts.into_iter().collect();
        match self {
            Self::Sqlite if texts.is_empty() => "[]".to_owned(),
            Self::Sqlite => format!(r#"["{}"]"#, texts.join(r#"",""#)),
            Self::Postgres => texts.join(","),
        }
    }

    /// Returns the query for the texts of an encoded list, in a column `text`.
    pub(super) fn select_list(self, list: &str) -> String {
        match self {
            Self::Sqlite => format!("SELECT value AS text FROM json_each({list})"),
            Self::Postgres => format!("SELECT unnest(string_to_array({list}, ',')) AS text"),
        }
    }

    /// Returns the condition that a column has one of the texts of an encoded list.
    pub(super) fn is_one_of(self, column: &str, list: &str) -> String {
        match self {
            Self::Sqlite => format!("{column} IN ({})", self.select_list(list)),
            Self::Postgres => format!("{column} = ANY (string_to_array({list}, ','))"),
        }
    }
}

/// The value of a placeholder.
#[derive(Clone, Debug)]
enum Value {
    Text(Option<String>),
    Integer(Option<i64>),
}

/// A statement and the values of its placeholders.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    sql: SqlStr,
    values: Vec<Value>,
}

impl Statement {
    /// Returns a statement whose text is a constant of this program.
    pub(super) fn new(sql: &'static str) -> Self {
        Self { sql: sql.into_sql_str(), values: Vec::new() }
    }

    /// Returns a statement whose text is composed of constants of this program. All other values must be bound.
    pub(super) fn composed(sql: String) -> Self {
        Self { sql: AssertSqlSafe(sql).into_sql_str(), values: Vec::new() }
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

    /// Binds an integer or NULL to the next placeholder.
    pub(super) fn bind_optional_integer(mut self, integer: Option<i64>) -> Self {
        self.values.push(Value::Integer(integer));
        self
    }

    /// Returns the text of the statement.
    #[cfg(test)]
    pub(super) fn sql(&self) -> &str {
        self.sql.as_str()
    }
}

/// The columns of a row.
pub(super) trait Cells {
    /// Returns a text.
    fn text(&self, column: &'static str) -> Result<&str, sqlx::Error>;

    /// Returns a text or NULL.
    fn optional_text(&self, column: &'static str) -> Result<Option<&str>, sqlx::Error>;

    /// Returns an integer.
    fn integer(&self, column: &'static str) -> Result<i64, sqlx::Error>;

    /// Returns an integer or NULL.
    fn optional_integer(&self, column: &'static str) -> Result<Option<i64>, sqlx::Error>;
}

/// A connection of one of the drivers.
pub(super) trait Session: Connection<Database: Database<Connection = Self>> {
    /// The dialect that the database speaks.
    const DIALECT: Dialect;

    /// Begins a transaction whose queries all see the same state of the database.
    const BEGIN_SNAPSHOT: &'static str = match Self::DIALECT {
        Dialect::Sqlite => "BEGIN",
        Dialect::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    };

    /// A row of a result.
    type Row: Cells;

    /// Runs a statement. Returns the number of rows that it changed.
    fn execute(&mut self, statement: Statement) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    /// Runs a query and converts its rows one by one: the driver's form of a row takes more memory.
    fn fetch<T: Send>(
        &mut self,
        statement: Statement,
        convert: impl Fn(&Self::Row) -> Result<T, sqlx::Error> + Send,
    ) -> impl Future<Output = Result<Vec<T>, sqlx::Error>> + Send;

    /// Returns the first row of a query, converted.
    fn fetch_first<T: Send>(
        &mut self,
        statement: Statement,
        convert: impl Fn(&Self::Row) -> Result<T, sqlx::Error> + Send,
    ) -> impl Future<Output = Result<Option<T>, sqlx::Error>> + Send {
        async move { Ok(self.fetch(statement, convert).await?.into_iter().next()) }
    }

    /// Returns `true` if a query has a row.
    fn has_row(&mut self, statement: Statement) -> impl Future<Output = Result<bool, sqlx::Error>> + Send {
        async move { Ok(!self.fetch(statement, |_| Ok(())).await?.is_empty()) }
    }
}

/// Implements [`Session`] and [`Cells`] for a driver. Its traits have bounds on every bound and read type, which
/// generic code would have to repeat.
macro_rules! session {
    ($connection:ty, $row:ty, $dialect:expr, $bound:ident) => {
        /// Returns the driver's form of a statement.
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
                Ok($bound(statement).execute(self).await?.rows_affected())
            }

            async fn fetch<T: Send>(
                &mut self,
                statement: Statement,
                convert: impl Fn(&Self::Row) -> Result<T, sqlx::Error> + Send,
            ) -> Result<Vec<T>, sqlx::Error> {
                let mut rows = $bound(statement).fetch(self);
                let mut found = Vec::new();
                while let Some(row) = rows.try_next().await? {
                    found.push(convert(&row)?);
                }
                Ok(found)
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

type Arguments<C> = <<C as Connection>::Database as Database>::Arguments;

session!(SqliteConnection, SqliteRow, Dialect::Sqlite, bound_for_sqlite);
session!(PgConnection, PgRow, Dialect::Postgres, bound_for_postgres);
