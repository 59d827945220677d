//! Pipes that close early, devices that are full, and input that cannot be sought.

use std::fs::OpenOptions;
use std::io::Read;
use std::process::Stdio;

use crate::support::{CONFIG, KINDLING, Output, Run, Scratch, require_tool};
use crate::usual;

/// Commands that print, or write an image to the standard output.
const PRINTING: &[&str] = &[
    "iso ignition show customized.iso",
    "iso network extract customized.iso",
    "iso kargs show image.iso",
    "iso kargs modify -a quiet -o - image.iso",
    "iso customize -o - image.iso",
    "iso reset -o - image.iso",
    "iso extract minimal-iso image.iso",
    "iso inspect image.iso",
    "iso inspect --json image.iso",
    "iso verify image.iso",
    "iso verify --json image.iso",
    "dev show iso image.iso",
    "dev show iso --kargs image.iso",
    "dev show initrd initrd.img",
    "pxe ignition wrap -i config.ign",
    "pxe network wrap -k wired.nmconnection",
    "pxe customize -o - initrd.img",
    "pxe ignition unwrap wrapped.img",
];

fn scratch() -> Scratch {
    let scratch = usual().scratch();
    scratch.write("initrd.img", usual().file("images/pxeboot/initrd.img"));
    let line = "iso customize --live-ignition config.ign --network-keyfile wired.nmconnection -o customized.iso image.iso";
    scratch.kindling(line).success();
    scratch.kindling("pxe ignition wrap -i config.ign -o wrapped.img").success();
    scratch
}

/// Runs a command whose standard output somebody closes after some bytes.
fn closed_after(scratch: &Scratch, line: &str, len: usize) -> Output {
    let mut command = scratch.command(line.split_whitespace()).command();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdout.take().unwrap();
    let mut stdout = vec![0; len];
    pipe.read_exact(&mut stdout).unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    Output { status: output.status, stdout, stderr: String::from_utf8(output.stderr).unwrap() }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let scratch = scratch();
    for line in PRINTING {
        for len in [0, 1] {
            let output = closed_after(&scratch, line, len);
            assert_eq!((output.status.code(), output.stderr.as_str()), (Some(0), ""), "{line}");
        }
    }
    for line in ["--help", "--version", "iso customize --help"] {
        let output = closed_after(&scratch, line, 0);
        assert!(!output.stderr.contains("panicked"), "{line}: {}", output.stderr);
    }
}

/// The files come before the names: who closes the pipe still has them all, or the exit code says otherwise.
#[test]
fn files_are_extracted_though_nobody_reads_their_names() {
    let scratch = scratch();
    let output = closed_after(&scratch, "iso extract pxe image.iso", 0);
    let extracted =
        ["image-vmlinuz", "image-initrd.img", "image-rootfs.img"].iter().all(|name| scratch.has(name));
    assert!(extracted || output.status.code() != Some(0), "success without the files: {}", output.stderr);
    let output = closed_after(&scratch, "iso network extract -C out customized.iso", 0);
    assert!(scratch.has("out/wired.nmconnection") || output.status.code() != Some(0), "{}", output.stderr);
    let output = closed_after(&scratch, "dev extract initrd -v -C all initrd.img", 0);
    let members = scratch.kindling("dev show initrd initrd.img").printed();
    let extracted = members.lines().all(|name| scratch.has(&format!("all/{name}")));
    assert!(extracted || output.status.code() != Some(0), "success without the files: {}", output.stderr);
}

#[test]
fn a_full_device_is_an_error() {
    let Ok(_) = OpenOptions::new().write(true).open("/dev/full") else {
        eprintln!("SKIPPED: there is no /dev/full");
        return;
    };
    let scratch = scratch();
    for line in PRINTING {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = scratch.command(line.split_whitespace()).command();
        let output = command.stdin(Stdio::null()).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}: {stderr}");
        assert!(stderr.contains("stdout") && stderr.contains("No space left on device"), "{line}: {stderr}");
        assert!(!stderr.contains("panicked"), "{line}: {stderr}");
    }
}

