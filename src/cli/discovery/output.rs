//! The output files of `discovery create`. If one cannot be written, none remains.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use ignition::discovery::HttpUrl;
use ignition::discovery::ipxe::BootFiles;
use ignition::network::KeyfileCache;
use isogen::write::{FileAccess, NewFile};
use isogen::{Digest, LayoutStrategy, Plan, Segment};

use super::output_file_parser;
use crate::cli::created_files::{CreatedFiles, create_file, require_absent};
use crate::cli::directories::check_directory;
use crate::cli::progress::file_bar;
use discovery::{Form, Host, ImageSet};

#[derive(Debug, Args)]
#[command(next_help_heading = "Images")]
#[group(required = true, multiple = true)]
pub(super) struct OutputOptions {
    /// Write the full ISO
    #[arg(long, value_name = "FILE", value_parser = output_file_parser("images"))]
    full: Option<PathBuf>,
    /// Write the minimal ISO, which downloads its root file system
    #[arg(long, value_name = "FILE", value_parser = output_file_parser("images"), requires = "rootfs_url")]
    minimal: Option<PathBuf>,
    /// Write the root file system, for a web server
    #[arg(long, value_name = "FILE", value_parser = output_file_parser("images"))]
    rootfs: Option<PathBuf>,
    /// Write the files that a web server needs for network boots: vmlinuz, initrd.img, rootfs.img and boot.ipxe
    #[arg(long, value_name = "DIR", requires = "rootfs_url")]
    pxe: Option<PathBuf>,
    /// Write a minimal ISO for each host, named after the host, with only its own network
    #[arg(long, value_name = "DIR", requires = "rootfs_url")]
    per_host: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OutputContent {
    Image(Form),
    /// The minimal ISO of one host, with the host's index.
    Host(usize, Form),
    Kernel,
    Rootfs,
    InitrdAddrsize,
    LoadList,
    Script(String),
}

#[derive(Debug)]
pub(super) struct OutputFile {
    /// The option with the path of the file or of its directory, for messages.
    option: &'static str,
    path: PathBuf,
    content: OutputContent,
}

#[derive(Debug)]
pub(super) struct WrittenFiles {
    pub(super) path: PathBuf,
    pub(super) what: String,
    pub(super) len: u64,
    pub(super) sha256: Option<Digest>,
    /// The layout strategy, if the file is an ISO.
    pub(super) layout: Option<String>,
    pub(super) access: FileAccess,
}

impl OutputOptions {
    /// Returns the files to write. Returns an error if one of them exists.
    pub(super) fn output_files(
        &self,
        rootfs_url: Option<&str>,
        images: &ImageSet,
        hosts: &[Host],
    ) -> Result<Vec<OutputFile>> {
        let minimal = || {
            let rootfs_url = rootfs_url.context("--rootfs-url is missing")?;
            let rootfs_url = HttpUrl::parse("--rootfs-url", rootfs_url)?;
            anyhow::Ok(Form::Minimal { rootfs_url })
        };
        let mut outputs = Vec::new();
        let mut add = |option: &'static str, path: PathBuf, content: OutputContent| {
            outputs.push(OutputFile { option, path, content });
        };
        if let Some(path) = &self.full {
            add("--full", path.clone(), OutputContent::Image(Form::Full));
        }
        if let Some(path) = &self.minimal {
            add("--minimal", path.clone(), OutputContent::Image(minimal()?));
        }
        if let Some(path) = &self.rootfs {
            add("--rootfs", path.clone(), OutputContent::Rootfs);
        }
        if let Some(directory) = &self.pxe {
            let Form::Minimal { rootfs_url } = minimal()? else { bail!("--rootfs-url is missing") };
            for (name, content) in network_boot_files(images, &rootfs_url)? {
                add("--pxe", directory.join(name), content);
            }
        }
        if let Some(directory) = &self.per_host {
            if hosts.is_empty() {
                bail!("--per-host: no host has a static network");
            }
            let form = minimal()?;
            for (index, host) in hosts.iter().enumerate() {
                let path = directory.join(host_file_name(host)?);
                add("--per-host", path, OutputContent::Host(index, form.clone()));
            }
        }
        check_names(&outputs)?;
        Ok(outputs)
    }
}

