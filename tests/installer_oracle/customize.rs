//! `iso customize`: the embedded config is identical to the installer's, byte for byte.

use std::fs;
use std::path::Path;

use crate::program_pair::{ComparisonKind, ProgramPair};
use crate::support::{CONFIG, KEYFILE, check_each, require_path};
use crate::{
    OracleImage, all_images, commands_for, commands_in_turn, full_featured_image,
    images_for_independent_commands,
};

/// Files for the options.
pub(crate) const INPUTS: &[(&str, &str)] = &[
    ("live.ign", CONFIG),
    (
        "live2.ign",
        r#"{ "ignition": { "version": "3.4.0" }, "storage": { "files": [ { "path": "/etc/motd" } ] } }"#,
    ),
    (
        "dest.ign",
        r#"{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"a.service","enabled":true}]}}"#,
    ),
    ("dest2.ign", r#"{"ignition":{"version":"3.5.0"}}"#),
    ("old.ign", r#"{"ignition":{"version":"2.2.0"}}"#),
    ("odd.ign", r#"{"ignition":{"version":"3.0.0"},"colour":1}"#),
    ("broken.ign", r#"{"ignition":"#),
    ("wired.nmconnection", KEYFILE),
    ("other/wired.nmconnection", "[connection]\n"),
    ("second.nmconnection", "[connection]\nid=second\n"),
    ("net.yaml", NMSTATE),
    (
        "net.json",
        r#"{"interfaces":[{"name":"eth3","type":"ethernet","state":"up","ipv4":{"enabled":true,"dhcp":true}}]}"#,
    ),
    ("eth3.nmconnection", "[connection]\nid=eth3\n"),
    ("ca.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
    ("ca2.pem", "-----BEGIN CERTIFICATE-----\nBBBB\n-----END CERTIFICATE-----\n"),
    ("hook.sh", "#!/bin/sh\necho before\n"),
    ("other/hook.sh", "#!/bin/sh\necho after\n"),
    ("empty", ""),
    ("install.yaml", "dest-device: /dev/vda\nappend-karg:\n- quiet\n"),
    ("install2.yaml", "offline: true\nconsole:\n- ttyS0,115200n8\n"),
    ("unknown-key.yaml", "colour: blue\n"),
];

const NMSTATE: &str = "\
interfaces:
- name: eth1
  type: ethernet
  state: up
  ipv4:
    enabled: true
    address: [{ip: 192.0.2.7, prefix-length: 24}]
- name: bond0
  type: bond
  state: up
  link-aggregation: {mode: active-backup, port: [eth5, eth6]}
  ipv6: {enabled: true, dhcp: true, autoconf: true}
dns-resolver: {config: {server: [192.0.2.1]}}
routes: {config: [{destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: eth1}]}
";

/// Options that `iso customize` and `pxe customize` share.
pub(crate) const COMBINATIONS: &[&str] = &[
    "",
    "--live-ignition live.ign",
    "--live-ignition live.ign --live-ignition live2.ign --live-ignition dest2.ign",
    "--live-ignition odd.ign",
    "--dest-ignition dest.ign",
    "--dest-ignition dest.ign --dest-ignition dest2.ign",
    "--dest-ignition dest.ign --ignition-ca ca.pem",
    "--ignition-ca ca.pem --ignition-ca ca2.pem",
    "--ignition-ca empty --pre-install empty",
    "--dest-device /dev/disk/by-id/x --dest-karg-append a=b --dest-karg-append c --dest-karg-delete d",
    "--dest-karg-append console=ttyS0,115200 --dest-device /dev/sda",
    "--dest-console ttyS0 --dest-console tty0 --dest-console ttyAMA1,115200e7",
    "--dest-console hvc0 --dest-device /dev/sda",
    "--network-keyfile wired.nmconnection --network-keyfile second.nmconnection",
    "--network-keyfile wired.nmconnection --dest-device /dev/sda",
    "--network-nmstate net.yaml --network-nmstate net.json",
    "--network-nmstate net.yaml --network-keyfile wired.nmconnection --dest-ignition dest.ign",
    "--pre-install hook.sh --post-install hook.sh",
    "--pre-install hook.sh --pre-install ca.pem --post-install other/hook.sh",
    "--installer-config install.yaml --installer-config install2.yaml",
    "--installer-config install.yaml --network-keyfile wired.nmconnection --dest-console ttyS0,9600",
    "--live-ignition live.ign --dest-ignition dest.ign --dest-device /dev/sda --dest-console ttyS0,115200n8 \
     --dest-karg-append x --dest-karg-delete y --network-keyfile wired.nmconnection --network-nmstate net.json \
     --ignition-ca ca.pem --pre-install hook.sh --post-install hook.sh --installer-config install.yaml",
];

/// Invalid options, for images that support all options.
pub(crate) const REFUSED: &[&str] = &[
    "--live-ignition broken.ign",
    "--live-ignition old.ign",
    "--dest-ignition wired.nmconnection",
    "--live-ignition missing.ign",
    "--installer-config unknown-key.yaml",
    "--installer-config wired.nmconnection",
    "--pre-install hook.sh --pre-install other/hook.sh",
    "--network-keyfile wired.nmconnection --network-keyfile other/wired.nmconnection",
    "--network-keyfile eth3.nmconnection --network-nmstate net.json",
    "--network-nmstate net.json --network-nmstate net.json",
];

impl ProgramPair<'_> {
    pub(crate) fn write_sample_inputs(self) -> Self {
        for (name, contents) in INPUTS {
            self.write_to_both(name, contents);
        }
        self
    }
}

#[test]
fn every_combination_of_options_makes_the_same_image() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject).write_sample_inputs();
        for options in commands_for(&subject.name, COMBINATIONS) {
            pair.compare_edit_line(&format!("iso customize {options}"), ComparisonKind::Image);
            pair.compare_exactly("iso ignition show image.iso");
            pair.restore_image();
        }
    });
}

