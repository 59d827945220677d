//! Changes by other replicas, lost notifications, and a stopped database: hosts continue to read their images.

use std::time::{Duration, Instant};

use chrono::Utc;
use kindling::inventory::auth::{KeyTexts, LocalKeys, Policy};
use kindling::inventory::store::{Operation, SqlStore};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tempfile::TempDir;

use super::database::{TestDatabase, postgres_url};
use super::own_postgres::OwnPostgres;
use super::{API, ImageTestServer, base_image_bytes, header, run};

/// The grace period of servers whose database stops.
const GRACE: Duration = Duration::from_secs(8);
/// A time limit that no step needs on any machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum time of a response that waits for nothing.
const AT_ONCE: Duration = Duration::from_millis(1500);

/// The URL of the load balancer, which is part of all images.
const URL: &str = "http://images.example.com";

/// Starts a replica on a database, with its own service URL or a common one.
async fn start_replica(
    (database, url): (&str, Option<&str>),
    access: (Policy, Option<String>),
    grace: Duration,
) -> ImageTestServer {
    let directory = TempDir::new().unwrap();
    let base = directory.path().join("base.iso");
    std::fs::write(&base, base_image_bytes()).unwrap();
    let image = json!({"url": format!("file://{}", base.display())});
    let store = SqlStore::open(database).await.unwrap();
    ImageTestServer::start_with_grace(((store, url, None), grace), directory, access, image, None).await
}

pub(super) async fn start_open_replica(url: &str) -> ImageTestServer {
    start_replica((url, Some(URL)), (Policy::Open, None), PATIENCE).await
}

pub(super) async fn get_range(server: &ImageTestServer, path: &str) -> Response {
    let request = server.client.get(format!("{}{path}", server.base));
    request.header("range", "bytes=32768-34815").send().await.unwrap()
}

pub(super) async fn etag(server: &ImageTestServer, path: &str) -> String {
    let response = get_range(server, path).await;
    assert_eq!(response.status(), 206, "{path}");
    header(&response, "etag")
}

