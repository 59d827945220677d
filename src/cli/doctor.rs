//! `kindling doctor`: checks which clients can boot from a URL.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::error::ErrorKind;
use clap::{Args, ValueEnum};

use crate::cli::duration;
use crate::cli::output::{print_bytes, print_json};
use crate::doctor::{
    CheckOutcome, ClientKind, ClientReport, ClientVerdict, DoctorError, DoctorFinding, DoctorOptions,
    DoctorReport, RequirementLevel, examine,
};

const EXIT_CODES: &str = "Exit code: 0 all selected clients can use the URL (clients that never use such files are \
    not counted), 1 a client cannot use it, or a required check could not be run, 2 wrong usage.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(super) struct Doctor {
    /// File with the CA certificates that clients trust, in PEM, instead of the system's certificates
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Header to send with each request, such as "Authorization: Bearer ..."; not sent to redirect targets
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<HeaderOption>,
    /// Continue if the certificate is not trusted, and send all tokens of the URL and headers (insecure)
    #[arg(long)]
    insecure: bool,
    /// How long a request may take
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_timeout)]
    timeout: Duration,
    /// Clients to check [default: all]
    #[arg(long = "client", value_name = "CLIENT", value_enum)]
    clients: Vec<ClientOption>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// URL of an image, or of another file that machines boot from
    #[arg(value_name = "URL")]
    url: String,
}

/// A header in the form `NAME: VALUE`. clap does not validate it, because clap would quote the value, which is likely a
/// secret, in an error.
#[derive(Clone)]
struct HeaderOption(String);

impl From<String> for HeaderOption {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Debug for HeaderOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HeaderOption").finish_non_exhaustive()
    }
}

/// Prints an error and exits, as clap does for an invalid value.
fn exit_with_usage_error(why: impl std::fmt::Display) -> ! {
    clap::Error::raw(ErrorKind::ValueValidation, format!("{why}\n")).exit()
}

/// The values of `--client`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ClientOption {
    /// Virtual media of BMCs
    Bmc,
    /// The boot loader iPXE
    Ipxe,
    /// HTTP boot of UEFI firmware
    Uefi,
    /// QEMU's block driver
    Qemu,
    /// Browsers, curl and wget
    Download,
    /// CoreOS, for the root file system of minimal ISOs
    Rootfs,
}

impl From<ClientOption> for ClientKind {
    fn from(kind: ClientOption) -> Self {
        match kind {
            ClientOption::Bmc => Self::Bmc,
            ClientOption::Ipxe => Self::Ipxe,
            ClientOption::Uefi => Self::Uefi,
            ClientOption::Qemu => Self::Qemu,
            ClientOption::Download => Self::Download,
            ClientOption::Rootfs => Self::Rootfs,
        }
    }
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    match duration::parse_duration(text)? {
        Duration::ZERO => Err("expected a duration greater than 0".to_owned()),
        time if time > Duration::from_secs(600) => Err("expected at most 10m".to_owned()),
        time => Ok(time),
    }
}

impl Doctor {
    pub(super) fn run(self) -> Result<ExitCode> {
        let mut options = DoctorOptions::default();
        options.ca_file = self.ca;
        options.timeout = self.timeout;
        options.dangerously_any_certificate = self.insecure;
        for HeaderOption(text) in &self.headers {
            let Some((name, value)) = text.split_once(':') else {
                exit_with_usage_error("invalid --header: expected NAME: VALUE")
            };
            options = options
                .with_header(name.trim(), value.trim())
                .unwrap_or_else(|error| exit_with_usage_error(error));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the async runtime")?;
        let mut report = match runtime.block_on(examine(&self.url, &options)) {
            Ok(report) => report,
            Err(
                error @ (DoctorError::Url { .. } | DoctorError::Scheme { .. } | DoctorError::TooLong { .. }),
            ) => exit_with_usage_error(error),
            Err(error) => return Err(error.into()),
        };
        if !self.clients.is_empty() {
            let kinds: Vec<ClientKind> = self.clients.into_iter().map(ClientKind::from).collect();
            report.clients.retain(|client| kinds.contains(&client.client));
        }
        if self.json {
            print_json(&report)?
        } else {
            print_bytes(report_text(&report).as_bytes())?
        }
        Ok(if report.is_refused() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn report_text(report: &DoctorReport) -> String {
    let mut lines = vec![report.url.clone()];
    lines.extend(report.redirects.iter().map(|url| format!("  -> {url}")));
    match (&report.content, report.size) {
        (Some(content), Some(size)) => lines.push(format!("{content}, {size} bytes")),
        (Some(content), None) => lines.push(content.to_string()),
        (None, _) => {}
    }
    lines.push(String::new());
    lines.extend(report.findings.iter().map(finding_text));
    for client in &report.clients {
        lines.push(String::new());
        lines.extend(verdict_lines(client));
    }
    lines.join("\n") + "\n"
}

fn finding_text(finding: &DoctorFinding) -> String {
    let outcome = match finding.outcome {
        CheckOutcome::Holds => "yes",
        CheckOutcome::Fails => "NO",
        _ => "?",
    };
    format!("  {:<21} {outcome:<4} {}", finding.check, finding.detail)
}

fn verdict_lines(report: &ClientReport) -> Vec<String> {
    let verdict = match report.verdict {
        ClientVerdict::Works => "works",
        ClientVerdict::WorksWithRemark => "works, but note",
        ClientVerdict::Refuses => "REFUSES",
        ClientVerdict::NotForIt => "does not use such files",
        _ => "unknown",
    };
    let mut lines = vec![format!("{:<18} {verdict}", report.client.title())];
    for reason in &report.reasons {
        let mark = if reason.weight == RequirementLevel::Refuses { "!" } else { "-" };
        lines.push(format!("  {mark} {}: {} ({})", reason.check, reason.why, reason.detail));
    }
    lines
}
