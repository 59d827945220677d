//! TLS to PostgreSQL, by `DB_SSLMODE`.
//!
//! `KINDLING_TEST_POSTGRES_CA` is the file with the CA of the server, whose certificate is valid only for `localhost`.
//! The server has two roles: it accepts only TLS for `tls_only`, and only plain connections for `plain_only`.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use kindling::inventory::store::{SqlStore, Store};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};
use tempfile::TempDir;

use super::block_on;
use crate::database::{TestDatabase, postgres_url};
use crate::skip::report_missing;

/// Creates a database on a server with TLS. Returns it and the file with the server's CA.
async fn tls_database() -> Option<(TestDatabase, String)> {
    let server = postgres_url()?;
    let Ok(authority) = env::var("KINDLING_TEST_POSTGRES_CA") else {
        report_missing("KINDLING_TEST_POSTGRES_CA is not set");
        return None;
    };
    Some((TestDatabase::create(&server).await, authority))
}

/// Returns `true` if all connections to a database are encrypted, and `false` if none is.
async fn is_encrypted(database: &TestDatabase) -> bool {
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    let sql = "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let rows = connection.fetch_all(sql).await.unwrap();
    connection.close().await.unwrap();
    let [row] = &rows[..] else { panic!("{} kinds of connections", rows.len()) };
    row.get("ssl")
}

/// Returns a URL of the same database, with another host and user.
fn database_url(database: &TestDatabase, user: &str, host: &str, query: &str) -> String {
    let (_, rest) = database.url.rsplit_once('@').unwrap();
    let (_, rest) = rest.split_once(':').unwrap();
    format!("postgres://{user}@{host}:{rest}?{query}")
}

/// A server process, which is killed when the value is dropped.
struct TlsStoreServer(Child);

impl Drop for TlsStoreServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program on a database. Returns the process if it serves, and otherwise its error.
fn start_server(
    database: &TestDatabase,
    directory: &TempDir,
    host: &str,
    options: &[&str],
) -> Result<TlsStoreServer, String> {
    let (_, rest) = database.url.rsplit_once(':').unwrap();
    let (port, name) = rest.split_once('/').unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kindling"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--db-host", host, "--db-port", port]);
    command.args(["--db-user", "postgres", "--db-name", name]).args(options).current_dir(directory.path());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut process = TlsStoreServer(child);
    let mut line = String::new();
    BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line.starts_with("listening on ") {
        return Ok(process);
    }
    let mut log = String::new();
    process.0.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    Err(log)
}

#[test]
fn ssl_mode_decides_server_verification() {
    block_on(async {
        let Some((database, authority)) = tls_database().await else { return };
        let directory = TempDir::new().unwrap();
        let wrong = directory.path().join("wrong.pem");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        std::fs::write(&wrong, params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()).unwrap();
        let wrong = wrong.to_str().unwrap();
        // The host, the mode and the CA; and whether connections are encrypted, or the program's error.
        let cases = [
            ("localhost", "verify-full", Some(&*authority), Ok(true)),
            ("127.0.0.1", "verify-ca", Some(&authority), Ok(true)),
            ("127.0.0.1", "require", None, Ok(true)),
            ("127.0.0.1", "prefer", None, Ok(true)),
            ("127.0.0.1", "allow", None, Ok(false)),
            ("127.0.0.1", "disable", None, Ok(false)),
            ("127.0.0.1", "verify-full", Some(&authority), Err("not valid for name")),
            ("localhost", "verify-full", Some(wrong), Err("UnknownIssuer")),
            ("localhost", "verify-ca", Some(wrong), Err("UnknownIssuer")),
            ("localhost", "verify-full", None, Err("UnknownIssuer")),
            ("localhost", "verify-ca", None, Err("set DB_SSLROOTCERT")),
            ("localhost", "verify-full", Some("missing.pem"), Err("missing.pem")),
        ];
        for (host, mode, file, expected) in cases {
            let mut options = vec!["--db-sslmode", mode];
            options.extend(file.into_iter().flat_map(|file| ["--db-sslrootcert", file]));
            let case = format!("{host} {options:?}");
            match (start_server(&database, &directory, host, &options), expected) {
                (Ok(process), Ok(encrypted)) => {
                    assert_eq!(is_encrypted(&database).await, encrypted, "{case}");
                    drop(process);
                }
                (Err(said), Err(reason)) => assert!(said.contains(reason), "{case}: {said}"),
                (Ok(_), Err(_)) => panic!("{case}: accepted"),
                (Err(said), Ok(_)) => panic!("{case}: {said}"),
            }
        }
        // Without a mode, the program uses TLS if the server supports it.
        let process =
            start_server(&database, &directory, "127.0.0.1", &[]).unwrap_or_else(|said| panic!("{said}"));
        assert!(is_encrypted(&database).await);
        drop(process);
        database.drop().await;
    });
}

/// As in libpq, the program tries connections with and without TLS, and uses the one that the server accepts.
#[test]
fn optional_tls_modes_fall_back_as_in_libpq() {
    block_on(async {
        let Some((database, _)) = tls_database().await else { return };
        let mut connection = PgConnection::connect(&database.url).await.unwrap();
        for role in ["tls_only", "plain_only"] {
            // Another test may create the role at the same time.
            let _ = connection.execute(AssertSqlSafe(format!("CREATE ROLE {role} LOGIN SUPERUSER"))).await;
        }
        connection.close().await.unwrap();
        for (role, mode, expected) in [
            ("tls_only", "allow", Some(true)),
            ("tls_only", "prefer", Some(true)),
            ("tls_only", "disable", None),
            ("plain_only", "allow", Some(false)),
            ("plain_only", "prefer", Some(false)),
            ("plain_only", "require", None),
        ] {
            let store =
                SqlStore::open(&database_url(&database, role, "127.0.0.1", &format!("sslmode={mode}"))).await;
            let Ok(store) = store else {
                assert_eq!(expected, None, "{role} {mode}: {store:?}");
                continue;
            };
            assert_eq!(Some(is_encrypted(&database).await), expected, "{role} {mode}");
            store.close().await;
        }
        database.drop().await;
    });
}
