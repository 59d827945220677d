//! `kindling iso extract nmstatectl`: the program that static networking needs, ready to be appended to an initrd.

use anyhow::Result;
use clap::Args;
use isogen::write::{Access, NewFile};
use isogen::{BaseImage, Plan, RootFilesystem, Segment, Source};

use crate::cli::output::{refuse_terminal, write_stdout};

#[derive(Debug, Args)]
pub(in crate::cli) struct Nmstatectl {
    /// Initrd image to write, or - for stdout
    #[arg(short, long, value_name = "PATH", default_value = "-")]
    output: String,
    /// ISO image, or a rootfs.img by itself
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
        // Opening the output comes early, so that a name that is taken costs no work; it appears at the end.
        let output = (!to_stdout).then(|| NewFile::create(&self.output, Access::Shared)).transpose()?;
        let (packed, base) = pack(source)?;
        let plan = Plan::of(base, [Segment::Bytes(packed.as_bytes().clone())]);
        match output {
            Some(file) => {
                file.write_plan(&plan)?;
                Ok(file.commit()?)
            }
            None => write_stdout(&plan),
        }
    }
}

/// The first bytes of a rootfs.img, which is an archive; an ISO image has its system area there.
const ARCHIVE: &[u8] = b"070701";

fn pack(source: Source) -> Result<(isogen::Packed, std::sync::Arc<Source>)> {
    let mut start = [0; ARCHIVE.len()];
    let is_archive = source.len() > start.len() as u64
        && source.read_exact_at(&mut start, 0).map(|()| start == ARCHIVE)?;
    if is_archive {
        let source = std::sync::Arc::new(source);
        let name = source.name().to_owned();
        let packed = RootFilesystem::open(name, Plan::whole(source.clone()))?.pack_nmstatectl()?;
        return Ok((packed, source));
    }
    let image = BaseImage::from_source(source)?;
    let packed = image.root_filesystem()?.pack_nmstatectl()?;
    Ok((packed, image.source().clone()))
}
