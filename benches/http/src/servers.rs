//! The compared servers: Kindling, nginx in its [settings](NginxSetting), or any other server by its URL.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;

use crate::bare::SendMethod;
use crate::certificate::{self, CERTIFICATE, KEY};
use crate::client::{Connection, Sink, Target, Tls, write_get};
use crate::exchange::ExpectedResponse;
use crate::head::ContentRange;
use crate::process::{Process, STARTING};
use crate::usage::Memory;

/// Template of the nginx configuration.
pub(crate) const NGINX: &str = include_str!("../nginx.conf.in");
/// The file that nginx serves, relative to its folder.
pub(crate) const IMAGE: &str = "files/image.iso";
/// Interval of checks for the first response of a server.
const PAUSE: Duration = Duration::from_millis(1);
/// The check of a server that starts without base images to hash.
const READY: ReadinessCheck = ReadinessCheck { path: "/ready", patience: STARTING };
/// Number of attempts to start nginx: another process may take a free port before nginx listens on it.
const ATTEMPTS: usize = 5;

/// Plain HTTP or TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Plain,
    Tls,
}

impl Transport {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Plain => "HTTP",
            Self::Tls => "TLS",
        }
    }
}

/// The files of a run.
#[derive(Debug, Clone)]
pub(crate) struct RunFiles {
    pub(crate) folder: PathBuf,
    pub(crate) kindling: PathBuf,
    pub(crate) nginx: PathBuf,
    pub(crate) base: PathBuf,
}

impl RunFiles {
    pub(crate) fn image(&self) -> PathBuf {
        self.folder.join(IMAGE)
    }

    fn tls(&self) -> Result<Tls> {
        certificate::trusting(&self.folder.join(CERTIFICATE), "127.0.0.1")
    }

    fn target(&self, port: u16, path: &str, transport: Transport) -> Result<Target> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let tls = if transport == Transport::Tls { Some(self.tls()?) } else { None };
        Ok(Target { address, authority: address.to_string(), path: path.to_owned(), tls })
    }

    fn log(&self) -> PathBuf {
        self.folder.join("servers.log")
    }
}

/// The program of a contestant, which determines how the bench restarts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerKind {
    Kindling,
    /// Kindling with `--fast-path off`. The report shows its measurements in a separate table.
    WithoutFastPath,
    Nginx(NginxSetting),
    /// A minimal server. The report shows its measurements in a separate table.
    Bare,
    /// A server that the bench cannot restart.
    Other,
}

impl ServerKind {
    /// Returns `true` if the report shows the server in a separate table and does not compare it with the subject.
    pub(crate) fn is_apart(self) -> bool {
        matches!(self, Self::WithoutFastPath | Self::Bare)
    }
}

/// The method by which nginx passes files to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NginxSetting {
    Sendfile,
    /// Like `Sendfile`, in full packets (`tcp_nopush`), which can delay keep-alive connections.
    Nopush,
    Buffers,
}

impl NginxSetting {
    pub(crate) const ALL: [Self; 3] = [Self::Sendfile, Self::Nopush, Self::Buffers];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sendfile => "nginx sendfile",
            Self::Nopush => "nginx nopush",
            Self::Buffers => "nginx buffers",
        }
    }

    /// Returns the values of `sendfile` and `tcp_nopush` in the nginx configuration.
    fn switches(self) -> [&'static str; 2] {
        match self {
            Self::Sendfile => ["on", "off"],
            Self::Nopush => ["on", "on"],
            Self::Buffers => ["off", "off"],
        }
    }
}

/// The state of Kindling's fast path, which responds to requests for cached ranges without the HTTP library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FastPath {
    On,
    Off,
}

#[derive(Debug)]
pub(crate) struct MeasuredServer {
    pub(crate) name: String,
    pub(crate) kind: ServerKind,
    pub(crate) target: Target,
    /// Length of the measured file.
    pub(crate) total: u64,
    /// The process whose CPU time and memory are measured.
    pub(crate) pid: Option<u32>,
    /// Private memory after one download, in bytes.
    pub(crate) memory_before: u64,
    /// The server process; `None` if another program started the server.
    _process: Option<Process>,
}

