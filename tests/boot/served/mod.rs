//! Boots images from a running server, for an infra-env created through its API. The tests check that the requested
//! command line, config and network arrive, that the system downloads its root file system from the server, and that
//! the real Ignition applies the config.

mod config;
mod networks;
mod recording_proxy;
mod report;
mod site;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use fixtures::{Architecture, BootParts, Era, Filesystem, Recipe};
use isogen::{Archive, BaseImage, initrd};
use serde_json::{Value, json};

use crate::boot_parts::BootPrograms;
use crate::machine::{BootLoader, BootResult, MachineSetup, StartMethod};
use crate::matrix::{MatrixCell, MatrixColumn};
use crate::support::Scratch;
use crate::support::has_http_client;
use crate::system::DebianSystem;
use crate::{BootBase, BootBases, INITRDS, KERNEL, boot_parts, sha256_hex};
use networks::TestNetwork;
use recording_proxy::RecordedAnswer;
use report::SystemReport;
pub(crate) use site::ServedSite;

/// The kernel argument of the infra-env.
const ARGUMENT: &str = "served.by=kindling";
/// The initrd with static networks, in addition to the initrds of every image.
const NETWORK_IMAGE: &str = "/images/assisted_installer_custom.img";

/// The base images of the server.
static BASES: BootBases = BootBases::new(|architecture| {
    let (programs, recipe, parts) = boot_parts(architecture)?;
    Some(BootBase::from_recipe(programs, recipe.boot_parts(parts)))
});

pub(crate) fn served_base() -> Option<&'static BootBase> {
    BASES.get(Architecture::X86_64)
}

/// Returns the base image with signed boot loaders.
pub(crate) fn signed_served_base() -> Option<&'static BootBase> {
    static BASE: LazyLock<Option<BootBase>> = LazyLock::new(|| {
        let (programs, recipe, parts) = boot_parts(Architecture::X86_64)?;
        let parts = boot_parts::with_signed_loaders(parts, &recipe)?;
        Some(BootBase::from_recipe(programs, recipe.boot_parts(parts)))
    });
    BASE.as_ref()
}

/// Returns the base image with the real NetworkManager in its initramfs.
fn served_base_with_network_manager() -> Option<&'static BootBase> {
    static BASE: LazyLock<Option<BootBase>> = LazyLock::new(|| {
        let (programs, recipe, parts) = boot_parts(Architecture::X86_64)?;
        let parts =
            boot_parts::with_network_manager(parts, &DebianSystem::for_architecture(Architecture::X86_64)?)?;
        Some(BootBase::from_recipe(programs, recipe.boot_parts(parts)))
    });
    BASE.as_ref()
}

fn boot_parts(architecture: Architecture) -> Option<(BootPrograms, Recipe, BootParts)> {
    let system = DebianSystem::for_architecture(architecture)?;
    let recipe = Recipe::new(architecture, Era::E2024_12);
    let (programs, parts) = boot_parts::collect_parts(&recipe)?;
    let recipe = recipe.filesystem_contents(Filesystem::Squashfs, boot_parts::root_file_system(&system)?);
    Some((programs, recipe, boot_parts::with_stage_files(parts, &system)?))
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ServedArtifact {
    name: &'static str,
    /// The last part of the URL.
    file: &'static str,
    /// The name in the API, to request the config.
    kind: &'static str,
    networks: TestNetwork,
    has_large_config: bool,
}

pub(crate) const FULL: ServedArtifact = ServedArtifact {
    name: "full",
    file: "full.iso",
    kind: "full-iso",
    networks: TestNetwork::Static,
    has_large_config: false,
};
const FULL_RELAID_OUT: ServedArtifact =
    ServedArtifact { name: "full_with_a_large_config", has_large_config: true, ..FULL };
pub(crate) const MINIMAL: ServedArtifact = ServedArtifact {
    name: "minimal",
    file: "minimal.iso",
    kind: "minimal-iso",
    networks: TestNetwork::Lease,
    has_large_config: false,
};
const MINIMAL_RELAID_OUT: ServedArtifact =
    ServedArtifact { name: "minimal_with_static_network", networks: TestNetwork::Static, ..MINIMAL };
const MINIMAL_BONDED: ServedArtifact =
    ServedArtifact { name: "minimal_with_bond_and_VLAN", networks: TestNetwork::Bonded, ..MINIMAL };
const NETWORK: ServedArtifact =
    ServedArtifact { name: "network_boot", file: "script.ipxe", ..MINIMAL_RELAID_OUT };
const NETWORK_BONDED: ServedArtifact =
    ServedArtifact { name: "network_boot_with_bond_and_VLAN", networks: TestNetwork::Bonded, ..NETWORK };

impl ServedArtifact {
    pub(crate) fn infra_env_properties(self) -> Value {
        let mut properties = json!({
            "image_type": self.kind,
            "kernel_arguments": [{"operation": "append", "value": ARGUMENT}],
            "ssh_authorized_key": config::SSH_KEY,
        });
        if self.networks != TestNetwork::Lease {
            properties["static_network_config"] = self.networks.api_config();
        }
        if self.has_large_config {
            properties["ignition_config_override"] = config::large_override().into();
        }
        properties
    }

    fn is_minimal(self) -> bool {
        self.kind == "minimal-iso"
    }

    /// Returns `true` if the artifact has a network archive. The networks of a full image are in its config, which the
    /// live system applies.
    fn has_network_archive(self) -> bool {
        self.is_minimal() && self.networks != TestNetwork::Lease
    }

    /// Returns the files that boot loaders load in addition to the kernel.
    fn extra_initrds(self) -> Vec<&'static str> {
        INITRDS.into_iter().chain(self.has_network_archive().then_some(NETWORK_IMAGE)).collect()
    }
}