#[test]
fn both_refuse_wrong_options() {
    let Some(subject) = full_featured_image() else { return };
    let pair = ProgramPair::new(subject).write_sample_inputs();
    for options in REFUSED {
        assert!(pair.compare_edit_line(&format!("iso customize {options}"), ComparisonKind::Image).is_none());
        pair.assert_pristine();
    }
}

#[test]
fn both_refuse_unsupported_features() {
    let all = [
        "--live-ignition live.ign --pre-install hook.sh",
        "--dest-console ttyS0",
        "--dest-device /dev/sda",
        "--dest-ignition dest.ign",
        "--installer-config install.yaml",
        "--network-keyfile wired.nmconnection",
        "--network-nmstate net.json",
        "--live-karg-append quiet",
    ];
    check_each(all_images(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject).write_sample_inputs();
        for options in commands_in_turn(&subject.name, 2, &all) {
            if pair
                .compare_as(&format!("iso customize {options} image.iso"), ComparisonKind::Image)
                .status
                .success()
            {
                pair.compare_exactly("iso reset image.iso");
            }
            pair.assert_pristine();
        }
    });
}

#[test]
fn live_kargs_start_from_the_defaults() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject).write_sample_inputs();
        pair.compare_exactly("iso kargs modify -a gone image.iso");
        let line = "iso customize -f --live-karg-append a=1 --live-karg-delete ignition.firstboot \
                    --live-karg-replace ignition.platform.id=metal=aws --live-karg-replace a=1=2";
        pair.compare_edit_line(line, ComparisonKind::Exact);
        pair.compare_exactly("iso kargs show image.iso");
        assert!(
            pair.compare_edit_line("iso customize --live-karg-replace a=b -f", ComparisonKind::Exact)
                .is_none()
        );
        // Kernel arguments alone create no config. `--force` without arguments keeps the existing arguments.
        pair.compare_exactly("iso ignition show image.iso");
        pair.compare_edit_line("iso customize -f --live-ignition live.ign", ComparisonKind::Image);
        pair.compare_exactly("iso kargs show image.iso");
        let long = "x".repeat(3000);
        let arguments = ["iso", "customize", "-f", "--live-karg-append", &long];
        assert!(pair.compare_edit(&arguments, b"", ComparisonKind::Image).is_none());
    });
}

#[test]
fn repeated_customisation_requires_force() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let before = [
            "iso ignition embed -i live.ign image.iso",
            "iso network embed -k wired.nmconnection image.iso",
            "iso kargs modify -a quiet image.iso",
            "iso customize --live-ignition live.ign image.iso",
        ];
        for line in commands_for(&subject.name, &before) {
            let pair = ProgramPair::new(subject).write_sample_inputs();
            if !pair.compare_as(line, ComparisonKind::Image).status.success() {
                continue;
            }
            pair.exchange_file("image.iso");
            assert!(
                pair.compare_edit_line("iso customize --pre-install hook.sh", ComparisonKind::Image)
                    .is_none()
            );
            assert!(pair.compare_edit_line("iso customize", ComparisonKind::Image).is_none());
            pair.compare_edit_line("iso customize --force --pre-install hook.sh", ComparisonKind::Image)
                .unwrap();
            pair.compare_after_exchange("iso ignition show image.iso");
            pair.compare_edit_line("iso customize -f", ComparisonKind::Image).unwrap();
            pair.compare_edit_line("iso reset", ComparisonKind::Exact).unwrap();
            pair.assert_pristine();
        }
    });
}

