//! Jobs: they survive a kill and failures, run once, and end visibly.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{TimeDelta, Utc};
use kindling::inventory::Inventory;
use kindling::inventory::event::EventQuery;
use kindling::inventory::files::{FilePath, FileStore};
use kindling::inventory::job::{JobRecord, JobWork};
use kindling::inventory::jobs::JobOutcome;
use kindling::inventory::store::{
    Change, Changes, Filter, Kind, Outcome, ReadSet, Record, Row, Step, Stored,
};
use serde_json::json;
use tempfile::TempDir;

use crate::service::{PULL_SECRET, TestService, on_each_database};

async fn create_cluster(service: &TestService) -> String {
    let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
    service.post("/v2/clusters", &body).await.json_with_status(201)["id"].as_str().unwrap().to_owned()
}

/// A job that is due, as one whose creator was killed.
async fn add_due_job(inventory: &Inventory, cluster: &str, attempts: u32) -> JobRecord {
    let work = JobWork::DeleteClusterFiles { cluster: cluster.parse().unwrap() };
    let (id, now) = (uuid::Uuid::new_v4(), Utc::now());
    let job = JobRecord {
        id,
        work,
        attempts,
        not_before: now - TimeDelta::seconds(1),
        deadline: now + TimeDelta::hours(1),
        last_error: None,
    };
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

/// The same inventory whose files cannot be deleted: their folder is a file.
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

#[test]
fn deletion_leaves_no_job_and_no_file() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        let file = put_file(service.inventory.files(), &cluster).await;
        service.delete(&format!("/v2/clusters/{cluster}")).await.json_with_status(204);
        assert!(service.inventory.files().get(&file).await.unwrap().is_none());
        assert_eq!(jobs(&service.inventory).await, []);
    });
}

#[test]
fn job_of_a_killed_process_is_completed() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        let file = put_file(service.inventory.files(), &cluster).await;
        // Before its first attempt, and during a later one.
        for attempts in [0, 3] {
            add_due_job(&service.inventory, &cluster, attempts).await;
        }
        let worker = tokio::spawn(service.inventory.clone().run_jobs());
        for _ in 0..500 {
            if jobs(&service.inventory).await.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        worker.abort();
        assert_eq!(jobs(&service.inventory).await, []);
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
        let made = outcomes.iter().filter(|outcome| **outcome == JobOutcome::WillRetry).count();
        assert_eq!(made, 1, "{outcomes:?}");
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