/// Boots an image in one way, and compares the facts with the infra-env.
fn check_artifact(artifact: ServedArtifact, column: MatrixColumn) {
    let is_secure = column.start == StartMethod::SecureDisc;
    let base = match artifact.networks {
        _ if is_secure => signed_served_base(),
        TestNetwork::Bonded => served_base_with_network_manager(),
        TestNetwork::Lease | TestNetwork::Static => BASES.get(column.start.processor()),
    };
    let Some(base) = base else { return };
    if column.is_remote && !has_http_client(&base.programs.qemu) {
        return;
    }
    let cell = MatrixCell::begin("served", artifact.name, column);
    let mut properties = artifact.infra_env_properties();
    properties["cpu_architecture"] = base.recipe.architecture().to_string().into();
    if base.recipe.architecture() == Architecture::S390x {
        // The service refuses kernel arguments for images of this processor, so the infra-env has none.
        properties.as_object_mut().unwrap().remove("kernel_arguments");
    }
    let site = ServedSite::start(&base.recipe.build(), &properties);
    let image = match column {
        _ if !column.start.has_medium() => PathBuf::from(site.url_for_machines(artifact.file)),
        MatrixColumn { is_remote: true, .. } => PathBuf::from(site.file_url(artifact.file)),
        _ => site.scratch.write("image.iso", site.infra_env_file(artifact.file)),
    };
    site.tap.begin_recording();
    let setup = MachineSetup {
        cards: artifact.networks.network_cards(),
        ..MachineSetup::new(&base.programs, &image, column.start)
    };
    let boot =
        setup.boot().unwrap_or_else(|why| panic!("{why}\nthe server sent {:?}", site.tap.recorded_answers()));
    let answers = site.tap.recorded_answers();

    check_command_line(&site, artifact, column.start, &boot);
    check_initramfs(base, &site, artifact, &boot);
    check_stages(base, &site, (artifact, column.start), &boot);
    assert_eq!(boot.log.contains("secureboot: Secure boot enabled"), is_secure, "{}", boot.log);
    if column.is_remote || !column.start.has_medium() {
        save_trace(artifact, column, &answers);
        let least = match column.start {
            // One large initrd with everything.
            StartMethod::UefiHttp => 1,
            // A script, a kernel, an initrd, a root file system.
            StartMethod::BiosNetwork | StartMethod::UefiNetwork => 4,
            _ => 10,
        };
        assert!(answers.len() >= least, "{answers:?}");
    }
    cell.record_pass(boot.seconds, &base.programs);
}

