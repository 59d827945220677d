//! `kindling discovery apply`: makes an image from a base image and a plan file.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use clap::error::ErrorKind;
use isogen::write::FileAccess;
use isogen::{BaseImage, Digest};
use serde_json::json;

use super::create::EXIT_CODES;
use super::exit_code_after_summary;
use super::output::{DigestedFiles, require_existing_directory, write_plan};
use crate::cli::created_files::create_file;
use crate::cli::input;
use crate::cli::output::{print_json, print_line, refuse_terminal, write_stdout};
use discovery::PlanFile;

/// Make an image from a plan file
///
/// The whole base image is read to verify that the plan is for this image. The new image is verified as well, and gets
/// its name only after that.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::cli) struct Apply {
    /// Base image
    #[arg(value_name = "BASE")]
    base: String,
    /// Plan file; - is stdin
    #[arg(value_name = "PLAN")]
    plan: String,
    /// File to write; - is stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Apply {
    pub(super) fn run(self) -> Result<ExitCode> {
        let is_stream = self.output == Path::new("-");
        if is_stream && self.json {
            let why = "--json needs a file as --output: with -o -, stdout is the image\n";
            clap::Error::raw(ErrorKind::ArgumentConflict, why).exit();
        }
        if !is_stream {
            require_existing_directory("--output", &self.output)?;
        }
        let file = read_plan_file(&self.plan, "BASE and PLAN")?;
        let base = BaseImage::open(&self.base).map_err(|error| base_error(&self.base, error))?;
        if is_stream {
            return stream_image((&file, &self.plan), &base);
        }
        write_image((&file, &self.plan), &base, ("--output", &self.output), self.json)
    }
}

/// Makes an image from a plan file, and checks the digest before the file gets its name. `name` is the name of the plan
/// file, for messages.
pub(super) fn write_image(
    (file, name): (&PlanFile, &str),
    base: &BaseImage,
    (option, path): (&str, &Path),
    as_json: bool,
) -> Result<ExitCode> {
    let output = create_file(option, path, FileAccess::Private)?;
    let plan = file.plan(base).with_context(|| name.to_owned())?;
    let digest = write_plan(&output, &plan, DigestedFiles::OfAll)?.context("image has no digest")?;
    file.prove(digest).with_context(|| name.to_owned())?;
    output.commit()?;
    exit_code_after_summary(if as_json {
        print_json(&json!({"images": [{
            "path": path.display().to_string(),
            "what": file.form().to_string(),
            "size": plan.len(),
            "sha256": digest.to_string(),
            "private": true,
        }]}))
    } else {
        print_line(image_summary(&path.display(), file, (plan.len(), digest)))
    })
}

/// Makes an image from a plan file, and writes it to stdout. Verifies the digest before the first byte is written.
fn stream_image((file, name): (&PlanFile, &str), base: &BaseImage) -> Result<ExitCode> {
    refuse_terminal()?;
    let plan = file.plan(base).with_context(|| name.to_owned())?;
    let digest = plan.sha256()?;
    file.prove(digest).with_context(|| name.to_owned())?;
    write_stdout(&plan)?;
    eprintln!("{}", image_summary(&"stdout", file, (plan.len(), digest)));
    Ok(ExitCode::SUCCESS)
}

fn image_summary(name: &dyn Display, file: &PlanFile, (len, digest): (u64, Digest)) -> String {
    format!("{name}: {}, {len} bytes\n  SHA-256 {digest}, as planned", file.form())
}

/// Reads a plan file; `-` is stdin. If it is an ISO image, the error asks if the user swapped `arguments`, such as
/// "BASE and PLAN".
pub(in crate::cli) fn read_plan_file(path: &str, arguments: &str) -> Result<PlanFile> {
    if BaseImage::open(path).is_ok() {
        bail!("{path}: not a plan file but an ISO image; did you swap {arguments}?");
    }
    let Some(text) = input::NamedText::read_unless(path, is_iso)? else {
        bail!("stdin: not a plan file but an ISO image; did you swap {arguments}?");
    };
    PlanFile::parse(&text.bytes).with_context(|| text.name)
}

/// Returns `true` if the first bytes of a file are from an ISO image: sector 16 begins with a volume descriptor.
fn is_iso(start: &[u8]) -> bool {
    start.get(0x8001..0x8006) == Some(b"CD001")
}

/// Returns a better error if the file that is not a base image is a plan file.
fn base_error(path: &str, error: isogen::Error) -> anyhow::Error {
    let is_plan = input::read_input(Some(path)).is_ok_and(|bytes| PlanFile::parse(&bytes).is_ok());
    if is_plan {
        anyhow!("{path}: not a base image but a plan file; BASE comes before PLAN")
    } else {
        error.into()
    }
}
