//! Measurements of one row of the result in one round.

use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::fleet::{AgentFleet, CheckInResult, SimulatedHost};
use super::images::ServerImages;
use super::listing::{self, MeasuredList};
use super::load::{AgentLoad, LoadTally};
use super::population::{CLUSTER_HOSTS, CLUSTERS, in_parallel, list_of_hosts};
use super::server::BenchServer;
use super::workload::{CONTROL, CORE_SHARE, CPU, FIRST_BYTE, PRIVATE_MEMORY, START, SUBJECT, Sizes};
use crate::client::Connection;
use crate::figures::{Better, Measure, float};
use crate::interrupt;
use crate::measure::{MIB, lower, milliseconds};
use crate::random::Random;
use crate::usage::{CpuTime, Memory, private_pages};

/// Time for which agents check in before the first range is requested.
const LEAD: Duration = Duration::from_millis(100);
/// Maximum length of a list in memory, in bytes. The list of clusters is the longest.
const MAX_KEPT: usize = 64 << 20;
const MICROSECONDS: &str = "\u{b5}s";

/// The number of a round, and the duration of its measurements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BenchRound {
    pub(crate) number: u64,
    pub(crate) time: Duration,
}

#[derive(Debug)]
pub(crate) struct RoundSample {
    pub(crate) contestant: &'static str,
    pub(crate) measures: Vec<Measure>,
    pub(crate) load: LoadTally,
}

impl BenchRound {
    /// Returns the subject and the control. Their order changes from round to round.
    pub(crate) fn sides<T>(self, subject: T, control: T) -> [(&'static str, T); 2] {
        let mut sides = [(SUBJECT, subject), (CONTROL, control)];
        if self.number.is_multiple_of(2) {
            sides.reverse();
        }
        sides
    }
}

impl RoundSample {
    pub(crate) fn of_subject(measures: Vec<Measure>) -> Self {
        Self { contestant: SUBJECT, measures, load: LoadTally::default() }
    }

    pub(crate) fn with_load(self, load: LoadTally) -> Self {
        Self { load, ..self }
    }
}

/// Two servers with the same hosts. Only the first sends images.
#[derive(Debug)]
pub(crate) struct ServerPair {
    pub(crate) first: BenchServer,
    pub(crate) second: BenchServer,
    pub(crate) fleet: AgentFleet,
    /// The images of the first server.
    pub(crate) images: ServerImages,
    pub(crate) sizes: Sizes,
    /// Number of check-ins so far.
    pub(crate) turn: AtomicUsize,
}

impl ServerPair {
    /// Measures ranges of the first server twice: while agents check in at that server, and while they check in at the
    /// second server.
    ///
    /// # Errors
    ///
    /// Returns an error if a range is wrong.
    pub(crate) fn ranges(&self, round: BenchRound) -> Result<Vec<RoundSample>> {
        let mut samples = Vec::new();
        for (contestant, agents_at) in round.sides(&self.first, &self.second) {
            let (measures, load) = self.load(agents_at).during(|| {
                std::thread::sleep(LEAD);
                self.images.read_ranges(&self.first, self.sizes.connections, round)
            })?;
            samples.push(RoundSample { contestant, measures, load });
        }
        Ok(samples)
    }

    /// Measures the CPU time of check-ins without downloads.
    ///
    /// # Errors
    ///
    /// Returns an error if the server has ended.
    pub(crate) fn check_ins(&self, round: BenchRound) -> Result<Vec<RoundSample>> {
        let before = CpuTime::read(self.first.pid())?;
        let (start, load) = self.load(&self.first).during(|| {
            let start = Instant::now();
            interrupt::sleep(round.time)?;
            Ok(start)
        })?;
        // Measure the actual duration, because check-ins that began in time may end late.
        let elapsed = start.elapsed();
        let cpu = CpuTime::read(self.first.pid())?.since(&before);
        Ok(vec![RoundSample::of_subject(cost_of_check_ins(cpu, elapsed, &load)).with_load(load)])
    }

