//! `kindling network keyfiles`: nmstate to keyfiles.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use ignition::network::{Keyfile, keyfiles};
use serde::Serialize;

use super::read;
use crate::cli::created::{print_paths, write_private};
use crate::cli::output::{print_bytes, print_json};
use crate::discovery;
use crate::manifests::HostFiles;

#[derive(Debug, Args)]
pub(in crate::cli) struct Keyfiles {
    /// Write new files to a directory instead of stdout
    ///
    /// The keyfiles of a single host are written to the directory itself, those of several to host0, host1 and so on in
    /// it, in the order of the hosts.
    #[arg(short, long, value_name = "dir")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// Hosts; - is stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
}

/// A host as JSON.
#[derive(Serialize)]
struct Host {
    name: String,
    keyfiles: Vec<File>,
}

#[derive(Serialize)]
struct File {
    name: String,
    contents: String,
}

impl Keyfiles {
    /// Nothing is written before all hosts have their keyfiles.
    pub(super) fn run(self) -> Result<ExitCode> {
        let HostFiles { hosts, findings, .. } = read(&self.files)?;
        eprint!("{findings}");
        anyhow::ensure!(!findings.is_fatal(), "a manifest cannot be used: nothing was written");
        let hosts = hosts.iter().map(translate).collect::<Result<Vec<Host>>>()?;
        match &self.output {
            Some(directory) => write(&hosts, directory)?,
            None if self.json => print_json(&hosts)?,
            None => print_bytes(to_text(&hosts).as_bytes())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn translate(host: &discovery::Host) -> Result<Host> {
    let name = host.name.clone();
    let keyfiles =
        keyfiles(host.network.document().as_bytes()).with_context(|| format!("translating {name}"))?;
    let keyfiles = keyfiles.into_iter().map(|Keyfile { name, contents }| File { name, contents }).collect();
    Ok(Host { name, keyfiles })
}

fn write(hosts: &[Host], directory: &Path) -> Result<()> {
    let mut files = Vec::new();
    for (number, host) in hosts.iter().enumerate() {
        let folder = match hosts {
            [_] => directory.to_owned(),
            _ => directory.join(format!("host{number}")),
        };
        files.extend(host.keyfiles.iter().map(|file| (folder.join(&file.name), file.contents.as_bytes())));
    }
    print_paths(&write_private(files)?)
}

/// All files, each after a comment with the names of its host and its own.
fn to_text(hosts: &[Host]) -> String {
    let files = hosts.iter().flat_map(|host| host.keyfiles.iter().map(move |file| (host, file)));
    let text = |(host, file): (&Host, &File)| {
        format!("# {}: {}\n{}", host.name.escape_debug(), file.name.escape_debug(), file.contents)
    };
    files.map(text).collect::<Vec<_>>().join("\n")
}
