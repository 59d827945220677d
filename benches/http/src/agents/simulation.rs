//! Check-ins of `kindling simulate`. Like real agents, its hosts omit a reply that the server already has.
//!
//! Suspended hosts would all poll at the same time afterwards, so the hosts poll one server
//! during the whole run. The ranges take turns instead: they are read from that server and, as the control, from
//! another server without hosts.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::images::ServerImages;
use super::listing;
use super::load::LoadTally;
use super::measure::{BenchRound, RoundSample, cost_of_check_ins, of_list};
use super::population::list_of_hosts;
use super::server::{AgentsFolder, BenchServer};
use super::workload::{PRIVATE_MEMORY, Sizes};
use crate::client::write_get;
use crate::exchange::ExpectedResponse;
use crate::figures::{Better, Measure, float};
use crate::interrupt;
use crate::measure::{MIB, lower};
use crate::process::Process;
use crate::usage::{CpuTime, private_pages};

/// Maximum time until all hosts have checked in twice. They poll once a minute.
const PATIENCE: Duration = Duration::from_secs(600);
/// A measurement is invalid if more than one tenth of the expected check-ins are missing.
const TOLERANCE: u64 = 10;
/// The status of hosts that have everything that an installation needs.
const KNOWN: &str = "known-unbound";

#[derive(Debug)]
pub(crate) struct SimulatedLoad {
    pub(crate) server: BenchServer,
    simulations: Vec<RunningSimulation>,
    sizes: Sizes,
}

#[derive(Debug)]
struct RunningSimulation {
    process: Process,
    output: PathBuf,
    infra_env: String,
    hosts: u32,
}

impl SimulatedLoad {
    /// Starts the hosts of all infra-envs, and waits until each has checked in twice.
    ///
    /// # Errors
    ///
    /// Returns an error if a simulation ends, or if the hosts take too long.
    pub(crate) fn start(
        server: BenchServer,
        infra_envs: &[String],
        house: &AgentsFolder,
        sizes: &Sizes,
    ) -> Result<Self> {
        let folder = house.path();
        // The simulations run a copy of the program, so that the pages of the server's program remain private.
        let program = folder.join("simulated-hosts");
        fs::copy(house.kindling(), &program).context("copying Kindling")?;
        let profile = folder.join("simulated-hosts.json");
        fs::write(&profile, profile_of_large_hosts().to_string())?;
        let parts = u32::try_from(infra_envs.len())?;
        let hosts = sizes.hosts / parts;
        let interval = (f64::from(sizes.hosts) / sizes.rate).to_string();
        let rate = (sizes.rate / f64::from(parts)).ceil().to_string();
        let mut simulations = Vec::new();
        for (seed, infra_env) in infra_envs.iter().enumerate() {
            let output = folder.join(format!("simulation-{seed}.jsonl"));
            let mut command = Command::new(&program);
            command.args(["simulate", "--url", &format!("http://{}", server.target().authority)]);
            command
                .args(["--infra-env", infra_env, "--hosts", &hosts.to_string(), "--profile"])
                .arg(&profile);
            command.args(["--seed", &seed.to_string(), "--start-rate", &rate]);
            command.args(["--poll-interval", &format!("{interval}s")]);
            // A report reads the list of hosts, which costs the server time, so it must not occur during the run.
            command.args(["--json", "--report-interval", "24h"]).stdout(File::create(&output)?);
            let process = Process::start("a simulation", &mut command, &folder.join("simulations.log"))?;
            simulations.push(RunningSimulation { process, output, infra_env: infra_env.clone(), hosts });
        }
        let mut load = Self { server, simulations, sizes: sizes.clone() };
        load.await_hosts(u64::from(hosts * parts))?;
        Ok(load)
    }

