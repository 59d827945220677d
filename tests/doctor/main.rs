//! What the doctor says of servers: ours, others, broken ones and hostile ones, over real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod broken;
mod certificates;
mod command;
mod hostile;
mod others;
mod ours;
mod raw;
#[path = "../support/mod.rs"]
mod support;

use fixtures::{Architecture, Era};
use kindling::doctor::{Check, Client, Options, Outcome, Report, Verdict, examine};

/// An image that boots, as far as anybody can tell from outside.
fn image() -> &'static [u8] {
    &support::image(Architecture::X86_64, Era::E2024_12).bytes
}

fn examined(url: &str, options: &Options) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(examine(url, options)).unwrap()
}

/// The checks with an outcome, but for those that fail at every server on a port of its own without TLS.
fn with(report: &Report, outcome: Outcome) -> Vec<&'static str> {
    let usual = [Check::UrlUsualPort, Check::UrlEncrypted];
    let findings = report.findings.iter().filter(|it| it.outcome == outcome && !usual.contains(&it.check));
    findings.map(|finding| finding.check.name()).collect()
}

/// The clients that refuse.
fn refusing(report: &Report) -> Vec<&'static str> {
    let refuse = |client: &&Client| report.client(**client).unwrap().verdict == Verdict::Refuses;
    Client::ALL.iter().filter(refuse).map(|client| client.name()).collect()
}
