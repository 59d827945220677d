//! A run: starts the servers, warms them up, checks that they send the same bytes, and measures them in turns.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::bare::SendMethod;
use crate::client::{Bounds, Connection, Target};
use crate::figures::Line;
use crate::machine::{self, Machine};
use crate::measure::{Conditions, memory};
use crate::options::Options;
use crate::report::Report;
use crate::servers::{
    FastPath, MeasuredServer, NGINX, NginxSetting, RunFiles, ServerKind, StartedServer, Transport, at_url,
    length, parse_url, start_bare, start_kindling, start_nginx,
};
use crate::work::{Task, Work};
use crate::{base, certificate, infra_env, interrupt, traces};

const SUBJECT: &str = "kindling";
/// Kindling without its fast path.
pub(crate) const WITHOUT_FAST_PATH: &str = "kindling --fast-path off";
/// Maximum duration of a warm-up measurement.
const WARM_UP: Duration = Duration::from_millis(200);

/// Measures all selected work.
///
/// # Errors
///
/// Returns an error if a server does not start or sends a wrong response.
pub(crate) fn run(options: &Options) -> Result<Report> {
    let machine = Machine::detect();
    if machine.congestion.starts_with("bbr") {
        eprintln!(
            "TCP congestion control is bbr, whose timers distort rates: see Caveats in docs/performance.md"
        );
    }
    machine::raise_limit_of_files()?;
    let folder = temporary_folder(options.folder.as_deref())?;
    let place = RunFiles {
        folder: folder.path().to_owned(),
        kindling: kindling(options.kindling.as_deref())?,
        nginx: options.nginx.clone(),
        base: folder.path().join("base.iso"),
    };
    certificate::write(&place.folder)?;
    eprintln!("Writing an image of {} MiB", options.rootfs_len() >> 20);
    base::write(&place.base, options.rootfs_len())?;
    let mut bench = Bench { options, rival: None, report: report(options, machine, &place)?, place };
    if let Some(url) = &options.url {
        bench.rival = Some(parse_url(url, options.ca.as_deref())?);
    }
    ensure!(!options.works().is_empty(), "no work matches {:?}", options.only);
    for transport in [Transport::Plain, Transport::Tls] {
        bench.measure_over_transport(transport)?;
    }
    ensure!(!bench.report.lines.is_empty(), "no work matches for that URL");
    Ok(bench.report)
}

fn report(options: &Options, machine: Machine, place: &RunFiles) -> Result<Report> {
    let version = machine::version(&place.kindling, "--version")?;
    let mut contestants = vec![(SUBJECT.to_owned(), version)];
    if options.url.is_some() {
        contestants.push((options.name.clone(), String::new()));
    } else {
        let version = machine::version(&place.nginx, "-v")?;
        contestants.extend(NginxSetting::ALL.map(|setting| (setting.name().to_owned(), version.clone())));
    }
    Ok(Report {
        machine,
        command: options.command_line(),
        rounds: options.rounds(),
        seconds: options.time().as_secs_f64(),
        image_len: 0,
        subject: SUBJECT.to_owned(),
        contestants,
        suites: Vec::new(),
        lines: Vec::new(),
        bare: Vec::new(),
        without_fast_path: Vec::new(),
        nginx: if options.url.is_some() { String::new() } else { NGINX.to_owned() },
    })
}

/// Creates a temporary folder, which is removed when the value is dropped.
///
/// # Errors
///
/// Returns an error if the folder cannot be created.
pub(crate) fn temporary_folder(parent: Option<&Path>) -> Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("bench-http.");
    let folder = match parent {
        Some(folder) => builder.tempdir_in(folder),
        None => builder.tempdir(),
    }
    .context("making a temporary folder")?;
    // Workers of nginx may run as another user, which must be able to read the folder.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    fs::create_dir(folder.path().join("files"))?;
    fs::write(folder.path().join("files/ready"), "ready\n")?;
    Ok(folder)
}

