//! Where records are kept.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

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
    /// Whether connections to the host are encrypted, and how far it is verified, as in libpq. Only verify-full protects
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
    /// It must also be valid for the host
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

pub(in crate::cli) fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text))
}

impl Database {
    /// Where everything is kept that has no place of its own.
    pub(super) fn data_dir(&self) -> &std::path::Path {
        &self.data_dir
    }

    pub(super) async fn open(&self) -> Result<SqlStore> {
        if self.db_sslmode == Some(SslMode::VerifyCa) && self.db_sslrootcert.is_none() {
            bail!(
                "DB_SSLMODE verify-ca accepts any server with a public certificate: set DB_SSLROOTCERT, or use verify-full"
            );
        }
        if let Some(file) = &self.db_sslrootcert {
            // The driver would report a missing file as a database that cannot be reached.
            std::fs::metadata(file)
                .with_context(|| format!("reading {} (DB_SSLROOTCERT)", file.display()))?;
        }
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
        let parameters = self.parameters();
        if !parameters.is_empty() {
            url.push('?');
            url.push_str(&parameters.join("&"));
        }
        Some(Secret::new(url))
    }

    /// The query of the URL.
    fn parameters(&self) -> Vec<String> {
        let mut parameters = Vec::new();
        // The name that certificates are verified for would have the brackets too.
        if let Some(host) = self.db_host.as_deref().filter(|host| host.contains(':')) {
            parameters.push(format!("host={}", escaped(host)));
        }
        if let Some(mode) = self.db_sslmode {
            parameters.push(format!("sslmode={}", mode.as_str()));
        }
        if let Some(file) = &self.db_sslrootcert {
            parameters.push(format!("sslrootcert={}", escaped(&file.to_string_lossy())));
        }
        parameters
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
        assert_eq!(url(&["--db-host", "::1", "--db-port", "1"]).unwrap(), "postgres://[::1]:1/?host=%3A%3A1");
        let tls = ["--db-host", "db", "--db-sslmode", "verify-full", "--db-sslrootcert", "a&b/ca.pem"];
        let expected = "postgres://db:5432/?sslmode=verify-full&sslrootcert=a%26b%2Fca.pem";
        assert_eq!(url(&tls).unwrap(), expected);
    }

    #[test]
    fn rejects_modes_of_tls_that_would_have_no_effect() {
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
