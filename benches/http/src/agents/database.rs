//! Databases of the servers: SQLite files, or databases of one PostgreSQL server, which `psql` creates and drops.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

const FILE: &str = "kindling.db";

#[derive(Debug, Clone)]
pub(crate) enum DatabaseServer {
    Sqlite,
    /// The URL of any database on the PostgreSQL server. The bench creates its own databases on this server.
    Postgres(String),
}

impl DatabaseServer {
    /// # Errors
    ///
    /// Returns an error if the URL does not name a PostgreSQL database.
    pub(crate) fn from_url(url: Option<&str>) -> Result<Self> {
        let Some(url) = url else { return Ok(Self::Sqlite) };
        // A URL may contain a password, so the error does not contain it.
        let is_postgres = url.starts_with("postgres://") || url.starts_with("postgresql://");
        ensure!(is_postgres, "the URL of the database does not start with postgres://");
        Ok(Self::Postgres(url.to_owned()))
    }

    pub(crate) fn title(&self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres(_) => "PostgreSQL",
        }
    }

    /// Creates an empty database.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory or the database cannot be created.
    pub(crate) fn create(&self, data: PathBuf) -> Result<ServerData> {
        self.create_from(data, None)
    }

    /// Copies a database, which no server may have open.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be copied.
    pub(crate) fn copy(&self, data: PathBuf, from: &ServerData) -> Result<ServerData> {
        let storage = self.create_from(data, from.database.as_ref())?;
        if storage.database.is_none() {
            for entry in fs::read_dir(&from.data)? {
                let entry = entry?;
                // The file may have a write-ahead log beside it.
                if entry.file_name().to_string_lossy().starts_with(FILE) {
                    fs::copy(entry.path(), storage.data.join(entry.file_name()))
                        .with_context(|| format!("copying {}", entry.path().display()))?;
                }
            }
            ensure!(storage.data.join(FILE).exists(), "no database in {}", from.data.display());
        }
        Ok(storage)
    }

    fn create_from(&self, data: PathBuf, template: Option<&BenchDatabase>) -> Result<ServerData> {
        fs::create_dir(&data).with_context(|| format!("creating {}", data.display()))?;
        let database = match self {
            Self::Sqlite => None,
            Self::Postgres(server) => Some(BenchDatabase::create(server, &data, template)?),
        };
        Ok(ServerData { data, database })
    }
}

/// The data directory of a server, and its database. Both are removed when the value is dropped.
#[derive(Debug)]
pub(crate) struct ServerData {
    data: PathBuf,
    /// `None` for an SQLite file in the directory.
    database: Option<BenchDatabase>,
}

impl ServerData {
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Returns the URL of the database; `None` for an SQLite file in the directory.
    pub(crate) fn url(&self) -> Option<&str> {
        self.database.as_ref().map(|database| database.url.as_str())
    }
}

impl Drop for ServerData {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.data) {
            eprintln!("Warning: removing {}: {error}", self.data.display());
        }
    }
}

#[derive(Debug)]
struct BenchDatabase {
    server: String,
    name: String,
    url: String,
}

impl BenchDatabase {
    fn create(server: &str, data: &Path, template: Option<&Self>) -> Result<Self> {
        let suffix = data.file_name().map(|name| name.to_string_lossy().replace('-', "_"));
        let name = format!("bench_http_{}_{}", std::process::id(), suffix.unwrap_or_default());
        let url = with_database(server, &name)?;
        let template = template.map_or(String::new(), |from| format!(" TEMPLATE {}", from.name));
        psql(server, &format!("CREATE DATABASE {name}{template}"))?;
        Ok(Self { server: server.to_owned(), name, url })
    }
}

impl Drop for BenchDatabase {
    fn drop(&mut self) {
        if let Err(error) = psql(&self.server, &format!("DROP DATABASE {} WITH (FORCE)", self.name)) {
            eprintln!("Warning: dropping database {}: {error:#}", self.name);
        }
    }
}

/// Runs one statement. It needs no quoting, because it contains only names that the bench generates.
fn psql(server: &str, statement: &str) -> Result<()> {
    let mut command = Command::new("psql");
    command.args(["--no-psqlrc", "--quiet", "--no-password", "--set", "ON_ERROR_STOP=1"]);
    command.args(["--dbname", server, "--command", statement]).stdin(Stdio::null());
    let output = command.output().context("running psql")?;
    if !output.status.success() {
        bail!("psql: {statement}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Returns the URL of the database with this name on the same PostgreSQL server.
fn with_database(url: &str, name: &str) -> Result<String> {
    let (scheme, rest) = url.split_once("://").context("the URL of the database has no scheme")?;
    let (before, parameters) = rest.split_once('?').map_or((rest, None), |(url, some)| (url, Some(some)));
    let authority = before.split_once('/').map_or(before, |(authority, _)| authority);
    let parameters = parameters.map_or(String::new(), |parameters| format!("?{parameters}"));
    Ok(format!("{scheme}://{authority}/{name}{parameters}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_the_database_changes() {
        for (url, expected) in [
            ("postgres://a:b@c:1/d", "postgres://a:b@c:1/x"),
            ("postgres://a@c", "postgres://a@c/x"),
            ("postgresql://c/d?sslmode=require&e=/f", "postgresql://c/x?sslmode=require&e=/f"),
            ("postgres://c?host=/run", "postgres://c/x?host=/run"),
        ] {
            assert_eq!(with_database(url, "x").unwrap(), expected);
        }
    }

    #[test]
    fn rejects_urls_of_other_databases() {
        assert!(matches!(DatabaseServer::from_url(None).unwrap(), DatabaseServer::Sqlite));
        for url in ["sqlite:a", "mysql://a:secret@b/c", ""] {
            let error = DatabaseServer::from_url(Some(url)).unwrap_err();
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn sqlite_database_is_copied_with_its_log_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let server = DatabaseServer::Sqlite;
        let first = server.create(folder.path().join("first")).unwrap();
        assert!(server.copy(folder.path().join("none"), &first).is_err());
        for name in [FILE, "kindling.db-wal", "other"] {
            fs::write(first.data().join(name), name).unwrap();
        }
        let second = server.copy(folder.path().join("second"), &first).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(second.data()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [FILE, "kindling.db-wal"]);
        assert_eq!(second.url(), None);
        drop((first, second));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
