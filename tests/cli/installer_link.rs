//! Commands of `coreos-installer` that Kindling does not provide, under that name and under its own.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::support::{INSTALLER, KINDLING, Output, Run, Scratch};

const COMMANDS: [&str; 3] = ["download", "install", "list-stream"];

/// Runs the link `one/coreos-installer` with a `PATH` of these folders.
fn run(scratch: &Scratch, folders: &[&str], line: &str) -> Output {
    let path = std::env::join_paths(folders.iter().map(|folder| scratch.path(folder))).unwrap();
    let link = scratch.path("one").join(INSTALLER);
    Run::new(link, scratch.folder()).args(line.split_whitespace()).env("PATH", path).output()
}

fn executable(path: &Path, script: &str) {
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Folders with everything that is not the original program: the link, another link, a hard link, a folder and a file
/// that cannot be run.
fn scratch() -> Scratch {
    let scratch = Scratch::new();
    for folder in ["one", "two", "three", "four/coreos-installer", "original"] {
        fs::create_dir_all(scratch.path(folder)).unwrap();
    }
    symlink(KINDLING, scratch.path("one").join(INSTALLER)).unwrap();
    symlink(scratch.path("one").join(INSTALLER), scratch.path("two").join(INSTALLER)).unwrap();
    scratch.write("three/coreos-installer", "");
    scratch
}

fn message(command: &str, original: &str) -> String {
    format!(
        "error: Kindling does not provide `coreos-installer {command}`: {original}\n\n\
         Usage: coreos-installer <COMMAND>\n\nFor more information, try '--help'.\n"
    )
}

#[test]
fn commands_that_are_not_provided_name_the_original_program() {
    let scratch = scratch();
    let original = scratch.path("original").join(INSTALLER);
    executable(&original, "#!/bin/sh\ntouch ran\n");
    for command in COMMANDS {
        for rest in ["", " --help", " -s stable /dev/sda"] {
            let output = run(
                &scratch,
                &["one", "two", "three", "four", "original", "gone"],
                &format!("{command}{rest}"),
            );
            output.usage("");
            assert_eq!(
                output.stderr,
                message(command, &format!("use the original program, {}", original.display()))
            );
        }
    }
    assert!(!scratch.has("ran"), "the original program was run");
}

#[test]
fn commands_that_are_not_provided_say_so_without_the_original_program() {
    let scratch = scratch();
    for command in COMMANDS {
        let output = run(&scratch, &["one", "two", "three", "four", "original"], command);
        output.usage("");
        assert_eq!(
            output.stderr,
            message(command, "no other program named coreos-installer was found in PATH")
        );
    }
}

#[test]
fn other_unknown_commands_are_refused_as_before() {
    let scratch = scratch();
    let output = run(&scratch, &["one"], "instal");
    output.usage("");
    assert_eq!(
        output.stderr,
        "error: unrecognized subcommand 'instal'\n\nUsage: coreos-installer <COMMAND>\n\nFor more information, try '--help'.\n"
    );
    let output = run(&scratch, &["one"], "iso install");
    output.usage("unrecognized subcommand 'install'");
    for command in COMMANDS {
        let output = scratch.kindling(command);
        output.usage("");
        let expected = format!(
            "error: unrecognized subcommand '{command}'\n\nUsage: kindling <COMMAND>\n\nFor more information, try '--help'.\n"
        );
        assert_eq!(output.stderr, expected);
    }
}
