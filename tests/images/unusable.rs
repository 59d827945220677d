//! A reachable but unusable database: locked, renamed, missing, read-only or removed.

use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::join_all;
use kindling::inventory::id::InfraEnvId;
use kindling::inventory::store::{Contact, Feed};
use reqwest::Method;
use serde_json::json;
use sqlx::{Connection, Executor, PgConnection, SqliteConnection};

use super::database::{TestDatabase, postgres_url};
use super::outage::{
    PATIENCE, etag, get_range, sql, start_open_replica, wait_for_metric, wait_for_readiness,
};
use super::{API, ImageTestServer, header, run};

/// Runs a test with a server on its own database of the shared PostgreSQL server. The server has cached an infra-env.
fn with_known_image(test: impl AsyncFn(&ImageTestServer, &TestDatabase, &str)) {
    run(async {
        let Some(postgres) = postgres_url() else { return };
        let database = TestDatabase::create(&postgres).await;
        let server = start_open_replica(&database.url).await;
        wait_for_metric(&server, "kindling_feed_connected").await;
        let (_, id) = server.create_infra_env().await;
        let path = format!("/i/{id}/full.iso");
        etag(&server, &path).await;
        test(&server, &database, &path).await;
        drop(server);
        database.drop().await;
    });
}

async fn health(server: &ImageTestServer) -> u16 {
    server.get("/health").await.status().as_u16()
}

fn feed(server: &ImageTestServer) -> &Feed {
    server.inventory.records().store().feed()
}