impl MeasuredServer {
    /// Records the memory before the first measurement.
    ///
    /// # Errors
    ///
    /// Returns an error if the server has ended.
    pub(crate) fn note_memory(&mut self) -> Result<()> {
        if let Some(pid) = self.pid {
            self.memory_before = Memory::read(pid)?.private;
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct StartedServer {
    pub(crate) process: Process,
    pub(crate) target: Target,
    /// Time from the start to the first response.
    pub(crate) ready: Duration,
}

impl StartedServer {
    pub(crate) fn takes_part(self, name: &str, kind: ServerKind, path: &str, total: u64) -> MeasuredServer {
        let pid = Some(self.process.pid());
        let target = self.target.at(path);
        MeasuredServer {
            name: name.to_owned(),
            kind,
            target,
            total,
            pid,
            memory_before: 0,
            _process: Some(self.process),
        }
    }
}

/// Starts Kindling on the base image of the run, with or without its fast path.
///
/// # Errors
///
/// Returns an error if it does not become ready.
pub(crate) fn start_kindling(
    place: &RunFiles,
    data: &Path,
    transport: Transport,
    fast_path: FastPath,
) -> Result<StartedServer> {
    let images = serde_json::json!([{
        "openshift_version": "4.14", "cpu_architecture": "x86_64", "version": "414.1",
        "url": format!("file://{}", place.base.display()),
    }]);
    let listen = if transport == Transport::Tls { "--listen-tls" } else { "--listen" };
    let mut command = Command::new(&place.kindling);
    command.args(["serve", listen, "127.0.0.1:0", "--data-dir"]).arg(data);
    // An older build without this option can still be measured with its defaults.
    if fast_path == FastPath::Off {
        command.args(["--fast-path", "off"]);
    }
    command.env("OS_IMAGES", images.to_string());
    if transport == Transport::Tls {
        command.env("HTTPS_CERT_FILE", place.folder.join(CERTIFICATE));
        command.env("HTTPS_KEY_FILE", place.folder.join(KEY));
    }
    launch(place, &mut command, transport, READY)
}

/// The condition under which a server counts as started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadinessCheck {
    /// The path whose response must have status 200.
    pub(crate) path: &'static str,
    /// Maximum time until that response.
    pub(crate) patience: Duration,
}

/// Starts Kindling with this command, reads its output, and waits until it is ready.
///
/// # Errors
///
/// Returns an error if it does not become ready.
pub(crate) fn launch(
    place: &RunFiles,
    command: &mut Command,
    transport: Transport,
    awaited: ReadinessCheck,
) -> Result<StartedServer> {
    let start = Instant::now();
    let mut process = Process::start("kindling", command.stdout(Stdio::piped()), &place.log())?;
    let target = place.target(port(&mut process, &place.log())?, awaited.path, transport)?;
    await_response(&mut process, &target, (start, awaited.patience))
        .with_context(|| last_output(&place.log()))?;
    Ok(StartedServer { process, target, ready: start.elapsed() })
}

/// Starts nginx with one of its settings.
///
/// # Errors
///
/// Returns an error if it does not become ready.
pub(crate) fn start_nginx(
    place: &RunFiles,
    setting: NginxSetting,
    transport: Transport,
) -> Result<StartedServer> {
    let mut attempts = 1..=ATTEMPTS;
    let [sendfile, nopush] = setting.switches();
    loop {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let tls = if transport == Transport::Tls { " ssl" } else { "" };
        let config = NGINX
            .replace("@FOLDER@", &place.folder.display().to_string())
            .replace("@PORT@", &port.to_string())
            .replace("@SENDFILE@", sendfile)
            .replace("@NOPUSH@", nopush)
            .replace("@LISTEN@", &format!("127.0.0.1:{port}{tls}"));
        let path = place.folder.join(format!("nginx-{port}.conf"));
        std::fs::write(&path, config)?;
        let start = Instant::now();
        let mut command = Command::new(&place.nginx);
        command.arg("-p").arg(&place.folder).arg("-c").arg(&path).stdout(Stdio::null());
        let mut process = Process::start("nginx", &mut command, &place.log())?;
        let target = place.target(port, "/ready", transport)?;
        match await_response(&mut process, &target, (start, STARTING)) {
            Ok(()) => return Ok(StartedServer { process, target, ready: start.elapsed() }),
            Err(error) if attempts.next().is_none() => {
                return Err(error).with_context(|| last_output(&place.log()));
            }
            Err(_) => crate::interrupt::check()?,
        }
    }
}

/// Starts a minimal server.
///
/// # Errors
///
/// Returns an error if it does not print its address.
pub(crate) fn start_bare(place: &RunFiles, way: SendMethod) -> Result<StartedServer> {
    let start = Instant::now();
    let mut command = Command::new(std::env::current_exe()?);
    let name = way.to_possible_value().context("every send method has a name")?;
    command.arg("bare").arg(place.image()).arg(name.get_name()).stdout(Stdio::piped());
    let mut process = Process::start(way.name(), &mut command, &place.log())?;
    let target = place.target(port(&mut process, &place.log())?, "/", Transport::Plain)?;
    Ok(StartedServer { process, target, ready: start.elapsed() })
}

/// Returns the port in the first line of the server's output.
fn port(process: &mut Process, log: &Path) -> Result<u16> {
    let line = process.first_line().with_context(|| last_output(log))?;
    let port = line.rsplit(':').next().and_then(|port| port.trim().parse().ok());
    port.with_context(|| format!("a server printed {line:?} instead of its address"))
}

/// Adds a server that another program has started.
///
/// # Errors
///
/// Returns an error if the URL is invalid or the server does not send a range.
pub(crate) fn at_url(name: &str, url: &Target, pid: Option<u32>) -> Result<MeasuredServer> {
    let total = length(url)?;
    Ok(MeasuredServer {
        name: name.to_owned(),
        kind: ServerKind::Other,
        target: url.clone(),
        total,
        pid,
        memory_before: 0,
        _process: None,
    })
}

/// Parses a URL.
///
/// # Errors
///
/// Returns an error if it is not an HTTP URL or its host cannot be resolved.
pub(crate) fn parse_url(url: &str, ca: Option<&Path>) -> Result<(Target, Transport)> {
    let (scheme, rest) = url.split_once("://").with_context(|| format!("{url:?} is not a URL"))?;
    let (transport, port) = match scheme {
        "http" => (Transport::Plain, 80),
        "https" => (Transport::Tls, 443),
        other => bail!("{url:?}: {other} is neither http nor https"),
    };
    let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let safe = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(!authority.is_empty() && safe(authority) && safe(path), "{url:?} is not a URL");
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, digits)) if !digits.ends_with(']') => {
            (host, digits.parse().with_context(|| format!("{url:?}: {digits:?} is not a port number"))?)
        }
        _ => (authority, port),
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = (bare, port).to_socket_addrs()?.next().with_context(|| format!("{host} has no address"))?;
    let tls = match (transport, ca) {
        (Transport::Plain, _) => None,
        (Transport::Tls, Some(file)) => Some(certificate::trusting(file, host)?),
        (Transport::Tls, None) => bail!("{url}: --ca FILE names the certificates to trust"),
    };
    let target = Target { address, authority: authority.to_owned(), path: path.to_owned(), tls };
    Ok((target, transport))
}

