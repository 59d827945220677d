use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::*;
use crate::error::Error;
use crate::service::MonitorHealth;
use crate::store::{Key, Kind};

const INTERVAL: Duration = Duration::from_secs(3600);
const TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behavior {
    Succeed,
    Fail,
    Panic,
    FailKeys,
    WaitForGate,
    ContinueWhileAllowed,
}

#[derive(Debug)]
struct FakeParts {
    behavior: Mutex<Behavior>,
    is_leader_only: bool,
    gate: Semaphore,
    /// Start time of each run, whether the run was full, and its marked keys.
    runs: Mutex<Vec<(Instant, bool, BTreeSet<Key>)>>,
    ended: AtomicUsize,
}

/// A task that records its runs.
#[derive(Clone, Debug)]
struct FakeTask(Arc<FakeParts>);

impl FakeTask {
    fn new(behavior: Behavior, is_leader_only: bool) -> Self {
        Self(Arc::new(FakeParts {
            behavior: Mutex::new(behavior),
            is_leader_only,
            gate: Semaphore::new(0),
            runs: Mutex::default(),
            ended: AtomicUsize::new(0),
        }))
    }

    fn runs(&self) -> Vec<(Instant, bool, BTreeSet<Key>)> {
        self.0.runs.lock().unwrap().clone()
    }

    fn set(&self, behavior: Behavior) {
        *self.0.behavior.lock().unwrap() = behavior;
    }

