//! Our own server: everything works.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use kindling::doctor::{Check, Client, Options, Outcome, Verdict};
use tempfile::TempDir;

use crate::support::KINDLING;
use crate::{examined, refusing, with};

/// A demonstration, and its image.
pub(crate) struct Demo {
    child: Child,
    pub(crate) url: String,
    _data: TempDir,
}

impl Demo {
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

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn everybody_can_boot_from_our_images() {
    let demo = Demo::start();
    let report = examined(&demo.url, &Options::default());
    assert_eq!(with(&report, Outcome::Fails), [""; 0], "{report:#?}");
    assert_eq!(with(&report, Outcome::Untried), [""; 0], "{report:#?}");
    assert_eq!(refusing(&report), [""; 0]);
    assert!(!report.is_refused());
    assert_eq!(report.client(Client::Qemu).unwrap().verdict, Verdict::Works);
    let size = report.size.unwrap();
    assert_eq!(report.finding(Check::HeadLength).unwrap().detail, format!("{size} bytes"));
    let rootfs = demo.url.replace("full.iso", "rootfs");
    let report = examined(&rootfs, &Options::default());
    assert_eq!(report.client(Client::Rootfs).unwrap().verdict, Verdict::Works, "{report:#?}");
    assert_eq!(report.client(Client::Bmc).unwrap().verdict, Verdict::NotForIt, "{report:#?}");
}
