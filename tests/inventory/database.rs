//! Databases on a PostgreSQL server.

use std::env;

use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor};

/// The PostgreSQL server for tests.
pub(crate) fn postgres() -> Option<String> {
    let server = env::var("KINDLING_TEST_POSTGRES").ok();
    if server.is_none() {
        assert!(env::var_os("KINDLING_REQUIRE_TOOLS").is_none(), "KINDLING_TEST_POSTGRES names no server");
        eprintln!("NOTICE: no PostgreSQL server in KINDLING_TEST_POSTGRES; not tested with it");
    }
    server
}

/// A database of its own on the server.
pub(crate) struct Database {
    server: String,
    name: String,
    pub(crate) url: String,
}

impl Database {
    pub(crate) async fn create(server: &str) -> Self {
        sqlx::any::install_default_drivers();
        let name = format!("kindling_{}", uuid::Uuid::new_v4().simple());
        let mut connection = AnyConnection::connect(&format!("{server}/postgres")).await.unwrap();
        connection.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
        connection.close().await.unwrap();
        Self { server: server.to_owned(), url: format!("{server}/{name}"), name }
    }

    pub(crate) async fn drop(self) {
        let mut connection = AnyConnection::connect(&format!("{}/postgres", self.server)).await.unwrap();
        connection.execute(AssertSqlSafe(format!("DROP DATABASE {} WITH (FORCE)", self.name))).await.unwrap();
        connection.close().await.unwrap();
    }
}
