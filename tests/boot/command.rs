//! `kindling boot-test`, of a file and off a server.

use crate::served::{FULL, Site, base};
use crate::support::{Output, Scratch};

/// What the system says last.
const MARKER: &str = "STAGES END";

fn boot_test(scratch: &Scratch, options: &[&str]) -> Output {
    let options = ["boot-test", "--emulate", "--memory", "768", "--timeout", "2m"].iter().chain(options);
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
    assert!(output.stderr.contains("\"STAGES END\" after "), "{}", output.stderr);
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