/// Returns the length of a file from the response to a request for its first byte.
///
/// # Errors
///
/// Returns an error if the server sends no valid response.
pub(crate) fn length(target: &Target) -> Result<u64> {
    let mut connection = Connection::open(target)?;
    let mut request = Vec::new();
    write_get(&mut request, target, Some((0, 0)));
    let about = || format!("asking {} for the first byte of {}", target.authority, target.path);
    let answer =
        connection.ask(&request, ExpectedResponse::Status(206), &mut Sink::Discard).with_context(about)?;
    let range = answer.head().and_then(|head| head.content_range);
    let ContentRange { total, .. } = range.with_context(|| format!("{}: no Content-Range", target.path))?;
    Ok(total)
}

fn await_response(
    process: &mut Process,
    target: &Target,
    (start, patience): (Instant, Duration),
) -> Result<()> {
    let mut request = Vec::new();
    write_get(&mut request, target, None);
    loop {
        process.check()?;
        let waited = start.elapsed();
        // Connecting to the port is cheap, and a refused connection logs nothing.
        if TcpStream::connect(target.address).is_ok() {
            let answer = Connection::open(target)
                .and_then(|mut connection| connection.fetch(&request, ExpectedResponse::Status(200)));
            match answer {
                Ok(_) => return Ok(()),
                Err(error) if waited > patience => return Err(error),
                Err(_) => {}
            }
        }
        ensure!(waited < patience, "{} refuses connections for {patience:?}", target.authority);
        // Polls less often over time, because a server may hash its images for a minute.
        std::thread::sleep(PAUSE.max(waited / 200));
    }
}

fn last_output(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(5).collect();
    let lines: Vec<&str> = lines.into_iter().rev().collect();
    format!("starting a server; its output: {}", lines.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed() {
        let (target, transport) = parse_url("http://127.0.0.1:81/a/b?c=d", None).unwrap();
        assert_eq!(transport, Transport::Plain);
        assert_eq!((target.address.port(), target.path.as_str()), (81, "/a/b?c=d"));
        assert_eq!(target.authority, "127.0.0.1:81");
        let (target, _) = parse_url("http://[::1]", None).unwrap();
        assert_eq!((target.address.to_string().as_str(), target.path.as_str()), ("[::1]:80", "/"));
    }

    #[test]
    fn rejects_invalid_urls() {
        for url in [
            "127.0.0.1/a",
            "ftp://127.0.0.1/a",
            "http:///a",
            "http://127.0.0.1:99999/",
            "http://127.0.0.1/a b",
            "http://127.0.0.1/a\r\nb",
            "https://127.0.0.1/",
        ] {
            assert!(parse_url(url, None).is_err(), "{url}");
        }
    }
}
