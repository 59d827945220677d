//! The opening of a database, and its errors.

use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use kindling::inventory::store::{Bound, Changes, Columns, Kind, Outcome, SqlStore, Step, Store, StoreError};
use tempfile::TempDir;
use uuid::Uuid;

use super::{
    block_on, deleted_row, new_cluster_key, new_host_key, new_infra_env_key, new_row, on_each_store,
    on_postgres, on_sqlite, row_with, run_sql,
};

/// Returns the text of an error and its causes.
fn error_chain(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

#[test]
fn records_persist_after_reopening() {
    on_each_store(async |fixture| {
        let key = new_cluster_key();
        fixture.commit_steps([Step::Insert(new_row(key))]).await;
        fixture.store.close().await;
        let again = SqlStore::open(&fixture.url).await.unwrap();
        assert_eq!(again.get(key).await.unwrap(), Some(new_row(key)));
        again.close().await;
    });
}

#[test]
fn all_files_are_private() {
    block_on(async {
        let directory = TempDir::new().unwrap();
        let within = directory.path().join("new");
        let store = SqlStore::open_file(&within.join("kindling.db")).await.unwrap();
        let mut names = Vec::new();
        for entry in fs::read_dir(&within).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
            names.push(entry.file_name().into_string().unwrap());
        }
        names.sort();
        assert_eq!(names, ["kindling.db", "kindling.db-lock", "kindling.db-shm", "kindling.db-wal"]);
        assert_eq!(fs::metadata(&within).unwrap().permissions().mode() & 0o777, 0o700);
        store.close().await;
    });
}

#[test]
fn database_file_may_have_any_name() {
    block_on(async {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("a b?c#d%41&ü.db");
        let store = SqlStore::open_file(&path).await.unwrap();
        assert!(path.exists());
        store.close().await;
    });
}

#[test]
fn rejects_database_file_in_use() {
    on_sqlite(async |fixture| {
        let error = SqlStore::open(&fixture.url).await.unwrap_err();
        assert!(matches!(error, StoreError::InUse { .. }), "{error}");
        let output = Command::new(env!("CARGO_BIN_EXE_kindling"))
            .args(["serve", "--listen", "127.0.0.1:0", "--database-url", &fixture.url])
            .output()
            .unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && message.contains("is in use"), "{message}");
        let key = new_cluster_key();
        fixture.commit_steps([Step::Insert(new_row(key))]).await;
    });
}

#[test]
fn database_of_a_newer_version_is_refused() {
    on_each_store(async |fixture| {
        fixture.store.close().await;
        let statement = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                         SELECT 9999, 'later', success, checksum, 0 FROM _sqlx_migrations WHERE version = 1";
        run_sql(&fixture.url, statement).await;
        let error = SqlStore::open(&fixture.url).await.unwrap_err();
        assert!(matches!(error, StoreError::Newer { version: 9999, .. }), "{error}");
        assert!(error.to_string().contains("newer Kindling"), "{error}");
    });
}

#[test]
fn database_with_records_of_schema_version_0_is_refused() {
    on_each_store(async |fixture| {
        let steps = [new_cluster_key(), new_cluster_key(), new_cluster_key()];
        fixture.commit_steps(steps.map(|key| Step::Insert(new_row(key)))).await;
        fixture.store.close().await;
        let two = "UPDATE records SET schema_version = 0 WHERE id IN (SELECT id FROM records LIMIT 2)";
        run_sql(&fixture.url, two).await;
        for _ in 0..2 {
            let error = SqlStore::open(&fixture.url).await.unwrap_err();
            assert!(matches!(error, StoreError::UnsupportedRecords { records: 2, .. }), "{error}");
            let message = error.to_string();
            assert!(message.starts_with("cannot read 2 of the records in database "), "{message}");
            assert!(
                message.ends_with(": schema version 0 is not supported; use a new database"),
                "{message}"
            );
        }
        run_sql(&fixture.url, "DELETE FROM records WHERE schema_version = 0").await;
        SqlStore::open(&fixture.url).await.unwrap().close().await;
    });
}

#[test]
fn old_database_is_refused_without_a_change() {
    on_each_store(async |fixture| {
        fixture.commit_steps([Step::Insert(new_row(new_cluster_key()))]).await;
        fixture.store.close().await;
        run_sql(&fixture.url, "DELETE FROM _sqlx_migrations WHERE version > 3").await;
        for _ in 0..2 {
            let error = SqlStore::open(&fixture.url).await.unwrap_err();
            assert!(matches!(error, StoreError::UnsupportedRecords { records: 1, .. }), "{error}");
        }
    });
}

/// Statements that undo the migration that adds memberships.
const BEFORE_MEMBERSHIPS: &str = "DROP TABLE memberships; ALTER TABLE records DROP COLUMN seen_basis; \
    DELETE FROM _sqlx_migrations WHERE version = 10";