/// Returns the program to measure, and builds it if necessary.
///
/// # Errors
///
/// Returns an error if the program is missing and cannot be built.
pub(crate) fn kindling(path: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = path {
        return path.canonicalize().with_context(|| format!("{}", path.display()));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let path = target.join("dist/kindling");
    if !path.exists() {
        eprintln!("Building kindling");
        let mut command = Command::new("cargo");
        command.args(["build", "--profile", "dist", "--quiet", "-p", "kindling"]).current_dir(&root);
        let status = command.status().context("running cargo")?;
        ensure!(status.success(), "cargo build: {status}");
    }
    path.canonicalize().with_context(|| format!("{}", path.display()))
}

/// Creates an infra-env, whose full ISO this server serves.
fn with_image(started: StartedServer, name: &str, kind: ServerKind) -> Result<MeasuredServer> {
    let path = infra_env::make(&mut Connection::open(&started.target)?, &started.target, "bench")?;
    let total = length(&started.target.at(&path))?;
    Ok(started.takes_part(name, kind, &path, total))
}

/// Downloads the whole file once to warm the server up, and checks its bytes.
fn check_sent_bytes(contestant: &MeasuredServer, image: &Path, digest: &str) -> Result<()> {
    let received = base::download(&contestant.target, contestant.total, None)?;
    ensure!(received == digest, "the server sends wrong bytes: SHA-256 {received}, expected {digest}");
    base::compare_ranges(&contestant.target, image)
}

struct Bench<'a> {
    options: &'a Options,
    place: RunFiles,
    /// The server to measure instead of nginx.
    rival: Option<(Target, Transport)>,
    report: Report,
}

