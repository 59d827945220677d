//! `kindling iso customize`: adds configs, network settings and kernel arguments to an image.

use anyhow::{Result, bail};
use clap::Args;
use isogen::initrd::IGNITION_CONFIG;
use isogen::{BaseImage, KargsOperations};

use crate::cli::output::EditOptions;
use crate::cli::pxe::CustomizeOptions;
use crate::customize::{RequiredFeatures, capabilities};

#[derive(Debug, Args)]
pub(in crate::cli) struct Customize {
    #[command(flatten)]
    options: CustomizeOptions,
    /// Live kernel argument to append
    ///
    /// Kernel argument to append to boots of the live environment.
    #[arg(long, value_name = "arg")]
    live_karg_append: Vec<String>,
    /// Live kernel argument to delete
    ///
    /// Kernel argument to delete from boots of the live environment.
    #[arg(long, value_name = "arg")]
    live_karg_delete: Vec<String>,
    /// Live kernel argument to replace
    ///
    /// Kernel argument to replace for boots of the live environment, in the form key=old=new. For a default
    /// argument "a=b", specifying "--live-karg-replace a=b=c" will produce the argument "a=c".
    #[arg(long, value_name = "k=o=n")]
    live_karg_replace: Vec<String>,
    /// Overwrite existing customizations
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    edit: EditOptions,
}

impl Customize {
    pub(super) fn run(self) -> Result<()> {
        let live_kargs = KargsOperations {
            delete: self.live_karg_delete,
            append: self.live_karg_append,
            replace: self.live_karg_replace,
        };
        let editing = self.edit.open_image()?;
        if !self.force && is_customized(&editing.image)? {
            bail!("{} is already customized; use -f to force.", editing.image_name());
        }
        let capabilities = capabilities(&editing.image);
        RequiredFeatures { live_kargs: !live_kargs.is_empty(), ..self.options.required_features() }
            .check(&capabilities)?;
        let customized = self.options.read_files()?.build(&capabilities)?;
        editing.write_edited(&customized.to_edits(live_kargs)?)?;
        customized.notices.iter().for_each(|notice| eprintln!("{notice}"));
        Ok(())
    }
}

/// Returns `true` if an image contains a config, network files, or kernel arguments other than the defaults. Ignores
/// other members of the archive in the Ignition area.
fn is_customized(image: &BaseImage) -> Result<bool> {
    let archive = image.archive()?;
    if archive.get(IGNITION_CONFIG).is_some() || archive.network_files().next().is_some() {
        return Ok(true);
    }
    match image.kargs() {
        Some(kargs) if kargs.default().is_ok() => Ok(kargs.current()? != kargs.default()?),
        _ => Ok(false),
    }
}
