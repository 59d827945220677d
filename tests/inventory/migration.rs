//! A database that an earlier release wrote: the API shows the same resources after the migration.
//!
//! `tests/data/inventory-600f357.sql` is the dump of a SQLite file that commit 600f357 wrote, and
//! `inventory-600f357.json` has what its API answered. [`process_that_writes_the_fixture`] made both:
//!
//! ```text
//! KINDLING_TEST_TASK=DIR cargo test --test inventory -- --ignored --exact migration::process_that_writes_the_fixture
//! sqlite3 DIR/kindling.db .dump
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kindling::inventory::Settings;
use kindling::inventory::auth::Policy;
use kindling::inventory::cluster::ClusterRecord;
use kindling::inventory::host::{HostRecord, ReportSummary};
use kindling::inventory::store::{
    Changes, Columns, Filter, Key, Kind, Outcome, Record as _, Records, ReportKind, ReportKinds, Row,
    SCHEMA_VERSION, SqlStore, Step, Store as _, StoreError, Stored,
};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{Connection as _, Executor as _, PgConnection, SqlSafeStr as _, SqliteConnection};
use tempfile::TempDir;

use crate::agent::{FakeAgent, create_infra_env, inventory_report};
use crate::database::{TestDatabase, postgres_url};
use crate::service::{PULL_SECRET, TestService, on_each_database, send_request};
use crate::store::{block_on, process_task, run_sql};

/// No host is disconnected, however old its last check-in is.
fn ever_connected(settings: &mut Settings) {
    settings.max_silence = Duration::from_secs(100 * 365 * 24 * 3600);
}

const DUMP: &str = include_str!("../data/inventory-600f357.sql");
const ANSWERS: &str = include_str!("../data/inventory-600f357.json");

/// The migrations of the tables at that commit.
const OLD_TABLES: [(&str, &str); 3] = [
    ("records", include_str!("../../inventory/src/store/migrations/1_records.sql")),
    ("token keys", include_str!("../../inventory/src/store/migrations/2_token_keys.sql")),
    ("sizes and pages", include_str!("../../inventory/src/store/migrations/3_sizes_and_pages.sql")),
];

/// Makes the rewrite of one of the last records fail in SQLite.
const FAIL_IN_SQLITE: &str = "CREATE TRIGGER fail BEFORE UPDATE ON records WHEN OLD.kind = 'os-image' \
                              BEGIN SELECT RAISE(ABORT, 'failed on purpose'); END";
/// The same in PostgreSQL.
const FAIL_IN_POSTGRES: &str = "CREATE FUNCTION fail() RETURNS trigger AS $$ BEGIN \
                                IF OLD.kind = 'os-image' THEN RAISE 'failed on purpose'; END IF; RETURN NEW; END $$ \
                                LANGUAGE plpgsql; \
                                CREATE TRIGGER fail BEFORE UPDATE ON records FOR EACH ROW EXECUTE FUNCTION fail()";

/// Loads the dump into a new file. Returns its URL.
async fn load_into_sqlite(directory: &Path) -> String {
    let url = format!("sqlite://{}", directory.join("kindling.db").display());
    fs::write(directory.join("kindling.db"), "").unwrap();
    run_sql(&url, DUMP).await;
    url
}

