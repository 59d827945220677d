//! Commands of `coreos-installer` that Kindling does not provide, called through a link of that name and as `kindling`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::support::{INSTALLER, KINDLING, ProgramRun, RunOutput, Scratch};

const COMMANDS: [&str; 3] = ["download", "install", "list-stream"];

/// Runs the link `one/coreos-installer` with these folders as `PATH`.
fn run(scratch: &Scratch, folders: &[&str], line: &str) -> RunOutput {
    let path = std::env::join_paths(folders.iter().map(|folder| scratch.path(folder))).unwrap();
    let link = scratch.path("one").join(INSTALLER);
    ProgramRun::new(link, scratch.folder()).args(line.split_whitespace()).env("PATH", path).run()
}

fn write_executable(path: &Path, script: &str) {
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Creates folders with every candidate that is not the original program: the link itself, another link, a hard link, a
/// folder, and a file that is not executable.
fn scratch_without_original() -> Scratch {
    let scratch = Scratch::new();
    for folder in ["one", "two", "three", "four/coreos-installer", "original"] {
        fs::create_dir_all(scratch.path(folder)).unwrap();
    }
    symlink(KINDLING, scratch.path("one").join(INSTALLER)).unwrap();
    symlink(scratch.path("one").join(INSTALLER), scratch.path("two").join(INSTALLER)).unwrap();
    scratch.write("three/coreos-installer", "");
    scratch
}

fn expected_message(command: &str, original: &str) -> String {
    format!(
        "error: Kindling does not provide `coreos-installer {command}`: {original}\n\n\
         Usage: coreos-installer <COMMAND>\n\nFor more information, try '--help'.\n"
    )
}

#[test]
fn missing_commands_name_the_original_program() {
    let scratch = scratch_without_original();
    let original = scratch.path("original").join(INSTALLER);
    write_executable(&original, "#!/bin/sh\ntouch ran\n");
    for command in COMMANDS {
        for rest in ["", " --help", " -s stable /dev/sda"] {
            let output = run(
                &scratch,
                &["one", "two", "three", "four", "original", "gone"],
                &format!("{command}{rest}"),
            );
            output.expect_usage_error("");
            assert_eq!(
                output.stderr,
                expected_message(command, &format!("use the original program, {}", original.display()))
            );
        }
    }
    assert!(!scratch.has_file("ran"), "the original program was run");
}

#[test]
fn missing_commands_are_reported_without_the_original_program() {
    let scratch = scratch_without_original();
    for command in COMMANDS {
        let output = run(&scratch, &["one", "two", "three", "four", "original"], command);
        output.expect_usage_error("");
        assert_eq!(
            output.stderr,
            expected_message(command, "no other program named coreos-installer was found in PATH")
        );
    }
}

#[test]
fn rejects_other_unknown_commands() {
    let scratch = scratch_without_original();
    let output = run(&scratch, &["one"], "instal");
    output.expect_usage_error("");
    assert_eq!(
        output.stderr,
        "error: unrecognized subcommand 'instal'\n\nUsage: coreos-installer <COMMAND>\n\nFor more information, try '--help'.\n"
    );
    let output = run(&scratch, &["one"], "iso install");
    output.expect_usage_error("unrecognized subcommand 'install'");
    for command in COMMANDS {
        let output = scratch.run_kindling(command);
        output.expect_usage_error("");
        let expected = format!(
            "error: unrecognized subcommand '{command}'\n\nUsage: kindling <COMMAND>\n\nFor more information, try '--help'.\n"
        );
        assert_eq!(output.stderr, expected);
    }
}