/// Waits until a range of an image has another entity tag. Returns the duration.
async fn wait_for_change(server: &ImageTestServer, path: &str, before: &str) -> Duration {
    let start = Instant::now();
    while etag(server, path).await == before {
        assert!(start.elapsed() < PATIENCE, "the change is not noticed");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    start.elapsed()
}

/// Waits until a metric is at least 1.
pub(super) async fn wait_for_metric(server: &ImageTestServer, name: &str) {
    let start = Instant::now();
    while server.metric(name).await < 1.0 {
        assert!(start.elapsed() < PATIENCE, "{name}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn append_argument(server: &ImageTestServer, id: &str, value: &str) {
    let change = json!({"kernel_arguments": [{"operation": "append", "value": value}]});
    server.api(Method::PATCH, &format!("/infra-envs/{id}"), &change).await;
}

pub(super) async fn sql(url: &str, statement: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    connection.execute(AssertSqlSafe(statement.to_owned())).await.unwrap();
    connection.close().await.unwrap();
}

/// Runs a test with two replicas on one database of the shared server.
fn with_two_replicas(test: impl AsyncFn(&ImageTestServer, &ImageTestServer, &str)) {
    run(async {
        let Some(server) = postgres_url() else { return };
        let database = TestDatabase::create(&server).await;
        let one = start_open_replica(&database.url).await;
        let other = start_open_replica(&database.url).await;
        test(&one, &other, &database.url).await;
        drop((one, other));
        database.drop().await;
    });
}

#[test]
fn change_by_another_replica_is_visible_within_half_a_second() {
    with_two_replicas(async |one, other, _| {
        let (_, id) = one.create_infra_env().await;
        let path = format!("/i/{id}/full.iso");
        let mut times = Vec::new();
        for value in ["a", "b", "c", "d", "e"] {
            let before = etag(other, &path).await;
            append_argument(one, &id, value).await;
            times.push(wait_for_change(other, &path, &before).await);
            assert_eq!(etag(other, &path).await, etag(one, &path).await);
        }
        // Only the median counts, because single durations may be longer on a busy machine.
        times.sort();
        assert!(times[2] < Duration::from_millis(500), "{times:?}");
        assert!(other.metric("kindling_feed_notifications_total").await >= 5.0);
        assert_eq!(other.metric("kindling_feed_connected").await, 1.0);
        assert!(one.metric("kindling_feed_lag_seconds_count").await >= 5.0);
    });
}

#[test]
fn broken_connection_of_the_feed_is_replaced() {
    with_two_replicas(async |one, other, url| {
        let (_, id) = one.create_infra_env().await;
        let path = format!("/i/{id}/full.iso");
        let before = etag(other, &path).await;
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE application_name = 'kindling changes' AND datname = current_database()";
        sql(url, cut).await;
        append_argument(one, &id, "loud").await;
        wait_for_change(other, &path, &before).await;
        assert_eq!(etag(other, &path).await, etag(one, &path).await);
        wait_for_metric(other, "kindling_feed_resyncs_total").await;
        // The new connection reports changes too.
        let notifications = other.metric("kindling_feed_notifications_total").await;
        let before = etag(other, &path).await;
        append_argument(one, &id, "louder").await;
        wait_for_change(other, &path, &before).await;
        assert!(other.metric("kindling_feed_notifications_total").await > notifications);
    });
}

#[test]
fn lost_notification_is_repaired() {
    with_two_replicas(async |one, other, url| {
        // Wait until the feed is connected. Without it, the server soon reads records again, so a lost notification has
        // no effect.
        wait_for_metric(other, "kindling_feed_connected").await;
        let notifications = other.metric("kindling_feed_notifications_total").await;
        let (_, id) = one.create_infra_env().await;
        // A notification during the first read of the record would prevent its caching.
        let start = Instant::now();
        while other.metric("kindling_feed_notifications_total").await <= notifications {
            assert!(start.elapsed() < PATIENCE, "the infra-env is not reported");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let path = format!("/i/{id}/full.iso");
        let before = etag(other, &path).await;
        assert_eq!(other.metric("kindling_feed_repairs_total").await, 0.0);
        let silent = r#"UPDATE records SET record_generation = record_generation + 1, document = replace(
            replace(document, '"quiet"', '"loud"'), '"image_generation":1', '"image_generation":2')
            WHERE kind = 'infra-env'"#;
        sql(url, silent).await;
        wait_for_change(other, &path, &before).await;
        assert_eq!(other.metric("kindling_feed_repairs_total").await, 1.0);
        wait_for_metric(other, "kindling_feed_resyncs_total").await;
    });
}

/// Changes to hosts, clusters and other infra-envs cause no read of the infra-env.
#[test]
fn changes_of_other_records_do_not_affect_images() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        others_are_not_noticed(&server).await;
        let Some(postgres) = postgres_url() else { return };
        let database = TestDatabase::create(&postgres).await;
        let server = start_open_replica(&database.url).await;
        others_are_not_noticed(&server).await;
        drop(server);
        database.drop().await;
    });
}

async fn others_are_not_noticed(server: &ImageTestServer) {
    let count = |operation| server.inventory.records().store().metrics().durations(operation).count();
    let (_, id) = server.create_infra_env().await;
    let path = format!("/i/{id}/full.iso");
    let before = etag(server, &path).await;
    let commits = count(Operation::Commit);
    let host = json!({"host_id": "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11"});
    server.api(Method::POST, &format!("/infra-envs/{id}/hosts"), &host).await;
    server.create_infra_env().await;
    let reads = count(Operation::Read);
    assert!(count(Operation::Commit) > commits);
    // Wait for longer than the server reuses a response.
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(etag(server, &path).await, before);
    assert_eq!(count(Operation::Read), reads, "the infra-env was read again");
    append_argument(server, &id, "loud").await;
    assert_ne!(etag(server, &path).await, before, "a change of the infra-env is visible immediately");
}

async fn readiness(server: &ImageTestServer) -> (u16, Value) {
    let response = server.get("/ready").await;
    (response.status().as_u16(), response.json().await.unwrap())
}

