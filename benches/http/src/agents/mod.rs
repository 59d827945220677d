//! Checks that an inventory with 10,000 hosts does not slow image downloads, and measures what hosts cost.
//!
//! Every measured value is a ratio to a control in the same round, or the CPU time of the server. Only the start and
//! the first byte of a list are times. A whole run fails if a value misses its bound. `docs/scale.md` has the details.

mod database;
mod fleet;
mod hardware;
mod images;
mod listing;
mod load;
mod measure;
mod population;
mod report;
mod server;
mod simulation;
mod workload;

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use self::database::{DatabaseServer, ServerData};
use self::fleet::AgentFleet;
use self::images::ServerImages;
use self::load::LoadTally;
use self::measure::{BenchRound, PopulatedServer, RoundSample, ServerPair};
use self::population::Population;
use self::report::{Report, ResultRow};
use self::server::{AgentsFolder, BenchServer};
use self::simulation::SimulatedLoad;
use self::workload::{DataSet, Sizes, Workload};
use crate::figures::Line;
use crate::machine::{self, Machine};
use crate::options::AgentsOptions;
use crate::{bench, interrupt};

/// Maximum duration of a warm-up measurement.
const WARM_UP: Duration = Duration::from_secs(1);

/// Measures all selected rows.
///
/// # Errors
///
/// Returns an error if Kindling fails or sends a wrong response. A short run also fails if a check-in fails; a whole
/// run reports failed check-ins.
pub(crate) fn run(options: &AgentsOptions) -> Result<Report> {
    let machine = Machine::detect();
    machine::raise_limit_of_files()?;
    let workloads = workload::chosen(options.only.as_deref());
    ensure!(!workloads.is_empty(), "no row matches {:?}", options.only);
    let sizes = Sizes::new(options.size());
    let database = DatabaseServer::from_url(options.database.as_deref())?;
    let folder = bench::temporary_folder(options.folder.as_deref())?;
    let kindling = bench::kindling(options.kindling.as_deref())?;
    let report = Report {
        machine,
        version: machine::version(&kindling, "--version")?,
        command: options.command_line(),
        database: database.title().to_owned(),
        rounds: options.rounds(),
        seconds: options.time().as_secs_f64(),
        sizes: sizes.clone(),
        rows: Vec::new(),
    };
    let house = AgentsFolder::new(folder.path(), kindling, (database, sizes.image_mib))?;
    let mut bench = Bench { options, house, sizes, report };
    for data in DataSet::ALL {
        let workloads: Vec<Workload> =
            workloads.iter().copied().filter(|workload| workload.data() == data).collect();
        if !workloads.is_empty() {
            bench.measure_data_set(data, &workloads).with_context(|| data.name())?;
        }
    }
    Ok(bench.report)
}

struct Bench<'a> {
    options: &'a AgentsOptions,
    house: AgentsFolder,
    sizes: Sizes,
    report: Report,
}

