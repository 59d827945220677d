//! Measures one contestant with one piece of work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::client::{Bounds, Connection, Sink, write_get};
use crate::exchange::ExpectedResponse;
use crate::figures::{Better, Measure, float, percentile};
use crate::fleet::{Client, Script, Tally, Until, run};
use crate::head::ContentRange;
use crate::random::Random;
use crate::servers::{FastPath, MeasuredServer, RunFiles, ServerKind, start_kindling, start_nginx};
use crate::usage::{CpuTime, Memory};
use crate::work::{Task, Work};
use crate::{infra_env, interrupt, slow};

pub(crate) const GIB: f64 = 1_073_741_824.0;
pub(crate) const MIB: f64 = 1_048_576.0;
/// The range that firmware reads first.
const FIRST_BYTES: Bounds = (0, 2047);
/// The number of boots of a machine is the measuring time divided by this.
const BOOTS_TIME: Duration = Duration::from_millis(200);

pub(crate) struct Conditions<'a> {
    pub(crate) place: &'a RunFiles,
    /// Duration of a measurement of rates.
    pub(crate) time: Duration,
    pub(crate) round: u64,
    /// Recorded reads of each machine.
    pub(crate) boots: &'a [Arc<[Bounds]>],
}

impl Conditions<'_> {
    /// Runs a piece of work against a contestant.
    ///
    /// # Errors
    ///
    /// Returns an error if a response is not the expected one.
    pub(crate) fn measure(&self, contestant: &MeasuredServer, work: Work) -> Result<Vec<Measure>> {
        match work.task {
            Task::Start => self.start(contestant, work),
            Task::Stream { clients } => {
                let (tally, cpu) = self.fleet(contestant, clients, |_| Script::Whole, self.elapsed())?;
                let gib = float(tally.bytes) / GIB;
                Ok(rates(&tally, cpu, &Unit { rate: "GiB/s", cost: "s/GiB", amount: gib, scale: 1.0 }))
            }
            Task::Ranges { len, connections } => {
                let script = |number| Script::Random { len, random: Random::new(self.seed(number)) };
                let (tally, cpu) = self.fleet(contestant, connections, script, self.elapsed())?;
                let amount = float(tally.requests);
                Ok(rates(
                    &tally,
                    cpu,
                    &Unit { rate: "requests/s", cost: "\u{b5}s/request", amount, scale: 1e6 },
                ))
            }
            Task::Replay { machines } => {
                let times = usize::try_from(self.time.as_millis().div_ceil(BOOTS_TIME.as_millis()))?;
                let script = |number| self.boot(number, machines);
                let (tally, cpu) = self.fleet(contestant, machines, script, Until::Replayed(times))?;
                let boots = if machines == 1 { self.boots.len() } else { machines };
                let amount = float(u64::try_from(times * boots)?);
                Ok(rates(&tally, cpu, &Unit { rate: "boots/s", cost: "ms/boot", amount, scale: 1e3 }))
            }
            Task::SlowReaders { readers } => self.slow_readers(contestant, readers),
            Task::NewImages { images } => new_images(contestant, images),
            Task::PostToFirstByte { images } => post_to_first_byte(contestant, images),
        }
    }

    /// Returns a seed for random ranges. Each round and each connection has its own ranges, which are the same for
    /// every contestant.
    fn seed(&self, number: u64) -> u64 {
        Random::new(self.round << 32 | number).next()
    }

    fn elapsed(&self) -> Until {
        Until::Elapsed(self.time)
    }

    /// Returns the requests of a machine: all recorded boots in turn if there is one machine, otherwise one boot per
    /// machine.
    fn boot(&self, number: u64, machines: usize) -> Script {
        let reads = if machines == 1 {
            self.boots.iter().flat_map(|reads| reads.iter().copied()).collect()
        } else {
            let at = usize::try_from(number).unwrap_or(0).checked_rem(self.boots.len()).unwrap_or(0);
            self.boots.get(at).cloned().unwrap_or_default()
        };
        Script::Replay { reads, asked: 0 }
    }

    fn fleet(
        &self,
        contestant: &MeasuredServer,
        count: usize,
        script: impl Fn(u64) -> Script,
        until: Until,
    ) -> Result<(Tally, Option<Duration>)> {
        let target = Arc::new(contestant.target.clone());
        let mut clients = Vec::with_capacity(count);
        for number in (0..).take(count) {
            interrupt::check()?;
            clients.push(Client::open(&target, contestant.total, script(number))?);
        }
        let before = contestant.pid.map(CpuTime::read).transpose()?;
        let tally = run(clients, until)?;
        let after = contestant.pid.map(CpuTime::read).transpose()?;
        Ok((tally, after.zip(before).map(|(after, before)| after.since(&before))))
    }

    fn start(&self, contestant: &MeasuredServer, work: Work) -> Result<Vec<Measure>> {
        let started = match contestant.kind {
            ServerKind::Kindling => {
                let data = self.place.folder.join("data-start");
                start_kindling(self.place, &data, work.transport, FastPath::On)?
            }
            ServerKind::Nginx(setting) => start_nginx(self.place, setting, work.transport)?,
            ServerKind::WithoutFastPath | ServerKind::Bare | ServerKind::Other => return Ok(Vec::new()),
        };
        Ok(vec![lower("time to the first response", "ms", milliseconds(started.ready))])
    }

    fn slow_readers(&self, contestant: &MeasuredServer, readers: usize) -> Result<Vec<Measure>> {
        let Some(pid) = contestant.pid else { return Ok(Vec::new()) };
        let plan = slow::SlowReadersPlan { readers, time: self.time };
        let most = slow::read(&contestant.target, contestant.total, pid, plan)?;
        let growth = most.saturating_sub(contestant.memory_before);
        Ok(vec![
            lower("private memory at most", "MiB", float(most) / MIB),
            Measure {
                name: "private memory more than at the start",
                unit: "MiB",
                better: Better::Neither,
                value: float(growth) / MIB,
            },
        ])
    }
}