/// Creates the old tables in a PostgreSQL database, and loads the rows of the dump.
async fn load_into_postgres(url: &str) {
    let steps = OLD_TABLES.iter().zip(1..).map(|((name, sql), version)| {
        Migration::new(version, (*name).into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    let mut connection = PgConnection::connect(url).await.unwrap();
    Migrator::with_migrations(steps.collect()).run(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    // Both databases have the columns in the order in which they were added.
    let is_row = |line: &&str| {
        line.starts_with("INSERT INTO records VALUES") || line.starts_with("INSERT INTO events VALUES")
    };
    run_sql(url, DUMP.lines().filter(is_row).collect::<Vec<_>>().join("\n")).await;
}

/// Changes the clusters in an old response to how they are shown since then: with validations and built-in operators,
/// and without the result of checks of VIPs that were not made.
fn add_what_clusters_show_now(answer: &mut Value) {
    if let Some(items) = answer.as_array_mut() {
        return items.iter_mut().for_each(add_what_clusters_show_now);
    }
    let Some(kind) = answer["kind"].as_str().filter(|kind| kind.ends_with("Cluster")) else { return };
    if kind == "Cluster" && answer["deleted_at"].is_null() {
        let console = json!({
            "cluster_id": answer["id"], "name": "console", "operator_type": "builtin", "timeout_seconds": 3600,
            "status_updated_at": "0001-01-01T00:00:00.000Z", "bundles": [], "source_bundles": [],
        });
        answer["monitored_operators"].as_array_mut().unwrap().insert(0, console);
    }
    answer["validations_info"] = json!("{}");
    for key in ["api_vips", "ingress_vips"] {
        for vip in answer[key].as_array_mut().unwrap() {
            let verification = vip.as_object_mut().unwrap().shift_remove("verification");
            assert_eq!(verification, Some(json!("unverified")));
        }
    }
}

/// Compares what the API shows with what it showed before.
async fn check(url: &str) {
    let store = SqlStore::open(url).await.unwrap();
    let service = TestService::start_on_store(store, None, Policy::Open, ever_connected).await;
    let mut expected: BTreeMap<String, Value> = serde_json::from_str(ANSWERS).unwrap();
    expected.values_mut().for_each(add_what_clusters_show_now);
    let found = answers(&service).await;
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (path, answer) in &expected {
        assert_eq!(found[path], *answer, "{path}");
    }
    check_columns(&service).await;
    service.stop().await;
}

/// The migration fills the columns as a write does, and the summaries in a document are those of the reports.
async fn check_columns(service: &TestService) {
    let records = service.inventory.records();
    let hosts = records.list::<HostRecord>(Filter::all(Kind::Host).with_deleted()).await.unwrap();
    assert_eq!(hosts.len(), 6);
    let mut count = 0;
    for Stored { record, .. } in hosts {
        let row = records.store().get(record.key()).await.unwrap().unwrap();
        let expected = Columns { macs: None, ..record.columns() };
        assert_eq!((row.columns, row.schema_version), (expected, 1), "{}", record.id);
        let reports = records.reports(record.key(), ReportKinds::new(ReportKind::ALL)).await.unwrap();
        assert_eq!(reports.0.len(), record.findings.reports.len());
        for (kind, report) in &reports.0 {
            assert_eq!(record.findings.reports[kind.as_str()], ReportSummary::new(report), "{kind}");
            count += 1;
        }
        for mac in record.columns().macs.unwrap() {
            assert!(records.store().hosts_with_mac(&mac).await.unwrap().contains(&record.key()), "{mac}");
        }
    }
    // Two hosts have all reports, one has two, and one has only its hardware after it was bound.
    assert_eq!(count, 9 + 9 + 2 + 1);
    let clusters = records.list::<ClusterRecord>(Filter::all(Kind::Cluster).with_deleted()).await.unwrap();
    for Stored { record, .. } in clusters {
        let row = records.store().get(record.key()).await.unwrap().unwrap();
        assert_eq!((row.columns, row.schema_version), (record.columns(), 1));
    }
}

#[test]
fn sqlite_file_of_the_last_release_shows_the_same_resources() {
    block_on(async {
        let directory = TempDir::new().unwrap();
        let url = load_into_sqlite(directory.path()).await;
        check(&url).await;
        check(&url).await;
    });
}

#[test]
fn postgres_database_of_the_last_release_shows_the_same_resources() {
    let Some(server) = postgres_url() else { return };
    block_on(async {
        let database = TestDatabase::create(&server).await;
        load_into_postgres(&database.url).await;
        check(&database.url).await;
        database.drop().await;
    });
}

/// The tables have their new form and some records are rewritten when the migration fails.
#[test]
fn interrupted_migration_continues() {
    block_on(async {
        let directory = TempDir::new().unwrap();
        let url = load_into_sqlite(directory.path()).await;
        run_sql(&url, FAIL_IN_SQLITE).await;
        for _ in 0..2 {
            let Err(StoreError::Upgrade { kind, .. }) = SqlStore::open(&url).await else { panic!("opened") };
            assert_eq!(kind, "os-image");
        }
        run_sql(&url, "DROP TRIGGER fail").await;
        check(&url).await;
        let Some(server) = postgres_url() else { return };
        let database = TestDatabase::create(&server).await;
        load_into_postgres(&database.url).await;
        run_sql(&database.url, FAIL_IN_POSTGRES).await;
        assert!(matches!(SqlStore::open(&database.url).await, Err(StoreError::Upgrade { .. })));
        run_sql(&database.url, "DROP TRIGGER fail ON records").await;
        // Replicas may start at the same time.
        let opened = futures_util::future::join_all((0..4).map(|_| SqlStore::open(&database.url))).await;
        for store in opened {
            store.unwrap().close().await;
        }
        check(&database.url).await;
        database.drop().await;
    });
}

/// Runs a test on both databases with the tables and records of the last release.
fn on_each_old_database(test: impl AsyncFn(&str)) {
    block_on(async {
        let directory = TempDir::new().unwrap();
        test(&load_into_sqlite(directory.path()).await).await;
        let Some(server) = postgres_url() else { return };
        let database = TestDatabase::create(&server).await;
        load_into_postgres(&database.url).await;
        test(&database.url).await;
        database.drop().await;
    });
}

async fn error_of(url: &str, statement: &'static str) -> String {
    let result = if url.starts_with("sqlite:") {
        let mut connection = SqliteConnection::connect(url).await.unwrap();
        connection.execute(statement).await.map(drop)
    } else {
        let mut connection = PgConnection::connect(url).await.unwrap();
        connection.execute(statement).await.map(drop)
    };
    result.unwrap_err().to_string()
}

/// A replica of the last release that still runs: the statements with which it reads and writes records.
#[test]
fn statements_of_the_last_release_fail_after_the_migration() {
    on_each_old_database(async |url| {
        SqlStore::open(url).await.unwrap().close().await;
        for statement in [
            "SELECT parent, id, cluster_id, token_key, deleted, generation, document FROM records WHERE kind = 'host'",
            "INSERT INTO records (kind, parent, id, cluster_id, token_key, deleted, document, size, generation, made_at) \
             VALUES ('cluster', '', 'x', NULL, '', 0, '{}', 4096, 1, 0) ON CONFLICT DO NOTHING",
            "UPDATE records SET cluster_id = NULL, token_key = '', deleted = 0, document = '{}', size = 4096, \
             generation = 2 WHERE kind = 'host' AND generation = 2 - 1",
            "DELETE FROM records WHERE kind = 'host' AND generation = 1",
        ] {
            let error = error_of(url, statement).await;
            assert!(error.contains("generation") && error.contains("column"), "{statement}: {error}");
        }
        check(url).await;
    });
}

/// Damaged records do not fail a start, and are upgraded once they are repaired.
#[test]
fn damaged_records_are_upgraded_after_their_repair() {
    on_each_old_database(async |url| {
        run_sql(url, "CREATE TABLE saved AS SELECT kind, parent, id, document FROM records").await;
        for document in ["{", r#"{"findings": 1}"#, r#"{"status": "\u0000"}"#] {
            run_sql(url, format!("UPDATE records SET document = '{document}' WHERE kind = 'host'")).await;
            let store = SqlStore::open(url).await.unwrap();
            let hosts = store.list(Filter::all(Kind::Host).with_deleted()).await.unwrap();
            assert_eq!(hosts.len(), 6);
            let records = Records::new(Arc::new(store));
            for row in hosts {
                assert_eq!(row.schema_version, 0);
                let found = records.find::<HostRecord>(row.key.parent, row.key.id).await;
                assert!(matches!(found, Err(StoreError::NotUpgraded { key }) if key == row.key));
            }
            records.store().close().await;
        }
        let repair = "UPDATE records SET document = (SELECT document FROM saved WHERE saved.kind = records.kind \
                      AND saved.parent = records.parent AND saved.id = records.id) WHERE kind = 'host'";
        run_sql(url, repair).await;
        check(url).await;
    });
}

/// Adds fields to a stored document, as a newer release does.
async fn write_as_newer_release(service: &TestService, key: Key, add: impl Fn(&mut Value)) {
    let store = service.inventory.records().store();
    let row = store.get(key).await.unwrap().unwrap();
    let mut document: Value = serde_json::from_str(&row.document).unwrap();
    add(&mut document);
    let row = Row {
        generation: row.generation + 1,
        schema_version: SCHEMA_VERSION + 1,
        document: document.to_string(),
        ..row
    };
    let changes = Changes { steps: vec![Step::Replace(row)], events: Vec::new() };
    assert_eq!(store.commit(changes).await.unwrap(), Outcome::Done);
}

async fn stored(service: &TestService, key: Key) -> (i64, Value) {
    let row = service.inventory.records().store().get(key).await.unwrap().unwrap();
    (row.schema_version, serde_json::from_str(&row.document).unwrap())
}

#[test]
fn newer_and_older_release_write_in_turn_without_loss() {
    on_each_database(async |service| {
        let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
        let cluster = service.post("/v2/clusters", &body).await.json_with_status(201)["id"].clone();
        let cluster = cluster.as_str().unwrap();
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let env = agent.infra_env.parse().unwrap();
        let key = |kind, parent, id: &str| Key { kind, parent, id: id.parse().unwrap() };
        let host = key(Kind::Host, Some(env), &agent.id);
        let infra_env = key(Kind::InfraEnv, None, &agent.infra_env);
        let in_cluster = key(Kind::Cluster, None, cluster);
        for turn in 0..3 {
            let field = format!("new{turn}");
            write_as_newer_release(service, host, |document| {
                for path in ["", "/choices", "/findings", "/findings/reports/inventory", "/progress", "/logs"]
                {
                    document.pointer_mut(path).unwrap()[&field] = json!({"a": [turn]});
                }
                document["findings"]["validations"][0][&field] = json!(turn);
            })
            .await;
            write_as_newer_release(service, in_cluster, |document| document["spec"][&field] = json!(turn))
                .await;
            write_as_newer_release(service, infra_env, |document| {
                document["image"][&field] = json!(turn);
            })
            .await;
            let names = [format!("node-{turn}"), format!("{turn}.example.com")];
            service.patch(&agent.path(), &json!({"host_name": names[0]})).await.json_with_status(201);
            agent.request_steps().await.json_with_status(200);
            let change = json!({"base_dns_domain": names[1]});
            service.patch(&format!("/v2/clusters/{cluster}"), &change).await.json_with_status(201);
            let change = json!({"additional_ntp_sources": names[1], "proxy": {"no_proxy": names[1]}});
            service
                .patch(&format!("/v2/infra-envs/{}", agent.infra_env), &change)
                .await
                .json_with_status(201);
        }
        let (version, document) = stored(service, host).await;
        assert_eq!(version, SCHEMA_VERSION + 1);
        assert_eq!(document["choices"]["hostname"], "node-2");
        for turn in 0..3 {
            let field = format!("new{turn}");
            for path in ["", "/choices", "/findings", "/findings/reports/inventory", "/progress", "/logs"] {
                assert_eq!(document.pointer(path).unwrap()[&field], json!({"a": [turn]}), "{path}");
            }
            assert_eq!(document["findings"]["validations"][0][&field], json!(turn));
            let (version, document) = stored(service, in_cluster).await;
            assert_eq!((version, &document["spec"][&field]), (SCHEMA_VERSION + 1, &json!(turn)));
            let (version, document) = stored(service, infra_env).await;
            assert_eq!((version, &document["image"][&field]), (SCHEMA_VERSION + 1, &json!(turn)));
        }
    });
}

#[test]
#[ignore = "writes the fixture of this module"]
fn process_that_writes_the_fixture() {
    let directory = process_task();
    let directory = Path::new(&directory);
    block_on(async {
        let store = SqlStore::open_file(&directory.join("kindling.db")).await.unwrap();
        let service = TestService::start_on_store(store, None, Policy::Open, ever_connected).await;
        fill(&service).await;
        let answers = serde_json::to_string_pretty(&answers(&service).await).unwrap();
        fs::write(directory.join("answers.json"), answers + "\n").unwrap();
        service.stop().await;
    });
}

/// Creates resources of every kind, with values in all parts of a record that the API can set.
async fn fill(service: &TestService) {
    let cluster = async |more: Value| {
        let mut body = json!({"name": "c", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        service.post("/v2/clusters", &body).await.json_with_status(201)["id"].as_str().unwrap().to_owned()
    };
    let home = cluster(json!({
        "name": "home", "base_dns_domain": "example.com", "api_vips": [{"ip": "192.168.1.5"}],
        "ingress_vips": [{"ip": "192.168.1.6"}], "http_proxy": "http://user:pass@proxy.example.com:3128",
        "high_availability_mode": "Full", "tags": "a,b",
    }))
    .await;
    let gone = cluster(json!({"name": "gone"})).await;
    let imported = json!({"name": "old", "api_vip_dnsname": "api.old.example.com", "openshift_version": "4.14",
        "openshift_cluster_id": "7c7a9c3a-5d3c-4a0f-8f5e-0a3d0f7c6b11"});
    service.post("/v2/clusters/import", &imported).await.json_with_status(201);
    let image = json!({"openshift_version": "4.99", "cpu_architecture": "x86_64", "url": "http://mirror.example/live.iso",
        "version": "9.9"});
    service.post("/v2/os-images", &image).await.json_with_status(201);

    let bound = create_infra_env(service, &json!({"name": "bound", "cluster_id": home})).await;
    let pool = create_infra_env(
        service,
        &json!({
            "name": "pool", "openshift_version": "4.99", "additional_ntp_sources": "ntp.example.com",
            "kernel_arguments": [{"operation": "append", "value": "p1"}],
            "ignition_config_override": r#"{"ignition": {"version": "3.2.0"}}"#,
            "static_network_config": [{
                "network_yaml": "interfaces: [{name: eth0, type: ethernet, state: up}]",
                "mac_interface_map": [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}]
            }],
        }),
    )
    .await;
    let full = FakeAgent::new(service, &bound);
    full.register().await.json_with_status(201);
    report_everything(&full).await;
    let choices = json!({"host_name": "chosen", "host_role": "master", "node_labels": [{"key": "a/b", "value": "c"}],
        "machine_config_pool_name": "pool-1", "ignition_endpoint_token": "token",
        "ignition_endpoint_http_headers": [{"key": "k", "value": "v"}],
        "disks_skip_formatting": [{"disk_id": "/dev/disk/by-id/wwn-0x5000000000000001", "skip_formatting": true}]});
    service.patch(&full.path(), &choices).await.json_with_status(201);
    let args = json!({"args": ["--append-karg", "console=ttyS0"]});
    service.patch(&format!("{}/installer-args", full.path()), &args).await.json_with_status(201);
    let config = json!({"config": r#"{"ignition": {"version": "3.1.0"}}"#});
    service.patch(&format!("{}/ignition", full.path()), &config).await.json_with_status(201);
    full.request_steps().await.json_with_status(200);

    let silent = FakeAgent::new(service, &bound);
    silent.register().await.json_with_status(201);
    let failing = FakeAgent::new(service, &pool);
    failing.register().await.json_with_status(201);
    let mut small = inventory_report("localhost");
    small["cpu"]["count"] = json!(1);
    failing.reply_to_step("inventory", &small).await.json_with_status(204);
    let words = json!({"step_type": "tang-connectivity-check", "exit_code": -1, "error": "no route \u{e9}"});
    failing.send_reply(&words).await.json_with_status(204);
    let moved = FakeAgent::new(service, &pool);
    moved.register().await.json_with_status(201);
    report_everything(&moved).await;
    service
        .post(&format!("{}/actions/bind", moved.path()), &json!({"cluster_id": home}))
        .await
        .json_with_status(200);
    moved.register().await.json_with_status(201);
    let mut machine = inventory_report("moved");
    machine["interfaces"][0]["mac_address"] = json!("52:54:00:00:00:AA");
    moved.reply_to_step("inventory", &machine).await.json_with_status(204);
    let lost = FakeAgent::new(service, &pool);
    lost.register().await.json_with_status(201);
    report_everything(&lost).await;
    lost.send_reply(&json!({"step_type": "inventory", "exit_code": 256, "error": "read error"}))
        .await
        .json_with_status(204);
    let deleted = FakeAgent::new(service, &pool);
    deleted.register().await.json_with_status(201);
    report_everything(&deleted).await;
    assert_eq!(service.delete(&deleted.path()).await.status, 204);
    assert_eq!(service.delete(&format!("/v2/clusters/{gone}")).await.status, 204);
}

/// Lets an agent send a reply of every kind that the service stores.
async fn report_everything(agent: &FakeAgent<'_>) {
    for (kind, output) in [
        ("inventory", inventory_report("node-1")),
        (
            "connectivity-check",
            json!({"remote_hosts": [{"host_id": "x", "l2_connectivity": null, "l3_connectivity": [],
                "mtu_report": null}]}),
        ),
        ("domain-resolution", json!({"resolutions": [{"domain_name": "api.example.com"}]})),
        ("api-vip-connectivity-check", json!({"is_success": true, "url": "http://192.168.1.5"})),
        ("tang-connectivity-check", json!({"is_success": true, "tang_server_response": []})),
        ("ntp-synchronizer", json!({"ntp_sources": [{"source_name": "a", "source_state": "synced"}]})),
        ("free-network-addresses", json!([{"network": "192.0.2.0/24", "free_addresses": ["192.0.2.9"]}])),
        ("installation-disk-speed-check", json!({"path": "/dev/sda", "io_sync_duration": 5})),
        ("installation-disk-speed-check", json!({"path": "/dev/sdb", "io_sync_duration": 7})),
        (
            "container-image-availability",
            json!({"images": [{"name": "z", "result": "success", "size_bytes": 1.5}, {"name": "a", "result": "failure"}]}),
        ),
    ] {
        agent.reply_to_step(kind, &output).await.json_with_status(204);
    }
}

/// Everything that the API shows of all resources, by path.
async fn answers(service: &TestService) -> BTreeMap<String, Value> {
    let mut answers = BTreeMap::new();
    let mut ask = async |path: String| {
        let request = service.request(Method::GET, &path).header("get_unregistered_clusters", "true");
        let answer = send_request(request).await.json_with_status(200);
        answers.insert(path, answer.clone());
        answer
    };
    let ids = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    for cluster in ids(&ask("/v2/clusters?with_hosts=true".to_owned()).await) {
        ask(format!("/v2/clusters/{cluster}")).await;
        ask(format!("/v2/clusters/{cluster}/hosts")).await;
        ask(format!("/v2/clusters/{cluster}/hosts?with-inventory=true&with-connectivity=true")).await;
        ask(format!("/v2/events?cluster_id={cluster}")).await;
    }
    for infra_env in ids(&ask("/v2/infra-envs".to_owned()).await) {
        ask(format!("/v2/infra-envs/{infra_env}")).await;
        ask(format!("/v2/events?infra_env_id={infra_env}")).await;
        for host in ids(&ask(format!("/v2/infra-envs/{infra_env}/hosts")).await) {
            ask(format!("/v2/infra-envs/{infra_env}/hosts/{host}")).await;
            ask(format!("/v2/infra-envs/{infra_env}/hosts/{host}/ignition")).await;
        }
    }
    ask("/v2/os-images".to_owned()).await;
    ask("/v2/events".to_owned()).await;
    answers
}
