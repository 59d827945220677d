//! `kindling simulate`: runs simulated hosts against any server with the API of the Assisted Installer.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use agent::simulated::{Fault, SimulatedSite};
use anyhow::{Context, Result, ensure};
use assisted::InfraEnvId;
use assisted::client::reqwest::Client;
use assisted::client::{ApiClient, ClientCredential};
use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{sleep, timeout};

use super::connection::{CertificateOptions, DEFAULT_URL};
use super::duration::parse_duration;
use super::output::{escape_controls, print_bytes, print_line, print_message};
use super::progress::status_line;
use super::serve::database::parse_secret;
use super::serve::value::parse_id;
use crate::inventory::Secret;
use crate::simulation::{
    Explanation, Simulation, SimulationError, SimulationOptions, SimulationReport, explain, read_profile,
};

/// Maximum number of hosts in one process.
const MAX_HOSTS: i64 = 100_000;
/// Maximum time to read hosts and clusters for `--explain`. Signals do not end the command during this time.
const EXPLAIN_TIMEOUT: Duration = Duration::from_secs(30);

const EXIT_CODES: &str = "Exit code: 0 the simulation ran until --duration was over or a signal ended it, 1 the server \
    or the infra-env is not available, no request succeeded or all agents gave up, 2 wrong usage.";

/// Simulate hosts that register, poll and reply, against any server
///
/// Each host runs the agent's protocol: it registers in the infra-env, polls for steps, and replies with reports
/// computed from a description of its hardware. Equal seeds make equal hosts. The server may be Kindling or an Assisted
/// Service. Installations are not simulated yet.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(super) struct Simulate {
    /// URL of the server, without the path of the API
    #[arg(long, value_name = "URL", default_value = DEFAULT_URL)]
    url: String,
    #[command(flatten)]
    certificates: CertificateOptions,
    /// Infra-env in which hosts register
    #[arg(long, value_name = "ID", value_parser = parse_id::<InfraEnvId>)]
    infra_env: InfraEnvId,
    /// Number of hosts [default: the number in the profile]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=MAX_HOSTS))]
    hosts: Option<u32>,
    /// Description of the hosts and their network: a YAML or JSON file, or sno, compact, standard or bench-small
    #[arg(long, value_name = "FILE|NAME", default_value = "compact")]
    profile: String,
    /// Fault of one host, of NUMBER hosts or of a part of them, such as no-ntp, slow-disk=3, packet-loss=10% or
    /// step:verify-vips=timeout=10%
    #[arg(long = "fault", value_name = "FAULT[=NUMBER]", value_parser = FaultOption::parse)]
    faults: Vec<FaultOption>,
    /// Number that decides ids, addresses, faulty hosts, latencies and pauses
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Pause between the polls of a host [default: the pause that the server asks for]
    #[arg(long, value_name = "DURATION", value_parser = parse_interval)]
    poll_interval: Option<Duration>,
    /// Maximum number of hosts to start per second
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    start_rate: u32,
    /// Maximum number of concurrent requests and connections
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    connections: u16,
    /// End after this time [default: run until a signal]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Token of the infra-env, from `kindling auth token --infra-env`
    #[arg(long, env = "PULL_SECRET_TOKEN", value_name = "TOKEN", value_parser = parse_secret)]
    token: Option<Secret>,
    /// Container image of the agent [default: the image that the server is configured with]
    #[arg(long, value_name = "IMAGE")]
    agent_version: Option<String>,
    /// Print a line of JSON at each report and at the end
    #[arg(long)]
    json: bool,
    /// At the end, print the statuses of hosts and clusters and the validations that do not pass, with what to do
    #[arg(long)]
    explain: bool,
    /// Time between reports [default: 10s with --json, 1s on a terminal]
    #[arg(long, value_name = "DURATION", value_parser = parse_interval)]
    report_interval: Option<Duration>,
}

/// A fault, and the hosts that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FaultOption {
    fault: Fault,
    hosts: FaultyHosts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultyHosts {
    Number(u32),
    Percent(u8),
}

impl FaultOption {
    fn parse(text: &str) -> Result<Self, String> {
        let (name, number) = Self::split_number(text);
        let fault = name.parse::<Fault>().map_err(|error| error.to_string())?;
        let hosts = match number.strip_suffix('%') {
            Some(percent) => percent.parse().ok().filter(|percent| *percent <= 100).map(FaultyHosts::Percent),
            None => number.parse().ok().map(FaultyHosts::Number),
        };
        let hosts = hosts.ok_or("expected a number of hosts or a percentage, such as 3 or 10%")?;
        Ok(Self { fault, hosts })
    }