    fn load<'a>(&'a self, server: &'a BenchServer) -> AgentLoad<'a> {
        AgentLoad { target: server.target(), fleet: &self.fleet, rate: self.sizes.rate, turn: &self.turn }
    }
}

/// Returns the CPU time of a server for check-ins, as a share of one core and for each check-in.
pub(crate) fn cost_of_check_ins(cpu: Duration, elapsed: Duration, load: &LoadTally) -> Vec<Measure> {
    let share = cpu.as_secs_f64() * 100.0 / elapsed.as_secs_f64();
    let each = cpu.as_secs_f64() * 1e6 / float(load.check_ins);
    vec![
        lower(CORE_SHARE, "%", share),
        lower("CPU time of a check-in", MICROSECONDS, each),
        Measure {
            name: "replies of a check-in",
            unit: "",
            better: Better::Neither,
            value: float(load.replies) / float(load.check_ins),
        },
    ]
}

#[derive(Debug)]
pub(crate) struct PopulatedServer {
    pub(crate) server: BenchServer,
    pub(crate) fleet: AgentFleet,
    pub(crate) infra_env: String,
    /// Version of the most recently changed report.
    pub(crate) version: u64,
}

impl PopulatedServer {
    /// Measures requests for steps.
    ///
    /// # Errors
    ///
    /// Returns an error if the server refuses one.
    pub(crate) fn steps(&self, round: BenchRound) -> Result<Vec<RoundSample>> {
        let target = self.server.target();
        self.each(round, &self.fleet.hosts, |connection, host, _| {
            let steps = self.fleet.ask(connection, target, host)?;
            ensure!(steps > 0, "the server wants nothing from a host");
            Ok(())
        })
    }

    /// Measures inventory reports of hosts in the first half, which never change.
    ///
    /// # Errors
    ///
    /// Returns an error if the server refuses one.
    pub(crate) fn same_reports(&self, round: BenchRound) -> Result<Vec<RoundSample>> {
        let (same, _) = self.halves();
        self.each(round, same, |connection, host, _| {
            self.fleet.report(connection, self.server.target(), (host, 0, "inventory-1"))
        })
    }

    /// Measures inventory reports of hosts in the second half, each with another size of the memory.
    ///
    /// # Errors
    ///
    /// Returns an error if the server refuses one.
    pub(crate) fn new_reports(&mut self, round: BenchRound) -> Result<Vec<RoundSample>> {
        let (_, changing) = self.halves();
        let first = self.version + 1;
        let mut last = self.version;
        let sample = self.each(round, changing, |connection, host, number| {
            last = first + number;
            self.fleet.report(connection, self.server.target(), (host, last, "inventory-1"))
        })?;
        self.version = last;
        Ok(sample)
    }

    fn halves(&self) -> (&[SimulatedHost], &[SimulatedHost]) {
        self.fleet.hosts.split_at(self.fleet.hosts.len() / 2)
    }

    /// Runs an operation with random hosts over one connection, one after another, and measures the CPU time of each.
    fn each(
        &self,
        round: BenchRound,
        hosts: &[SimulatedHost],
        mut operation: impl FnMut(&mut Connection, &SimulatedHost, u64) -> Result<()>,
    ) -> Result<Vec<RoundSample>> {
        let mut random = Random::new(round.number);
        let mut connection = self.server.connect()?;
        let before = CpuTime::read(self.server.pid())?;
        let start = Instant::now();
        let mut count = 0_u64;
        while start.elapsed() < round.time || count == 0 {
            let at = usize::try_from(random.below(u64::try_from(hosts.len())?))?;
            operation(&mut connection, hosts.get(at).context("there are no hosts")?, count)?;
            count += 1;
        }
        let cpu = CpuTime::read(self.server.pid())?.since(&before);
        let measure = lower(CPU, MICROSECONDS, cpu.as_secs_f64() * 1e6 / float(count));
        Ok(vec![RoundSample::of_subject(vec![measure])])
    }

