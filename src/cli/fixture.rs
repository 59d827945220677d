//! `kindling fixture`: writes a small test image.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use fixtures::{Architecture, Era, Recipe};
use isogen::write::FileAccess;

use super::created_files::{print_paths, write_all, write_files};

/// Write a small test image, to try commands without a real base image
///
/// The image has the files, areas and boot records of a real base image of its time, but placeholders for the kernel
/// and the root file system. It does not boot.
#[derive(Debug, Args)]
pub(super) struct Fixture {
    /// CPU architecture
    #[arg(value_name = "ARCH", value_parser = architecture_parser())]
    architecture: Architecture,
    /// Month from which real images have the same format
    #[arg(value_name = "FORMAT", value_parser = era_parser())]
    era: Era,
    /// File to write; it must not exist
    #[arg(value_name = "ISO")]
    output: PathBuf,
}

fn architecture_parser() -> impl TypedValueParser<Value = Architecture> {
    PossibleValuesParser::new(Architecture::ALL.map(|it| it.to_string()))
        .try_map(|name| name.parse::<Architecture>())
}

fn era_parser() -> impl TypedValueParser<Value = Era> {
    PossibleValuesParser::new(Era::ALL.map(|it| it.to_string())).try_map(|name| name.parse::<Era>())
}

impl Fixture {
    pub(super) fn run(self) -> Result<()> {
        // Minimal ISOs with static networks need `nmstatectl` from the root file system.
        let image = Recipe::new(self.architecture, self.era).with_program().build();
        let files = vec![(self.output, image)];
        print_paths(&write_files("ISO", files, FileAccess::Shared, |file, image| write_all(file, &image))?)
    }
}
