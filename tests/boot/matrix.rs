//! The page with what booted: `KINDLING_BOOT_MATRIX` names the file, which every cell of a run completes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use crate::machine::Start;
use crate::parts::Programs;
use crate::system;

/// What comes before the tables, and what no run can tell.
const INTRODUCTION: &str = include_str!("matrix.md");
/// The packages of Debian whose versions matter.
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

type Place = (&'static str, &'static str, Column);

static CELLS: Mutex<BTreeMap<Place, Option<f64>>> = Mutex::new(BTreeMap::new());

/// A way of starting, and where the machine reads what it starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Column {
    pub(crate) start: Start,
    /// Whether QEMU reads the medium off the server while the machine boots.
    pub(crate) is_remote: bool,
}

impl Column {
    pub(crate) fn name(self) -> &'static str {
        match (self.start, self.is_remote) {
            (Start::BiosDisc, false) => "BIOS, CD",
            (Start::BiosDisc, true) => "BIOS, CD over HTTP",
            (Start::BiosStick, _) => "BIOS, USB stick",
            (Start::UefiDisc, false) => "UEFI, CD",
            (Start::UefiDisc, true) => "UEFI, CD over HTTP",
            (Start::UefiStick, _) => "UEFI, USB stick",
            (Start::UefiPartition, _) => "UEFI, EFI partition",
            (Start::UefiGpt, _) => "UEFI, EFI partition of the GPT",
            (Start::SecureDisc, _) => "UEFI Secure Boot, CD",
            (Start::BiosNetwork, _) => "BIOS, iPXE",
            (Start::UefiNetwork, _) => "UEFI, iPXE",
            (Start::UefiHttp, _) => "UEFI HTTP boot",
            (Start::ArmDisc, false) => "aarch64 UEFI, USB CD",
            (Start::ArmDisc, true) => "aarch64 UEFI, USB CD over HTTP",
            (Start::MainframeDisc, _) => "s390x, CD",
            (Start::PowerDisc, _) => "ppc64le, CD",
            (Start::ArmStick, _) => "aarch64 UEFI, USB stick",
        }
    }
}

impl From<Start> for Column {
    fn from(start: Start) -> Self {
        Self { start, is_remote: false }
    }
}

/// A boot that has begun. It counts as failed until it has passed.
#[must_use]
pub(crate) struct Cell(Place);

impl Cell {
    pub(crate) fn begin(table: &'static str, image: &'static str, column: impl Into<Column>) -> Self {
        let place = (table, image, column.into());
        CELLS.lock().unwrap().insert(place, None);
        Self(place)
    }

    pub(crate) fn passed(self, seconds: f64, programs: &Programs) {
        let mut cells = CELLS.lock().unwrap();
        cells.insert(self.0, Some(seconds));
        if let Some(path) = std::env::var_os("KINDLING_BOOT_MATRIX") {
            let page = page(&cells, &versions(programs));
            // Tests run in the folder of the package, which is that of the repository.
            std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(path), page).unwrap();
        }
    }
}

fn page(cells: &BTreeMap<Place, Option<f64>>, versions: &[String]) -> String {
    let table = |name| {
        let own = cells.iter().filter(|((table, ..), _)| *table == name);
        rows(&own.map(|((_, image, column), seconds)| ((*image, *column), *seconds)).collect())
    };
    INTRODUCTION
        .replace("{served}\n", &table("served"))
        .replace("{made}\n", &table("made"))
        .replace("{date}", &chrono::Utc::now().date_naive().to_string())
        .replace("{versions}\n", &versions.iter().map(|line| format!("* {line}\n")).collect::<String>())
}

fn rows(cells: &BTreeMap<(&'static str, Column), Option<f64>>) -> String {
    let columns: std::collections::BTreeSet<Column> = cells.keys().map(|(_, column)| *column).collect();
    let images: std::collections::BTreeSet<&str> = cells.keys().map(|(image, _)| *image).collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
    let mut text = format!("| Image | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for image in images {
        write!(text, "| {} |", image.replace('_', " ")).unwrap();
        for column in &columns {
            let shown = match cells.get(&(image, *column)) {
                None => "–".to_owned(),
                Some(None) => "**failed**".to_owned(),
                Some(Some(seconds)) => format!("{seconds:.0} s"),
            };
            write!(text, " {shown} |").unwrap();
        }
        text.push('\n');
    }
    text
}

fn versions(programs: &Programs) -> Vec<String> {
    let first_line = |command: &mut Command| {
        let output = command.output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_owned())
    };
    let package = |name: &&str| {
        let version = first_line(Command::new("dpkg-query").args(["-W", "-f", "${Version}", name]))?;
        Some(format!("{name} {version}"))
    };
    let qemu = first_line(Command::new(&programs.qemu).arg("--version"));
    qemu.into_iter().chain(PACKAGES.iter().filter_map(package)).chain(system::kernels()).collect()
}

#[test]
fn a_page_shows_what_failed_and_what_is_not_there() {
    let cells = BTreeMap::from([
        (("served", "one_image", Start::BiosDisc.into()), Some(11.6)),
        (("served", "one_image", Start::UefiDisc.into()), None),
        (("served", "other", Start::UefiDisc.into()), Some(3.0)),
        (("made", "other", Start::BiosStick.into()), Some(3.0)),
    ]);
    let page = page(&cells, &["QEMU 1".to_owned()]);
    let table = "| Image | BIOS, CD | UEFI, CD |\n|---|---|---|\n| one image | 12 s | **failed** |\n| other | – | 3 s |\n";
    assert!(page.contains(table), "{page}");
    assert!(page.contains("\n* QEMU 1\n") && !page.contains('{'), "{page}");
}
