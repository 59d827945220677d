//! The options for the database and for the storage of uploaded files.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use percent_encoding::utf8_percent_encode;

use super::value::{parse_directory, parse_directory_or_bucket};
use crate::cli::directories::check_writable_directory;
use crate::cli::duration;
use crate::http::NOT_UNRESERVED;
use crate::inventory::files::FileStore;
use crate::inventory::store::SqlStore;
use crate::inventory::{Secret, Settings};

/// The options that set directories, for messages.
pub(super) const DATA_DIR: &str = "--data-dir (KINDLING_DATA_DIR)";
const FILES: &str = "--files (KINDLING_FILES)";

#[derive(Debug, Args)]
#[command(next_help_heading = "Database")]
pub(super) struct DatabaseOptions {
    /// Directory of the database and of uploaded files
    #[arg(long, env = "KINDLING_DATA_DIR", value_name = "DIR", default_value = "kindling-data", value_parser = parse_directory)]
    data_dir: PathBuf,
    /// Directory of uploaded files, or s3://BUCKET/PREFIX; replicas must share it [default: `files` in the data
    /// directory]
    #[arg(long, env = "KINDLING_FILES", value_name = "DIR|URL", value_parser = parse_directory_or_bucket)]
    files: Option<String>,
    /// URL of a PostgreSQL or SQLite database [default: an SQLite file in the data directory]
    #[arg(long, env = "KINDLING_DATABASE_URL", value_name = "URL", value_parser = parse_database_url)]
    database_url: Option<Secret>,
    /// Host of a PostgreSQL database, instead of a URL
    #[arg(long, env = "DB_HOST", value_name = "HOST", conflicts_with = "database_url")]
    db_host: Option<String>,
    /// Port of the PostgreSQL database
    #[arg(long, env = "DB_PORT", value_name = "PORT", default_value_t = 5432)]
    db_port: u16,
    /// User of the PostgreSQL database
    #[arg(long, env = "DB_USER", value_name = "NAME", requires = "db_host")]
    db_user: Option<String>,
    /// Password of the user. Prefer the variable: all users of this machine can see command lines
    #[arg(long, env = "DB_PASS", value_name = "PASSWORD", requires = "db_user", value_parser = parse_secret)]
    db_pass: Option<Secret>,
    /// Name of the PostgreSQL database
    #[arg(long, env = "DB_NAME", value_name = "NAME", requires = "db_host")]
    db_name: Option<String>,
    /// Encryption of database connections and verification of the server, as in libpq. Only verify-full protects
    /// against a server that pretends to be the database [default: prefer]
    #[arg(
        long,
        env = "DB_SSLMODE",
        value_name = "MODE",
        requires = "db_host",
        conflicts_with = "database_url"
    )]
    db_sslmode: Option<SslMode>,
    /// File with the CA certificates, in PEM, that verify-ca and verify-full accept in addition to public CAs
    #[arg(long, env = "DB_SSLROOTCERT", value_name = "FILE", requires = "db_sslmode")]
    db_sslrootcert: Option<PathBuf>,
    /// How long to keep deleted clusters and hosts, and events of removed records
    #[arg(
        long,
        env = "DELETED_UNREGISTERED_AFTER",
        value_name = "DURATION",
        default_value = duration::format_duration(Settings::KEPT_AFTER_DELETION),
        value_parser = duration::parse_duration
    )]
    deleted_unregistered_after: Duration,
    /// How long previously served images stay available while the PostgreSQL database or the external inventory is not
    /// available
    #[arg(
        long,
        env = "KINDLING_DATABASE_OUTAGE_GRACE",
        value_name = "DURATION",
        default_value = duration::format_duration(Settings::DATABASE_OUTAGE_GRACE),
        value_parser = duration::parse_duration
    )]
    database_outage_grace: Duration,
}

/// The modes of libpq.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SslMode {
    /// Never encrypted
    Disable,
    /// Encrypted only if the server insists
    Allow,
    /// Encrypted if the server supports it
    Prefer,
    /// Always encrypted; the server is not verified
    Require,
    /// The server's certificate must be from a trusted CA
    VerifyCa,
    /// The certificate must also be valid for the host
    VerifyFull,
}

impl SslMode {
    fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Allow => "allow",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

pub(in crate::cli) fn parse_secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text))
}

/// Parses the URL of a database. Rejects only an empty text; the store validates the rest.
fn parse_database_url(text: &str) -> Result<Secret, String> {
    match text {
        "" => Err("expected postgres://USER:PASSWORD@HOST:PORT/NAME or sqlite:PATH".to_owned()),
        _ => Ok(Secret::new(text)),
    }
}

impl DatabaseOptions {
    /// Returns the data directory, for files without a separate option.
    pub(super) fn data_dir(&self) -> &std::path::Path {
        &self.data_dir
    }

