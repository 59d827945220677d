//! Kindling supports every command and option of the installer, with the same short form and value.

use std::collections::BTreeSet;

use crate::installer_path;
use crate::support::{KINDLING, ProgramRun, Scratch};

/// The installer's commands in Kindling, including hidden ones.
const COMMANDS: &[&str] = &[
    "iso",
    "iso customize",
    "iso ignition",
    "iso ignition embed",
    "iso ignition show",
    "iso ignition remove",
    "iso network",
    "iso network embed",
    "iso network extract",
    "iso network remove",
    "iso kargs",
    "iso kargs modify",
    "iso kargs reset",
    "iso kargs show",
    "iso extract",
    "iso extract pxe",
    "iso extract minimal-iso",
    "iso reset",
    "iso embed",
    "iso show",
    "iso remove",
    "pxe",
    "pxe customize",
    "pxe ignition",
    "pxe ignition wrap",
    "pxe ignition unwrap",
    "pxe network",
    "pxe network wrap",
    "pxe network unwrap",
    "dev show iso",
    "dev show initrd",
    "dev extract initrd",
];

#[test]
fn every_command_and_option_exists() {
    let Some(program) = installer_path() else { return };
    let scratch = Scratch::new();
    let mut missing = Vec::new();
    for command in COMMANDS {
        let help = |program: &std::path::Path| {
            let words = command.split_whitespace().chain(["--help"]);
            ProgramRun::new(program, scratch.folder()).args(words).run().expect_text()
        };
        let (ours, theirs) = (interface_entries(&help(KINDLING.as_ref())), interface_entries(&help(program)));
        assert!(!theirs.is_empty());
        missing.extend(theirs.difference(&ours).map(|entry| format!("{command}: {entry}")));
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Returns the entries of a help text without their descriptions: `-o, --output <path>`, `<ISO>`, `reset`.
fn interface_entries(help: &str) -> BTreeSet<String> {
    let entry = |line: &str| -> Option<String> {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        // Skips descriptions on separate lines, which are indented further.
        if text.is_empty() || !(text.starts_with('-') && indent <= 6 || indent == 2) {
            return None;
        }
        Some(text.split("  ").next().unwrap().trim().to_ascii_lowercase())
    };
    help.lines().filter_map(entry).collect()
}
