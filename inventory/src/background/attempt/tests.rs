use futures_util::future::join_all;
use ignition::discovery::HttpUrl;
use tempfile::TempDir;

use super::*;
use crate::Settings;
use crate::auth::Policy;
use crate::catalogue::Catalogue;
use crate::files::FileStore;
use crate::store::SqlStore;

/// The smallest valid catalogue.
const OS_IMAGES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64",
    "url": "http://192.0.2.1/418.iso", "version": "418.94.1"}]"#;

async fn open_inventory() -> (Inventory, TempDir) {
    let directory = TempDir::new().unwrap();
    let store = SqlStore::open_file(&directory.path().join("kindling.db")).await.unwrap();
    let files = FileStore::in_directory(&directory.path().join("files")).unwrap();
    let url = HttpUrl::parse("origin", "http://192.0.2.1").unwrap();
    let settings = Settings::new(url.clone(), url);
    let catalogue = Catalogue::parse(OS_IMAGES).unwrap();
    (Inventory::new(std::sync::Arc::new(store), files, catalogue, settings, Policy::Open), directory)
}

async fn add_job(inventory: &Inventory, cluster: ClusterId) -> Uuid {
    let job = JobRecord::new(JobWork::DeleteClusterFiles { cluster }, inventory.now());
    let plan = |_: ReadSet| {
        let job = &job;
        async move {
            let mut change = Change::new();
            change.insert(job)?;
            Ok((change, ()))
        }
    };
    inventory.records().change(plan).await.unwrap();
    job.id
}

async fn begin(inventory: &Inventory, id: Uuid) -> Result<Attempt, JobOutcome> {
    Attempt::begin(inventory, id).await.unwrap()
}

#[tokio::test]
async fn jobs_with_one_exclusive_key_never_run_at_the_same_time() {
    const JOBS: usize = 8;
    let (inventory, _directory) = open_inventory().await;
    let cluster = ClusterId::fresh();
    let mut jobs = Vec::new();
    for _ in 0..JOBS {
        jobs.push(add_job(&inventory, cluster).await);
    }
    let other = add_job(&inventory, ClusterId::fresh()).await;
    for left in (1..=JOBS).rev() {
        let attempts = join_all(jobs.iter().map(|id| begin(&inventory, *id))).await;
        let (running, waiting): (Vec<_>, Vec<_>) = attempts.into_iter().partition(Result::is_ok);
        assert_eq!((running.len(), waiting.len()), (1, left - 1));
        assert!(
            waiting.into_iter().all(|outcome| outcome.is_err_and(|outcome| outcome == JobOutcome::Waiting))
        );
        let Some(Ok(attempt)) = running.into_iter().next() else { panic!("no attempt") };
        if left == JOBS {
            assert_eq!(inventory.run_job(other).await, JobOutcome::Done, "another key does not wait");
        }
        assert_eq!(attempt.complete(async { Ok(()) }).await.unwrap(), JobOutcome::Done);
        jobs.retain(|id| *id != attempt.job.id);
    }
    assert_eq!(read_jobs(&inventory).await.unwrap(), []);
}

#[tokio::test]
async fn progress_is_stored_every_few_seconds_and_does_not_end_the_attempt() {
    let (inventory, _directory) = open_inventory().await;
    let id = add_job(&inventory, ClusterId::fresh()).await;
    let Ok(attempt) = begin(&inventory, id).await else { panic!("no attempt") };
    let progress = attempt.progress();
    let stored = async || read_jobs(&inventory).await.unwrap().remove(0).progress;
    let work = async {
        progress.report(|| "early".to_owned()).await;
        assert_eq!(stored().await, None);
        *progress.written_at.lock().unwrap() -= PROGRESS_INTERVAL;
        for text in ["1 of 3", "2 of 3"] {
            progress.report(|| text.to_owned()).await;
            assert_eq!(stored().await.as_deref(), Some("1 of 3"));
        }
        Err("failed on purpose".to_owned())
    };
    assert_eq!(attempt.complete(work).await.unwrap(), JobOutcome::WillRetry);
    let job = read_jobs(&inventory).await.unwrap().remove(0);
    assert_eq!((job.progress, job.running_until), (None, None));
    assert_eq!(job.last_error.as_deref(), Some("failed on purpose"));
}

#[tokio::test]
async fn cancellation_stops_a_running_attempt() {
    let (inventory, _directory) = open_inventory().await;
    let id = add_job(&inventory, ClusterId::fresh()).await;
    let Ok(attempt) = begin(&inventory, id).await else { panic!("no attempt") };
    let cancel = async {
        assert!(inventory.cancel_job(id).await.unwrap());
        std::future::pending::<Result<(), String>>().await
    };
    assert_eq!(attempt.complete(cancel).await.unwrap(), JobOutcome::Gone);
}