    pub(super) async fn open_store(&self) -> Result<SqlStore> {
        if self.db_sslmode == Some(SslMode::VerifyCa) && self.db_sslrootcert.is_none() {
            bail!(
                "DB_SSLMODE=verify-ca accepts any server with a public certificate; set DB_SSLROOTCERT or use verify-full"
            );
        }
        if let Some(file) = &self.db_sslrootcert {
            // Check that the file exists, because the driver would report an unreachable database instead.
            std::fs::metadata(file)
                .with_context(|| format!("reading {} (DB_SSLROOTCERT)", file.display()))?;
        }
        if let Some(url) = self.database_url() {
            return Ok(SqlStore::open(url.reveal()).await?);
        }
        check_writable_directory(DATA_DIR, &self.data_dir)?;
        Ok(SqlStore::open_file(&self.data_dir.join("kindling.db")).await?)
    }

    pub(super) fn apply_to_settings(&self, settings: &mut Settings) {
        settings.kept_after_deletion = self.deleted_unregistered_after;
        settings.database_outage_grace = self.database_outage_grace;
    }

    /// Returns the time for which previously served images stay available without a database.
    pub(super) fn outage_grace(&self) -> Duration {
        self.database_outage_grace
    }

    /// Returns the storage of uploaded files.
    pub(super) fn file_store(&self) -> Result<FileStore> {
        Ok(match &self.files {
            Some(place) => {
                if !place.starts_with("s3://") {
                    check_writable_directory(FILES, place.as_ref())?;
                }
                FileStore::open(place)?
            }
            None => {
                let directory = self.data_dir.join("files");
                check_writable_directory(DATA_DIR, &directory)?;
                FileStore::in_directory(&directory)?
            }
        })
    }

    fn database_url(&self) -> Option<Secret> {
        let Some(host) = &self.db_host else { return self.database_url.clone() };
        let mut url = "postgres://".to_owned();
        if let Some(user) = &self.db_user {
            url.push_str(&escape_url_part(user));
            if let Some(password) = &self.db_pass {
                url.push(':');
                url.push_str(&escape_url_part(password.reveal()));
            }
            url.push('@');
        }
        // An IPv6 address in a URL needs brackets.
        let host = if host.contains(':') { format!("[{host}]") } else { escape_url_part(host) };
        url.push_str(&format!("{host}:{}/", self.db_port));
        url.push_str(&escape_url_part(self.db_name.as_deref().unwrap_or_default()));
        let parameters = self.url_parameters();
        if !parameters.is_empty() {
            url.push('?');
            url.push_str(&parameters.join("&"));
        }
        Some(Secret::new(url))
    }

    /// Returns the query parameters of the database URL.
    fn url_parameters(&self) -> Vec<String> {
        let mut parameters = Vec::new();
        // TLS compares the certificate with this parameter. The host in the URL has brackets, which would not match.
        if let Some(host) = self.db_host.as_deref().filter(|host| host.contains(':')) {
            parameters.push(format!("host={}", escape_url_part(host)));
        }
        if let Some(mode) = self.db_sslmode {
            parameters.push(format!("sslmode={}", mode.as_str()));
        }
        if let Some(file) = &self.db_sslrootcert {
            parameters.push(format!("sslrootcert={}", escape_url_part(&file.to_string_lossy())));
        }
        parameters
    }
}

/// Percent-encodes a text for any part of a URL.
fn escape_url_part(text: &str) -> String {
    utf8_percent_encode(text, NOT_UNRESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        database: DatabaseOptions,
    }

    fn database_url_of(line: &[&str]) -> Option<String> {
        let command = Command::try_parse_from(["test"].iter().chain(line)).unwrap();
        assert!(!format!("{command:?}").contains("p@ss"));
        command.database.database_url().map(|url| url.reveal().to_owned())
    }

    #[test]
    fn database_url_is_explicit_or_built_from_parts() {
        assert_eq!(database_url_of(&[]), None);
        assert_eq!(database_url_of(&["--database-url", "sqlite:p@ss"]).unwrap(), "sqlite:p@ss");
        let parts = ["--db-host", "db", "--db-user", "a/b", "--db-pass", "p@ss: ü", "--db-name", "installer"];
        assert_eq!(database_url_of(&parts).unwrap(), "postgres://a%2Fb:p%40ss%3A%20%C3%BC@db:5432/installer");
        assert_eq!(
            database_url_of(&["--db-host", "::1", "--db-port", "1"]).unwrap(),
            "postgres://[::1]:1/?host=%3A%3A1"
        );
        let tls = ["--db-host", "db", "--db-sslmode", "verify-full", "--db-sslrootcert", "a&b/ca.pem"];
        let expected = "postgres://db:5432/?sslmode=verify-full&sslrootcert=a%26b%2Fca.pem";
        assert_eq!(database_url_of(&tls).unwrap(), expected);
    }

    #[test]
    fn rejects_tls_modes_without_effect() {
        for line in [
            ["--db-sslmode", "require"].as_slice(),
            &["--database-url", "postgres://db/x", "--db-sslmode", "require"],
            &["--db-host", "db", "--db-sslmode", "on"],
            &["--db-host", "db", "--db-sslrootcert", "ca.pem"],
        ] {
            Command::try_parse_from(["test"].iter().chain(line)).unwrap_err();
        }
        for mode in SslMode::value_variants() {
            let name = mode.to_possible_value().unwrap();
            assert_eq!(name.get_name(), mode.as_str());
        }
    }
}
