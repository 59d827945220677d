//! `kindling dev`: the developer commands of `coreos-installer`, for scripts that use them. People have
//! `iso inspect`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use glob::Pattern;
use isogen::initrd::Limits;
use isogen::volume::{Descriptor, Volume, VolumeDescriptor};
use isogen::{Archive, BaseImage, Source};
use serde_json::{Value, json};

use super::created::{print_paths, write_private};
use super::input::{self, any_path, below};
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
            print_json(&ordered([("offset", json!(area.offset())), ("length", json!(area.len()))]))
        } else if self.kargs {
            print_json(&kargs(&BaseImage::open(&self.input)?)?)
        } else {
            print_json(&volume(&Volume::read(&Source::open(&self.input)?)?))
        }
    }
}

/// An object whose keys keep their order.
fn ordered<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn kargs(image: &BaseImage) -> Result<Value> {
    let Some(kargs) = image.kargs() else { return Ok(Value::Null) };
    let area = |area: &isogen::kargs::KargsArea| {
        let fields = ordered([("offset", json!(area.extent.offset())), ("length", json!(area.extent.len()))]);
        let optional = [("pad", area.pad), ("end", area.end)].into_iter();
        let optional = optional.filter_map(|(key, value)| Some((key.to_owned(), json!(value?))));
        let mut fields = fields.as_object().cloned().unwrap_or_default();
        fields.extend(optional);
        Value::Object(fields)
    };
    Ok(ordered([
        ("length", json!(kargs.area_len())),
        ("default", json!(kargs.default()?)),
        ("kargs", kargs.areas().iter().map(area).collect()),
    ]))
}

fn volume(volume: &Volume) -> Value {
    let descriptors: Vec<Value> = volume.descriptors().iter().map(descriptor).collect();
    let mut records = Vec::new();
    list(volume, isogen::volume::EntryId::ROOT, &mut records);
    ordered([("header", ordered([("descriptors", json!(descriptors))])), ("records", json!(records))])
}

/// Directories and files below one, depth first.
fn list(volume: &Volume, directory: isogen::volume::EntryId, records: &mut Vec<String>) {
    for (id, _) in volume.tree().children(directory) {
        records.push(volume.tree().iso_path(id));
        list(volume, id, records);
    }
}

fn descriptor(descriptor: &Descriptor) -> Value {
    match descriptor {
        Descriptor::Primary(primary) => self::primary(primary),
        Descriptor::Boot { system_id, boot_id, .. } => ordered([
            ("type", json!("boot")),
            ("boot_system_id", json!(system_id)),
            ("boot_id", json!(boot_id)),
        ]),
        Descriptor::Supplementary(_) => json!({"type": "supplementary"}),
        Descriptor::Unknown { type_id, .. } => {
            ordered([("type", json!("unknown")), ("type_id", json!(type_id))])
        }
        _ => Value::Null,
    }
}

fn primary(primary: &VolumeDescriptor) -> Value {
    let root = ordered([
        ("name", json!(".")),
        ("address", json!(primary.root.sector)),
        ("length", json!(primary.root.data_len)),
    ]);
    ordered([
        ("type", json!("primary")),
        ("system_id", json!(primary.system_id)),
        ("volume_id", json!(primary.volume_id)),
        ("volume_space_size", json!(primary.space_size)),
        ("root", root),
    ])
}

/// Which members of which initrd.
#[derive(Debug, Args)]
struct Selection {
    /// initrd image ("-" for stdin)
    #[arg(value_name = "initrd")]
    input: String,
    /// Files or globs to list
    #[arg(value_name = "glob")]
    filter: Vec<String>,
}

impl Selection {
    fn read(&self) -> Result<Archive> {
        let pattern = |text: &String| Pattern::new(text).with_context(|| format!("parsing glob {text:?}"));
        let patterns = self.filter.iter().map(pattern).collect::<Result<Vec<_>>>()?;
        let wanted = |name: &str| patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(name));
        let (stream, name) = input::open_stream(Some(&self.input))?;
        Archive::read_matching(stream, Limits::INITRD, wanted).with_context(|| format!("decoding {name}"))
    }
}

#[derive(Debug, Args)]
pub(super) struct ShowInitrd {
    #[command(flatten)]
    selection: Selection,
}

impl ShowInitrd {
    fn run(self) -> Result<()> {
        self.selection.read()?.iter().try_for_each(|(name, _)| print_line(name))
    }
}

#[derive(Debug, Args)]
pub(super) struct ExtractInitrd {
    /// Output directory
    #[arg(short = 'C', long, value_name = "path", default_value = ".", value_parser = any_path())]
    directory: PathBuf,
    /// List extracted contents
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    selection: Selection,
}

impl ExtractInitrd {
    fn run(self) -> Result<()> {
        let archive = self.selection.read()?;
        // All names are judged before the first file is written.
        let files = archive.iter().map(|(name, contents)| Ok((below(&self.directory, name)?, contents)));
        let paths = write_private(files.collect::<Result<_>>()?)?;
        if self.verbose { print_paths(&paths) } else { Ok(()) }
    }
}
