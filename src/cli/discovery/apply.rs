//! `kindling discovery apply`.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use isogen::write::{Access, NewFile};
use isogen::{BaseImage, Digest};

use super::create::EXIT_CODES;
use super::output::{Digests, require_directory, write_plan};
use super::told;
use crate::cli::input;
use crate::cli::output::{print_line, refuse_terminal, write_stdout};
use crate::discovery::PlanFile;

/// Make the image of a plan file
///
/// The live image is read whole, to be sure that it is the one of the plan, and so is the image, to be sure that it is the
/// one that was planned. It takes its name only then.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::cli) struct Apply {
    /// Live image
    #[arg(value_name = "BASE")]
    base: String,
    /// Plan file; - is stdin
    #[arg(value_name = "PLAN")]
    plan: String,
    /// File to write; - is stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl Apply {
    pub(super) fn run(self) -> Result<ExitCode> {
        let is_stream = self.output == Path::new("-");
        if !is_stream {
            require_directory("--output", &self.output)?;
        }
        let file = read(&self.plan, "BASE and PLAN")?;
        let base = BaseImage::open(&self.base).map_err(|error| base_error(&self.base, error))?;
        if is_stream {
            return stream((&file, &self.plan), &base);
        }
        make((&file, &self.plan), &base, &self.output)
    }
}

/// Makes the image of a plan file, which has a name for messages. It is there if it is the one that was planned.
pub(super) fn make((file, name): (&PlanFile, &str), base: &BaseImage, path: &Path) -> Result<ExitCode> {
    let output = NewFile::create(path, Access::Private)?;
    let plan = file.plan(base).with_context(|| name.to_owned())?;
    let digest = write_plan(&output, &plan, Digests::OfAll)?.context("the image has no digest")?;
    file.prove(digest).with_context(|| name.to_owned())?;
    output.commit()?;
    told(print_line(summary(&path.display(), file, (plan.len(), digest))))
}

/// Writes the image of a plan file to the standard output. The first byte goes when it is known that all are as planned.
fn stream((file, name): (&PlanFile, &str), base: &BaseImage) -> Result<ExitCode> {
    refuse_terminal()?;
    let plan = file.plan(base).with_context(|| name.to_owned())?;
    let digest = plan.sha256()?;
    file.prove(digest).with_context(|| name.to_owned())?;
    write_stdout(&plan)?;
    eprintln!("{}", summary(&"stdout", file, (plan.len(), digest)));
    Ok(ExitCode::SUCCESS)
}

fn summary(name: &dyn Display, file: &PlanFile, (len, digest): (u64, Digest)) -> String {
    format!("{name}: {}, {len} bytes\n  SHA-256 {digest}, as planned", file.form())
}

/// Reads a plan file; - is the standard input. A live image is a sign of two swapped arguments, which have names for the
/// message.
pub(in crate::cli) fn read(path: &str, arguments: &str) -> Result<PlanFile> {
    if BaseImage::open(path).is_ok() {
        bail!("{path}: not a plan file but an ISO image; did you swap {arguments}?");
    }
    let Some(text) = input::Text::read_unless(path, is_iso)? else {
        bail!("stdin: not a plan file but an ISO image; did you swap {arguments}?");
    };
    PlanFile::parse(&text.bytes).with_context(|| text.name)
}

/// Whether bytes are the beginning of an ISO image: its first volume descriptor is in the sector 16.
fn is_iso(start: &[u8]) -> bool {
    start.get(0x8001..0x8006) == Some(b"CD001")
}

/// Says that a base image is a plan file, if it is one.
fn base_error(path: &str, error: isogen::Error) -> anyhow::Error {
    let is_plan = input::read(Some(path)).is_ok_and(|bytes| PlanFile::parse(&bytes).is_ok());
    if is_plan {
        anyhow!("{path}: not a base image but a plan file; BASE comes before PLAN")
    } else {
        error.into()
    }
}