impl Bench<'_> {
    /// Measures all work over one transport.
    fn measure_over_transport(&mut self, transport: Transport) -> Result<()> {
        let mut works = self.options.works();
        works.retain(|work| work.transport == transport);
        let is_the_rivals = self.rival.as_ref().is_none_or(|(_, of)| *of == transport);
        if works.is_empty() || !is_the_rivals {
            return Ok(());
        }
        let contestants = self.contestants(transport)?;
        let total = contestants.first().map_or(0, |subject| subject.total);
        self.report.image_len = total;
        let boots = self.load_boot_traces(total)?;
        for work in works {
            self.measure_work(&contestants, work, &boots)?;
        }
        let mut line = Line::new(
            &format!("memory-{}", transport.title().to_lowercase()),
            &format!("{}, all servers", transport.title()),
        );
        for contestant in contestants.iter().filter(|one| !one.kind.is_apart()) {
            line.add(&contestant.name, &memory(contestant)?);
        }
        self.report.lines.push(line);
        Ok(())
    }

    fn load_boot_traces(&self, total: u64) -> Result<Vec<Arc<[Bounds]>>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces");
        Ok(traces::open_all(&folder)?.iter().map(|reads| traces::mapped_to(reads, total).into()).collect())
    }

    /// Starts all contestants, warms them up with their whole file, and checks that all send the same bytes.
    fn contestants(&mut self, transport: Transport) -> Result<Vec<MeasuredServer>> {
        eprintln!("Starting servers for {}", transport.title());
        let data = self.place.folder.join(format!("data-{}", transport.title()));
        let kindling = start_kindling(&self.place, &data, transport, FastPath::On)?;
        let mut contestants = vec![with_image(kindling, SUBJECT, ServerKind::Kindling)?];
        let total = contestants.first().map_or(0, |subject| subject.total);
        let image = self.place.image();
        let mut digest = String::new();
        if let Some(subject) = contestants.first() {
            let mut file = File::create(&image)?;
            digest = base::download(&subject.target, total, Some(&mut file)).context("kindling")?;
            file.sync_all()?;
            let reported = infra_env::digest(&subject.target)?;
            ensure!(reported == digest, "kindling reports SHA-256 {reported}, but sends bytes with {digest}");
            base::compare_ranges(&subject.target, &image).context("kindling")?;
        }
        if let Some((target, _)) = &self.rival {
            let rival = at_url(&self.options.name, target, self.options.pid)?;
            base::download(&rival.target, rival.total, None).with_context(|| rival.name.clone())?;
            contestants.push(rival);
        } else {
            for setting in NginxSetting::ALL {
                let started = start_nginx(&self.place, setting, transport)?;
                let nginx =
                    started.takes_part(setting.name(), ServerKind::Nginx(setting), "/image.iso", total);
                check_sent_bytes(&nginx, &image, &digest).context(setting.name())?;
                contestants.push(nginx);
            }
        }
        if self.options.without_fast_path {
            let data = data.with_extension("without-fast-path");
            let started = start_kindling(&self.place, &data, transport, FastPath::Off)?;
            let contestant = with_image(started, WITHOUT_FAST_PATH, ServerKind::WithoutFastPath)?;
            // The image belongs to another infra-env, so `digest` does not apply to it.
            base::download(&contestant.target, contestant.total, None).context(WITHOUT_FAST_PATH)?;
            contestants.push(contestant);
        }
        if transport == Transport::Plain {
            for way in SendMethod::ALL {
                let bare = start_bare(&self.place, way)?.takes_part(way.name(), ServerKind::Bare, "/", total);
                check_sent_bytes(&bare, &image, &digest).context(way.name())?;
                contestants.push(bare);
            }
        }
        for contestant in &mut contestants {
            contestant.note_memory()?;
            if let Some(suite) = Connection::open(&contestant.target)?.suite() {
                self.report.suites.push((contestant.name.clone(), suite));
            }
        }
        Ok(contestants)
    }

    /// Runs all rounds of a piece of work; the contestants take turns.
    fn measure_work(
        &mut self,
        contestants: &[MeasuredServer],
        work: Work,
        boots: &[Arc<[Bounds]>],
    ) -> Result<()> {
        let mut line = Line::new(&work.key(), &work.title());
        let (mut bare, mut without_fast_path) = (line.clone(), line.clone());
        eprintln!("{}: {}", line.key, line.title);
        for round in 0..=self.options.rounds() {
            let is_warm_up = round == 0;
            // Slow readers need no warm-up, because their memory is compared with the memory of a freshly started
            // server.
            let is_cold = self.options.quick || matches!(work.task, Task::SlowReaders { .. });
            if is_warm_up && is_cold {
                continue;
            }
            let time = if is_warm_up { self.options.time().min(WARM_UP) } else { self.options.time() };
            let conditions = Conditions { place: &self.place, time, round: u64::try_from(round)?, boots };
            let does = |one: &&MeasuredServer| match one.kind {
                ServerKind::Kindling => true,
                ServerKind::WithoutFastPath => work.is_of_ranges(),
                ServerKind::Bare => work.is_bare(),
                ServerKind::Nginx { .. } | ServerKind::Other => !work.is_own(),
            };
            let mut order: Vec<&MeasuredServer> = contestants.iter().filter(does).collect();
            if round % 2 == 0 {
                order.reverse();
            }
            for contestant in order {
                interrupt::check()?;
                let about = || format!("{}, {}", contestant.name, work.title());
                let measures = conditions.measure(contestant, work).with_context(about)?;
                let line = match contestant.kind {
                    ServerKind::Bare => &mut bare,
                    ServerKind::WithoutFastPath => &mut without_fast_path,
                    ServerKind::Kindling | ServerKind::Nginx(_) | ServerKind::Other => &mut line,
                };
                if !is_warm_up {
                    line.add(&contestant.name, &measures);
                }
            }
        }
        self.report.lines.push(line);
        if !bare.figures.is_empty() {
            self.report.bare.push(bare);
        }
        if !without_fast_path.figures.is_empty() {
            self.report.without_fast_path.push(without_fast_path);
        }
        Ok(())
    }
}
