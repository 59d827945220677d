//! Wrong command lines exit 2 and touch nothing; the program goes by the name that it is called by.

use std::os::unix::fs::symlink;

use crate::support::{INSTALLER, KINDLING, Run};
use crate::usual;

#[test]
fn wrong_command_lines_exit_2() {
    let scratch = usual().scratch();
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
        let output = scratch.kindling(line);
        output.usage("");
        assert!(output.stderr.contains("Usage: kindling") || output.stderr.contains("'--help'"), "{line}");
    }
    assert!(scratch.read("image.iso") == usual().bytes);
    assert_eq!(scratch.names(), ["config.ign", "image.iso", "wired.nmconnection"]);
}

#[test]
fn arguments_that_are_no_text_are_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let scratch = usual().scratch();
    let bad = OsStr::from_bytes(b"im\xFFge.iso");
    let output = scratch.command([OsStr::new("iso"), OsStr::new("reset"), bad]).output();
    output.usage("UTF-8");
}

#[test]
fn version_and_help_go_to_the_standard_output() {
    let scratch = usual().scratch();
    for flag in ["--version", "-V"] {
        assert_eq!(scratch.kindling(flag).printed(), format!("kindling {}\n", env!("CARGO_PKG_VERSION")));
    }
    for flag in ["--help", "-h", "iso --help", "iso reset -h"] {
        assert!(scratch.kindling(flag).printed().contains("Usage: kindling"), "{flag}");
    }
}

/// Scripts call the program by its old name, and ask it for its version.
#[test]
fn under_the_installers_name_it_answers_as_the_installer() {
    let scratch = usual().scratch();
    symlink(KINDLING, scratch.path(INSTALLER)).unwrap();
    let link = scratch.path(INSTALLER);
    let run = |line: &str| Run::new(&link, scratch.folder()).args(line.split_whitespace()).output();
    let version = run("--version").printed();
    assert_eq!(version, format!("coreos-installer 0.27.0+kindling.{}\n", env!("CARGO_PKG_VERSION")));
    assert!(run("iso --help").printed().contains("Usage: coreos-installer iso"));
    run("iso").usage("Usage: coreos-installer iso");
    run("iso ignition embed -i config.ign image.iso").success();
    run("iso ignition show image.iso").success();
    run("iso reset image.iso").success();
    assert!(scratch.read("image.iso") == usual().bytes);
}
