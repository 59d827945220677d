//! Booting what a running server streams for an infra-env made by its API: the command line, the config and the network
//! that were asked for arrive, the root file system is fetched from the server, and the real Ignition applies the config.

mod config;
mod networks;
mod report;
mod site;
mod tap;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use fixtures::{Architecture, BootParts, Era, Filesystem, Recipe};
use isogen::{Archive, BaseImage, initrd};
use serde_json::{Value, json};

use crate::machine::{Boot, Loader, Setup, Start};
use crate::matrix::{Cell, Column};
use crate::over_http::has_client;
use crate::parts::Programs;
use crate::support::Scratch;
use crate::system::System;
use crate::{Base, Bases, INITRDS, KERNEL, digest, parts};
use networks::Networks;
use report::Report;
pub(crate) use site::Site;
use tap::Answer;

/// The argument that the infra-env adds.
const ARGUMENT: &str = "served.by=kindling";
/// Beside what boot loaders load of every image.
const NETWORK_IMAGE: &str = "/images/assisted_installer_custom.img";

/// The live images of the server.
static BASES: Bases = Bases::new(|architecture| {
    let (programs, recipe, parts) = parts(architecture)?;
    Some(Base::of(programs, recipe.boot_parts(parts)))
});

pub(crate) fn base() -> Option<&'static Base> {
    BASES.of(Architecture::X86_64)
}

/// The same with signed boot loaders.
pub(crate) fn signed_base() -> Option<&'static Base> {
    static BASE: LazyLock<Option<Base>> = LazyLock::new(|| {
        let (programs, recipe, parts) = parts(Architecture::X86_64)?;
        let parts = parts::with_signed_loaders(parts, &recipe)?;
        Some(Base::of(programs, recipe.boot_parts(parts)))
    });
    BASE.as_ref()
}

/// The same with the real NetworkManager in its initramfs.
fn base_with_network_manager() -> Option<&'static Base> {
    static BASE: LazyLock<Option<Base>> = LazyLock::new(|| {
        let (programs, recipe, parts) = parts(Architecture::X86_64)?;
        let parts = parts::with_network_manager(parts, &System::of(Architecture::X86_64)?)?;
        Some(Base::of(programs, recipe.boot_parts(parts)))
    });
    BASE.as_ref()
}

fn parts(architecture: Architecture) -> Option<(Programs, Recipe, BootParts)> {
    let system = System::of(architecture)?;
    let recipe = Recipe::new(architecture, Era::E2024_12);
    let (programs, parts) = parts::collect(&recipe)?;
    let recipe = recipe.filesystem_contents(Filesystem::Squashfs, parts::root_file_system(&system)?);
    Some((programs, recipe, parts::with_stages(parts, &system)?))
}

/// An image that the server makes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    name: &'static str,
    /// The last part of its URL.
    file: &'static str,
    /// What the API calls it, to ask for its config.
    kind: &'static str,
    networks: Networks,
    has_large_config: bool,
}

pub(crate) const FULL: Wanted = Wanted {
    name: "full",
    file: "full.iso",
    kind: "full-iso",
    networks: Networks::Static,
    has_large_config: false,
};
const FULL_LAID_OUT_ANEW: Wanted =
    Wanted { name: "full_with_a_large_config", has_large_config: true, ..FULL };
pub(crate) const MINIMAL: Wanted = Wanted {
    name: "minimal",
    file: "minimal.iso",
    kind: "minimal-iso",
    networks: Networks::Lease,
    has_large_config: false,
};
const MINIMAL_LAID_OUT_ANEW: Wanted =
    Wanted { name: "minimal_with_static_network", networks: Networks::Static, ..MINIMAL };
const MINIMAL_BONDED: Wanted =
    Wanted { name: "minimal_with_bond_and_VLAN", networks: Networks::Bonded, ..MINIMAL };
const NETWORK: Wanted = Wanted { name: "network_boot", file: "script.ipxe", ..MINIMAL_LAID_OUT_ANEW };
const NETWORK_BONDED: Wanted =
    Wanted { name: "network_boot_with_bond_and_VLAN", networks: Networks::Bonded, ..NETWORK };