impl OutputOptions {
    /// Returns an error if an output file exists, or if its parent directory does not exist. The directories of `--pxe`
    /// and `--per-host` may be missing, but not their parent directories.
    pub(super) fn check_paths(&self) -> Result<()> {
        let directories = [("--pxe", &self.pxe), ("--per-host", &self.per_host)];
        let is_created = |path: &PathBuf| {
            let mut created = directories.iter().filter_map(|(_, directory)| directory.as_deref());
            created.any(|directory| path.parent() == Some(directory))
        };
        for (option, path) in directories.into_iter().chain(self.files()) {
            if let Some(path) = path.as_ref().filter(|path| !is_created(path)) {
                require_existing_directory(option, path)?;
            }
        }
        for (option, path) in directories {
            path.as_ref().map_or(Ok(()), |path| check_directory(option, path))?;
        }
        for (option, path) in self.files() {
            path.as_ref().map_or(Ok(()), |path| require_absent(option, path))?;
        }
        Ok(())
    }

    /// Returns the options that name a single file, with their values.
    fn files(&self) -> [(&'static str, &Option<PathBuf>); 3] {
        [("--full", &self.full), ("--minimal", &self.minimal), ("--rootfs", &self.rootfs)]
    }

    /// Returns the option and path for an image of this form. Returns an error if other outputs are requested.
    pub(super) fn only_image_path(&self, form: &Form) -> Result<(&'static str, &Path)> {
        let (path, option) = match form {
            Form::Full => (&self.full, "--full"),
            Form::Minimal { .. } => (&self.minimal, "--minimal"),
            Form::Initrd => bail!("the plan file is for an {form}; use `discovery apply`"),
        };
        let others = [&self.full, &self.minimal, &self.rootfs, &self.pxe, &self.per_host];
        match (path, others.into_iter().flatten().count()) {
            (Some(path), 1) => Ok((option, path)),
            _ => bail!("the plan file is for a {form}; use {option} as the only output option"),
        }
    }
}

/// Returns an error if the parent directory of a file does not exist. It is not created, because a missing directory is
/// probably a typing error.
pub(super) fn require_existing_directory(option: &str, path: &Path) -> Result<()> {
    let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else { return Ok(()) };
    let (path, directory) = (path.display(), parent.display());
    if !parent.exists() {
        bail!("{option} {path}: the directory {directory} does not exist; create it first");
    }
    if !parent.is_dir() {
        bail!("{option} {path}: {directory} is not a directory");
    }
    Ok(())
}

/// Returns the names and contents of the files for a network boot.
fn network_boot_files(images: &ImageSet, rootfs: &HttpUrl) -> Result<Vec<(&'static str, OutputContent)>> {
    let [kernel, initrd, rootfs] = ["vmlinuz", "initrd.img", rootfs.as_str()].map(str::to_owned);
    let script = BootFiles { kernel, initrd, rootfs }.script(images.inputs().kernel_arguments())?;
    let mut files = vec![
        ("vmlinuz", OutputContent::Kernel),
        ("initrd.img", OutputContent::Image(Form::Initrd)),
        ("rootfs.img", OutputContent::Rootfs),
        ("boot.ipxe", OutputContent::Script(script)),
    ];
    if images.base().architecture() == Some(isogen::Architecture::S390x) {
        files.push(("initrd.addrsize", OutputContent::InitrdAddrsize));
        files.push(("generic.ins", OutputContent::LoadList));
    }
    Ok(files)
}

/// Returns the file name for a host's image. Rejects unsafe host names, because they come from untrusted files.
fn host_file_name(host: &Host) -> Result<String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
    let stem = Path::new(&host.name).file_name().and_then(|it| it.to_str()).unwrap_or_default();
    if stem.is_empty() || stem.starts_with('.') || !stem.chars().all(|it| is_plain(it) || "[]".contains(it)) {
        bail!("--per-host: {} host name {:?} cannot be used as a file name", host.place(), host.name);
    }
    let stem = stem.replace('[', "-").replace(']', "");
    Ok(format!("{stem}.iso"))
}

fn check_names(outputs: &[OutputFile]) -> Result<()> {
    let mut paths = std::collections::BTreeSet::new();
    for OutputFile { option, path, .. } in outputs {
        if !paths.insert(path) {
            bail!("two outputs have the same path {}; use another one for {option}", path.display());
        }
        require_absent(option, path)?;
    }
    Ok(())
}

