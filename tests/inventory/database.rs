//! Creates databases for tests on a PostgreSQL server.

use std::env;

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use crate::skip::report_missing;

/// Returns the URL of the PostgreSQL server for tests.
pub(crate) fn postgres_url() -> Option<String> {
    let server = env::var("KINDLING_TEST_POSTGRES").ok();
    if server.is_none() {
        report_missing("KINDLING_TEST_POSTGRES is not set");
    }
    server
}

/// A new database on the server.
pub(crate) struct TestDatabase {
    server: String,
    name: String,
    pub(crate) url: String,
}

impl TestDatabase {
    pub(crate) async fn create(server: &str) -> Self {
        let name = format!("kindling_{}", uuid::Uuid::new_v4().simple());
        let mut connection = PgConnection::connect(&format!("{server}/postgres")).await.unwrap();
        connection.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
        connection.close().await.unwrap();
        Self { server: server.to_owned(), url: format!("{server}/{name}"), name }
    }

    pub(crate) async fn drop(self) {
        let mut connection = PgConnection::connect(&format!("{}/postgres", self.server)).await.unwrap();
        connection.execute(AssertSqlSafe(format!("DROP DATABASE {} WITH (FORCE)", self.name))).await.unwrap();
        connection.close().await.unwrap();
    }
}
