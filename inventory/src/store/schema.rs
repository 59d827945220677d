//! The database tables and their migrations.

use std::sync::LazyLock;

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};

use super::StoreError;
use super::session::{Cells as _, Session, Statement};

/// The migrations of the tables. Not even a comment in their files may change, because sqlx compares the hashes of the
/// files with the hashes in the database. So migration 4 still names a module that no longer exists.
static TABLES: LazyLock<Migrator> = LazyLock::new(|| {
    let steps = [
        ("records", include_str!("migrations/1_records.sql")),
        ("token keys", include_str!("migrations/2_token_keys.sql")),
        ("sizes and pages", include_str!("migrations/3_sizes_and_pages.sql")),
        ("columns and reports", include_str!("migrations/4_columns_and_reports.sql")),
        ("host clocks", include_str!("migrations/5_host_clocks.sql")),
        ("leases", include_str!("migrations/6_leases.sql")),
        ("sizes in order", include_str!("migrations/7_sizes_in_order.sql")),
        ("totals", include_str!("migrations/8_totals.sql")),
        ("assessments", include_str!("migrations/9_assessments.sql")),
        ("memberships", include_str!("migrations/10_memberships.sql")),
    ];
    let step = |(version, (name, sql)): (i64, (&'static str, &'static str))| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    Migrator::with_migrations((1..).zip(steps).map(step).collect())
});

/// Version of the migration that adds the schema version to records.
const SCHEMA_VERSIONS: i64 = 4;

/// Migrates the tables to the version of this release.
///
/// # Errors
///
/// Returns an error if the tables are newer than this release, or if records have schema version 0.
pub(super) async fn migrate<S: Session + Migrate>(
    database: &str,
    connection: &mut S,
) -> Result<(), StoreError> {
    refuse_old_tables(database, connection).await?;
    let newest = TABLES.iter().map(|step| step.version).max().unwrap_or(0);
    // Not `run`: it is generic over `Acquire`, so the compiler cannot prove that its future is `Send`.
    TABLES.run_direct(None, connection, false).await.map_err(|error| match error {
        MigrateError::VersionMissing(version) if version > newest => {
            StoreError::Newer { database: database.to_owned(), version, known: newest }
        }
        error => StoreError::Migrate(error),
    })?;
    require_supported_records(database, connection).await
}

/// Returns an error if the database contains records from before schema versions. The check runs before the migrations,
/// so such a database stays unchanged.
async fn refuse_old_tables<S: Session + Migrate>(
    database: &str,
    connection: &mut S,
) -> Result<(), StoreError> {
    // Another replica may be creating the migrations table at the same time, so the query takes the migration lock.
    connection.lock().await.map_err(StoreError::Migrate)?;
    let applied = applied_version(connection).await;
    connection.unlock().await.map_err(StoreError::Migrate)?;
    match applied.map_err(StoreError::Migrate)? {
        Some(1..SCHEMA_VERSIONS) => {
            let count = Statement::new("SELECT count(*) AS records FROM records");
            require_none(database, connection, count).await
        }
        _ => Ok(()),
    }
}

/// Returns the version of the latest applied migration.
async fn applied_version<S: Migrate>(connection: &mut S) -> Result<Option<i64>, MigrateError> {
    connection.ensure_migrations_table(&TABLES.table_name).await?;
    let applied = connection.list_applied_migrations(&TABLES.table_name).await?;
    Ok(applied.iter().map(|step| step.version).max())
}

/// Returns an error if a record has schema version 0. Migration 4 sets this version in records written before it. These
/// records contain the reports in their documents and have empty columns.
async fn require_supported_records<S: Session>(database: &str, connection: &mut S) -> Result<(), StoreError> {
    require_none(database, connection, count_unsupported()).await
}

/// Returns an error if the statement counts any records.
async fn require_none<S: Session>(
    database: &str,
    connection: &mut S,
    count: Statement,
) -> Result<(), StoreError> {
    let failed = |source| StoreError::Open { database: database.to_owned(), source };
    let count = connection.fetch_first(count, |row| row.integer("records")).await;
    match count.map_err(failed)?.ok_or_else(|| failed(sqlx::Error::RowNotFound))? {
        0 => Ok(()),
        records => Err(StoreError::UnsupportedRecords { database: database.to_owned(), records }),
    }
}

pub(super) fn count_unsupported() -> Statement {
    Statement::new("SELECT count(*) AS records FROM records WHERE schema_version = 0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_migration_file_is_a_step() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/migrations");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort_by_key(|name| name.split_once('_').and_then(|(version, _)| version.parse::<i64>().ok()));
        let name = |step: &Migration| format!("{}_{}.sql", step.version, step.description.replace(' ', "_"));
        assert_eq!(TABLES.iter().map(name).collect::<Vec<_>>(), files);
    }
}