/// Binary data upsets a terminal. Text does not.
#[test]
fn binary_data_is_not_written_to_a_terminal() {
    let Some(script) = require_tool("script") else { return };
    let scratch = scratch();
    let on_terminal = |line: &str| {
        let command = format!("{KINDLING} {line}");
        Run::new(&script, scratch.folder()).args(["-qec", &command, "/dev/null"]).output()
    };
    for line in [
        "iso reset -o - image.iso",
        "iso kargs modify -a x -o - image.iso",
        "iso extract minimal-iso image.iso",
        "iso extract minimal-iso image.iso - --output-rootfs rootfs.img",
        "pxe ignition wrap -i config.ign",
        "pxe network wrap -k wired.nmconnection",
        "pxe customize -o - initrd.img",
    ] {
        let output = on_terminal(line);
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert_eq!(output.text().trim(), "Error: Refusing to write binary data to terminal", "{line}");
    }
    assert!(!scratch.has("rootfs.img"));
    assert!(on_terminal("iso kargs show image.iso").text().contains("ignition.firstboot"));
}

#[test]
fn the_standard_output_may_be_a_file() {
    let scratch = scratch();
    let file = std::fs::File::create(scratch.path("redirected.iso")).unwrap();
    let mut command = scratch.command(["iso", "reset", "-o", "-", "customized.iso"]).command();
    assert!(command.stdout(file).status().unwrap().success());
    assert!(scratch.read("redirected.iso") == usual().bytes);
}

#[test]
fn configs_and_keyfiles_may_come_through_pipes() {
    let scratch = usual().scratch();
    let through = |line: &str, stdin: &[u8]| scratch.command(line.split_whitespace()).stdin(stdin).output();
    for line in ["iso ignition embed -f image.iso", "iso ignition embed -f -i /dev/stdin image.iso"] {
        through(line, CONFIG.as_bytes()).success();
        assert_eq!(scratch.kindling("iso ignition show image.iso").printed(), CONFIG, "{line}");
        scratch.kindling("iso reset image.iso").success();
    }
    through("iso network embed -k /dev/stdin image.iso", b"[connection]\n").success();
    let listed = scratch.kindling("iso network extract image.iso").printed();
    assert_eq!(listed, "########## stdin ##########\n[connection]\n");
    through("iso customize -f --live-ignition /dev/stdin image.iso", CONFIG.as_bytes()).success();
    let large = vec![b' '; 1 << 20];
    through("iso ignition embed -f image.iso", &large).success();
    assert!(scratch.kindling("iso ignition show image.iso").success() == large);
}

#[test]
fn initrds_may_come_through_pipes() {
    let scratch = scratch();
    let initrd = usual().file("images/pxeboot/initrd.img");
    let through = |line: &str, stdin: &[u8]| scratch.command(line.split_whitespace()).stdin(stdin).output();
    let from_file = scratch.kindling("dev show initrd initrd.img").success();
    for name in ["-", "/dev/stdin"] {
        assert!(through(&format!("dev show initrd {name}"), initrd).success() == from_file);
    }
    let wrapped = scratch.read("wrapped.img");
    for line in ["pxe ignition unwrap", "pxe ignition unwrap -", "pxe ignition unwrap /dev/stdin"] {
        assert_eq!(through(line, &wrapped).printed(), CONFIG, "{line}");
    }
    let direct = scratch.kindling("pxe customize --live-ignition config.ign -o - initrd.img").success();
    through("pxe customize --live-ignition config.ign -o out.img /dev/stdin", initrd).success();
    assert!(scratch.read("out.img") == direct);
}

/// An image is read at many places. A pipe has none, and the error says so instead of waiting for more.
#[test]
fn images_do_not_come_through_pipes() {
    let scratch = scratch();
    for line in [
        "iso kargs show /dev/stdin",
        "iso reset -o - /dev/stdin",
        "iso extract pxe /dev/stdin",
        "dev show iso /dev/stdin",
    ] {
        let output = scratch.command(line.split_whitespace()).stdin(usual().bytes.clone()).output();
        output.failure("/dev/stdin");
        assert!(output.stdout.is_empty());
    }
}
