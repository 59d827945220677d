//! Jobs: they survive failures and the kill of a process, run once, and their end is visible.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{TimeDelta, Utc};
use kindling::inventory::auth::Policy;
use kindling::inventory::background::{self, JobOutcome};
use kindling::inventory::event::EventQuery;
use kindling::inventory::files::{FilePath, FileStore};
use kindling::inventory::job::{JobRecord, JobWork};
use kindling::inventory::service::MonitorHealth;
use kindling::inventory::store::{
    Change, Changes, Filter, Kind, Outcome, ReadSet, Record, Row, SqlStore, Step, Stored,
};
use kindling::inventory::{Inventory, ManualClock};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::database::{TestDatabase, postgres_url};
use crate::service::{PULL_SECRET, TestService, on_each_database};
use crate::store::{block_on, process_task, test_process};

async fn create_cluster(service: &TestService) -> String {
    let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
    service.post("/v2/clusters", &body).await.json_with_status(201)["id"].as_str().unwrap().to_owned()
}

/// Adds a job that is due, like a job whose creator was killed.
async fn add_due_job(inventory: &Inventory, cluster: &str, attempts: u32) -> JobRecord {
    let work = JobWork::DeleteClusterFiles { cluster: cluster.parse().unwrap() };
    let mut job = JobRecord::new(work, Utc::now() - TimeDelta::seconds(1));
    job.attempts = attempts;
    let plan = |_: ReadSet| {
        let job = &job;
        async move {
            let mut change = Change::new();
            change.insert(job)?;
            Ok((change, ()))
        }
    };
    inventory.records().change(plan).await.unwrap();
    job
}

async fn jobs(inventory: &Inventory) -> Vec<JobRecord> {
    let jobs: Vec<Stored<JobRecord>> = inventory.records().list(Filter::all(Kind::Job)).await.unwrap();
    jobs.into_iter().map(|job| job.record).collect()
}

async fn put_file(files: &FileStore, cluster: &str) -> FilePath {
    let path = FilePath::from_names(["clusters", cluster, "manifests", "a.yaml"]).unwrap();
    let content = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"x"))]);
    files.put(&path, content, 1).await.unwrap();
    path
}

/// Opens the same inventory with files that cannot be deleted, because a file is in place of their folder.
fn with_broken_files(service: &TestService, directory: &Path) -> Inventory {
    let inventory = &service.inventory;
    let files = FileStore::in_directory(&directory.join("files")).unwrap();
    std::fs::remove_dir_all(directory.join("files")).unwrap();
    std::fs::write(directory.join("files"), "not a folder").unwrap();
    Inventory::new(
        Arc::clone(inventory.records().store()),
        files,
        inventory.catalogue().clone(),
        inventory.settings().clone(),
        inventory.policy().clone(),
    )
}

async fn failures(service: &TestService, cluster: &str) -> Vec<String> {
    let query = EventQuery { cluster: Some(cluster.parse().unwrap()), ..EventQuery::default() };
    let page = service.inventory.records().store().events(&query).await.unwrap();
    page.events.into_iter().filter(|event| event.name == "job_failed").map(|event| event.message).collect()
}

fn start_tasks(service: &TestService) -> JoinHandle<()> {
    tokio::spawn(background::run(service.inventory.clone(), std::future::pending()))
}

/// Waits until a condition holds, for at most 20 seconds: less than the interval of the task.
async fn wait_until(failure: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..1000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{failure}");
}

#[test]
fn deletion_records_a_job_that_deletes_the_files() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        let file = put_file(service.inventory.files(), &cluster).await;
        service.delete(&format!("/v2/clusters/{cluster}")).await.json_with_status(204);
        assert!(service.inventory.files().get(&file).await.unwrap().is_some());
        assert_eq!(service.inventory.run_due_jobs().await.unwrap(), None);
        assert!(service.inventory.files().get(&file).await.unwrap().is_none());
        assert_eq!(jobs(&service.inventory).await, []);
    });
}

