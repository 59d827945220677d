//! Pipes that close early, full devices, and input that cannot seek.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::full_featured_image;
use crate::support::{CONFIG, KINDLING, ProgramRun, RunOutput, Scratch, report_skipped, require_tool};

/// Commands that print text, or write an image to standard output.
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

fn scratch_with_inputs() -> Scratch {
    let scratch = full_featured_image().scratch_with_image();
    scratch.write("initrd.img", full_featured_image().file_bytes("images/pxeboot/initrd.img"));
    let line = "iso customize --live-ignition config.ign --network-keyfile wired.nmconnection -o customized.iso image.iso";
    scratch.run_kindling(line).expect_success();
    scratch.run_kindling("pxe ignition wrap -i config.ign -o wrapped.img").expect_success();
    scratch
}

/// Runs a command, and closes its standard output after `len` bytes.
fn run_with_stdout_closed_after(scratch: &Scratch, line: &str, len: usize) -> RunOutput {
    output_with_stdout_closed_after(scratch.command(line.split_whitespace()).command(), len)
}

fn output_with_stdout_closed_after(mut command: Command, len: usize) -> RunOutput {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdout.take().unwrap();
    let mut stdout = vec![0; len];
    pipe.read_exact(&mut stdout).unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    RunOutput { status: output.status, stdout, stderr: String::from_utf8(output.stderr).unwrap() }
}

#[test]
fn closed_pipe_is_not_an_error() {
    let scratch = scratch_with_inputs();
    for line in PRINTING {
        for len in [0, 1] {
            let output = run_with_stdout_closed_after(&scratch, line, len);
            assert_eq!((output.status.code(), output.stderr.as_str()), (Some(0), ""), "{line}");
        }
    }
    for line in ["--help", "--version", "iso customize --help"] {
        let output = run_with_stdout_closed_after(&scratch, line, 0);
        assert!(!output.stderr.contains("panicked"), "{line}: {}", output.stderr);
    }
}

