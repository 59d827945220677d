//! Load from agents: check-ins at a fixed rate, spread evenly over time, whether or not the server keeps up.
//!
//! The time of each check-in is fixed in advance, so a slow server does not reduce the load. A check-in that cannot
//! begin in time, because all connections are waiting for the server, counts as a miss. A failed check-in does too. A
//! measurement with misses is invalid.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};

use super::fleet::{AgentFleet, CheckInResult};
use crate::client::{Connection, Target};
use crate::interrupt;

/// Maximum number of concurrent check-ins. Each has its own connection, like the check-ins of real hosts.
const CONNECTIONS: usize = 32;
/// Delay after which the start of a check-in counts as late.
const LATE: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct AgentLoad<'a> {
    pub(crate) target: &'a Target,
    pub(crate) fleet: &'a AgentFleet,
    /// Check-ins per second.
    pub(crate) rate: f64,
    /// Number of check-ins so far, in all measurements. It selects the next host.
    pub(crate) turn: &'a AtomicUsize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoadTally {
    /// Number of check-ins that began.
    pub(crate) check_ins: u64,
    /// Number of replies to steps.
    pub(crate) replies: u64,
    /// Number of check-ins that began late or not at all.
    pub(crate) late: u64,
    /// Number of failed check-ins.
    pub(crate) failed: u64,
    pub(crate) failure: Option<String>,
}

impl LoadTally {
    pub(crate) fn misses(&self) -> u64 {
        self.late + self.failed
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.check_ins += other.check_ins;
        self.replies += other.replies;
        self.late += other.late;
        self.failed += other.failed;
        self.failure = self.failure.take().or(other.failure);
    }

    /// # Errors
    ///
    /// Returns an error with the first failure.
    pub(crate) fn require_answers(&self) -> Result<()> {
        match &self.failure {
            Some(failure) => {
                Err(anyhow!("{} of {} check-ins failed: {failure}", self.failed, self.check_ins))
            }
            None => Ok(()),
        }
    }
}

impl AgentLoad<'_> {
    /// Runs the load while `work` runs, and returns the results of both.
    ///
    /// # Errors
    ///
    /// Returns an error if `work` returns one, or if the bench was interrupted. Failed check-ins are part of the
    /// result.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, LoadTally)> {
        let schedule = Schedule { begun: Instant::now(), rate: self.rate, next: Mutex::new(0) };
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let lanes: Vec<_> =
                (0..CONNECTIONS).map(|_| scope.spawn(|| self.lane(&schedule, &is_over))).collect();
            let done = work();
            is_over.store(true, Ordering::Relaxed);
            let end = schedule.begun.elapsed();
            let mut tally = LoadTally::default();
            let joined: Vec<_> = lanes.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            for lane in joined {
                tally.add(lane.unwrap_or_else(|_| Err(anyhow!("a client panicked")))?);
            }
            tally.late += schedule.missing(end);
            interrupt::check()?;
            Ok((done?, tally))
        })
    }

    fn lane(&self, schedule: &Schedule, is_over: &AtomicBool) -> Result<LoadTally> {
        let mut tally = LoadTally::default();
        while let Some(late) = schedule.await_turn(is_over) {
            interrupt::check()?;
            tally.check_ins += 1;
            if late > LATE {
                tally.late += 1;
            }
            match self.check_in() {
                Ok(CheckInResult { replies, unanswered: None }) => tally.replies += replies,
                Ok(CheckInResult { replies, unanswered: Some(step) }) => {
                    tally.replies += replies;
                    tally.failed += 1;
                    tally.failure.get_or_insert(format!("no usual reply to the step {step}"));
                }
                Err(error) => {
                    tally.failed += 1;
                    tally.failure.get_or_insert(format!("{error:#}"));
                }
            }
        }
        Ok(tally)
    }

    fn check_in(&self) -> Result<CheckInResult> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let host = turn.checked_rem(self.fleet.hosts.len()).and_then(|at| self.fleet.hosts.get(at));
        let host = host.context("the fleet has no hosts")?;
        self.fleet.check_in(&mut Connection::open(self.target)?, self.target, host)
    }
}

/// The scheduled times of all check-ins.
struct Schedule {
    begun: Instant,
    rate: f64,
    /// Number of the next check-in. The thread that holds the lock waits for the time of that check-in, and all other
    /// idle threads wait for the lock. So only one thread wakes up for each check-in.
    next: Mutex<u32>,
}