    /// Splits a fault from the number of hosts, which defaults to 1. The fault of a step, such as
    /// `step:verify-vips=timeout=10%`, contains another `=` before the number.
    fn split_number(text: &str) -> (&str, &str) {
        let earlier = usize::from(text.starts_with("step:"));
        let Some((end, sign)) = text.match_indices('=').nth(earlier) else { return (text, "1") };
        let (name, number) = text.split_at(end);
        (name, number.strip_prefix(sign).unwrap_or(number))
    }

    /// Returns the number of faulty hosts out of `hosts`. A percentage results in at least one host.
    fn count(self, hosts: u32) -> u32 {
        match self.hosts {
            FaultyHosts::Number(number) => number,
            FaultyHosts::Percent(percent) => {
                u32::try_from((u64::from(hosts) * u64::from(percent)).div_ceil(100)).unwrap_or(hosts)
            }
        }
    }
}

/// Parses a time between two polls or reports.
fn parse_interval(text: &str) -> Result<Duration, String> {
    const MIN_INTERVAL: Duration = Duration::from_millis(100);
    let interval = parse_duration(text)?;
    if interval < MIN_INTERVAL { Err("expected at least 100ms".to_owned()) } else { Ok(interval) }
}

impl Simulate {
    pub(super) fn run(self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the async runtime")?;
        runtime.block_on(self.simulate())?;
        Ok(ExitCode::SUCCESS)
    }

    async fn simulate(self) -> Result<()> {
        let site = Arc::new(self.site()?);
        let client = self.client()?;
        let usual_interval = if self.json { Duration::from_secs(10) } else { Duration::from_secs(1) };
        let options = SimulationOptions {
            agent_version: self.agent_version,
            poll_interval: self.poll_interval,
            hosts_per_second: self.start_rate,
            connections: self.connections.into(),
            report_interval: self.report_interval.unwrap_or(usual_interval),
            boot_image: None,
        };
        let simulation = Simulation::new((&self.url, client.clone()), self.infra_env, site, options);
        let output = ReportOutput::new(self.json);
        let end = wait_for_end(self.duration)?;
        let end = async {
            tokio::select! {
                () = end => {}
                () = output.closed() => {}
            }
        };
        let result = simulation.run(end, |report| output.show(report)).await;
        let explanation = match &result {
            Ok(_) if self.explain => Some(EndExplanation::read(&client, self.infra_env).await),
            _ => None,
        };
        output.finish(result, explanation).await
    }

    fn site(&self) -> Result<SimulatedSite> {
        let profile = read_profile(&self.profile)?;
        let hosts = self.hosts.unwrap_or_else(|| profile.usual_hosts());
        ensure!(i64::from(hosts) <= MAX_HOSTS, "the profile has {hosts} hosts (limit {MAX_HOSTS})");
        let site = SimulatedSite::new(profile, hosts, self.seed)
            .with_context(|| format!("cannot simulate the profile {}", self.profile))?;
        Ok(self.faults.iter().fold(site, |site, fault| site.with_fault(fault.fault, fault.count(hosts))))
    }

    fn client(&self) -> Result<ApiClient> {
        let transport = Client::builder().pool_max_idle_per_host(self.connections.into());
        let mut builder = self.certificates.client_builder(&self.url, transport)?;
        if let Some(token) = &self.token {
            let token = assisted::Secret::new(token.reveal());
            builder = builder.credential(ClientCredential::Agent(token));
        }
        Ok(builder.build()?)
    }
}