/// Measures the memory after all work.
///
/// # Errors
///
/// Returns an error if the server has ended.
pub(crate) fn memory(contestant: &MeasuredServer) -> Result<Vec<Measure>> {
    let Some(pid) = contestant.pid else { return Ok(Vec::new()) };
    let memory = Memory::read(pid)?;
    let neither =
        |name, bytes| Measure { name, unit: "MiB", better: Better::Neither, value: float(bytes) / MIB };
    Ok(vec![
        neither("private memory at the end", memory.private),
        neither("mapped memory at the end", memory.mapped),
    ])
}

/// Requests the first bytes of images of new infra-envs, all at the same time.
fn new_images(contestant: &MeasuredServer, images: usize) -> Result<Vec<Measure>> {
    let mut connection = Connection::open(&contestant.target)?;
    let mut clients = Vec::with_capacity(images);
    for number in 0..images {
        interrupt::check()?;
        let path = infra_env::make(&mut connection, &contestant.target, &format!("new-{number}"))?;
        let target = Arc::new(contestant.target.at(&path));
        let script = Script::Replay { reads: [FIRST_BYTES].into(), asked: 0 };
        clients.push(Client::open(&target, contestant.total, script)?);
    }
    let tally = run(clients, Until::Once)?;
    latencies(["first bytes, median", "first bytes, 99th percentile"], &tally.latencies)
}

fn post_to_first_byte(contestant: &MeasuredServer, images: usize) -> Result<Vec<Measure>> {
    let mut connection = Connection::open(&contestant.target)?;
    let mut times = Vec::with_capacity(images);
    for number in 0..images {
        let start = Instant::now();
        let path = infra_env::make(&mut connection, &contestant.target, &format!("post-{number}"))?;
        let mut request = Vec::new();
        write_get(&mut request, &contestant.target.at(&path), Some((0, 0)));
        let first = ContentRange { first: 0, last: 0, total: contestant.total };
        connection.ask(&request, ExpectedResponse::Part(first), &mut Sink::Discard)?;
        times.push(start.elapsed());
    }
    latencies(["POST to first byte, median", "POST to first byte, 99th percentile"], &times)
}

fn latencies(names: [&'static str; 2], times: &[Duration]) -> Result<Vec<Measure>> {
    let mut times: Vec<f64> = times.iter().copied().map(milliseconds).collect();
    let mut measures = Vec::new();
    for (name, hundredths) in names.into_iter().zip([50, 99]) {
        let value = percentile(&mut times, hundredths).context("nothing was measured")?;
        measures.push(lower(name, "ms", value));
    }
    Ok(measures)
}

struct Unit {
    rate: &'static str,
    cost: &'static str,
    /// Number of operations.
    amount: f64,
    /// Factor from seconds to the unit of costs.
    scale: f64,
}

fn rates(tally: &Tally, cpu: Option<Duration>, unit: &Unit) -> Vec<Measure> {
    let cost = |time: Duration| time.as_secs_f64() * unit.scale / unit.amount;
    let value = unit.amount / tally.elapsed.as_secs_f64();
    let mut measures = vec![Measure { name: "rate", unit: unit.rate, better: Better::Higher, value }];
    measures.extend(cpu.map(|cpu| lower("CPU time of the server", unit.cost, cost(cpu))));
    measures.push(Measure {
        name: "CPU time of the client",
        unit: unit.cost,
        better: Better::Neither,
        value: cost(tally.cpu),
    });
    measures
}

pub(crate) fn lower(name: &'static str, unit: &'static str, value: f64) -> Measure {
    Measure { name, unit, better: Better::Lower, value }
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