#[test]
fn closed_pipe_ends_a_boot_test() {
    let scratch = Scratch::new();
    // The machine writes until the console is closed.
    let qemu = scratch.write("bin/qemu-system-x86_64", "#!/bin/sh\nexec yes console\n");
    fs::set_permissions(qemu, Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", scratch.path("bin").display());
    let run = scratch.command(["boot-test", "image.iso"]).env("PATH", path);
    let output = output_with_stdout_closed_after(run.command(), 1);
    assert_eq!((output.status.code(), output.stderr.as_str()), (Some(0), ""));
}

/// The command writes files before it prints their names. So after a closed pipe, all files exist or the exit code is
/// an error.
#[test]
fn files_are_extracted_when_standard_output_is_closed() {
    let scratch = scratch_with_inputs();
    let output = run_with_stdout_closed_after(&scratch, "iso extract pxe image.iso", 0);
    let extracted =
        ["image-vmlinuz", "image-initrd.img", "image-rootfs.img"].iter().all(|name| scratch.has_file(name));
    assert!(extracted || output.status.code() != Some(0), "success without the files: {}", output.stderr);
    let output = run_with_stdout_closed_after(&scratch, "iso network extract -C out customized.iso", 0);
    assert!(
        scratch.has_file("out/wired.nmconnection") || output.status.code() != Some(0),
        "{}",
        output.stderr
    );
    let output = run_with_stdout_closed_after(&scratch, "dev extract initrd -v -C all initrd.img", 0);
    let members = scratch.run_kindling("dev show initrd initrd.img").expect_text();
    let extracted = members.lines().all(|name| scratch.has_file(&format!("all/{name}")));
    assert!(extracted || output.status.code() != Some(0), "success without the files: {}", output.stderr);
}

#[test]
fn full_device_is_an_error() {
    let Ok(_) = OpenOptions::new().write(true).open("/dev/full") else {
        report_skipped("/dev/full does not exist");
        return;
    };
    let scratch = scratch_with_inputs();
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

/// Binary data changes the state of a terminal. Text does not.
#[test]
fn binary_data_is_not_written_to_a_terminal() {
    let Some(script) = require_tool("script") else { return };
    let scratch = scratch_with_inputs();
    let on_terminal = |line: &str| {
        let command = format!("{KINDLING} {line}");
        ProgramRun::new(&script, scratch.folder()).args(["-qec", &command, "/dev/null"]).run()
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
        assert_eq!(output.stdout_text().trim(), "Error: Refusing to write binary data to terminal", "{line}");
    }
    assert!(!scratch.has_file("rootfs.img"));
    assert!(on_terminal("iso kargs show image.iso").stdout_text().contains("ignition.firstboot"));
}

#[test]
fn standard_output_may_be_a_file() {
    let scratch = scratch_with_inputs();
    let file = std::fs::File::create(scratch.path("redirected.iso")).unwrap();
    let mut command = scratch.command(["iso", "reset", "-o", "-", "customized.iso"]).command();
    assert!(command.stdout(file).status().unwrap().success());
    assert!(scratch.read("redirected.iso") == full_featured_image().bytes);
}

#[test]
fn configs_and_keyfiles_may_be_pipes() {
    let scratch = full_featured_image().scratch_with_image();
    let through = |line: &str, stdin: &[u8]| scratch.command(line.split_whitespace()).stdin(stdin).run();
    for line in ["iso ignition embed -f image.iso", "iso ignition embed -f -i /dev/stdin image.iso"] {
        through(line, CONFIG.as_bytes()).expect_success();
        assert_eq!(scratch.run_kindling("iso ignition show image.iso").expect_text(), CONFIG, "{line}");
        scratch.run_kindling("iso reset image.iso").expect_success();
    }
    through("iso network embed -k /dev/stdin image.iso", b"[connection]\n").expect_success();
    let listed = scratch.run_kindling("iso network extract image.iso").expect_text();
    assert_eq!(listed, "########## stdin ##########\n[connection]\n");
    through("iso customize -f --live-ignition /dev/stdin image.iso", CONFIG.as_bytes()).expect_success();
    let large = vec![b' '; 1 << 20];
    through("iso ignition embed -f image.iso", &large).expect_success();
    assert!(scratch.run_kindling("iso ignition show image.iso").expect_success() == large);
}

#[test]
fn initrds_may_be_pipes() {
    let scratch = scratch_with_inputs();
    let initrd = full_featured_image().file_bytes("images/pxeboot/initrd.img");
    let through = |line: &str, stdin: &[u8]| scratch.command(line.split_whitespace()).stdin(stdin).run();
    let from_file = scratch.run_kindling("dev show initrd initrd.img").expect_success();
    for name in ["-", "/dev/stdin"] {
        assert!(through(&format!("dev show initrd {name}"), initrd).expect_success() == from_file);
    }
    let wrapped = scratch.read("wrapped.img");
    for line in ["pxe ignition unwrap", "pxe ignition unwrap -", "pxe ignition unwrap /dev/stdin"] {
        assert_eq!(through(line, &wrapped).expect_text(), CONFIG, "{line}");
    }
    let direct =
        scratch.run_kindling("pxe customize --live-ignition config.ign -o - initrd.img").expect_success();
    through("pxe customize --live-ignition config.ign -o out.img /dev/stdin", initrd).expect_success();
    assert!(scratch.read("out.img") == direct);
}

/// Reading an image needs seeking, which a pipe does not support; the error says so instead of waiting for input.
#[test]
fn rejects_images_from_pipes() {
    let scratch = scratch_with_inputs();
    for line in [
        "iso kargs show /dev/stdin",
        "iso reset -o - /dev/stdin",
        "iso extract pxe /dev/stdin",
        "dev show iso /dev/stdin",
    ] {
        let output =
            scratch.command(line.split_whitespace()).stdin(full_featured_image().bytes.clone()).run();
        output.expect_failure("/dev/stdin");
        assert!(output.stdout.is_empty());
    }
}