/// Checks the command line of the kernel. It comes from the iPXE script or the image, which contains the arguments of
/// the infra-env.
fn check_command_line(site: &ServedSite, artifact: ServedArtifact, start: StartMethod, boot: &BootResult) {
    let rootfs_url =
        format!("coreos.live.rootfs_url={}", site.url_for_machines("").split("/i/").next().unwrap());
    let expected = if start.boot_loader() == BootLoader::Ipxe {
        let script = String::from_utf8(site.infra_env_file(artifact.file)).unwrap();
        let line = script.lines().find(|line| line.starts_with("kernel ")).unwrap().to_owned();
        let arguments = line.splitn(3, ' ').nth(2).unwrap();
        // EFI boot passes the initrd's name as an argument.
        if start == StartMethod::UefiNetwork { format!("kernel {arguments}") } else { arguments.to_owned() }
    } else {
        let image = site.scratch.write("served.iso", site.infra_env_file(artifact.file));
        let image = BaseImage::open(image).unwrap();
        let arguments = image.kargs().unwrap().current().unwrap().to_owned();
        match start.boot_loader() {
            BootLoader::Isolinux => {
                format!("BOOT_IMAGE={KERNEL} initrd={} {arguments}", artifact.extra_initrds().join(","))
            }
            BootLoader::Firmware => arguments,
            _ => format!("BOOT_IMAGE={KERNEL} {}", arguments.replace('"', "")),
        }
    };
    assert_eq!(boot.facts.command_line, expected);
    let has_argument = expected.split(' ').any(|argument| argument == ARGUMENT);
    assert_eq!(has_argument, start.processor() != Architecture::S390x, "{expected}");
    assert_eq!(expected.replace('"', "").contains(&rootfs_url), artifact.is_minimal(), "{expected}");
}

/// Checks the files in the initramfs: the files of the base, the config of the API, and the files of the network.
fn check_initramfs(base: &BootBase, site: &ServedSite, artifact: ServedArtifact, boot: &BootResult) {
    let mut files = base.files.clone();
    if artifact.has_network_archive() {
        let network = site.api_download("minimal-initrd");
        let archive = Archive::read(network.as_slice(), initrd::ArchiveLimits::INITRD).unwrap();
        // The facts omit links, and the kernel resolves all names from the root.
        let files_alone = archive.iter().filter(|(name, _)| !name.contains(".wants/"));
        files.extend(
            files_alone.map(|(name, bytes)| (name.trim_start_matches('/').to_owned(), sha256_hex(bytes))),
        );
        assert!(files.contains_key("etc/assisted/network/host1/mac_interface.ini"), "{files:?}");
    }
    let config =
        site.api_download(&format!("files?file_name=discovery.ign&discovery_iso_type={}", artifact.kind));
    files.insert("config.ign".to_owned(), sha256_hex(&config));
    assert_eq!(boot.facts.files, files);
}

/// Checks what the live system has done: its network, its root file system, Ignition.
fn check_stages(
    base: &BootBase,
    site: &ServedSite,
    (wanted, start): (ServedArtifact, StartMethod),
    boot: &BootResult,
) {
    let report = SystemReport::parse_log(&boot.log).unwrap_or_else(|| panic!("{}", boot.log));
    let networks = if wanted.is_minimal() { wanted.networks } else { TestNetwork::Lease };
    assert_eq!(report.network, networks.expected_report(), "{}", boot.log);
    let medium = (!wanted.is_minimal()).then(|| start.medium_device());
    assert_eq!(report.medium.as_deref(), medium, "{}", boot.log);
    let rootfs = base.image.rootfs().unwrap().read_all(1 << 30).unwrap();
    assert_eq!(report.rootfs, Some(sha256_hex(&rootfs)), "{}", boot.log);
    assert_eq!(report.ignition, ["fetch 0", "files 0"], "{}", boot.log);
    let config =
        site.api_download(&format!("files?file_name=discovery.ign&discovery_iso_type={}", wanted.kind));
    config::check_applied(&serde_json::from_slice(&config).unwrap(), &report);
}