async fn wait_for_contact(server: &ImageTestServer, expected: Contact) {
    let start = Instant::now();
    while feed(server).contact() != expected {
        assert!(start.elapsed() < PATIENCE, "{:?}", feed(server).contact());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn locked_tables_do_not_delay_cached_images() {
    with_known_image(async |server, database, path| {
        let id: InfraEnvId = path.split('/').nth(2).unwrap().parse().unwrap();
        let before = etag(server, path).await;
        let mut blocker = PgConnection::connect(&database.url).await.unwrap();
        blocker.execute("BEGIN; LOCK TABLE records IN ACCESS EXCLUSIVE MODE").await.unwrap();
        wait_for_readiness(server, (503, "unusable")).await;
        assert_eq!(health(server).await, 503);
        wait_for_contact(server, Contact::Unusable).await;
        // The feed makes at least one whole attempt to read the tables between two of its connections.
        let (start, connections) = (Instant::now(), feed(server).listening_since());
        while feed(server).listening_since() < connections + 2 {
            assert!(start.elapsed() < PATIENCE);
            // The cached record is available without waiting for the database or the feed.
            let record = server.inventory.served_infra_env(id, None, None).now_or_never();
            assert!(matches!(record, Some(Ok(_))), "{:?}", feed(server).contact());
            assert_eq!(etag(server, path).await, before);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        wait_for_readiness(server, (503, "unusable")).await;

        blocker.execute("ROLLBACK").await.unwrap();
        wait_for_readiness(server, (200, "reachable")).await;
        assert_eq!(health(server).await, 200);
        wait_for_contact(server, Contact::Connected).await;
        assert_eq!(etag(server, path).await, before);
        blocker.close().await.unwrap();
    });
}

#[test]
fn missing_tables_make_the_server_unready() {
    with_known_image(async |server, database, path| {
        let before = etag(server, path).await;
        sql(&database.url, "ALTER TABLE records RENAME TO elsewhere").await;
        wait_for_readiness(server, (503, "unusable")).await;
        assert_eq!(health(server).await, 503);
        wait_for_contact(server, Contact::Unusable).await;
        assert_eq!(etag(server, path).await, before, "a known image");
        sql(&database.url, "ALTER TABLE elsewhere RENAME TO records; DROP TABLE leases").await;
        wait_for_readiness(server, (503, "unusable")).await;
        wait_for_contact(server, Contact::Connected).await;
        assert_eq!(health(server).await, 503);
        assert_eq!(etag(server, path).await, before);
    });
}

#[test]
fn tables_locked_against_writes_make_the_server_unready() {
    with_known_image(async |server, database, path| {
        let mut blocker = PgConnection::connect(&database.url).await.unwrap();
        blocker.execute("BEGIN; LOCK TABLE events IN SHARE MODE").await.unwrap();
        wait_for_readiness(server, (503, "unusable")).await;
        assert_eq!(get_range(server, path).await.status(), 206);
        blocker.execute("ROLLBACK").await.unwrap();
        wait_for_readiness(server, (200, "reachable")).await;
        blocker.close().await.unwrap();
    });
}

#[test]
fn read_only_database_causes_503() {
    with_known_image(async |server, database, path| {
        let (address, name) = database.url.rsplit_once('/').unwrap();
        let elsewhere = format!("{address}/postgres");
        let end_connections =
            format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
        sql(&elsewhere, &format!("ALTER DATABASE {name} SET default_transaction_read_only = on")).await;
        sql(&elsewhere, &end_connections).await;
        wait_for_readiness(server, (503, "unusable")).await;
        assert_eq!(health(server).await, 503);
        assert_eq!(get_range(server, path).await.status(), 206);
        let create = server.client.post(format!("{}{API}/infra-envs", server.base));
        let body = json!({
            "name": "more", "pull_secret": r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#,
        });
        let refused = create.json(&body).send().await.unwrap();
        assert_eq!((refused.status().as_u16(), header(&refused, "retry-after")), (503, "5".to_owned()));
        assert!(refused.text().await.unwrap().contains("the database is read-only"));

        sql(&elsewhere, &format!("ALTER DATABASE {name} RESET default_transaction_read_only")).await;
        sql(&elsewhere, &end_connections).await;
        wait_for_readiness(server, (200, "reachable")).await;
        server.api(Method::POST, "/infra-envs", &body).await;
    });
}

#[test]
fn unwritable_sqlite_file_makes_the_server_unready() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        wait_for_readiness(&server, (200, "reachable")).await;
        let file = server.directory.path().join("kindling.db");
        let mut blocker = SqliteConnection::connect(&format!("sqlite:{}", file.display())).await.unwrap();
        blocker.execute("BEGIN IMMEDIATE").await.unwrap();
        wait_for_readiness(&server, (503, "unusable")).await;
        assert_eq!(health(&server).await, 503);
        blocker.execute("ROLLBACK").await.unwrap();
        wait_for_readiness(&server, (200, "reachable")).await;
        blocker.close().await.unwrap();

        let moved = server.directory.path().join("moved.db");
        std::fs::rename(&file, &moved).unwrap();
        wait_for_readiness(&server, (503, "unusable")).await;
        std::fs::rename(&moved, &file).unwrap();
        wait_for_readiness(&server, (200, "reachable")).await;
    });
}

/// One test of the database serves any number of concurrent requests.
#[test]
fn concurrent_requests_share_one_check_of_the_database() {
    with_known_image(async |server, database, _| {
        let mut blocker = PgConnection::connect(&database.url).await.unwrap();
        blocker.execute("BEGIN; LOCK TABLE records IN ACCESS EXCLUSIVE MODE").await.unwrap();
        // Watch on a connection without a transaction: within one, PostgreSQL shows the same activity all the time.
        let mut watcher = PgConnection::connect(&database.url).await.unwrap();
        let (start, mut most) = (Instant::now(), 0);
        // The server may still use the result of an earlier check, and then no check waits.
        while most == 0 {
            assert!(start.elapsed() < PATIENCE);
            let mut requests = std::pin::pin!(join_all((0..50).map(|_| server.get("/ready"))));
            loop {
                let query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                             AND datname = current_database() AND query LIKE '%INSERT INTO records%'";
                let count = sqlx::query_scalar::<_, i64>(query).fetch_one(&mut watcher);
                tokio::select! {
                    biased;
                    count = count => most = most.max(count.unwrap()),
                    _ = &mut requests => break,
                }
            }
        }
        assert_eq!(most, 1);
        wait_for_readiness(server, (503, "unusable")).await;
        watcher.close().await.unwrap();
        blocker.execute("ROLLBACK").await.unwrap();
        blocker.close().await.unwrap();
    });
}