    fn ended(&self) -> usize {
        self.0.ended.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Task for FakeTask {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn interval(&self) -> Duration {
        INTERVAL
    }

    fn is_leader_only(&self) -> bool {
        self.0.is_leader_only
    }

    async fn run(&self, run: &TaskRun) -> Result<Option<Duration>, Error> {
        self.0.runs.lock().unwrap().push((Instant::now(), run.is_full, run.keys.clone()));
        let behavior = *self.0.behavior.lock().unwrap();
        let failure = || Error::internal("failed on purpose");
        let result = match behavior {
            Behavior::Succeed => Ok(None),
            Behavior::Fail => Err(failure()),
            Behavior::Panic => panic!("failed on purpose"),
            Behavior::FailKeys => {
                run.keys.iter().for_each(|key| run.fail_key(*key, &failure()));
                Ok(None)
            }
            Behavior::WaitForGate => {
                self.0.gate.acquire().await.unwrap().forget();
                Ok(None)
            }
            Behavior::ContinueWhileAllowed => {
                while run.may_continue().await? {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Ok(None)
            }
        };
        self.0.ended.fetch_add(1, Ordering::Relaxed);
        result
    }
}

/// A lease that another replica can take away.
#[derive(Clone, Debug, Default)]
struct FakeLease(Arc<(AtomicBool, AtomicUsize)>);

impl FakeLease {
    fn new(is_free: bool) -> Self {
        let lease = Self::default();
        lease.set_free(is_free);
        lease
    }

    fn set_free(&self, is_free: bool) {
        self.0.0.store(is_free, Ordering::Relaxed);
    }

    fn releases(&self) -> usize {
        self.0.1.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Lease for FakeLease {
    async fn hold(&self) -> Result<bool, Error> {
        Ok(self.0.0.load(Ordering::Relaxed))
    }

    async fn release(&self) {
        self.0.1.fetch_add(1, Ordering::Relaxed);
    }
}

/// A running driver with one fake task.
struct Fixture {
    task: FakeTask,
    states: TaskStates,
    driver: Arc<Driver>,
    end: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

impl Fixture {
    fn start(task: FakeTask, lease: &FakeLease) -> Self {
        let states = TaskStates::default();
        let driver = Arc::new(Driver::new(vec![Box::new(task.clone())], Box::new(lease.clone()), &states));
        let (end, ended) = oneshot::channel();
        let running = Arc::clone(&driver);
        let running = tokio::spawn(async move {
            let ended = async { drop(ended.await) };
            running.run(ended).await;
        });
        Self { task, states, driver, end, running }
    }

    fn mark(&self, key: Key) {
        self.driver.tasks[0].dirty.mark(key);
    }

    fn last_error(&self) -> Option<String> {
        self.states.find("fake").unwrap().last_error()
    }
}

fn key() -> Key {
    Key { kind: Kind::Cluster, parent: None, id: Uuid::new_v4() }
}

async fn wait(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Returns the pauses between the starts of runs, in whole seconds.
fn pauses(task: &FakeTask) -> Vec<u64> {
    let runs = task.runs();
    runs.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_secs()).collect()
}

#[tokio::test(start_paused = true)]
async fn many_marks_during_a_run_lead_to_one_further_run() {
    let fixture = Fixture::start(FakeTask::new(Behavior::WaitForGate, false), &FakeLease::new(true));
    wait(1).await;
    assert_eq!(fixture.task.runs().len(), 1);
    let key = key();
    for _ in 0..1000 {
        fixture.mark(key);
    }
    fixture.task.0.gate.add_permits(10);
    wait(60).await;
    let runs: Vec<_> = fixture.task.runs().into_iter().map(|(_, is_full, keys)| (is_full, keys)).collect();
    assert_eq!(runs, [(true, BTreeSet::new()), (false, BTreeSet::from([key]))]);
}

#[tokio::test(start_paused = true)]
async fn failing_task_is_retried_with_growing_pauses_and_its_error_is_visible() {
    for (behavior, error) in [(Behavior::Fail, "failed on purpose"), (Behavior::Panic, "the task panicked")] {
        let fixture = Fixture::start(FakeTask::new(behavior, false), &FakeLease::new(true));
        wait(10).await;
        assert_eq!(pauses(&fixture.task), [1, 2, 4]);
        assert_eq!(fixture.last_error().as_deref(), Some(error));
        assert_eq!(fixture.states.find("fake").unwrap().failures(), 4);
        fixture.task.set(Behavior::Succeed);
        wait(10).await;
        assert_eq!(pauses(&fixture.task), [1, 2, 4, 8]);
        assert_eq!(fixture.last_error(), None);
        wait(INTERVAL.as_secs()).await;
        assert_eq!(pauses(&fixture.task).len(), 5, "the next run is after the interval");
    }
}

#[tokio::test(start_paused = true)]
async fn failing_key_is_retried_alone_and_does_not_delay_others() {
    let fixture = Fixture::start(FakeTask::new(Behavior::FailKeys, false), &FakeLease::new(true));
    wait(1).await;
    let (failing, other) = (key(), key());
    fixture.mark(failing);
    wait(4).await;
    assert_eq!(fixture.last_error().as_deref(), Some("failed on purpose"));
    let before = fixture.task.runs().len();
    fixture.task.set(Behavior::Succeed);
    fixture.mark(other);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let keys = |run: usize| fixture.task.runs()[run].2.clone();
    assert_eq!(keys(before), BTreeSet::from([other]));
    wait(60).await;
    assert_eq!(fixture.task.runs().len(), before + 2);
    assert_eq!(keys(before + 1), BTreeSet::from([failing]));
}

#[tokio::test(start_paused = true)]
async fn drain_waits_for_the_run_and_starts_no_other() {
    let lease = FakeLease::new(true);
    let fixture = Fixture::start(FakeTask::new(Behavior::WaitForGate, true), &lease);
    let Fixture { task, driver, end, running, .. } = fixture;
    wait(1).await;
    assert_eq!(task.runs().len(), 1);
    driver.tasks[0].dirty.mark(key());
    end.send(()).unwrap();
    wait(2).await;
    assert!(!running.is_finished() && lease.releases() == 0);
    task.0.gate.add_permits(10);
    running.await.unwrap();
    assert_eq!((task.runs().len(), task.ended(), lease.releases()), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn drain_aborts_a_run_that_does_not_end() {
    let lease = FakeLease::new(true);
    let fixture = Fixture::start(FakeTask::new(Behavior::WaitForGate, true), &lease);
    wait(1).await;
    fixture.end.send(()).unwrap();
    let began = Instant::now();
    fixture.running.await.unwrap();
    assert_eq!(began.elapsed().as_secs(), DRAIN_TIME.as_secs());
    assert_eq!((fixture.task.runs().len(), fixture.task.ended(), lease.releases()), (1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn task_of_the_leader_does_not_run_without_the_lease() {
    let lease = FakeLease::new(false);
    let fixture = Fixture::start(FakeTask::new(Behavior::ContinueWhileAllowed, true), &lease);
    fixture.mark(key());
    wait(60).await;
    assert_eq!(fixture.task.runs().len(), 0);
    assert_eq!(fixture.states.monitor_health(TIMEOUT), Some(MonitorHealth::Standby));
    lease.set_free(true);
    wait(10).await;
    assert_eq!((fixture.task.runs().len(), fixture.task.ended()), (1, 0));
    assert_eq!(fixture.states.monitor_health(TIMEOUT), Some(MonitorHealth::Active));
    lease.set_free(false);
    wait(4).await;
    assert_eq!((fixture.task.runs().len(), fixture.task.ended()), (1, 1), "the run stops without the lease");
    fixture.end.send(()).unwrap();
    fixture.running.await.unwrap();
    assert_eq!(lease.releases(), 0, "only the leader releases the lease");
}

#[tokio::test(start_paused = true)]
async fn stalled_leader_releases_the_lease_and_becomes_stuck() {
    let lease = FakeLease::new(true);
    let fixture = Fixture::start(FakeTask::new(Behavior::WaitForGate, true), &lease);
    wait(60).await;
    assert_eq!(lease.releases(), 0);
    wait(90).await;
    assert_eq!(lease.releases(), 1);
    wait(TIMEOUT.as_secs()).await;
    assert_eq!(fixture.states.monitor_health(TIMEOUT), Some(MonitorHealth::Stuck));
    fixture.task.0.gate.add_permits(1);
    wait(10).await;
    assert_eq!(fixture.states.monitor_health(TIMEOUT), Some(MonitorHealth::Active));
}

#[tokio::test(start_paused = true)]
async fn lease_end_is_published_for_writers() {
    let lease = FakeLease::new(true);
    let fixture = Fixture::start(FakeTask::new(Behavior::Succeed, true), &lease);
    let end = fixture.states.subscribe_to_lease();
    let rest = || end.borrow().map(|end| (end - Instant::now()).as_secs_f64());
    for _ in 0..20 {
        wait(1).await;
        let rest = rest().unwrap();
        assert!((3.0..=9.0).contains(&rest), "{rest}");
    }
    lease.set_free(false);
    wait(6).await;
    assert_eq!(rest(), None);
    lease.set_free(true);
    wait(6).await;
    assert!(rest().is_some());
    fixture.end.send(()).unwrap();
    fixture.running.await.unwrap();
    assert_eq!((rest(), lease.releases()), (None, 1));
}
