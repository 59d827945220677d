//! `kindling iso extract nmstatectl`: extracts `nmstatectl`, which static networks need, as an archive to append to an
//! initrd.

use anyhow::Result;
use clap::Args;
use isogen::write::FileAccess;
use isogen::{BaseImage, Plan, RootFilesystem, Segment, Source};

use crate::cli::created_files::create_file;
use crate::cli::output::{refuse_terminal, write_stdout};

#[derive(Debug, Args)]
pub(in crate::cli) struct Nmstatectl {
    /// Initrd image to write, or - for stdout
    #[arg(short, long, value_name = "PATH", default_value = "-")]
    output: String,
    /// ISO image or rootfs.img
    #[arg(value_name = "IMAGE")]
    input: String,
}

impl Nmstatectl {
    pub(super) fn run(self) -> Result<()> {
        let to_stdout = self.output == "-";
        if to_stdout {
            refuse_terminal()?;
        }
        let source = Source::open(&self.input)?;
        // Create the output before the work, to fail early if the file exists. It gets its name at the end.
        let output = (!to_stdout)
            .then(|| create_file("--output", self.output.as_ref(), FileAccess::Shared))
            .transpose()?;
        let (packed, base) = pack_nmstatectl(source)?;
        let plan = Plan::new(base, [Segment::Bytes(packed.as_bytes().clone())]);
        match output {
            Some(file) => {
                file.write_plan(&plan)?;
                Ok(file.commit()?)
            }
            None => write_stdout(&plan),
        }
    }
}

/// Magic bytes of a rootfs.img, which is a cpio archive. An ISO image begins with its system area instead.
const ARCHIVE: &[u8] = b"070701";

fn pack_nmstatectl(source: Source) -> Result<(isogen::PackedArchive, std::sync::Arc<Source>)> {
    let mut start = [0; ARCHIVE.len()];
    let is_archive = source.len() > start.len() as u64
        && source.read_exact_at(&mut start, 0).map(|()| start == ARCHIVE)?;
    if is_archive {
        let source = std::sync::Arc::new(source);
        let name = source.name().to_owned();
        let packed = RootFilesystem::open(name, Plan::from_source(source.clone()))?.pack_nmstatectl()?;
        return Ok((packed, source));
    }
    let image = BaseImage::from_source(source)?;
    let packed = image.root_filesystem()?.pack_nmstatectl()?;
    Ok((packed, image.source().clone()))
}
