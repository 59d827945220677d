//! The doctor's findings about servers over real sockets: our own server, servers of other projects, broken and hostile
//! ones.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod broken_servers;
mod certificates;
mod command;
mod hostile;
mod other_servers;
mod own_server;
mod raw_server;
mod service_url;
#[path = "../support/mod.rs"]
mod support;

use fixtures::{Architecture, Era};
use kindling::doctor::{
    CheckOutcome, ClientKind, ClientVerdict, DoctorCheck, DoctorOptions, DoctorReport, examine,
};

/// Returns an image with a boot record.
fn bootable_image() -> &'static [u8] {
    &support::fixture(Architecture::X86_64, Era::E2024_12).bytes
}

fn examine_url(url: &str, options: &DoctorOptions) -> DoctorReport {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(examine(url, options)).unwrap()
}

/// Returns the checks with an outcome, except checks that fail at every server on its own port without TLS.
fn checks_with_outcome(report: &DoctorReport, outcome: CheckOutcome) -> Vec<&'static str> {
    let usual = [DoctorCheck::UrlUsualPort, DoctorCheck::UrlEncrypted];
    let findings = report.findings.iter().filter(|it| it.outcome == outcome && !usual.contains(&it.check));
    findings.map(|finding| finding.check.name()).collect()
}

fn refusing_clients(report: &DoctorReport) -> Vec<&'static str> {
    let refuse = |client: &&ClientKind| report.client(**client).unwrap().verdict == ClientVerdict::Refuses;
    ClientKind::ALL.iter().filter(refuse).map(|client| client.name()).collect()
}