pub(super) async fn wait_for_readiness(server: &ImageTestServer, expected: (u16, &str)) {
    let start = Instant::now();
    loop {
        let (status, body) = readiness(server).await;
        assert_eq!(body["ready"], status == 200);
        if (status, body["database"].as_str().unwrap()) == expected {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{status} {body}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the path of an infra-env's image, with its token and the revision of the image.
fn image_path(server: &ImageTestServer, infra_env: &Value) -> String {
    infra_env["download_url"].as_str().unwrap().strip_prefix(&server.base).unwrap().to_owned()
}

/// Removes the revision, which is the last folder, from a path. The result is the path of the current image.
fn path_of_current_image(path: &str) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap();
    format!("{}/{file}", folder.rsplit_once('/').unwrap().0)
}

#[test]
fn booting_host_survives_an_outage_of_the_database() {
    run(async {
        let Some(postgres) = OwnPostgres::start_new() else { return };
        let keys = LocalKeys::parse(KeyTexts::generate().unwrap().private.reveal(), None).unwrap();
        let user = Some(keys.user_token(Utc::now(), None).unwrap().reveal().to_owned());
        let access = || (Policy::local(keys.clone()), user.clone());
        let server = start_replica((&postgres.url(), None), access(), GRACE).await;
        let other = start_replica((&postgres.url(), None), access(), GRACE).await;
        let (known, known_id) = server.create_infra_env().await;
        let (unknown, _) = server.create_infra_env().await;
        let (removed, removed_id) = server.create_infra_env().await;
        let [known, unknown, removed] =
            [known, unknown, removed].map(|infra_env| image_path(&server, &infra_env));
        let before = etag(&server, &known).await;
        etag(&server, &removed).await;
        let url = format!("{}{API}/infra-envs/{removed_id}", other.base);
        let deleted = other.client.delete(url).bearer_auth(user.as_ref().unwrap()).send().await.unwrap();
        assert_eq!(deleted.status(), 204);
        while get_range(&server, &removed).await.status() != 404 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(readiness(&server).await, (200, json!({"ready": true, "database": "reachable"})));

        postgres.stop();
        let stopped = Instant::now();
        assert_eq!(etag(&server, &known).await, before);
        wait_for_readiness(&server, (200, "unreachable")).await;
        assert_eq!(server.metric("kindling_source_reachable").await, 0.0);
        let start = Instant::now();
        let refused = get_range(&server, &unknown).await;
        assert_eq!((refused.status().as_u16(), header(&refused, "retry-after")), (503, "5".to_owned()));
        let list = server.client.get(format!("{}{API}/infra-envs", server.base));
        let list = list.bearer_auth(user.as_ref().unwrap()).send().await.unwrap();
        assert_eq!(list.status(), 503);
        assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
        assert_eq!(get_range(&server, &removed).await.status(), 404, "a known removal");
        let mut ranges = 0;
        while stopped.elapsed() < GRACE / 2 {
            let start = Instant::now();
            assert_eq!(etag(&server, &known).await, before);
            assert!(start.elapsed() < AT_ONCE);
            ranges += 1;
        }
        assert!(ranges > 10, "{ranges}");
        let script = known.replace("/byapikey/", "/i/");
        let script = script.split('/').take(3).collect::<Vec<_>>().join("/");
        assert_eq!(server.get(&format!("{script}/script.ipxe")).await.status(), 200, "{script}");

        wait_for_readiness(&server, (503, "unreachable")).await;
        let expired = stopped.elapsed();
        assert!(expired + Duration::from_secs(5) > GRACE, "{expired:?}");
        assert_eq!(get_range(&server, &known).await.status(), 503);

        postgres.start();
        wait_for_readiness(&server, (200, "reachable")).await;
        wait_for_readiness(&other, (200, "reachable")).await;
        assert_eq!(etag(&server, &known).await, before);
        etag(&server, &unknown).await;
        append_argument(&other, &known_id, "loud").await;
        wait_for_change(&server, &path_of_current_image(&known), &before).await;
        assert_eq!(etag(&server, &known).await, before, "the old revision");
        assert!(server.metric("kindling_feed_resyncs_total").await >= 1.0);
        assert_eq!(server.metric("kindling_source_reachable").await, 1.0);
        drop(postgres);
    });
}
