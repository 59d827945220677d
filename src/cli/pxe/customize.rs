//! `kindling pxe customize`: adds configs and network settings to a live initrd. Also contains the options that
//! `iso customize` shares.

use anyhow::{Context, Result, bail};
use clap::Args;
use isogen::initrd::{ArchiveLimits, IGNITION_CONFIG, NETWORK_DIRECTORY};
use isogen::write::FileAccess;
use isogen::{Archive, Encoding, Features, Plan, Segment};

use crate::cli::created_files::create_file;
use crate::cli::input;
use crate::cli::output::{refuse_terminal, write_stdout};
use crate::customize::{Console, Customization, RequiredFeatures, initrd_capabilities};

/// The common options of `iso customize` and `pxe customize`.
#[derive(Debug, Args)]
pub(in crate::cli) struct CustomizeOptions {
    /// Ignition config fragment for dest sys
    ///
    /// Automatically run installer and merge the specified Ignition config into the config for the destination
    /// system.
    #[arg(long, value_name = "path")]
    dest_ignition: Vec<String>,
    /// Install destination device
    ///
    /// Automatically run installer, installing to the specified device. The resulting boot media will overwrite
    /// it without confirmation.
    #[arg(long, value_name = "path")]
    dest_device: Option<String>,
    /// Kernel and bootloader console for dest
    ///
    /// Automatically run installer, configuring the specified console for the destination system, in the syntax
    /// of the "console=" kernel argument.
    #[arg(long, value_name = "spec")]
    dest_console: Vec<Console>,
    /// Destination kernel argument to append
    ///
    /// Automatically run installer, adding the kernel argument for every boot of the destination system.
    #[arg(long, value_name = "arg")]
    dest_karg_append: Vec<String>,
    /// Destination kernel argument to delete
    ///
    /// Automatically run installer, deleting the kernel argument for every boot of the destination system.
    #[arg(long, value_name = "arg")]
    dest_karg_delete: Vec<String>,
    /// NetworkManager keyfile for live & dest
    ///
    /// Network settings apply in the live environment, also while Ignition runs. If the installer is enabled by
    /// other options, they apply in the destination system too.
    #[arg(long, value_name = "path")]
    network_keyfile: Vec<String>,
    /// Nmstate file for live & dest
    ///
    /// Keyfiles are generated from the nmstate document, and apply like the keyfiles of --network-keyfile.
    #[arg(long, value_name = "path")]
    network_nmstate: Vec<String>,
    /// Ignition PEM CA bundle for live & dest
    ///
    /// Certificate authorities for Ignition to trust in the live environment and, if the installer is enabled by
    /// other options, in the destination system.
    #[arg(long, value_name = "path")]
    ignition_ca: Vec<String>,
    /// Script to run before installation
    ///
    /// If it fails, the live environment stops at an emergency shell.
    #[arg(long, value_name = "path")]
    pre_install: Vec<String>,
    /// Script to run after installation
    ///
    /// If it fails, the live environment stops at an emergency shell.
    #[arg(long, value_name = "path")]
    post_install: Vec<String>,
    /// Installer config file
    ///
    /// Automatically run the installer with the config file. Files apply in the order in which they are given.
    #[arg(long, value_name = "path")]
    installer_config: Vec<String>,
    /// Ignition config fragment for live env
    ///
    /// Merge the specified Ignition config into the config for the live environment.
    #[arg(long, value_name = "path")]
    live_ignition: Vec<String>,
}

impl CustomizeOptions {
    /// Returns the features that the image must have. The caller checks them before it reads the files in the options.
    pub(in crate::cli) fn required_features(&self) -> RequiredFeatures {
        let options = Customization {
            dest_device: self.dest_device.clone(),
            dest_console: self.dest_console.clone(),
            dest_karg_append: self.dest_karg_append.clone(),
            dest_karg_delete: self.dest_karg_delete.clone(),
            ..Customization::default()
        };
        let files = !self.dest_ignition.is_empty() || !self.installer_config.is_empty();
        RequiredFeatures {
            destination_console: !self.dest_console.is_empty(),
            network: !self.network_keyfile.is_empty() || !self.network_nmstate.is_empty(),
            installer_config: files || options.runs_installer(),
            live_kargs: false,
        }
    }