impl Bench<'_> {
    fn measure_data_set(&mut self, data: DataSet, workloads: &[Workload]) -> Result<()> {
        eprintln!("{}: filling the inventory", data.name());
        let server = self.house.start(self.house.create(data.name())?)?;
        if data == DataSet::Simulated {
            return self.on_simulated_hosts(server, workloads);
        }
        let Some(plan) = self.sizes.plan(data) else {
            population::clusters(server.target(), self.sizes.clusters)?;
            let count = self.sizes.clusters;
            return self.rows(workloads, |_, _| measure::clusters(&server, count));
        };
        let Population { infra_envs, fleet } = population::hosts(server.target(), plan)?;
        if data == DataSet::Networks {
            return self.on_networks(server.stop()?, Population { infra_envs, fleet }, workloads);
        }
        let infra_env = infra_envs.first().context("no infra-env")?.clone();
        let mut hosts = PopulatedServer { server, fleet, infra_env, version: 0 };
        self.rows(workloads, |workload, round| match workload {
            Workload::Steps => hosts.steps(round),
            Workload::SameReport => hosts.same_reports(round),
            Workload::NewReport => hosts.new_reports(round),
            _ => hosts.list(),
        })
    }

    fn on_networks(
        &mut self,
        storage: ServerData,
        population: Population,
        workloads: &[Workload],
    ) -> Result<()> {
        let Population { infra_envs, fleet } = population;
        let (alone, paired): (Vec<Workload>, Vec<Workload>) =
            workloads.iter().partition(|workload| **workload == Workload::Start);
        if !paired.is_empty() {
            let pair = self.pair(&storage, &infra_envs, fleet.clone())?;
            self.rows(&paired, |workload, round| match workload {
                Workload::Ranges => pair.ranges(round),
                _ => pair.check_ins(round),
            })?;
        }
        // Measure the row `start` while no other server runs: only then are the pages of the program private.
        self.starts(storage, &fleet, &alone)
    }

    fn on_simulated_hosts(&mut self, empty: BenchServer, workloads: &[Workload]) -> Result<()> {
        let Sizes { infra_envs, networks, .. } = self.sizes;
        let infra_envs = population::infra_envs(empty.target(), infra_envs, networks)?;
        let storage = empty.stop()?;
        let server = self.house.start(self.house.copy("first", &storage)?)?;
        let load = SimulatedLoad::start(server, &infra_envs, &self.house, &self.sizes)?;
        let (alone, paired): (Vec<Workload>, Vec<Workload>) =
            workloads.iter().partition(|workload| **workload == Workload::SimulatedList);
        // Measure the list before a second server shares the pages of the program, and before pages of the base image
        // are mapped.
        self.rows(&alone, |_, _| load.list())?;
        if !paired.is_empty() {
            let second = self.house.start(self.house.copy("second", &storage)?)?;
            let images = ServerImages::read(&load.server, &infra_envs)?;
            let of_second = ServerImages::read(&second, &infra_envs)?;
            self.rows(&paired, |workload, round| match workload {
                Workload::SimulatedRanges => load.ranges(&images, (&second, &of_second), round),
                _ => load.check_ins(round),
            })?;
        }
        load.end()
    }

    fn starts(&mut self, storage: ServerData, fleet: &AgentFleet, workloads: &[Workload]) -> Result<()> {
        let house = self.house.clone();
        let mut storage = Some(storage);
        self.rows(workloads, |_, _| {
            let server = house.start(storage.take().context("the data of the server is gone")?)?;
            let sample = measure::start(&server, fleet);
            storage = Some(server.stop()?);
            sample
        })
    }

    /// Starts two servers on copies of the same data, and reads all images once.
    fn pair(&self, storage: &ServerData, infra_envs: &[String], fleet: AgentFleet) -> Result<ServerPair> {
        let first = self.house.start(self.house.copy("first", storage)?)?;
        let second = self.house.start(self.house.copy("second", storage)?)?;
        // The hosts poll every minute. The first poll of a host after a start costs more, and only the row `start`
        // measures it.
        for server in [&first, &second] {
            measure::check_in_once(server, &fleet)?;
        }
        let images = ServerImages::read(&first, infra_envs)?;
        let (sizes, turn) = (self.sizes.clone(), AtomicUsize::new(0));
        Ok(ServerPair { first, second, fleet, images, sizes, turn })
    }

    /// Runs all rounds of each row.
    fn rows(
        &mut self,
        workloads: &[Workload],
        mut measure: impl FnMut(Workload, BenchRound) -> Result<Vec<RoundSample>>,
    ) -> Result<()> {
        for workload in workloads {
            let mut row = ResultRow {
                line: Line::new(workload.key(), &workload.title(&self.sizes)),
                load: LoadTally::default(),
            };
            eprintln!("{}: {}", row.line.key, row.line.title);
            for number in 0..=self.options.rounds() {
                interrupt::check()?;
                let is_warm_up = number == 0;
                if is_warm_up && (self.options.quick || *workload == Workload::Start) {
                    continue;
                }
                let time = if is_warm_up { self.options.time().min(WARM_UP) } else { self.options.time() };
                let samples = measure(*workload, BenchRound { number, time });
                let samples = samples.with_context(|| workload.key())?;
                if self.options.quick {
                    samples.iter().try_for_each(|sample| sample.load.require_answers())?;
                }
                if !is_warm_up {
                    samples.into_iter().for_each(|sample| row.add(sample));
                }
            }
            self.report.rows.push(row);
        }
        Ok(())
    }
}