/// Statements that undo the migration that adds assessments, after [`BEFORE_MEMBERSHIPS`].
const BEFORE_ASSESSMENTS: &str = "ALTER TABLE records DROP COLUMN seen_hosts; \
    ALTER TABLE records DROP COLUMN seen_generations; ALTER TABLE records DROP COLUMN seen_cluster; \
    DELETE FROM _sqlx_migrations WHERE version = 9";

#[test]
fn memberships_begin_with_the_hosts_of_an_older_release() {
    on_each_store(async |fixture| {
        let (cluster, env) = (new_cluster_key(), new_infra_env_key());
        let columns = || Columns { cluster: Some(cluster.id), ..Columns::default() };
        let row = row_with(new_host_key(env), columns());
        fixture.commit_steps([Step::Insert(row)]).await;
        fixture.store.close().await;
        run_sql(&fixture.url, BEFORE_MEMBERSHIPS).await;
        let store = SqlStore::open(&fixture.url).await.unwrap();
        let store: &dyn Store = &store;
        assert_eq!(store.membership_changes(cluster.id).await.unwrap(), 1);
        assert_eq!(store.membership_changes(Uuid::new_v4()).await.unwrap(), 0);
        store.close().await;
    });
}

#[test]
fn totals_are_counted_when_a_database_of_an_older_release_is_opened() {
    on_each_store(async |fixture| {
        let (env, other) = (new_infra_env_key(), new_infra_env_key());
        let hosts = [new_host_key(env), new_host_key(env), new_host_key(other)];
        fixture.commit_steps(hosts.map(|host| Step::Insert(new_row(host)))).await;
        fixture.commit_steps([Step::Replace(deleted_row(hosts[0], 2))]).await;
        fixture.store.close().await;
        let older = format!(
            "DROP TABLE totals; ALTER TABLE records ADD COLUMN stage TEXT NOT NULL DEFAULT ''; \
             {BEFORE_MEMBERSHIPS}; {BEFORE_ASSESSMENTS}; DELETE FROM _sqlx_migrations WHERE version = 8"
        );
        run_sql(&fixture.url, older).await;
        let store = SqlStore::open(&fixture.url).await.unwrap();
        for (records, bytes, outcome) in
            [(1, 8192, Outcome::Done), (0, 8192, Outcome::OutOfBounds), (1, 8191, Outcome::OutOfBounds)]
        {
            let bound = Step::RequireWithin(Bound { kind: Kind::Host, parent: env.id, records, bytes });
            let changes = Changes { steps: vec![bound], events: Vec::new() };
            assert_eq!(store.commit(changes).await.unwrap(), outcome, "{records} {bytes}");
        }
        store.close().await;
    });
}

#[test]
fn errors_do_not_contain_the_password() {
    block_on(async {
        let urls = [
            "postgres://me:hidden@127.0.0.1:1/kindling",
            "postgres://me:hid@den@127.0.0.1:1/kindling?password=hidden",
            "postgresql://me:hidden@127.0.0.1:99999/kindling",
            "postgres://127.0.0.1:1/kindling?user=me&password=abc@hidden",
            "mysql://me:hidden@127.0.0.1/kindling",
        ];
        for url in urls {
            let message = error_chain(&SqlStore::open(url).await.unwrap_err());
            assert!(!message.contains("hid"), "{message}");
        }
    });
}

#[test]
fn rejects_file_that_is_not_a_database() {
    block_on(async {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("text");
        fs::write(&path, "no database, but a text that is long enough for a header ".repeat(30)).unwrap();
        let error = SqlStore::open_file(&path).await.unwrap_err();
        assert!(matches!(error, StoreError::Open { .. }), "{}", error_chain(&error));
        assert!(error.to_string().contains("text"), "{error}");
        assert!(matches!(SqlStore::open_file(directory.path()).await, Err(StoreError::Open { .. })));
        let missing = format!("sqlite://{}?mode=rw", directory.path().join("none").display());
        assert!(matches!(SqlStore::open(&missing).await, Err(StoreError::File { .. })));
        assert!(matches!(SqlStore::open("sqlite::memory:").await, Err(StoreError::Memory)));
    });
}

#[test]
fn replicas_may_start_concurrently() {
    on_postgres(async |fixture| {
        run_sql(
            &fixture.url,
            "DROP TABLE records, totals, memberships, reports, host_macs, events, leases, _sqlx_migrations",
        )
        .await;
        let opened = futures_util::future::join_all((0..6).map(|_| SqlStore::open(&fixture.url))).await;
        for store in opened {
            let store = store.unwrap();
            store.check_usable().await.unwrap();
            store.close().await;
        }
    });
}
