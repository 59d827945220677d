//! `kindling boot-test`, of a file and off a server.

use crate::served::{FULL, MINIMAL, Site, base, signed_base};
use crate::support::{Output, Scratch};

/// What the system says last.
const MARKER: &str = "STAGES END";

fn boot_test(scratch: &Scratch, options: &[&str]) -> Output {
    let options = ["boot-test", "--emulate", "--memory", "768"].iter().chain(options);
    let _turn = crate::machine::Turn::take();
    scratch.command(options).patience(std::time::Duration::from_secs(150)).output()
}

#[test]
fn an_image_off_a_server_boots_and_the_server_tells_what_was_read() {
    let Some(base) = base() else { return };
    if !crate::over_http::has_client(&base.programs.qemu) {
        return;
    }
    let site = Site::start(&base.recipe.build(), &FULL.properties());
    let url = site.file_url("full.iso");
    let output =
        boot_test(&site.scratch, &["--marker", MARKER, "--media", "http", "--firmware", "uefi", &url]);
    assert!(output.status.success(), "{}", output.stderr);
    assert!(String::from_utf8_lossy(&output.stdout).contains("FACTS BEGIN"), "{output:?}");
    assert!(
        output.stderr.contains("127.0.0.1 has read ") && output.stderr.contains(" of full.iso: "),
        "{}",
        output.stderr
    );
    let read = |file: &str| output.stderr.lines().any(|line| line.contains(" to ") && line.contains(file));
    assert!(read("images/pxeboot/rootfs.img"), "{}", output.stderr);
    assert!(output.stderr.contains("\"STAGES END\" after "), "{}", output.stderr);
}

/// Firmware that starts what is signed, and nothing else.
#[test]
#[ignore = "of the whole matrix"]
fn secure_boot_starts_what_is_signed_alone() {
    let (Some(base), Some(signed)) = (base(), signed_base()) else { return };
    let scratch = Scratch::new();
    scratch.write("unsigned.iso", base.recipe.build());
    scratch.write("signed.iso", signed.recipe.build());
    let options = ["--firmware", "secureboot", "--marker", MARKER];
    let output = boot_test(&scratch, &[&options[..], &["signed.iso"]].concat());
    assert!(output.status.success(), "{}", output.stderr);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("secureboot: Secure boot enabled"), "{said}");
    let output = boot_test(&scratch, &[&options[..], &["--timeout", "20s", "unsigned.iso"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", output.stderr);
    assert!(output.stderr.contains("has not said \"STAGES END\" within 20s"), "{}", output.stderr);
    assert!(String::from_utf8_lossy(&output.stdout).contains("Access Denied"), "{output:?}");
}

/// The machine has no medium: script, kernel and initrd come from the server, and the trace tells of the initrd.
#[test]
#[ignore = "of the whole matrix"]
fn a_script_for_ipxe_boots_and_the_server_tells_what_was_read() {
    let Some(base) = base() else { return };
    let site = Site::start(&base.recipe.build(), &MINIMAL.properties());
    let url = site.machines_url("script.ipxe");
    let output = boot_test(&site.scratch, &["--marker", MARKER, "--media", "ipxe", &url]);
    assert!(output.status.success(), "{}", output.stderr);
    assert!(output.stderr.contains("127.0.0.1 has read 100 % of the "), "{}", output.stderr);
    // What all infra-envs share has no trace.
    assert!(output.stderr.contains(" bytes of initrd: "), "{}", output.stderr);
}

#[test]
fn a_file_whose_system_says_something_else_does_not_pass() {
    let Some(base) = base() else { return };
    let scratch = Scratch::new();
    scratch.write("image, 1.iso", base.recipe.build());
    let output = boot_test(&scratch, &["--media", "usb", "image, 1.iso"]);
    assert_eq!(output.status.code(), Some(1), "{}", output.stderr);
    assert!(String::from_utf8_lossy(&output.stdout).contains(MARKER), "{output:?}");
    assert!(output.stderr.contains("The machine has ended"), "{}", output.stderr);
}
