//! `kindling discovery plan`: shows the layout of an image, and writes a plan file.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use ignition::discovery::HttpUrl;
use isogen::write::FileAccess;
use isogen::{Plan, Segment};
use serde_json::{Value, json};

use super::create::EXIT_CODES;
use super::output::require_existing_directory;
use super::prepare::{FROM_PLAN, SourceOptions};
use super::{exit_code_after_summary, output_file_parser};
use crate::cli::created_files::create_file;
use crate::cli::output::{print_bytes, print_json};
use discovery::{Form, PlanFile};

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::cli) struct PlanCommand {
    #[command(flatten)]
    source: SourceOptions,
    /// Kind of image
    #[arg(long, value_enum, default_value_t = PlannedImage::Full, help_heading = "Image")]
    image: PlannedImage,
    /// URL from which a minimal ISO downloads the root file system
    #[arg(long, value_name = "URL", required_if_eq("image", "minimal"), help_heading = "Image")]
    rootfs_url: Option<String>,
    /// Write a plan file. It contains secrets, so only its owner can read it
    #[arg(short, long, value_name = "FILE", value_parser = output_file_parser("plan files"))]
    #[arg(conflicts_with = "from_plan", help_heading = "Image")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PlannedImage {
    /// The full ISO
    Full,
    /// The minimal ISO, which downloads its root file system
    Minimal,
    /// The initrd for network boots
    Initrd,
}

impl PlanCommand {
    pub(super) fn run(self) -> Result<ExitCode> {
        if let Some(file) = &self.source.from_plan {
            return self.print_plan(&super::apply::read_plan_file(file, FROM_PLAN)?);
        }
        if let Some(path) = &self.output {
            require_existing_directory("--output", path)?;
        }
        let form = self.image_form()?;
        let output = self
            .output
            .as_ref()
            .map(|path| create_file("--output", path, FileAccess::Private))
            .transpose()?;
        let prepared = self.source.prepare()?;
        let packed = prepared.images.packed(&form)?;
        let context = prepared.images.context(&form, &packed)?;
        let plan = packed.plan(&form, context)?;
        let strategy = packed.layout_strategy(&form, context)?;
        if let (Some(file), Some(path)) = (output, &self.output) {
            let text = PlanFile::new(&form, &packed, context)?.to_json()?;
            let mut writer = file.file();
            writer.write_all(text.as_bytes()).with_context(|| format!("writing {}", path.display()))?;
            file.commit()?;
            eprintln!("{}: warning: the file contains secrets (mode 0600)", path.display());
        }
        let layout = strategy.map(|strategy| strategy.to_string());
        let summary = if self.json {
            let mut json = prepared.to_json();
            if let Some(map) = json.as_object_mut() {
                map.insert("image".to_owned(), to_json(&form, &plan, layout.as_deref()));
            }
            print_json(&json)
        } else {
            let text = prepared.to_text()? + &to_text(&form, &plan, layout.as_deref())?;
            print_bytes(text.as_bytes())
        };
        if self.output.is_some() {
            exit_code_after_summary(summary)
        } else {
            summary.map(|()| ExitCode::SUCCESS)
        }
    }

    /// Prints the content of a plan file.
    fn print_plan(&self, file: &PlanFile) -> Result<ExitCode> {
        let base = self.source.base.open(None)?;
        let plan = file.plan(&base.image)?;
        if self.json {
            let stamps = json!({"base": file.base(), "result": file.result()});
            print_json(&json!({"plan": stamps, "image": to_json(file.form(), &plan, None)}))?;
        } else {
            let stamps = format!("Base image: {}\nImage:      {}\n", file.base(), file.result());
            print_bytes((stamps + &to_text(file.form(), &plan, None)?).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn image_form(&self) -> Result<Form> {
        Ok(match self.image {
            PlannedImage::Full => Form::Full,
            PlannedImage::Initrd => Form::Initrd,
            PlannedImage::Minimal => {
                let url = self.rootfs_url.as_deref().context("--rootfs-url is missing")?;
                Form::Minimal { rootfs_url: HttpUrl::parse("--rootfs-url", url)? }
            }
        })
    }
}

/// Returns the kind of a segment, and the offset in the base image if the bytes are from there.
fn segment_source(segment: &Segment) -> (&'static str, Option<u64>) {
    match segment {
        Segment::Base(extent) => ("base", Some(extent.offset())),
        Segment::Bytes(_) => ("own", None),
        Segment::Zero(_) => ("zeros", None),
    }
}

fn to_json(form: &Form, plan: &Plan, layout: Option<&str>) -> Value {
    let extents = plan.layout().iter().map(|placed| {
        let (from, base_offset) = segment_source(&placed.segment);
        json!({"offset": placed.start, "size": placed.segment.len(), "from": from, "base_offset": base_offset})
    });
    json!({
        "what": form.to_string(),
        "size": plan.len(),
        "own_bytes": plan.memory_bytes(),
        "layout": layout,
        "extents": extents.collect::<Vec<_>>(),
    })
}

fn to_text(form: &Form, plan: &Plan, layout: Option<&str>) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    let layout = layout.map(|layout| format!(", {layout}")).unwrap_or_default();
    writeln!(out, "\n{form}, {} bytes{layout}", plan.len())?;
    writeln!(out, "  {} bytes are new, in {} extents:", plan.memory_bytes(), plan.layout().len())?;
    for placed in plan.layout() {
        let (from, at) = segment_source(&placed.segment);
        let at = at.map(|at| format!(" from {at}")).unwrap_or_default();
        writeln!(out, "  {:>14} {:>14} {from}{at}", placed.start, placed.segment.len())?;
    }
    Ok(out)
}
