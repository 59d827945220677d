//! `kindling boot-test` with a file, and with an image from a server.

use crate::served::{FULL, MINIMAL, ServedSite, served_base, signed_served_base};
use crate::support::{RunOutput, Scratch, has_http_client};

/// The last line that the system prints.
const MARKER: &str = "STAGES END";

fn run_boot_test(scratch: &Scratch, options: &[&str]) -> RunOutput {
    let options = ["boot-test", "--emulate", "--memory", "768"].iter().chain(options);
    let _turn = crate::machine::BootPermit::acquire();
    scratch.command(options).time_limit(std::time::Duration::from_secs(150)).run()
}

#[test]
fn served_image_boots_and_reads_are_reported() {
    let Some(base) = served_base() else { return };
    if !has_http_client(&base.programs.qemu) {
        return;
    }
    let site = ServedSite::start(&base.recipe.build(), &FULL.infra_env_properties());
    let url = site.file_url("full.iso");
    let output =
        run_boot_test(&site.scratch, &["--marker", MARKER, "--media", "http", "--firmware", "uefi", &url]);
    assert!(output.status.success(), "{}", output.stderr);
    assert!(String::from_utf8_lossy(&output.stdout).contains("FACTS BEGIN"), "{output:?}");
    assert!(
        output.stderr.contains("127.0.0.1 read ") && output.stderr.contains(" of full.iso: "),
        "{}",
        output.stderr
    );
    let read = |file: &str| output.stderr.lines().any(|line| line.contains(" to ") && line.contains(file));
    assert!(read("images/pxeboot/rootfs.img"), "{}", output.stderr);
    assert!(output.stderr.contains("\"STAGES END\" after "), "{}", output.stderr);
}

/// With Secure Boot, the firmware starts only signed programs.
#[test]
#[ignore = "of the whole matrix"]
fn secure_boot_starts_only_signed_images() {
    let (Some(base), Some(signed)) = (served_base(), signed_served_base()) else { return };
    let scratch = Scratch::new();
    scratch.write("unsigned.iso", base.recipe.build());
    scratch.write("signed.iso", signed.recipe.build());
    let options = ["--firmware", "secureboot", "--marker", MARKER];
    let output = run_boot_test(&scratch, &[&options[..], &["signed.iso"]].concat());
    assert!(output.status.success(), "{}", output.stderr);
    let output_text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output_text.contains("secureboot: Secure boot enabled"), "{output_text}");
    let output = run_boot_test(&scratch, &[&options[..], &["--timeout", "20s", "unsigned.iso"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", output.stderr);
    assert!(output.stderr.contains("did not show \"STAGES END\" within 20s"), "{}", output.stderr);
    assert!(String::from_utf8_lossy(&output.stdout).contains("Access Denied"), "{output:?}");
}

/// The machine has no medium: script, kernel and initrd come from the server. The trace contains the requests for the
/// initrd.
#[test]
#[ignore = "of the whole matrix"]
fn ipxe_script_boots_and_reads_are_reported() {
    let Some(base) = served_base() else { return };
    let site = ServedSite::start(&base.recipe.build(), &MINIMAL.infra_env_properties());
    let url = site.url_for_machines("script.ipxe");
    let output = run_boot_test(&site.scratch, &["--marker", MARKER, "--media", "ipxe", &url]);
    assert!(output.status.success(), "{}", output.stderr);
    assert!(output.stderr.contains("127.0.0.1 read 100 % of the "), "{}", output.stderr);
    // The trace does not cover files that all infra-envs share.
    assert!(output.stderr.contains(" bytes of initrd: "), "{}", output.stderr);
}

#[test]
#[ignore = "of the whole matrix"]
fn image_that_boots_without_the_marker_fails() {
    let Some(base) = served_base() else { return };
    let scratch = Scratch::new();
    scratch.write("image, 1.iso", base.recipe.build());
    let output = run_boot_test(&scratch, &["--media", "usb", "image, 1.iso"]);
    assert_eq!(output.status.code(), Some(1), "{}", output.stderr);
    assert!(String::from_utf8_lossy(&output.stdout).contains(MARKER), "{output:?}");
    assert!(output.stderr.contains("The machine ended"), "{}", output.stderr);
}
