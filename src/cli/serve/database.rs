//! Where records are kept.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::cli::duration;
use crate::inventory::files::FileStore;
use crate::inventory::store::SqlStore;
use crate::inventory::{Secret, Settings};

#[derive(Debug, Args)]
#[command(next_help_heading = "Database")]
pub(super) struct Database {
    /// Directory of the database and of uploaded files
    #[arg(long, env = "KINDLING_DATA_DIR", value_name = "DIR", default_value = "kindling-data")]
    data_dir: PathBuf,
    /// Directory of uploaded files, or s3://BUCKET/PREFIX, which replicas have to share [default: files in the data
    /// directory]
    #[arg(long, env = "KINDLING_FILES", value_name = "PLACE")]
    files: Option<String>,
    /// PostgreSQL or SQLite database, by URL; without it, a file in the data directory
    #[arg(long, env = "KINDLING_DATABASE_URL", value_name = "URL", value_parser = secret)]
    database_url: Option<Secret>,
    /// Host of a PostgreSQL database, where there is no URL
    #[arg(long, env = "DB_HOST", value_name = "HOST", conflicts_with = "database_url")]
    db_host: Option<String>,
    /// Its port
    #[arg(long, env = "DB_PORT", value_name = "PORT", default_value_t = 5432)]
    db_port: u16,
    /// Its user
    #[arg(long, env = "DB_USER", value_name = "NAME")]
    db_user: Option<String>,
    /// The password of the user; all users of this machine see options, and only you see the variable
    #[arg(long, env = "DB_PASS", value_name = "PASSWORD", value_parser = secret)]
    db_pass: Option<Secret>,
    /// The name of the database
    #[arg(long, env = "DB_NAME", value_name = "NAME")]
    db_name: Option<String>,
    /// How long clusters and hosts are kept that were deleted, and events of what is gone
    #[arg(
        long,
        env = "DELETED_UNREGISTERED_AFTER",
        value_name = "DURATION",
        default_value = "72h",
        value_parser = duration::parse
    )]
    deleted_unregistered_after: Duration,
}

pub(in crate::cli) fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text))
}

impl Database {
    /// Where everything is kept that has no place of its own.
    pub(super) fn data_dir(&self) -> &std::path::Path {
        &self.data_dir
    }

    pub(super) async fn open(&self) -> Result<SqlStore> {
        if let Some(url) = self.url() {
            return Ok(SqlStore::open(url.reveal()).await?);
        }
        Ok(SqlStore::open_file(&self.data_dir.join("kindling.db")).await?)
    }

    pub(super) fn apply(&self, settings: &mut Settings) {
        settings.kept_after_deletion = self.deleted_unregistered_after;
    }

    /// Where uploaded files are kept.
    pub(super) fn files(&self) -> Result<FileStore> {
        Ok(match &self.files {
            Some(place) => FileStore::open(place)?,
            None => FileStore::in_directory(&self.data_dir.join("files"))?,
        })
    }

    fn url(&self) -> Option<Secret> {
        let Some(host) = &self.db_host else { return self.database_url.clone() };
        let mut url = "postgres://".to_owned();
        if let Some(user) = &self.db_user {
            url.push_str(&escaped(user));
            if let Some(password) = &self.db_pass {
                url.push(':');
                url.push_str(&escaped(password.reveal()));
            }
            url.push('@');
        }
        // An address of version 6 has colons, which only brackets keep apart from the port.
        let host = if host.contains(':') { format!("[{host}]") } else { escaped(host) };
        url.push_str(&format!("{host}:{}/", self.db_port));
        url.push_str(&escaped(self.db_name.as_deref().unwrap_or_default()));
        Some(Secret::new(url))
    }
}

/// A text as it may stand in any part of a URL.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        database: Database,
    }

    fn url(line: &[&str]) -> Option<String> {
        let command = Command::try_parse_from(["test"].iter().chain(line)).unwrap();
        assert!(!format!("{command:?}").contains("p@ss"));
        command.database.url().map(|url| url.reveal().to_owned())
    }

    #[test]
    fn a_database_is_named_by_its_parts_or_by_url() {
        assert_eq!(url(&[]), None);
        assert_eq!(url(&["--database-url", "sqlite:p@ss"]).unwrap(), "sqlite:p@ss");
        let parts = ["--db-host", "db", "--db-user", "a/b", "--db-pass", "p@ss: ü", "--db-name", "installer"];
        assert_eq!(url(&parts).unwrap(), "postgres://a%2Fb:p%40ss%3A%20%C3%BC@db:5432/installer");
        assert_eq!(url(&["--db-host", "::1", "--db-port", "1"]).unwrap(), "postgres://[::1]:1/");
    }
}