#[test]
fn new_job_wakes_the_task() {
    on_each_database(async |service| {
        let tasks = start_tasks(service);
        let has_run =
            || service.inventory.tasks().find("jobs").is_some_and(|task| task.durations().count() > 0);
        wait_until("the task does not run", async || has_run()).await;
        let cluster = create_cluster(service).await;
        let file = put_file(service.inventory.files(), &cluster).await;
        service.delete(&format!("/v2/clusters/{cluster}")).await.json_with_status(204);
        wait_until("the job is not done", async || jobs(&service.inventory).await.is_empty()).await;
        assert!(service.inventory.files().get(&file).await.unwrap().is_none());
        tasks.abort();
    });
}

#[test]
fn job_of_a_killed_process_is_completed() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        let file = put_file(service.inventory.files(), &cluster).await;
        // Before the first attempt, and during a later one.
        for attempts in [0, 3] {
            add_due_job(&service.inventory, &cluster, attempts).await;
        }
        let tasks = start_tasks(service);
        wait_until("a job is not done", async || jobs(&service.inventory).await.is_empty()).await;
        tasks.abort();
        assert!(service.inventory.files().get(&file).await.unwrap().is_none());
        assert_eq!(failures(service, &cluster).await, Vec::<String>::new());
    });
}

#[test]
fn job_fails_visibly_once_after_its_last_attempt() {
    on_each_database(async |service| {
        let directory = TempDir::new().unwrap();
        let broken = with_broken_files(service, directory.path());
        let cluster = create_cluster(service).await;
        let job = add_due_job(&broken, &cluster, 8).await;
        assert_eq!(broken.run_job(job.id).await, JobOutcome::WillRetry);
        let stored = jobs(&broken).await;
        assert_eq!(stored[0].attempts, 9);
        assert!(stored[0].last_error.is_some() && stored[0].not_before > Utc::now());
        assert_eq!(broken.run_job(job.id).await, JobOutcome::Gone, "the next attempt is not due");
        assert_eq!(broken.run_due_jobs().await.unwrap(), Some(stored[0].not_before));
        assert!(broken.cancel_job(job.id).await.unwrap());

        let job = add_due_job(&broken, &cluster, 9).await;
        assert_eq!(broken.run_job(job.id).await, JobOutcome::GivenUp);
        assert_eq!(broken.run_job(job.id).await, JobOutcome::Gone);
        let failures = failures(service, &cluster).await;
        assert_eq!(failures.len(), 1, "{failures:?}");
        let expected = format!("Failed after 10 attempts: deleting the files of cluster {cluster}: ");
        assert!(failures[0].starts_with(&expected), "{failures:?}");
        assert_eq!(jobs(&broken).await, []);
    });
}

#[test]
fn job_whose_last_attempt_was_killed_fails_visibly() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        let job = add_due_job(&service.inventory, &cluster, 10).await;
        assert_eq!(service.inventory.run_job(job.id).await, JobOutcome::Gone);
        let failures = failures(service, &cluster).await;
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert_eq!(jobs(&service.inventory).await, []);
    });
}

#[test]
fn damaged_job_does_not_stop_the_others() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        let file = put_file(service.inventory.files(), &cluster).await;
        let damaged = add_due_job(&service.inventory, &cluster, 0).await;
        let store = service.inventory.records().store();
        let row = store.get(damaged.key()).await.unwrap().unwrap();
        let row = Row { generation: row.generation + 1, document: "{}".to_owned(), ..row };
        let changes = Changes { steps: vec![Step::Replace(row)], events: Vec::new() };
        assert_eq!(store.commit(changes).await.unwrap(), Outcome::Done);
        add_due_job(&service.inventory, &cluster, 0).await;
        assert_eq!(service.inventory.run_due_jobs().await.unwrap(), None);
        assert!(service.inventory.files().get(&file).await.unwrap().is_none());
    });
}

#[test]
fn several_workers_make_one_attempt() {
    on_each_database(async |service| {
        let directory = TempDir::new().unwrap();
        let broken = with_broken_files(service, directory.path());
        let cluster = create_cluster(service).await;
        let job = add_due_job(&broken, &cluster, 1).await;
        let attempts = (0..8).map(|_| broken.run_job(job.id));
        let outcomes = futures_util::future::join_all(attempts).await;
        let retries = outcomes.iter().filter(|outcome| **outcome == JobOutcome::WillRetry).count();
        assert_eq!(retries, 1, "{outcomes:?}");
        assert_eq!(jobs(&broken).await[0].attempts, 2);
    });
}