impl OutputContent {
    fn plan(&self, images: &ImageSet, cache: &KeyfileCache) -> Result<(Plan, Option<LayoutStrategy>)> {
        let base = images.base();
        let of_form = |images: &ImageSet, form: &Form| {
            let packed = images.packed(form)?;
            let context = images.context(form, &packed)?;
            anyhow::Ok((packed.plan(form, context)?, packed.layout_strategy(form, context)?))
        };
        let plain = |plan| Ok((plan, None));
        match self {
            Self::Image(form) => of_form(images, form),
            Self::Host(index, form) => {
                let images = images.of_host(*index, cache)?.context("no such host")?;
                of_form(&images, form)
            }
            Self::Kernel => plain(base.kernel()?),
            Self::Rootfs => plain(base.rootfs()?),
            Self::InitrdAddrsize => plain(base.initrd_addrsize(of_form(images, &Form::Initrd)?.0.len())?),
            Self::LoadList => plain(base.load_list()?),
            Self::Script(text) => {
                let bytes = Segment::Bytes(text.clone().into_bytes().into());
                plain(Plan::new(Arc::clone(base.source()), [bytes]))
            }
        }
    }

    /// Returns `Private` for images with an Ignition config, which contains secrets.
    fn file_access(&self) -> FileAccess {
        match self {
            Self::Image(_) | Self::Host(..) => FileAccess::Private,
            _ => FileAccess::Shared,
        }
    }
}

impl fmt::Display for OutputContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(form) => form.fmt(f),
            Self::Host(..) => f.write_str("minimal ISO of one host"),
            Self::Kernel => f.write_str("kernel"),
            Self::Rootfs => f.write_str("root file system"),
            Self::InitrdAddrsize => f.write_str("address and size of the initrd"),
            Self::LoadList => f.write_str("load list"),
            Self::Script(_) => f.write_str("iPXE script"),
        }
    }
}

/// Selects the output files whose digests are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DigestedFiles {
    /// Files of at most `SMALL` bytes, which are quick to read.
    OfSmall,
    /// All files. Reading a large file takes longer than writing it.
    OfAll,
}

impl DigestedFiles {
    /// Maximum size of a small file.
    const SMALL: u64 = 256 << 20;

    fn includes(self, plan: &Plan) -> bool {
        self == Self::OfAll || plan.len() <= Self::SMALL
    }
}

/// Writes all files. Removes all of them after an error or an interrupt.
pub(super) fn write_outputs(
    outputs: &[OutputFile],
    images: &ImageSet,
    cache: &KeyfileCache,
    digests: DigestedFiles,
) -> Result<Vec<WrittenFiles>> {
    let created = CreatedFiles::new();
    created.remove_at_interrupt()?;
    let files = outputs.iter().map(|output| write_output(&created, output, images, (cache, digests)));
    let files = files.collect::<Result<Vec<_>>>()?;
    created.keep_all();
    Ok(files)
}

fn write_output(
    created: &CreatedFiles,
    output: &OutputFile,
    images: &ImageSet,
    (cache, digests): (&KeyfileCache, DigestedFiles),
) -> Result<WrittenFiles> {
    let OutputFile { option, path, content } = output;
    created.create_directory(option, path)?;
    let (plan, strategy) = content.plan(images, cache).with_context(|| path.display().to_string())?;
    let file = create_file(option, path, content.file_access())?;
    let sha256 = write_plan(&file, &plan, digests)?;
    created.commit(file, path)?;
    let layout = strategy.map(|strategy| strategy.to_string());
    let (path, what, access) = (path.clone(), content.to_string(), content.file_access());
    Ok(WrittenFiles { path, what, len: plan.len(), sha256, layout, access })
}

/// Writes the image of a plan and computes its digest concurrently. Shows a progress bar on a terminal.
pub(super) fn write_plan(file: &NewFile, plan: &Plan, digests: DigestedFiles) -> Result<Option<Digest>> {
    let bar = file_bar(plan.len());
    let (result, digest) = std::thread::scope(|scope| {
        let digest = digests.includes(plan).then(|| scope.spawn(|| plan.sha256()));
        let result = file.write_plan_with_progress(plan, &mut |len| bar.set_position(len));
        let digest = digest.map(|digest| digest.join().unwrap_or_else(|_| plan.sha256()));
        (result, digest)
    });
    bar.finish_and_clear();
    result?;
    Ok(digest.transpose()?)
}
