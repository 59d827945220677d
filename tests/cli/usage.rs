//! Wrong command lines exit with 2 and change nothing. The name of the executable selects the command line.

use std::os::unix::fs::symlink;

use crate::full_featured_image;
use crate::support::{INSTALLER, KINDLING, ProgramRun};

#[test]
fn wrong_command_lines_exit_2() {
    let scratch = full_featured_image().scratch_with_image();
    for line in [
        "",
        "iso",
        "iso ignition",
        "pxe",
        "dev",
        "unknown",
        "iso unknown",
        "help",
        "iso help",
        "iso reset",
        "iso reset image.iso image.iso",
        "iso reset --unknown image.iso",
        "iso reset -o",
        "iso reset -o a -o b image.iso",
        "iso ignition embed",
        "iso ignition embed -i config.ign",
        "iso ignition embed -i a -i b image.iso",
        "iso ignition show",
        "iso network embed image.iso",
        "iso network embed -k image.iso",
        "iso kargs modify",
        "iso kargs modify image.iso -a",
        "iso customize",
        "iso customize --dest-console serial0 image.iso",
        "iso customize --dest-device a --dest-device b image.iso",
        "iso extract minimal-iso",
        "iso extract minimal-iso image.iso out.iso more",
        "pxe customize image.iso",
        "pxe customize --live-karg-append x -o out image.iso",
        "pxe customize --force -o out image.iso",
        "pxe network wrap",
        "dev show iso --ignition --kargs image.iso",
        "dev show initrd",
    ] {
        let output = scratch.run_kindling(line);
        output.expect_usage_error("");
        assert!(output.stderr.contains("Usage: kindling") || output.stderr.contains("'--help'"), "{line}");
    }
    assert!(scratch.read("image.iso") == full_featured_image().bytes);
    assert_eq!(scratch.names(), ["config.ign", "image.iso", "wired.nmconnection"]);
}

#[test]
fn rejects_arguments_that_are_not_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let scratch = full_featured_image().scratch_with_image();
    let bad = OsStr::from_bytes(b"im\xFFge.iso");
    let output = scratch.command([OsStr::new("iso"), OsStr::new("reset"), bad]).run();
    output.expect_usage_error("UTF-8");
}

#[test]
fn version_and_help_go_to_standard_output() {
    let scratch = full_featured_image().scratch_with_image();
    for flag in ["--version", "-V"] {
        assert_eq!(
            scratch.run_kindling(flag).expect_text(),
            format!("kindling {}\n", env!("CARGO_PKG_VERSION"))
        );
    }
    for flag in ["--help", "-h", "iso --help", "iso reset -h"] {
        assert!(scratch.run_kindling(flag).expect_text().contains("Usage: kindling"), "{flag}");
    }
}

/// Scripts call the program by its old name and check its version.
#[test]
fn link_named_coreos_installer_behaves_as_the_installer() {
    let scratch = full_featured_image().scratch_with_image();
    symlink(KINDLING, scratch.path(INSTALLER)).unwrap();
    let link = scratch.path(INSTALLER);
    let run = |line: &str| ProgramRun::new(&link, scratch.folder()).args(line.split_whitespace()).run();
    let version = run("--version").expect_text();
    assert_eq!(version, format!("coreos-installer 0.27.0+kindling.{}\n", env!("CARGO_PKG_VERSION")));
    assert!(run("iso --help").expect_text().contains("Usage: coreos-installer iso"));
    run("iso").expect_usage_error("Usage: coreos-installer iso");
    run("iso ignition embed -i config.ign image.iso").expect_success();
    run("iso ignition show image.iso").expect_success();
    run("iso reset image.iso").expect_success();
    assert!(scratch.read("image.iso") == full_featured_image().bytes);
}