/// A member that is neither a config nor a network file does not count as a customisation.
#[test]
fn foreign_members_are_not_a_customisation() {
    let Some(subject) = full_featured_image() else { return };
    let pair = ProgramPair::new(subject).write_sample_inputs();
    let foreign =
        fixtures::hostile_archives().into_iter().find(|archive| archive.name == "no-directories").unwrap();
    let mut image = subject.bytes.clone();
    let start = usize::try_from(subject.area.unwrap().offset).unwrap();
    image[start..start + foreign.bytes().len()].copy_from_slice(&foreign.bytes());
    pair.write_to_both("image.iso", &image);
    pair.compare_exactly("iso extract minimal-iso image.iso minimal.iso");
    pair.compare_edit_line("iso customize --live-ignition live.ign", ComparisonKind::Image).unwrap();
}

/// The sample inputs of the installer's own tests, all of them in one command.
#[test]
fn sample_inputs_of_the_installer_make_the_same_image() {
    let (Some(subject), Some(suite)) = (full_featured_image(), require_path("KINDLING_INSTALLER_SUITE"))
    else {
        return;
    };
    let pair = ProgramPair::new(subject);
    for entry in fs::read_dir(Path::new(&suite).join("fixtures/customize")).unwrap() {
        let path = entry.unwrap().path();
        pair.write_to_both(path.file_name().unwrap().to_str().unwrap(), fs::read(&path).unwrap());
    }
    let common = "--live-ignition live.ign --live-ignition live-2.ign --pre-install pre-install-1 \
                  --pre-install pre-install-2 --post-install post-install-1 --post-install post-install-2 \
                  --ignition-ca cert.pem --network-keyfile installer-test.nmconnection \
                  --network-nmstate installer-test-nmstate-json.json --network-nmstate installer-test-nmstate-yaml.yaml";
    let install = "--dest-ignition dest.ign --dest-ignition dest-2.ign --installer-config install-1.conf \
                   --installer-config install-2.conf --dest-device /dev/vda --dest-console ttyS0,115200 \
                   --dest-karg-append dest-karg --dest-karg-delete ignition.platform.id=metal";
    let kargs = "--live-karg-append systemd.log_color=0 --live-karg-append console=ttyS0,115200";
    for line in
        [common.to_owned(), format!("{common} {install} {kargs}"), "--dest-ignition dest-2.ign".to_owned()]
    {
        pair.compare_edit_line(&format!("iso customize {line}"), ComparisonKind::Image).unwrap();
        pair.compare_exactly("iso ignition show image.iso");
        pair.compare_exactly("iso network extract image.iso");
        pair.compare_edit_line("iso reset", ComparisonKind::Exact).unwrap();
        pair.assert_pristine();
    }
    for line in [
        "--network-keyfile nmstate-js-eth1.nmconnection --network-nmstate installer-test-nmstate-json.json",
        "--network-keyfile nmstate-yl-eth2.nmconnection --network-nmstate installer-test-nmstate-yaml.yaml",
        "--live-ignition installer-test.nmconnection",
        "--installer-config installer-test.nmconnection",
    ] {
        assert!(pair.compare_edit_line(&format!("iso customize {line}"), ComparisonKind::Image).is_none());
    }
}

#[test]
fn both_parse_consoles_alike() {
    let Some(subject) = full_featured_image() else { return };
    let pair = ProgramPair::new(subject);
    for console in [
        "ttyS0",
        "ttyS1,9600",
        "ttyS0,115200n8",
        "ttyS0,115200n",
        "ttyAMA0,57600o7",
        "tty0",
        "hvc0",
        "ttysclp0",
        "tty1",
        "ttyS",
        "ttyS0,",
        "ttyS0,fast",
        "ttyS0,9600n9",
        "console=ttyS0",
        "/dev/ttyS0",
        "",
        "ttyS0,9600n8r",
        "ttyS0,115200n8 ",
        "ttyUSB0",
        "ttyS0,0",
    ] {
        pair.compare_arguments(
            &["iso", "customize", "--dest-console", console, "image.iso"],
            b"",
            ComparisonKind::Image,
        );
        pair.compare_exactly("iso ignition show image.iso");
        pair.restore_image();
    }
}