impl Wanted {
    pub(crate) fn properties(self) -> Value {
        let mut properties = json!({
            "image_type": self.kind,
            "kernel_arguments": [{"operation": "append", "value": ARGUMENT}],
            "ssh_authorized_key": config::SSH_KEY,
        });
        if self.networks != Networks::Lease {
            properties["static_network_config"] = self.networks.config();
        }
        if self.has_large_config {
            properties["ignition_config_override"] = config::large().into();
        }
        properties
    }

    fn is_minimal(self) -> bool {
        self.kind == "minimal-iso"
    }

    /// Whether it has an archive with networks. Those of a full image are in the config that its own system applies.
    fn has_network_archive(self) -> bool {
        self.is_minimal() && self.networks != Networks::Lease
    }

    /// What boot loaders load besides the kernel.
    fn initrds(self) -> Vec<&'static str> {
        INITRDS.into_iter().chain(self.has_network_archive().then_some(NETWORK_IMAGE)).collect()
    }
}

/// Boots an image in one way and compares.
fn check(wanted: Wanted, column: Column) {
    let is_secure = column.start == Start::SecureDisc;
    let base = match wanted.networks {
        _ if is_secure => signed_base(),
        Networks::Bonded => base_with_network_manager(),
        Networks::Lease | Networks::Static => BASES.of(column.start.architecture()),
    };
    let Some(base) = base else { return };
    if column.is_remote && !has_client(&base.programs.qemu) {
        return;
    }
    let cell = Cell::begin("served", wanted.name, column);
    let mut properties = wanted.properties();
    properties["cpu_architecture"] = base.recipe.architecture().to_string().into();
    if base.recipe.architecture() == Architecture::S390x {
        // The service refuses to change them there.
        properties.as_object_mut().unwrap().remove("kernel_arguments");
    }
    let site = Site::start(&base.recipe.build(), &properties);
    let image = match column {
        _ if !column.start.has_medium() => PathBuf::from(site.machines_url(wanted.file)),
        Column { is_remote: true, .. } => PathBuf::from(site.file_url(wanted.file)),
        _ => site.scratch.write("image.iso", site.file(wanted.file)),
    };
    site.tap.begin();
    let setup = Setup { cards: wanted.networks.cards(), ..Setup::new(&base.programs, &image, column.start) };
    let boot = setup.boot().unwrap_or_else(|why| panic!("{why}\nthe server sent {:?}", site.tap.answers()));
    let answers = site.tap.answers();

    check_arguments(&site, wanted, column.start, &boot);
    check_initramfs(base, &site, wanted, &boot);
    check_stages(base, &site, (wanted, column.start), &boot);
    assert_eq!(boot.log.contains("secureboot: Secure boot enabled"), is_secure, "{}", boot.log);
    if column.is_remote || !column.start.has_medium() {
        keep_trace(wanted, column, &answers);
        let least = match column.start {
            // All of it at once.
            Start::UefiHttp => 1,
            // A script, a kernel, an initrd, a root file system.
            Start::BiosNetwork | Start::UefiNetwork => 4,
            _ => 10,
        };
        assert!(answers.len() >= least, "{answers:?}");
    }
    cell.passed(boot.seconds, &base.programs);
}

/// The kernel's command line is that of the script or of the image, which has what the infra-env says.
fn check_arguments(site: &Site, wanted: Wanted, start: Start, boot: &Boot) {
    let rootfs_url = format!("coreos.live.rootfs_url={}", site.machines_url("").split("/i/").next().unwrap());
    let expected = if start.loader() == Loader::Ipxe {
        let script = String::from_utf8(site.file(wanted.file)).unwrap();
        let line = script.lines().find(|line| line.starts_with("kernel ")).unwrap().to_owned();
        let arguments = line.splitn(3, ' ').nth(2).unwrap();
        // Among EFI programs, the name is an argument.
        if start == Start::UefiNetwork { format!("kernel {arguments}") } else { arguments.to_owned() }
    } else {
        let image = site.scratch.write("served.iso", site.file(wanted.file));
        let image = BaseImage::open(image).unwrap();
        let arguments = image.kargs().unwrap().current().unwrap().to_owned();
        match start.loader() {
            Loader::Isolinux => {
                format!("BOOT_IMAGE={KERNEL} initrd={} {arguments}", wanted.initrds().join(","))
            }
            Loader::Firmware => arguments,
            _ => format!("BOOT_IMAGE={KERNEL} {}", arguments.replace('"', "")),
        }
    };
    assert_eq!(boot.facts.command_line, expected);
    let has_argument = expected.split(' ').any(|argument| argument == ARGUMENT);
    assert_eq!(has_argument, start.architecture() != Architecture::S390x, "{expected}");
    assert_eq!(expected.replace('"', "").contains(&rootfs_url), wanted.is_minimal(), "{expected}");
}