    fn await_hosts(&mut self, hosts: u64) -> Result<()> {
        let start = Instant::now();
        loop {
            self.simulations.iter_mut().try_for_each(|simulation| simulation.process.check())?;
            let polls = self.requests()?.polls;
            if polls >= 2 * hosts {
                return Ok(());
            }
            ensure!(start.elapsed() < PATIENCE, "{hosts} simulated hosts have polled only {polls} times");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn requests(&self) -> Result<AgentRequests> {
        let mut request = Vec::new();
        write_get(&mut request, &self.server.target().at("/metrics"), None);
        let metrics = self.server.connect()?.fetch(&request, ExpectedResponse::Status(200))?;
        AgentRequests::parse(std::str::from_utf8(&metrics)?)
    }

    /// Counts the requests of hosts while `work` runs.
    fn during<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, LoadTally)> {
        let (before, start) = (self.requests()?, Instant::now());
        let done = work()?;
        let interval = Duration::from_secs_f64(self.sizes.rate.recip());
        let expected = start.elapsed().as_nanos().checked_div(interval.as_nanos()).context("no check-ins")?;
        Ok((done, self.requests()?.since(before, u64::try_from(expected)?)))
    }

    /// Measures ranges of this server, and, as the control, of another server with the same images.
    ///
    /// # Errors
    ///
    /// Returns an error if a range is wrong.
    pub(crate) fn ranges(
        &self,
        own: &ServerImages,
        (other, others): (&BenchServer, &ServerImages),
        round: BenchRound,
    ) -> Result<Vec<RoundSample>> {
        let mut samples = Vec::new();
        for (contestant, (server, images)) in round.sides((&self.server, own), (other, others)) {
            let ranges = || images.read_ranges(server, self.sizes.connections, round);
            let (measures, load) = self.during(ranges)?;
            samples.push(RoundSample { contestant, measures, load });
        }
        Ok(samples)
    }

    /// Measures the CPU time of check-ins without downloads.
    ///
    /// # Errors
    ///
    /// Returns an error if a process has ended.
    pub(crate) fn check_ins(&self, round: BenchRound) -> Result<Vec<RoundSample>> {
        let (before, start) = (self.cpu()?, Instant::now());
        let ((), load) = self.during(|| interrupt::sleep(round.time))?;
        let after = self.cpu()?;
        let elapsed = start.elapsed();
        let mut measures = cost_of_check_ins(after.0.since(&before.0), elapsed, &load);
        let of_hosts: Duration =
            after.1.iter().zip(&before.1).map(|(after, before)| after.since(before)).sum();
        measures.push(Measure {
            name: "CPU time of the simulations, share of one core",
            unit: "%",
            better: Better::Neither,
            value: of_hosts.as_secs_f64() * 100.0 / elapsed.as_secs_f64(),
        });
        Ok(vec![RoundSample::of_subject(measures).with_load(load)])
    }

    /// Returns the CPU time of the server, and the CPU time of each simulation.
    fn cpu(&self) -> Result<(CpuTime, Vec<CpuTime>)> {
        let simulations = self.simulations.iter().map(|simulation| CpuTime::read(simulation.process.pid()));
        Ok((CpuTime::read(self.server.pid())?, simulations.collect::<Result<_>>()?))
    }

    /// Measures the list of the hosts of the first infra-env, and the memory of the server.
    ///
    /// # Errors
    ///
    /// Returns an error if the list is not whole.
    pub(crate) fn list(&self) -> Result<Vec<RoundSample>> {
        let simulation = self.simulations.first().context("there are no simulations")?;
        let read = || listing::read(&self.server, &list_of_hosts(&simulation.infra_env), &mut |_| Ok(()));
        let (list, load) = self.during(read)?;
        let hosts = u64::from(simulation.hosts);
        ensure!(list.items == hosts, "the list has {} of {hosts} hosts", list.items);
        let mut measures = of_list(&list);
        measures.push(lower(PRIVATE_MEMORY, "MiB", float(private_pages(self.server.pid())?) / MIB));
        // A list takes less than a second, which is too short to miss check-ins.
        Ok(vec![RoundSample::of_subject(measures).with_load(LoadTally { late: 0, ..load })])
    }

    /// Ends all simulations.
    ///
    /// # Errors
    ///
    /// Returns an error if a request from a host failed, or if a host does not have the expected status.
    pub(crate) fn end(self) -> Result<()> {
        for RunningSimulation { process, output, hosts, .. } in self.simulations {
            process.stop()?;
            let reports = fs::read_to_string(&output)?;
            let report: Value =
                serde_json::from_str(reports.lines().last().context("no report of a simulation")?)?;
            let part =
                |name| report.get(name).with_context(|| format!("no {name} in a report of a simulation"));
            let (errors, statuses) = (part("errors")?, part("statuses")?);
            ensure!(*errors == json!({}), "requests of simulated hosts failed: {errors}");
            ensure!(
                *statuses == json!({KNOWN: hosts}),
                "not all of {hosts} simulated hosts are known: {statuses}"
            );
        }
        Ok(())
    }
}

/// Returns a profile of hosts whose many disks and interfaces make inventory reports of 43 KiB.
fn profile_of_large_hosts() -> Value {
    let letters = || 'a'..='z';
    let names = letters().flat_map(|first| letters().map(move |second| format!("sd{first}{second}")));
    let disks: Vec<_> = names.take(92).map(|name| json!({"name": name, "size_gb": 480})).collect();
    let interfaces: Vec<_> = (1..=16).map(|number| json!({"name": format!("eno{number}")})).collect();
    json!({"groups": [{"name": "large", "disks": disks, "interfaces": interfaces}]})
}

/// Totals of the requests that hosts have sent to a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct AgentRequests {
    polls: u64,
    replies: u64,
    failed: u64,
}