    pub(in crate::cli) fn read_files(self) -> Result<Customization> {
        Ok(Customization {
            dest_ignition: input::read_files(&self.dest_ignition)?,
            dest_device: self.dest_device,
            dest_console: self.dest_console,
            dest_karg_append: self.dest_karg_append,
            dest_karg_delete: self.dest_karg_delete,
            network_keyfiles: input::read_files(&self.network_keyfile)?,
            network_nmstate: input::read_files(&self.network_nmstate)?,
            ignition_ca: input::read_files(&self.ignition_ca)?,
            pre_install: input::read_files(&self.pre_install)?,
            post_install: input::read_files(&self.post_install)?,
            installer_config: input::read_files(&self.installer_config)?,
            live_ignition: input::read_files(&self.live_ignition)?,
        })
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Customize {
    #[command(flatten)]
    options: CustomizeOptions,
    /// Output file
    #[arg(short, long, value_name = "path")]
    output: String,
    /// CoreOS live initramfs image
    #[arg(value_name = "path")]
    input: String,
}

/// A notice about kernel arguments that an ISO image contains, but a PXE configuration must set.
const PXE_KARGS_NOTICE: &str =
    "PXE configuration must include kernel arguments:\n\tignition.firstboot ignition.platform.id=metal";
/// The file that marks a live initrd.
const LIVE_INITRD: &str = "etc/coreos-live-initramfs";

impl Customize {
    pub(super) fn run(self) -> Result<()> {
        let output = match self.output.as_str() {
            "-" => refuse_terminal().map(|()| None)?,
            path => Some(create_file("--output", path.as_ref(), FileAccess::Private)?),
        };
        let initrd = Plan::from_source(input::open_source(&self.input)?.into());
        let features = check_initrd(&initrd, &self.input)?;
        let capabilities = initrd_capabilities(&features);
        self.options.required_features().check(&capabilities)?;
        let customized = self.options.read_files()?.build(&capabilities)?;
        let archive = customized.to_archive().pack_even_if_empty(Encoding::Xz)?;
        let plan = initrd.followed_by([Segment::Bytes(archive.as_bytes().clone())]);
        match output {
            Some(file) => {
                file.write_plan(&plan)?;
                file.commit()?;
            }
            None => write_stdout(&plan)?,
        }
        customized.notices.iter().for_each(|notice| eprintln!("{notice}"));
        if customized.live_config.is_some() {
            eprintln!("{PXE_KARGS_NOTICE}");
        }
        Ok(())
    }
}

/// Returns the features of a live initrd. Returns an error if it is not a live initrd or is already customised.
fn check_initrd(initrd: &Plan, name: &str) -> Result<Features> {
    let is_relevant = |member: &str| {
        [LIVE_INITRD, Features::INITRD_PATH, IGNITION_CONFIG].contains(&member)
            || member.starts_with(NETWORK_DIRECTORY)
    };
    let archive = Archive::read_matching(initrd.reader(), ArchiveLimits::INITRD, is_relevant);
    let archive = archive.with_context(|| format!("decoding {name}"))?;
    if archive.get(LIVE_INITRD).is_none() {
        bail!("{name} is not a CoreOS live initramfs image");
    }
    if archive.get(IGNITION_CONFIG).is_some() || archive.network_files().next().is_some() {
        bail!("{name}: input is already customized");
    }
    match archive.get(Features::INITRD_PATH) {
        Some(json) => {
            Features::parse(json).with_context(|| format!("parsing {} of {name}", Features::INITRD_PATH))
        }
        None => Ok(Features::default()),
    }
}