#[test]
fn cancelled_job_ends() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        let job = add_due_job(&service.inventory, &cluster, 0).await;
        assert!(service.inventory.cancel_job(job.id).await.unwrap());
        assert!(!service.inventory.cancel_job(job.id).await.unwrap());
        assert_eq!(service.inventory.run_job(job.id).await, JobOutcome::Gone);
        assert_eq!(service.inventory.run_due_jobs().await.unwrap(), None);
    });
}

/// Runs the background tasks until the process is killed. The files are in a bucket that does not respond.
#[test]
#[ignore = "the process that others kill"]
fn process_that_runs_tasks() {
    let url = process_task();
    block_on(async {
        let store = SqlStore::open(&url).await.unwrap();
        let service = TestService::start_on_store(store, None, Policy::Open, |_| {}).await;
        let inventory = Inventory::new(
            Arc::clone(service.inventory.records().store()),
            FileStore::open("s3://files").unwrap(),
            service.inventory.catalogue().clone(),
            service.inventory.settings().clone(),
            service.inventory.policy().clone(),
        );
        let _tasks = tokio::spawn(background::run(inventory.clone(), std::future::pending()));
        wait_until("another replica leads", async || inventory.tasks().is_leader()).await;
        println!("\nleading");
        std::future::pending::<()>().await;
    });
}

/// Starts the process, and waits until it is the leader.
fn start_leader(database: &str, bucket: &TcpListener) -> Child {
    let mut child = test_process("jobs::process_that_runs_tasks", database)
        .env("S3_ENDPOINT_URL", format!("http://{}", bucket.local_addr().unwrap()))
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_REGION", "us-east-1")
        .env_remove("HTTP_PROXY")
        .env_remove("http_proxy")
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "leading"));
    child
}

#[test]
fn job_of_a_killed_leader_is_completed_by_another_replica() {
    let Some(server) = postgres_url() else { return };
    block_on(async {
        let database = TestDatabase::create(&server).await;
        let clock = Arc::new(ManualClock::new(Utc::now()));
        let store = SqlStore::open(&database.url).await.unwrap();
        let set_clock = |settings: &mut kindling::inventory::Settings| settings.clock = clock.clone();
        let service = TestService::start_on_store(store, None, Policy::Open, set_clock).await;
        let tasks = service.inventory.tasks();
        let cluster = create_cluster(&service).await;
        let file = put_file(service.inventory.files(), &cluster).await;
        let bucket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut leader = start_leader(&database.url, &bucket);
        service.delete(&format!("/v2/clusters/{cluster}")).await.json_with_status(204);
        // The attempt waits for the bucket.
        let _connection = tokio::time::timeout(Duration::from_secs(20), bucket.accept()).await.unwrap();
        let stored = jobs(&service.inventory).await;
        assert_eq!((stored.len(), stored[0].attempts), (1, 1));
        assert!(stored[0].running_until.is_some());

        let running = start_tasks(&service);
        let has_run = || tasks.find("jobs").is_some_and(|task| task.durations().count() > 0);
        wait_until("the task does not run", async || has_run()).await;
        assert_eq!(tasks.monitor_health(Duration::MAX), Some(MonitorHealth::Standby));
        leader.kill().unwrap();
        leader.wait().unwrap();
        assert_eq!(jobs(&service.inventory).await, stored, "the attempt of the leader may still run");
        clock.set(stored[0].not_before);
        // Another job wakes the task.
        let other = create_cluster(&service).await;
        service.delete(&format!("/v2/clusters/{other}")).await.json_with_status(204);
        wait_until("the job is not done", async || jobs(&service.inventory).await.is_empty()).await;
        assert!(service.inventory.files().get(&file).await.unwrap().is_none());
        assert_eq!(failures(&service, &cluster).await, Vec::<String>::new());
        let is_leader = async || tasks.monitor_health(Duration::MAX) == Some(MonitorHealth::Active);
        wait_until("no replica leads", is_leader).await;
        running.abort();
        service.stop().await;
        database.drop().await;
    });
}