    /// Measures the list of all hosts.
    ///
    /// # Errors
    ///
    /// Returns an error if the list is not whole.
    pub(crate) fn list(&self) -> Result<Vec<RoundSample>> {
        let list = listing::read(&self.server, &list_of_hosts(&self.infra_env), &mut |_| Ok(()))?;
        let hosts = u64::try_from(self.fleet.hosts.len())?;
        ensure!(list.items == hosts, "the list has {} of {hosts} hosts", list.items);
        Ok(vec![RoundSample::of_subject(of_list(&list))])
    }
}

/// Measures the list of all clusters.
///
/// # Errors
///
/// Returns an error if the list is not whole, or a cluster has another number of hosts.
pub(crate) fn clusters(server: &BenchServer, count: u32) -> Result<Vec<RoundSample>> {
    let mut body = Vec::new();
    let list = listing::read(server, CLUSTERS, &mut |bytes| {
        ensure!(body.len() + bytes.len() <= MAX_KEPT, "the list is longer than {MAX_KEPT} bytes");
        body.extend_from_slice(bytes);
        Ok(())
    })?;
    ensure!(list.items == u64::from(count), "the list has {} of {count} clusters", list.items);
    let clusters: Vec<Value> = serde_json::from_slice(&body).context("the list of clusters")?;
    for cluster in clusters {
        let hosts = cluster.get("total_host_count").and_then(Value::as_u64);
        ensure!(hosts == Some(u64::from(CLUSTER_HOSTS)), "a cluster has {hosts:?} hosts");
    }
    let mut measures = of_list(&list);
    let list = listing::read(server, &format!("{CLUSTERS}?with_hosts=true"), &mut |_| Ok(()))?;
    measures.push(lower("CPU time with hosts", "ms", milliseconds(list.cpu)));
    Ok(vec![RoundSample::of_subject(measures)])
}

pub(crate) fn of_list(list: &MeasuredList) -> Vec<Measure> {
    let len = Measure { name: "length", unit: "MiB", better: Better::Neither, value: float(list.len) / MIB };
    vec![
        lower(CPU, "ms", milliseconds(list.cpu)),
        lower(FIRST_BYTE, "ms", milliseconds(list.first_byte)),
        len,
    ]
}

/// Checks every host in once.
///
/// # Errors
///
/// Returns an error if a check-in fails.
pub(crate) fn check_in_once(server: &BenchServer, fleet: &AgentFleet) -> Result<()> {
    in_parallel(server.target(), &fleet.hosts, |connection, host| {
        let CheckInResult { unanswered, .. } = fleet.check_in(connection, server.target(), host)?;
        ensure!(unanswered.is_none(), "no usual reply to the step {unanswered:?}");
        Ok(())
    })
}

/// Measures the start of a server and, after each host has checked in, the memory.
///
/// # Errors
///
/// Returns an error if a check-in fails.
pub(crate) fn start(server: &BenchServer, fleet: &AgentFleet) -> Result<Vec<RoundSample>> {
    let memory = |name, bytes| lower(name, "MiB", float(bytes) / MIB);
    let mut measures = vec![
        lower(START, "ms", milliseconds(server.ready())),
        memory("private memory after the start", private_pages(server.pid())?),
    ];
    let before = CpuTime::read(server.pid())?;
    check_in_once(server, fleet)?;
    let cpu = CpuTime::read(server.pid())?.since(&before).as_secs_f64();
    let hosts = float(u64::try_from(fleet.hosts.len())?);
    measures.push(lower("CPU time of a first check-in", MICROSECONDS, cpu * 1e6 / hosts));
    measures.push(memory(PRIVATE_MEMORY, private_pages(server.pid())?));
    measures.push(memory("anonymous part of it", Memory::read(server.pid())?.private));
    Ok(vec![RoundSample::of_subject(measures)])
}