/// Writes the trace of a boot to the folder `KINDLING_BOOT_TRACES`, for benchmarks.
fn save_trace(artifact: ServedArtifact, column: MatrixColumn, answers: &[RecordedAnswer]) {
    let Some(folder) = std::env::var_os("KINDLING_BOOT_TRACES") else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut text = "# milliseconds file offset length\n".to_owned();
    for RecordedAnswer { file, offset, len, milliseconds } in answers {
        writeln!(text, "{milliseconds} {file} {offset} {len}").unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    let name = format!("{} {}.txt", artifact.name, column.name()).to_ascii_lowercase();
    let name = name.replace([' ', '_'], "-").replace(',', "");
    std::fs::write(folder.join(name), text).unwrap();
}

/// The firmware starts no unsigned image, so Secure Boot is on.
#[test]
#[ignore = "of the whole matrix"]
fn secure_boot_refuses_unsigned_images() {
    let Some(base) = served_base() else { return };
    let scratch = Scratch::new();
    let image = scratch.write("image.iso", base.recipe.build());
    let why = MachineSetup::new(&base.programs, &image, StartMethod::SecureDisc)
        .boot()
        .map(|boot| boot.log)
        .unwrap_err();
    assert!(why.contains("Access Denied"), "{why}");
}

/// Defines a test that boots an artifact, either in every run or only as part of the whole matrix.
macro_rules! boot_test {
    (run $test:ident $wanted:expr, $start:ident, $is_remote:literal) => {
        #[test]
        fn $test() {
            check_artifact($wanted, MatrixColumn { start: StartMethod::$start, is_remote: $is_remote });
        }
    };
    (full $test:ident $wanted:expr, $start:ident, $is_remote:literal) => {
        #[test]
        #[ignore = "of the whole matrix"]
        fn $test() {
            check_artifact($wanted, MatrixColumn { start: StartMethod::$start, is_remote: $is_remote });
        }
    };
}

/// Defines one test for every artifact and start method. Every run boots most artifacts once; `.ci/boot-matrix` boots
/// all of them in every way.
macro_rules! boots {
    ($($module:ident: $wanted:ident { $($when:ident $test:ident: $start:ident $is_remote:literal)* })*) => { $(
        mod $module {
            use super::{MatrixColumn, StartMethod, check_artifact};

            $(boot_test!($when $test super::$wanted, $start, $is_remote);)*
        }
    )* };
}

boots! {
    full: FULL {
        full bios_disc: BiosDisc false
        full uefi_disc: UefiDisc false
        run  secure_disc: SecureDisc false
        full bios_stick: BiosStick false
        full uefi_stick: UefiStick false
        full bios_disc_over_http: BiosDisc true
        full uefi_disc_over_http: UefiDisc true
        full uefi_http: UefiHttp false
        full arm_disc: ArmDisc false
        full arm_stick: ArmStick false
        full mainframe_disc: MainframeDisc false
        full power_disc: PowerDisc false
    }
    full_with_a_large_config: FULL_RELAID_OUT {
        run  bios_disc: BiosDisc false
        full uefi_disc: UefiDisc false
        full secure_disc: SecureDisc false
        full bios_stick: BiosStick false
        full uefi_stick: UefiStick false
        full bios_disc_over_http: BiosDisc true
        full uefi_disc_over_http: UefiDisc true
        full uefi_http: UefiHttp false
        full arm_disc: ArmDisc false
        full power_disc: PowerDisc false
        full mainframe_disc: MainframeDisc false
    }
    minimal: MINIMAL {
        full bios_disc: BiosDisc false
        full uefi_disc: UefiDisc false
        full secure_disc: SecureDisc false
        full bios_stick: BiosStick false
        full uefi_stick: UefiStick false
        run  bios_disc_over_http: BiosDisc true
        full uefi_disc_over_http: UefiDisc true
        full uefi_http: UefiHttp false
        full arm_disc: ArmDisc false
        full power_disc: PowerDisc false
        full mainframe_disc: MainframeDisc false
    }
    minimal_with_static_network: MINIMAL_RELAID_OUT {
        full bios_disc: BiosDisc false
        full uefi_disc: UefiDisc false
        full secure_disc: SecureDisc false
        full bios_stick: BiosStick false
        full uefi_stick: UefiStick false
        full bios_disc_over_http: BiosDisc true
        full uefi_disc_over_http: UefiDisc true
        full uefi_http: UefiHttp false
        run  arm_disc: ArmDisc false
        full arm_stick: ArmStick false
        full arm_disc_over_http: ArmDisc true
        full power_disc: PowerDisc false
        full mainframe_disc: MainframeDisc false
    }
    minimal_with_bond_and_vlan: MINIMAL_BONDED {
        full bios_disc: BiosDisc false
        full uefi_disc: UefiDisc false
    }
    network_boot: NETWORK {
        run  bios_ipxe: BiosNetwork false
        full uefi_ipxe: UefiNetwork false
    }
    network_boot_with_bond_and_vlan: NETWORK_BONDED {
        full bios_ipxe: BiosNetwork false
        full uefi_ipxe: UefiNetwork false
    }
}