/// What arrived in the initramfs: the files of the base, the config that the API tells, and the network's.
fn check_initramfs(base: &Base, site: &Site, wanted: Wanted, boot: &Boot) {
    let mut files = base.files.clone();
    if wanted.has_network_archive() {
        let network = site.download("minimal-initrd");
        let archive = Archive::read(network.as_slice(), initrd::Limits::INITRD).unwrap();
        // Links are none of the files that are told of; the kernel takes all names from the root.
        let files_alone = archive.iter().filter(|(name, _)| !name.contains(".wants/"));
        files.extend(
            files_alone.map(|(name, bytes)| (name.trim_start_matches('/').to_owned(), digest(bytes))),
        );
        assert!(files.contains_key("etc/assisted/network/host1/mac_interface.ini"), "{files:?}");
    }
    let config = site.download(&format!("files?file_name=discovery.ign&discovery_iso_type={}", wanted.kind));
    files.insert("config.ign".to_owned(), digest(&config));
    assert_eq!(boot.facts.files, files);
}

/// What the live system did: its network, its root file system, Ignition.
fn check_stages(base: &Base, site: &Site, (wanted, start): (Wanted, Start), boot: &Boot) {
    let report = Report::find(&boot.log).unwrap_or_else(|| panic!("{}", boot.log));
    let networks = if wanted.is_minimal() { wanted.networks } else { Networks::Lease };
    assert_eq!(report.network, networks.reported(), "{}", boot.log);
    let medium = (!wanted.is_minimal()).then(|| start.device());
    assert_eq!(report.medium.as_deref(), medium, "{}", boot.log);
    let rootfs = base.image.rootfs().unwrap().read_all(1 << 30).unwrap();
    assert_eq!(report.rootfs, Some(digest(&rootfs)), "{}", boot.log);
    assert_eq!(report.ignition, ["fetch 0", "files 0"], "{}", boot.log);
    let config = site.download(&format!("files?file_name=discovery.ign&discovery_iso_type={}", wanted.kind));
    config::check_applied(&serde_json::from_slice(&config).unwrap(), &report);
}

