//! `kindling dev`: the developer commands of `coreos-installer`, for existing scripts. Users should run `iso inspect`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use glob::Pattern;
use isogen::initrd::ArchiveLimits;
use isogen::volume::{TreeDescriptor, Volume, VolumeDescriptor};
use isogen::{Archive, BaseImage, Source};
use serde_json::{Value, json};

use super::created_files::{print_paths, write_private};
use super::input::{self, any_path_parser, path_below};
use super::output::{print_json, print_line};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Commands to show metadata
    #[command(subcommand)]
    Show(Show),
    /// Commands to extract data
    #[command(subcommand)]
    Extract(Extract),
}

#[derive(Debug, Subcommand)]
pub(super) enum Show {
    /// Inspect the CoreOS live ISO image
    Iso(ShowIso),
    /// Show the contents of an initrd image
    Initrd(ShowInitrd),
}

#[derive(Debug, Subcommand)]
pub(super) enum Extract {
    /// Extract the contents of an initrd image
    Initrd(ExtractInitrd),
}

impl Command {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Self::Show(Show::Iso(command)) => command.run(),
            Self::Show(Show::Initrd(command)) => command.run(),
            Self::Extract(Extract::Initrd(command)) => command.run(),
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct ShowIso {
    /// Show Ignition embed area parameters
    #[arg(long, conflicts_with = "kargs")]
    ignition: bool,
    /// Show kargs embed area parameters
    #[arg(long)]
    kargs: bool,
    /// ISO image
    #[arg(value_name = "ISO")]
    input: String,
}

impl ShowIso {
    fn run(self) -> Result<()> {
        if self.ignition {
            let area = BaseImage::open(&self.input)?.require_ignition_area()?.extent;
            print_json(&ordered_object([("offset", json!(area.offset())), ("length", json!(area.len()))]))
        } else if self.kargs {
            print_json(&kargs_json(&BaseImage::open(&self.input)?)?)
        } else {
            print_json(&volume_json(&Volume::read(&Source::open(&self.input)?)?))
        }
    }
}

/// Returns a JSON object that keeps the order of its keys.
fn ordered_object<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn kargs_json(image: &BaseImage) -> Result<Value> {
    let Some(kargs) = image.kargs() else { return Ok(Value::Null) };
    let area = |area: &isogen::kargs::KargsArea| {
        let always = [("offset", json!(area.extent.offset())), ("length", json!(area.extent.len()))];
        let optional = [("pad", area.pad), ("end", area.end)].into_iter();
        ordered_object(
            always.into_iter().chain(optional.filter_map(|(key, value)| Some((key, json!(value?))))),
        )
    };
    Ok(ordered_object([
        ("length", json!(kargs.area_len())),
        ("default", json!(kargs.default()?)),
        ("kargs", kargs.areas().iter().map(area).collect()),
    ]))
}

fn volume_json(volume: &Volume) -> Value {
    let descriptors: Vec<Value> = volume.descriptors().iter().map(descriptor_json).collect();
    let mut records = Vec::new();
    list_records(volume, isogen::volume::EntryId::ROOT, &mut records);
    ordered_object([
        ("header", ordered_object([("descriptors", json!(descriptors))])),
        ("records", json!(records)),
    ])
}

/// Appends the paths of all files and directories below `directory`, depth first.
fn list_records(volume: &Volume, directory: isogen::volume::EntryId, records: &mut Vec<String>) {
    for (id, _) in volume.tree().children(directory) {
        records.push(volume.tree().iso_path(id));
        list_records(volume, id, records);
    }
}

fn descriptor_json(descriptor: &VolumeDescriptor) -> Value {
    match descriptor {
        VolumeDescriptor::Primary(primary) => self::primary_volume_json(primary),
        VolumeDescriptor::Boot { system_id, boot_id, .. } => ordered_object([
            ("type", json!("boot")),
            ("boot_system_id", json!(system_id)),
            ("boot_id", json!(boot_id)),
        ]),
        VolumeDescriptor::Supplementary(_) => json!({"type": "supplementary"}),
        VolumeDescriptor::Unknown { type_id, .. } => {
            ordered_object([("type", json!("unknown")), ("type_id", json!(type_id))])
        }
        _ => Value::Null,
    }
}

fn primary_volume_json(primary: &TreeDescriptor) -> Value {
    let root = ordered_object([
        ("name", json!(".")),
        ("address", json!(primary.root.sector)),
        ("length", json!(primary.root.data_len)),
    ]);
    ordered_object([
        ("type", json!("primary")),
        ("system_id", json!(primary.system_id)),
        ("volume_id", json!(primary.volume_id)),
        ("volume_space_size", json!(primary.space_size)),
        ("root", root),
    ])
}

/// Arguments that select members of an initrd.
#[derive(Debug, Args)]
struct MemberSelection {
    /// initrd image ("-" for stdin)
    #[arg(value_name = "initrd")]
    input: String,
    /// Files or globs to list
    #[arg(value_name = "glob")]
    filter: Vec<String>,
}

impl MemberSelection {
    fn read_archive(&self) -> Result<Archive> {
        let pattern = |text: &String| Pattern::new(text).with_context(|| format!("parsing glob {text:?}"));
        let patterns = self.filter.iter().map(pattern).collect::<Result<Vec<_>>>()?;
        let is_selected =
            |name: &str| patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(name));
        let (stream, name) = input::open_stream(Some(&self.input))?;
        Archive::read_matching(stream, ArchiveLimits::INITRD, is_selected)
            .with_context(|| format!("decoding {name}"))
    }
}

#[derive(Debug, Args)]
pub(super) struct ShowInitrd {
    #[command(flatten)]
    selection: MemberSelection,
}

impl ShowInitrd {
    fn run(self) -> Result<()> {
        self.selection.read_archive()?.iter().try_for_each(|(name, _)| print_line(name))
    }
}

#[derive(Debug, Args)]
pub(super) struct ExtractInitrd {
    /// Output directory
    #[arg(short = 'C', long, value_name = "path", default_value = ".", value_parser = any_path_parser())]
    directory: PathBuf,
    /// List extracted contents
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    selection: MemberSelection,
}

impl ExtractInitrd {
    fn run(self) -> Result<()> {
        let archive = self.selection.read_archive()?;
        // Checks all names before the first file is written.
        let files = archive.iter().map(|(name, contents)| Ok((path_below(&self.directory, name)?, contents)));
        let paths = write_private("--directory", files.collect::<Result<_>>()?)?;
        if self.verbose { print_paths(&paths) } else { Ok(()) }
    }
}