impl Schedule {
    /// Waits for the next check-in, and returns how late it is; `None` if the load has ended.
    fn await_turn(&self, is_over: &AtomicBool) -> Option<Duration> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let due = self.due(*next);
        std::thread::sleep(due.saturating_sub(self.begun.elapsed()));
        if is_over.load(Ordering::Relaxed) {
            return None;
        }
        *next += 1;
        Some(self.begun.elapsed().saturating_sub(due))
    }

    /// Returns the scheduled time of a check-in, measured from the start of the load.
    fn due(&self, number: u32) -> Duration {
        Duration::from_secs_f64(f64::from(number) / self.rate)
    }

    /// Returns the number of check-ins that should have begun before `end` but have not.
    fn missing(&self, end: Duration) -> u64 {
        let next = *self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let is_missing = |number: &u32| self.due(*number) + LATE < end;
        (next..).take_while(is_missing).map(|_| 1).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::{Arc, Condvar};

    use super::*;
    use crate::agents::fleet::SimulatedHost;
    use crate::agents::hardware::ReportSize;

    const NTP: &str = "ntp-synchronizer";

    fn request(input: &mut BufReader<TcpStream>) -> Option<String> {
        let (mut first, mut len) = (String::new(), 0);
        input.read_line(&mut first).ok()?;
        loop {
            let mut line = String::new();
            if input.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                len = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                input.read_exact(&mut vec![0; len]).ok()?;
                return first.split(' ').next().map(str::to_owned);
            }
        }
    }

    /// Starts a server that returns one step with each check-in, once `gate` returns.
    fn server(step: &'static str, status: u16, gate: impl Fn() + Send + Sync + 'static) -> Target {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let gate = Arc::new(gate);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let gate = Arc::clone(&gate);
                std::thread::spawn(move || answer(stream, (step, status), &*gate));
            }
        });
        Target { address, authority: address.to_string(), path: String::new(), tls: None }
    }

    fn answer(mut output: TcpStream, (step, status): (&str, u16), gate: &dyn Fn()) {
        let steps = format!(
            r#"{{"post_step_action":"continue","instructions":[{{"step_type":"{step}","step_id":"1"}}]}}"#
        );
        let mut input = BufReader::new(output.try_clone().unwrap());
        while let Some(method) = request(&mut input) {
            let answer = if method == "GET" {
                gate();
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{steps}", steps.len())
            } else {
                format!("HTTP/1.1 {status} x\r\n\r\n")
            };
            output.write_all(answer.as_bytes()).unwrap();
        }
    }

    /// Runs a load while `work` runs. `work` is passed the number of check-ins so far.
    fn run(target: &Target, rate: f64, work: impl FnOnce(&AtomicUsize)) -> (LoadTally, usize) {
        let hosts = (0..3).map(|number| SimulatedHost::new("env", number)).collect();
        let fleet = AgentFleet::new(hosts, ReportSize::Small).unwrap();
        let turn = AtomicUsize::new(0);
        let load = AgentLoad { target, fleet: &fleet, rate, turn: &turn };
        let ((), tally) = load
            .during(|| {
                work(&turn);
                Ok(())
            })
            .unwrap();
        (tally, turn.into_inner())
    }

    fn until(count: usize) -> impl FnOnce(&AtomicUsize) {
        move |turn| {
            while turn.load(Ordering::Relaxed) < count {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    #[test]
    fn every_check_in_gets_a_response() {
        for step in [NTP, "inventory"] {
            let (tally, turns) = run(&server(step, 204, || {}), 500.0, until(20));
            assert!(turns >= 20);
            assert_eq!(tally.check_ins, u64::try_from(turns).unwrap());
            assert_eq!((tally.replies, tally.failed), (tally.check_ins, 0), "{tally:?}");
            tally.require_answers().unwrap();
        }
    }

    /// Runs a load on a server that responds only after all connections have waited for a while. The load ends when
    /// `caught_up` more check-ins have begun.
    fn run_blocked(caught_up: usize) -> LoadTally {
        let is_open = Arc::new((Mutex::new(false), Condvar::new()));
        let gate = Arc::clone(&is_open);
        let target = server(NTP, 204, move || {
            let (is_open, opened) = &*gate;
            drop(opened.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
        });
        let (tally, _) = run(&target, 100.0, |turn| {
            until(CONNECTIONS)(turn);
            std::thread::sleep(2 * LATE);
            assert_eq!(turn.load(Ordering::Relaxed), CONNECTIONS);
            let (is_open, opened) = &*is_open;
            *is_open.lock().unwrap() = true;
            opened.notify_all();
            until(CONNECTIONS + caught_up)(turn);
        });
        assert_eq!(tally.failed, 0, "{tally:?}");
        tally
    }

    #[test]
    fn check_ins_that_wait_for_a_connection_are_late() {
        assert!(run_blocked(70).late >= 20);
    }

    #[test]
    fn check_ins_without_a_free_connection_are_late() {
        assert!(run_blocked(0).late >= 20);
    }

    #[test]
    fn refused_replies_are_failures() {
        let (tally, _) = run(&server(NTP, 500, || {}), 500.0, until(10));
        assert_eq!((tally.replies, tally.failed), (0, tally.check_ins));
        let error = tally.require_answers().unwrap_err().to_string();
        assert!(error.contains("the status is 500, expected 204"), "{error}");
        let (tally, _) = run(&server("execute", 204, || {}), 500.0, until(10));
        assert!(tally.failure.unwrap().contains("no usual reply to the step execute"));
    }

    #[test]
    fn check_ins_are_spread_evenly() {
        let schedule = Schedule { begun: Instant::now(), rate: 10_000.0 / 60.0, next: Mutex::new(100) };
        assert_eq!(schedule.due(0), Duration::ZERO);
        assert_eq!(schedule.due(10_000), Duration::from_secs(60));
        // The first 100 check-ins have begun. Check-in 116 is due after 696 ms.
        assert_eq!(schedule.missing(Duration::from_millis(600)), 0);
        assert_eq!(schedule.missing(Duration::from_millis(697) + LATE), 17);
    }
}
