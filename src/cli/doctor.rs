//! `kindling doctor`: whether machines can boot from a URL, and which cannot.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::error::ErrorKind;
use clap::{Args, ValueEnum};

use crate::cli::duration;
use crate::cli::output::{print_bytes, print_json};
use crate::doctor::{
    Client, ClientReport, DoctorError, Finding, Options, Outcome, Report, Verdict, Weight, examine,
};

const EXIT_CODES: &str = "Exit code: 0 all of these clients can use the URL (those that have no use for such a file do \
    not count), 1 one refuses it, or nobody could be asked, 2 wrong usage.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(super) struct Doctor {
    /// File with the authorities that clients trust, in PEM, in the place of those that this system does
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Send a header with each request, such as "Authorization: Bearer ..."; not to where the URL is redirected
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<Header>,
    /// Ask on where the certificate is not trusted, with all tokens of the URL and headers
    #[arg(long)]
    insecure: bool,
    /// How long a request may take
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = timeout)]
    timeout: Duration,
    /// Only what these clients make of it
    #[arg(long = "client", value_name = "CLIENT", value_enum)]
    clients: Vec<Kind>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// URL of an image, or of another file that machines boot from
    #[arg(value_name = "URL")]
    url: String,
}

/// A header as it was given. It is likely a secret, so that it is looked at by us: an error of the parser would quote it.
#[derive(Clone)]
struct Header(String);

impl From<String> for Header {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Header").finish_non_exhaustive()
    }
}

/// Ends the program as the parser does.
fn refuse(why: impl std::fmt::Display) -> ! {
    clap::Error::raw(ErrorKind::ValueValidation, format!("{why}\n")).exit()
}

/// The clients, as the command line has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Virtual media of management controllers
    Bmc,
    /// The boot loader iPXE
    Ipxe,
    /// HTTP boot of UEFI firmware
    Uefi,
    /// QEMU's block driver
    Qemu,
    /// Browsers, curl and wget
    Download,
    /// CoreOS, for the root file system of minimal images
    Rootfs,
}

impl From<Kind> for Client {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Bmc => Self::Bmc,
            Kind::Ipxe => Self::Ipxe,
            Kind::Uefi => Self::Uefi,
            Kind::Qemu => Self::Qemu,
            Kind::Download => Self::Download,
            Kind::Rootfs => Self::Rootfs,
        }
    }
}

fn timeout(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        Duration::ZERO => Err("expected some time".to_owned()),
        time if time > Duration::from_secs(600) => Err("expected ten minutes at most".to_owned()),
        time => Ok(time),
    }
}

impl Doctor {
    pub(super) fn run(self) -> Result<ExitCode> {
        let mut options = Options::default();
        options.ca_file = self.ca;
        options.timeout = self.timeout;
        options.dangerously_any_certificate = self.insecure;
        for Header(text) in &self.headers {
            let Some((name, value)) = text.split_once(':') else {
                refuse("a value of --header is no name with a colon and a value behind it")
            };
            options = options.header(name.trim(), value.trim()).unwrap_or_else(|error| refuse(error));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("starting the threads of the network")?;
        let mut report = match runtime.block_on(examine(&self.url, &options)) {
            Ok(report) => report,
            Err(
                error @ (DoctorError::Url { .. } | DoctorError::Scheme { .. } | DoctorError::TooLong { .. }),
            ) => refuse(error),
            Err(error) => return Err(error.into()),
        };
        if !self.clients.is_empty() {
            let wanted: Vec<Client> = self.clients.into_iter().map(Client::from).collect();
            report.clients.retain(|client| wanted.contains(&client.client));
        }
        if self.json {
            print_json(&report)?
        } else {
            print_bytes(text(&report).as_bytes())?
        }
        Ok(if report.is_refused() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn text(report: &Report) -> String {
    let mut lines = vec![report.url.clone()];
    lines.extend(report.redirects.iter().map(|url| format!("  -> {url}")));
    match (&report.content, report.size) {
        (Some(content), Some(size)) => lines.push(format!("{content}, {size} bytes")),
        (Some(content), None) => lines.push(content.to_string()),
        (None, _) => {}
    }
    lines.push(String::new());
    lines.extend(report.findings.iter().map(finding));
    for client in &report.clients {
        lines.push(String::new());
        lines.extend(verdict(client));
    }
    lines.join("\n") + "\n"
}

fn finding(finding: &Finding) -> String {
    let outcome = match finding.outcome {
        Outcome::Holds => "yes",
        Outcome::Fails => "NO",
        _ => "?",
    };
    format!("  {:<21} {outcome:<4} {}", finding.check, finding.detail)
}

fn verdict(report: &ClientReport) -> Vec<String> {
    let verdict = match report.verdict {
        Verdict::Works => "works",
        Verdict::WorksWithRemark => "works, but note",
        Verdict::Refuses => "REFUSES",
        Verdict::NotForIt => "has no use for such a file",
        _ => "could not be told",
    };
    let mut lines = vec![format!("{:<18} {verdict}", report.client.title())];
    for reason in &report.reasons {
        let mark = if reason.weight == Weight::Refuses { "!" } else { "-" };
        lines.push(format!("  {mark} {}: {} ({})", reason.check, reason.why, reason.detail));
    }
    lines
}
