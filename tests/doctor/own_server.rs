//! Kindling's own server, which passes all checks.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use kindling::doctor::{CheckOutcome, ClientKind, ClientVerdict, DoctorCheck, DoctorOptions};
use tempfile::TempDir;

use crate::support::KINDLING;
use crate::{checks_with_outcome, examine_url, refusing_clients};

/// A demo server and its image.
pub(crate) struct DemoServer {
    child: Child,
    pub(crate) url: String,
    _data: TempDir,
}

impl DemoServer {
    pub(crate) fn start() -> Self {
        let data = TempDir::new().unwrap();
        let mut command = Command::new(KINDLING);
        command.args(["demo", "--listen", "127.0.0.1:0"]).env("TMPDIR", data.path()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let url =
            lines.into_iter().find_map(|line| line.strip_prefix("  curl -fO ").map(str::to_owned)).unwrap();
        Self { child, url, _data: data }
    }
}

impl Drop for DemoServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn our_images_pass_for_every_client() {
    let demo = DemoServer::start();
    let report = examine_url(&demo.url, &DoctorOptions::default());
    // The demo listens on a loopback address, so only the check of the service URL fails.
    assert_eq!(checks_with_outcome(&report, CheckOutcome::Fails), ["service-url"], "{report:#?}");
    assert_eq!(checks_with_outcome(&report, CheckOutcome::Untried), [""; 0], "{report:#?}");
    assert_eq!(refusing_clients(&report), [""; 0]);
    assert!(!report.is_refused());
    let qemu = report.client(ClientKind::Qemu).unwrap();
    assert_eq!(qemu.verdict, ClientVerdict::WorksWithRemark);
    assert_eq!(qemu.reasons.iter().map(|reason| reason.check.name()).collect::<Vec<_>>(), ["service-url"]);
    let size = report.size.unwrap();
    assert_eq!(report.finding(DoctorCheck::HeadLength).unwrap().detail, format!("{size} bytes"));
    let rootfs = demo.url.replace("full.iso", "rootfs");
    let report = examine_url(&rootfs, &DoctorOptions::default());
    assert_eq!(report.client(ClientKind::Rootfs).unwrap().verdict, ClientVerdict::Works, "{report:#?}");
    assert_eq!(report.client(ClientKind::Bmc).unwrap().verdict, ClientVerdict::NotForIt, "{report:#?}");
}
