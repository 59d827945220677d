//! The page of boot results. `KINDLING_BOOT_MATRIX` names the file, in which every test fills its cell.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use crate::boot_parts::BootPrograms;
use crate::machine::StartMethod;
use crate::system;

/// The introduction of the page, and facts that no run can determine.
const INTRODUCTION: &str = include_str!("matrix.md");
/// The Debian packages whose versions are on the page.
const PACKAGES: [&str; 12] = [
    "seabios",
    "ovmf",
    "qemu-efi-aarch64",
    "ipxe-qemu",
    "isolinux",
    "grub-efi-amd64-bin",
    "shim-signed",
    "grub-efi-amd64-signed",
    "busybox-static",
    "ignition",
    "network-manager",
    "udev",
];

type CellKey = (&'static str, &'static str, MatrixColumn);

static CELLS: Mutex<BTreeMap<CellKey, Option<f64>>> = Mutex::new(BTreeMap::new());

/// A start method, and where the machine reads its boot medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MatrixColumn {
    pub(crate) start: StartMethod,
    /// Whether QEMU reads the medium from the server while the machine boots.
    pub(crate) is_remote: bool,
}

impl MatrixColumn {
    pub(crate) fn name(self) -> &'static str {
        match (self.start, self.is_remote) {
            (StartMethod::BiosDisc, false) => "BIOS, CD",
            (StartMethod::BiosDisc, true) => "BIOS, CD over HTTP",
            (StartMethod::BiosStick, _) => "BIOS, USB stick",
            (StartMethod::UefiDisc, false) => "UEFI, CD",
            (StartMethod::UefiDisc, true) => "UEFI, CD over HTTP",
            (StartMethod::UefiStick, _) => "UEFI, USB stick",
            (StartMethod::UefiPartition, _) => "UEFI, EFI partition",
            (StartMethod::UefiGpt, _) => "UEFI, EFI partition of the GPT",
            (StartMethod::SecureDisc, _) => "UEFI Secure Boot, CD",
            (StartMethod::BiosNetwork, _) => "BIOS, iPXE",
            (StartMethod::UefiNetwork, _) => "UEFI, iPXE",
            (StartMethod::UefiHttp, _) => "UEFI HTTP boot",
            (StartMethod::ArmDisc, false) => "aarch64 UEFI, USB CD",
            (StartMethod::ArmDisc, true) => "aarch64 UEFI, USB CD over HTTP",
            (StartMethod::MainframeDisc, _) => "s390x, CD",
            (StartMethod::PowerDisc, _) => "ppc64le, CD",
            (StartMethod::ArmStick, _) => "aarch64 UEFI, USB stick",
        }
    }
}

impl From<StartMethod> for MatrixColumn {
    fn from(start: StartMethod) -> Self {
        Self { start, is_remote: false }
    }
}

/// A running boot. It counts as failed until it has passed.
#[must_use]
pub(crate) struct MatrixCell(CellKey);

impl MatrixCell {
    pub(crate) fn begin(table: &'static str, image: &'static str, column: impl Into<MatrixColumn>) -> Self {
        let place = (table, image, column.into());
        CELLS.lock().unwrap().insert(place, None);
        Self(place)
    }

    pub(crate) fn record_pass(self, seconds: f64, programs: &BootPrograms) {
        let mut cells = CELLS.lock().unwrap();
        cells.insert(self.0, Some(seconds));
        if let Some(path) = std::env::var_os("KINDLING_BOOT_MATRIX") {
            let page = matrix_page(&cells, &program_versions(programs));
            // The path is relative to the root of the repository, which is the folder of the package.
            std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(path), page).unwrap();
        }
    }
}

fn matrix_page(cells: &BTreeMap<CellKey, Option<f64>>, versions: &[String]) -> String {
    let table = |name| {
        let own = cells.iter().filter(|((table, ..), _)| *table == name);
        matrix_rows(&own.map(|((_, image, column), seconds)| ((*image, *column), *seconds)).collect())
    };
    INTRODUCTION
        .replace("{served}\n", &table("served"))
        .replace("{made}\n", &table("made"))
        .replace("{date}", &chrono::Utc::now().date_naive().to_string())
        .replace("{versions}\n", &versions.iter().map(|line| format!("* {line}\n")).collect::<String>())
}

fn matrix_rows(cells: &BTreeMap<(&'static str, MatrixColumn), Option<f64>>) -> String {
    let columns: std::collections::BTreeSet<MatrixColumn> = cells.keys().map(|(_, column)| *column).collect();
    let images: std::collections::BTreeSet<&str> = cells.keys().map(|(image, _)| *image).collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
    let mut text = format!("| Image | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for image in images {
        write!(text, "| {} |", image.replace('_', " ")).unwrap();
        for column in &columns {
            let result = match cells.get(&(image, *column)) {
                None => "–".to_owned(),
                Some(None) => "**failed**".to_owned(),
                Some(Some(seconds)) => format!("{seconds:.0} s"),
            };
            write!(text, " {result} |").unwrap();
        }
        text.push('\n');
    }
    text
}

fn program_versions(programs: &BootPrograms) -> Vec<String> {
    let first_line = |command: &mut Command| {
        let output = command.output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_owned())
    };
    let package = |name: &&str| {
        let version = first_line(Command::new("dpkg-query").args(["-W", "-f", "${Version}", name]))?;
        Some(format!("{name} {version}"))
    };
    let qemu = first_line(Command::new(&programs.qemu).arg("--version"));
    qemu.into_iter().chain(PACKAGES.iter().filter_map(package)).chain(system::installed_kernels()).collect()
}

#[test]
fn page_shows_failed_and_missing_cases() {
    let cells = BTreeMap::from([
        (("served", "one_image", StartMethod::BiosDisc.into()), Some(11.6)),
        (("served", "one_image", StartMethod::UefiDisc.into()), None),
        (("served", "other", StartMethod::UefiDisc.into()), Some(3.0)),
        (("made", "other", StartMethod::BiosStick.into()), Some(3.0)),
    ]);
    let page = matrix_page(&cells, &["QEMU 1".to_owned()]);
    let table = "| Image | BIOS, CD | UEFI, CD |\n|---|---|---|\n| one image | 12 s | **failed** |\n| other | – | 3 s |\n";
    assert!(page.contains(table), "{page}");
    assert!(page.contains("\n* QEMU 1\n") && !page.contains('{'), "{page}");
}
