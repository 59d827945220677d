//! `kindling network keyfiles`: translates nmstate to `NetworkManager` keyfiles.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use ignition::network::{Keyfile, keyfiles};
use serde::Serialize;

use super::read_hosts;
use crate::cli::created_files::{print_paths, write_private};
use crate::cli::grouped_findings::report_lines;
use crate::cli::output::{print_bytes, print_json, print_message};
use crate::cli::refusal::RefusedInputs;

use discovery::manifests::HostFiles;

#[derive(Debug, Args)]
pub(in crate::cli) struct Keyfiles {
    /// Write new files to a directory instead of stdout
    ///
    /// The keyfiles of a single host are written to the directory itself. If there are several hosts, the keyfiles are
    /// written to the subdirectories host0, host1 and so on, in the order of the hosts.
    #[arg(short, long, value_name = "dir")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// Files with host network configs; - is stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
}

/// A host in the JSON output.
#[derive(Serialize)]
struct HostKeyfiles {
    name: String,
    keyfiles: Vec<KeyfileText>,
}

#[derive(Serialize)]
struct KeyfileText {
    name: String,
    contents: String,
}

impl Keyfiles {
    /// Translates the networks of all hosts before the first file is written.
    pub(super) fn run(self) -> Result<ExitCode> {
        let HostFiles { hosts, findings, .. } = read_hosts(&self.files)?;
        if findings.is_fatal() {
            return Err(RefusedInputs::print_and_refuse(findings, false, "nothing was written").into());
        }
        print_message(report_lines(&findings));
        let hosts = hosts.iter().map(translate_host).collect::<Result<Vec<HostKeyfiles>>>()?;
        match &self.output {
            Some(directory) => write_keyfiles(&hosts, directory)?,
            None if self.json => print_json(&hosts)?,
            None => print_bytes(to_text(&hosts).as_bytes())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn translate_host(host: &discovery::Host) -> Result<HostKeyfiles> {
    let name = host.name.clone();
    let keyfiles =
        keyfiles(host.network.document().as_bytes()).with_context(|| format!("translating {name}"))?;
    let keyfiles =
        keyfiles.into_iter().map(|Keyfile { name, contents }| KeyfileText { name, contents }).collect();
    Ok(HostKeyfiles { name, keyfiles })
}

fn write_keyfiles(hosts: &[HostKeyfiles], directory: &Path) -> Result<()> {
    let mut files = Vec::new();
    for (number, host) in hosts.iter().enumerate() {
        let folder = match hosts {
            [_] => directory.to_owned(),
            _ => directory.join(format!("host{number}")),
        };
        files.extend(host.keyfiles.iter().map(|file| (folder.join(&file.name), file.contents.as_bytes())));
    }
    print_paths(&write_private("--output", files)?)
}

/// Returns the contents of all files. A comment before each file contains the names of the host and the file.
fn to_text(hosts: &[HostKeyfiles]) -> String {
    let files = hosts.iter().flat_map(|host| host.keyfiles.iter().map(move |file| (host, file)));
    let text = |(host, file): (&HostKeyfiles, &KeyfileText)| {
        format!("# {}: {}\n{}", host.name.escape_debug(), file.name.escape_debug(), file.contents)
    };
    files.map(text).collect::<Vec<_>>().join("\n")
}