/// Returns a future that completes after the duration, or after SIGINT or SIGTERM.
fn wait_for_end(duration: Option<Duration>) -> Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    Ok(async move {
        let over = async {
            match duration {
                Some(duration) => sleep(duration).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = over => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// The destination of reports.
enum ReportOutput {
    /// A line on a terminal, and text at the end.
    Terminal(ProgressBar),
    /// Lines of JSON. A separate task writes them, because hosts must not wait for a slow reader of the output. A new
    /// report replaces a report that is not written yet.
    Json { lines: watch::Sender<ReportLine>, writer: JoinHandle<Result<()>> },
}

#[derive(Clone, Debug, Serialize)]
struct ReportLine {
    event: &'static str,
    #[serde(flatten)]
    report: SimulationReport,
    #[serde(flatten)]
    explanation: Option<EndExplanation>,
}

/// The explanation that `--explain` prints, or the error that prevented it. It does not change the exit code.
#[derive(Clone, Debug, Serialize)]
enum EndExplanation {
    #[serde(rename = "explanation")]
    Complete(Explanation),
    #[serde(rename = "explanation_error")]
    Failed(String),
}

impl EndExplanation {
    async fn read(client: &ApiClient, infra_env: InfraEnvId) -> Self {
        match timeout(EXPLAIN_TIMEOUT, explain(client, infra_env)).await {
            Ok(Ok(explanation)) => Self::Complete(explanation),
            Ok(Err(error)) => Self::Failed(format!("{:#}", anyhow::Error::new(error))),
            Err(_) => Self::Failed(format!("not read within {} seconds", EXPLAIN_TIMEOUT.as_secs())),
        }
    }

    fn print(&self) -> Result<()> {
        match self {
            Self::Complete(explanation) => {
                let lines = explanation.lines();
                let text: String = lines.iter().map(|line| escape_controls(line) + "\n").collect();
                print_bytes(text.as_bytes())
            }
            Self::Failed(error) => {
                print_message(format_args!(
                    "Warning: cannot explain the statuses: {}\n",
                    escape_controls(error)
                ));
                Ok(())
            }
        }
    }
}

impl ReportOutput {
    fn new(is_json: bool) -> Self {
        if !is_json {
            return Self::Terminal(status_line());
        }
        let (lines, unwritten) = watch::channel(ReportLine::progress(&SimulationReport::default()));
        Self::Json { lines, writer: tokio::spawn(write_lines(unwritten)) }
    }

    /// Waits until the JSON writer has ended. On a terminal, waits forever.
    async fn closed(&self) {
        match self {
            Self::Terminal(_) => std::future::pending().await,
            Self::Json { lines, .. } => lines.closed().await,
        }
    }

    fn show(&self, report: &SimulationReport) {
        match self {
            Self::Terminal(line) => line.set_message(report.progress_line()),
            Self::Json { lines, .. } => {
                lines.send_replace(ReportLine::progress(report));
            }
        }
    }

    /// Shows the last report and the explanation, and waits until they are written.
    async fn finish(
        self,
        result: Result<SimulationReport, SimulationError>,
        explanation: Option<EndExplanation>,
    ) -> Result<()> {
        match self {
            Self::Terminal(line) => {
                line.finish_and_clear();
                print_bytes(result?.to_string().as_bytes())?;
                explanation.map_or(Ok(()), |explanation| explanation.print())
            }
            Self::Json { lines, writer } => {
                if let Ok(report) = &result {
                    lines.send_replace(ReportLine { event: "end", report: report.clone(), explanation });
                }
                drop(lines);
                writer.await.context("writing reports")??;
                result?;
                Ok(())
            }
        }
    }
}

impl ReportLine {
    fn progress(report: &SimulationReport) -> Self {
        Self { event: "progress", report: report.clone(), explanation: None }
    }
}

/// Writes the newest line after each change, until the sender is dropped.
async fn write_lines(mut lines: watch::Receiver<ReportLine>) -> Result<()> {
    while lines.changed().await.is_ok() {
        let line = serde_json::to_string(&*lines.borrow_and_update()).context("writing JSON")?;
        spawn_blocking(move || print_line(line)).await.context("writing to stdout")??;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_options_have_numbers_or_percentages() {
        let count = |text: &str, hosts| FaultOption::parse(text).map(|option| option.count(hosts));
        assert_eq!(count("no-ntp", 50), Ok(1));
        assert_eq!(count("no-ntp=7", 50), Ok(7));
        assert_eq!(count("no-ntp=10%", 50), Ok(5));
        assert_eq!(count("no-ntp=10%", 3), Ok(1));
        assert_eq!(count("no-ntp=100%", 100_000), Ok(100_000));
        assert_eq!(count("step:inventory=exit-1", 50), Ok(1));
        assert_eq!(count("step:inventory=timeout=10%", 50), Ok(5));
        let fault = FaultOption::parse("step:verify-vips=empty-output=3").unwrap().fault;
        assert_eq!(fault.to_string(), "step:verify-vips=empty-output");
        for text in ["no-power", "no-ntp=", "no-ntp=-1", "no-ntp=101%", "no-ntp=x%", "step:inventory=exit-1="]
        {
            assert!(FaultOption::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn unknown_names_in_fault_options_list_the_known_ones() {
        for (text, phrase) in [
            ("no-power=3", "step:STEP=FAILURE"),
            ("step:ntp=exit-1", r#"unknown step "ntp"; expected one of inventory, "#),
            (
                "step:inventory=exit-2",
                r#"unknown failure "exit-2" of step inventory; expected one of exit-1, "#,
            ),
            ("step:inventory", r#"unknown failure "" of step inventory; "#),
        ] {
            let error = FaultOption::parse(text).unwrap_err();
            assert!(error.contains(phrase), "{error}");
        }
    }

    #[test]
    fn rejects_intervals_that_are_too_short() {
        assert_eq!(parse_interval("5s"), Ok(Duration::from_secs(5)));
        for text in ["0", "99ms", "x"] {
            assert!(parse_interval(text).is_err(), "{text}");
        }
    }
}