/// Writes down what a boot read, for benchmarks, where `KINDLING_BOOT_TRACES` names a folder.
fn keep_trace(wanted: Wanted, column: Column, answers: &[Answer]) {
    let Some(folder) = std::env::var_os("KINDLING_BOOT_TRACES") else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut text = "# milliseconds file offset length\n".to_owned();
    for Answer { file, offset, len, milliseconds } in answers {
        writeln!(text, "{milliseconds} {file} {offset} {len}").unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    let name = format!("{} {}.txt", wanted.name, column.name()).to_ascii_lowercase();
    let name = name.replace([' ', '_'], "-").replace(',', "");
    std::fs::write(folder.join(name), text).unwrap();
}

/// Without signatures nothing starts there: Secure Boot is on.
#[test]
fn secure_boot_refuses_what_is_not_signed() {
    let Some(base) = base() else { return };
    let scratch = Scratch::new();
    let image = scratch.write("image.iso", base.recipe.build());
    let why = Setup::new(&base.programs, &image, Start::SecureDisc).boot().map(|boot| boot.log).unwrap_err();
    assert!(why.contains("Access Denied"), "{why}");
}

/// One test for every image and way of starting. Those that go through nothing that no other one goes through are of the
/// whole matrix alone: `.ci/boot-matrix` runs them.
macro_rules! boots {
    ($($module:ident: $wanted:ident { $($(#[$attribute:meta])* $test:ident: $start:ident $is_remote:literal)* })*) => { $(
        mod $module {
            use super::{Column, Start, check};

            $(
                $(#[$attribute])*
                #[test]
                fn $test() {
                    check(super::$wanted, Column { start: Start::$start, is_remote: $is_remote });
                }
            )*
        }
    )* };
}

boots! {
    full: FULL {
        bios_disc: BiosDisc false
        uefi_disc: UefiDisc false
        secure_disc: SecureDisc false
        #[ignore = "of the whole matrix"]
        bios_stick: BiosStick false
        #[ignore = "of the whole matrix"]
        uefi_stick: UefiStick false
        #[ignore = "of the whole matrix"]
        bios_disc_over_http: BiosDisc true
        uefi_disc_over_http: UefiDisc true
        uefi_http: UefiHttp false
        arm_disc: ArmDisc false
        #[ignore = "of the whole matrix"]
        arm_stick: ArmStick false
        mainframe_disc: MainframeDisc false
        #[ignore = "of the whole matrix"]
        power_disc: PowerDisc false
    }
    full_with_a_large_config: FULL_LAID_OUT_ANEW {
        bios_disc: BiosDisc false
        uefi_disc: UefiDisc false
        #[ignore = "of the whole matrix"]
        secure_disc: SecureDisc false
        #[ignore = "of the whole matrix"]
        bios_stick: BiosStick false
        #[ignore = "of the whole matrix"]
        uefi_stick: UefiStick false
        #[ignore = "of the whole matrix"]
        bios_disc_over_http: BiosDisc true
        uefi_disc_over_http: UefiDisc true
        #[ignore = "of the whole matrix"]
        uefi_http: UefiHttp false
        arm_disc: ArmDisc false
        #[ignore = "of the whole matrix"]
        power_disc: PowerDisc false
        #[ignore = "of the whole matrix"]
        mainframe_disc: MainframeDisc false
    }
    minimal: MINIMAL {
        bios_disc: BiosDisc false
        uefi_disc: UefiDisc false
        #[ignore = "of the whole matrix"]
        secure_disc: SecureDisc false
        #[ignore = "of the whole matrix"]
        bios_stick: BiosStick false
        #[ignore = "of the whole matrix"]
        uefi_stick: UefiStick false
        bios_disc_over_http: BiosDisc true
        #[ignore = "of the whole matrix"]
        uefi_disc_over_http: UefiDisc true
        #[ignore = "of the whole matrix"]
        uefi_http: UefiHttp false
        arm_disc: ArmDisc false
        #[ignore = "of the whole matrix"]
        power_disc: PowerDisc false
        #[ignore = "of the whole matrix"]
        mainframe_disc: MainframeDisc false
    }
    minimal_with_static_network: MINIMAL_LAID_OUT_ANEW {
        bios_disc: BiosDisc false
        uefi_disc: UefiDisc false
        secure_disc: SecureDisc false
        #[ignore = "of the whole matrix"]
        bios_stick: BiosStick false
        uefi_stick: UefiStick false
        bios_disc_over_http: BiosDisc true
        uefi_disc_over_http: UefiDisc true
        uefi_http: UefiHttp false
        arm_disc: ArmDisc false
        #[ignore = "of the whole matrix"]
        arm_stick: ArmStick false
        #[ignore = "of the whole matrix"]
        arm_disc_over_http: ArmDisc true
        #[ignore = "of the whole matrix"]
        power_disc: PowerDisc false
        #[ignore = "of the whole matrix"]
        mainframe_disc: MainframeDisc false
    }
    minimal_with_bond_and_vlan: MINIMAL_BONDED {
        #[ignore = "of the whole matrix"]
        bios_disc: BiosDisc false
        uefi_disc: UefiDisc false
    }
    network_boot: NETWORK {
        bios_ipxe: BiosNetwork false
        uefi_ipxe: UefiNetwork false
    }
    network_boot_with_bond_and_vlan: NETWORK_BONDED {
        #[ignore = "of the whole matrix"]
        bios_ipxe: BiosNetwork false
        #[ignore = "of the whole matrix"]
        uefi_ipxe: UefiNetwork false
    }
}
