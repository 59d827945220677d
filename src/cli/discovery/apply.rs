//! `kindling discovery apply`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use isogen::BaseImage;
use isogen::write::{Access, NewFile};

use super::output::{Digests, write_plan};
use crate::cli::input;
use crate::cli::output::print_line;
use crate::discovery::PlanFile;

/// Make the image of a plan file
///
/// The live image is read whole, to be sure that it is the one of the plan, and so is the image, to be sure that it is the
/// one that was planned. It takes its name only then.
#[derive(Debug, Args)]
pub(in crate::cli) struct Apply {
    /// Live image
    #[arg(value_name = "BASE")]
    base: String,
    /// Plan file; - is stdin
    #[arg(value_name = "PLAN")]
    plan: String,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl Apply {
    pub(super) fn run(self) -> Result<ExitCode> {
        let file = read(&self.plan)?;
        make((&file, &self.plan), &BaseImage::open(&self.base)?, &self.output)
    }
}

/// Makes the image of a plan file, which has a name for messages. It is there if it is the one that was planned.
pub(super) fn make((file, name): (&PlanFile, &str), base: &BaseImage, path: &Path) -> Result<ExitCode> {
    let output = NewFile::create(path, Access::Private)?;
    let plan = file.plan(base).with_context(|| name.to_owned())?;
    let digest = write_plan(&output, &plan, Digests::OfAll)?.context("the image has no digest")?;
    file.prove(digest).with_context(|| name.to_owned())?;
    output.commit()?;
    print_line(format!(
        "{}: {}, {} bytes\n  SHA-256 {digest}, as planned",
        path.display(),
        file.form(),
        plan.len()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a plan file; - is the standard input.
pub(in crate::cli) fn read(path: &str) -> Result<PlanFile> {
    let text = input::Text::read(path)?;
    PlanFile::parse(&text.bytes).with_context(|| text.name)
}