impl AgentRequests {
    /// Parses the metrics of a server. Only hosts may use its API, because the metrics count all requests.
    fn parse(metrics: &str) -> Result<Self> {
        let mut requests = Self::default();
        for line in metrics.lines() {
            let Some((name, value)) = line.rsplit_once(' ') else { continue };
            let count = || value.parse::<u64>().with_context(|| line.to_owned());
            if name == "kindling_host_check_ins_total" {
                requests.polls = count()?;
            }
            let status = name.strip_prefix("kindling_requests_total{area=\"api\",status=\"");
            match status.and_then(|status| status.strip_suffix("\"}")) {
                Some("204") => requests.replies = count()?,
                Some(status) if !status.starts_with('2') => requests.failed += count()?,
                _ => {}
            }
        }
        Ok(requests)
    }

    /// Returns the requests since an earlier reading. `expected` is the number of polls that hosts should have sent
    /// since.
    fn since(self, earlier: Self, expected: u64) -> LoadTally {
        let check_ins = self.polls - earlier.polls;
        let failed = self.failed - earlier.failed;
        let missing = expected.saturating_sub(check_ins);
        LoadTally {
            check_ins,
            replies: self.replies - earlier.replies,
            late: if missing > expected / TOLERANCE { missing } else { 0 },
            failed,
            failure: (failed > 0).then(|| "the server refused a request".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = "\
# TYPE kindling_requests counter
kindling_requests_total{area=\"api\",status=\"200\"} 120
kindling_requests_total{area=\"api\",status=\"201\"} 3
kindling_requests_total{area=\"api\",status=\"204\"} 40
kindling_requests_total{area=\"api\",status=\"404\"} 2
kindling_requests_total{area=\"api\",status=\"503\"} 1
kindling_requests_total{area=\"images\",status=\"404\"} 7
kindling_host_check_ins_total 100
# EOF
";

    #[test]
    fn host_requests_are_read_from_metrics() {
        let requests = AgentRequests::parse(METRICS).unwrap();
        assert_eq!(requests, AgentRequests { polls: 100, replies: 40, failed: 3 });
        assert!(AgentRequests::parse("kindling_host_check_ins_total x").is_err());
    }

    #[test]
    fn too_few_check_ins_make_a_measurement_invalid() {
        let since =
            |polls| AgentRequests { polls, replies: 3, failed: 0 }.since(AgentRequests::default(), 100);
        assert_eq!(since(91), LoadTally { check_ins: 91, replies: 3, ..LoadTally::default() });
        assert_eq!(since(89).late, 11);
        assert_eq!(since(120).late, 0);
        let failed = AgentRequests { polls: 100, replies: 0, failed: 2 }.since(AgentRequests::default(), 100);
        assert_eq!((failed.failed, failed.require_answers().is_err()), (2, true));
    }
}
