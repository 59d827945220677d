//! The files that images go into: all of them, or none.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use ignition::discovery::HttpUrl;
use ignition::discovery::ipxe::BootFiles;
use ignition::network::KeyfileCache;
use isogen::write::{Access, NewFile};
use isogen::{Digest, LayoutStrategy, Plan, Segment};

use super::named_file;
use crate::cli::created::Created;
use crate::cli::progress::file_bar;
use crate::discovery::{Form, Host, ImageSet};

#[derive(Debug, Args)]
#[command(next_help_heading = "Images")]
#[group(required = true, multiple = true)]
pub(super) struct OutputOptions {
    /// Write the full ISO
    #[arg(long, value_name = "FILE", value_parser = named_file("images"))]
    full: Option<PathBuf>,
    /// Write the minimal ISO, which fetches its root file system
    #[arg(long, value_name = "FILE", value_parser = named_file("images"), requires = "rootfs_url")]
    minimal: Option<PathBuf>,
    /// Write the root file system, for a web server
    #[arg(long, value_name = "FILE", value_parser = named_file("images"))]
    rootfs: Option<PathBuf>,
    /// Write what a plain web server needs for a boot over the network: vmlinuz, initrd.img, rootfs.img and boot.ipxe
    #[arg(long, value_name = "DIR", requires = "rootfs_url")]
    pxe: Option<PathBuf>,
    /// Write a minimal ISO for each host, with its network alone, under the host's name
    #[arg(long, value_name = "DIR", requires = "rootfs_url")]
    per_host: Option<PathBuf>,
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Image(Form),
    /// The minimal ISO of one host, by its place.
    Host(usize, Form),
    Kernel,
    Rootfs,
    InitrdAddrsize,
    LoadList,
    Script(String),
}

/// A file to write.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    content: Content,
}

/// A file that was written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) path: PathBuf,
    pub(super) what: String,
    pub(super) len: u64,
    pub(super) sha256: Option<Digest>,
    /// How it was laid out, if it is an ISO.
    pub(super) layout: Option<String>,
    pub(super) access: Access,
}

impl OutputOptions {
    /// The files to write, none of which may be there.
    pub(super) fn outputs(
        &self,
        rootfs_url: Option<&str>,
        images: &ImageSet,
        hosts: &[Host],
    ) -> Result<Vec<Output>> {
        let minimal = || {
            let rootfs_url = rootfs_url.context("--rootfs-url is missing")?;
            let rootfs_url = HttpUrl::parse("--rootfs-url", rootfs_url)?.as_str().to_owned();
            anyhow::Ok(Form::Minimal { rootfs_url })
        };
        let mut outputs = Vec::new();
        let mut add = |path: PathBuf, content: Content| outputs.push(Output { path, content });
        if let Some(path) = &self.full {
            add(path.clone(), Content::Image(Form::Full {}));
        }
        if let Some(path) = &self.minimal {
            add(path.clone(), Content::Image(minimal()?));
        }
        if let Some(path) = &self.rootfs {
            add(path.clone(), Content::Rootfs);
        }
        if let Some(directory) = &self.pxe {
            let Form::Minimal { rootfs_url } = minimal()? else { bail!("--rootfs-url is missing") };
            for (name, content) in network_boot(images, rootfs_url)? {
                add(directory.join(name), content);
            }
        }
        if let Some(directory) = &self.per_host {
            if hosts.is_empty() {
                bail!("--per-host: no host has a network of its own");
            }
            let form = minimal()?;
            for (index, host) in hosts.iter().enumerate() {
                add(directory.join(file_name(host)?), Content::Host(index, form.clone()));
            }
        }
        check_names(&outputs)?;
        Ok(outputs)
    }
}

impl OutputOptions {
    /// Fails if a file or directory would have to be created in a directory that does not exist. The directories of `--pxe`
    /// and `--per-host` are created.
    pub(super) fn require_directories(&self) -> Result<()> {
        let directories = [("--pxe", &self.pxe), ("--per-host", &self.per_host)];
        let files = [("--full", &self.full), ("--minimal", &self.minimal), ("--rootfs", &self.rootfs)];
        let is_created = |path: &PathBuf| {
            let mut created = directories.iter().filter_map(|(_, directory)| directory.as_deref());
            created.any(|directory| path.parent() == Some(directory))
        };
        for (option, path) in directories.into_iter().chain(files) {
            if let Some(path) = path.as_ref().filter(|path| !is_created(path)) {
                require_directory(option, path)?;
            }
        }
        Ok(())
    }

    /// The one file for an image of a form, where that is all that is asked for.
    pub(super) fn only(&self, form: &Form) -> Result<&Path> {
        let (path, option) = match form {
            Form::Full {} => (&self.full, "--full"),
            Form::Minimal { .. } => (&self.minimal, "--minimal"),
            Form::Initrd {} => bail!("the plan is one of an {form}: `discovery apply` makes it"),
        };
        let others = [&self.full, &self.minimal, &self.rootfs, &self.pxe, &self.per_host];
        match (path, others.into_iter().flatten().count()) {
            (Some(path), 1) => Ok(path),
            _ => bail!("the plan is one of a {form}: with it, there is {option} alone"),
        }
    }
}

/// Fails if the directory of a file does not exist. A new one is more often a typing error than meant.
pub(super) fn require_directory(option: &str, path: &Path) -> Result<()> {
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

/// The files of a boot over the network.
fn network_boot(images: &ImageSet, rootfs: String) -> Result<Vec<(&'static str, Content)>> {
    let [kernel, initrd] = ["vmlinuz", "initrd.img"].map(str::to_owned);
    let script = BootFiles { kernel, initrd, rootfs }.script(&images.inputs().kernel_arguments)?;
    let mut files = vec![
        ("vmlinuz", Content::Kernel),
        ("initrd.img", Content::Image(Form::Initrd {})),
        ("rootfs.img", Content::Rootfs),
        ("boot.ipxe", Content::Script(script)),
    ];
    if images.base().architecture() == Some(isogen::Architecture::S390x) {
        files.push(("initrd.addrsize", Content::InitrdAddrsize));
        files.push(("generic.ins", Content::LoadList));
    }
    Ok(files)
}

/// The file of a host's image. Names come from files of strangers.
fn file_name(host: &Host) -> Result<String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
    let stem = Path::new(&host.name).file_name().and_then(|it| it.to_str()).unwrap_or_default();
    if stem.is_empty() || stem.starts_with('.') || !stem.chars().all(|it| is_plain(it) || "[]".contains(it)) {
        bail!("--per-host: {} the name {:?} of the host makes no file name", host.place(), host.name);
    }
    let stem = stem.replace('[', "-").replace(']', "");
    Ok(format!("{stem}.iso"))
}

fn check_names(outputs: &[Output]) -> Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    for Output { path, .. } in outputs {
        if !seen.insert(path) {
            bail!("{} would be written twice", path.display());
        }
        if path.symlink_metadata().is_ok() {
            bail!("{} is there already", path.display());
        }
    }
    Ok(())
}

impl Content {
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
                let images = images.of_host(*index, cache)?.context("there is no such host")?;
                of_form(&images, form)
            }
            Self::Kernel => plain(base.kernel()?),
            Self::Rootfs => plain(base.rootfs()?),
            Self::InitrdAddrsize => plain(base.initrd_addrsize(of_form(images, &Form::Initrd {})?.0.len())?),
            Self::LoadList => plain(base.load_list()?),
            Self::Script(text) => {
                let bytes = Segment::Bytes(text.clone().into_bytes().into());
                plain(Plan::of(Arc::clone(base.source()), [bytes]))
            }
        }
    }

    /// Files with a config contain its secrets.
    fn access(&self) -> Access {
        match self {
            Self::Image(_) | Self::Host(..) => Access::Private,
            _ => Access::Shared,
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(form) => form.fmt(f),
            Self::Host(..) => f.write_str("minimal ISO of one host"),
            Self::Kernel => f.write_str("kernel"),
            Self::Rootfs => f.write_str("root file system"),
            Self::InitrdAddrsize => f.write_str("place of the initrd"),
            Self::LoadList => f.write_str("list of what to load"),
            Self::Script(_) => f.write_str("iPXE script"),
        }
    }
}

/// What digests are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Digests {
    /// Files that are read in no time.
    OfSmall,
    /// All files. A large one takes longer to read than to write.
    OfAll,
}

impl Digests {
    /// The largest file that is small.
    const SMALL: u64 = 256 << 20;

    fn are_of(self, plan: &Plan) -> bool {
        self == Self::OfAll || plan.len() <= Self::SMALL
    }
}

/// Writes all files. If one cannot be, or somebody interrupts, none of them is left.
pub(super) fn write(
    outputs: &[Output],
    images: &ImageSet,
    cache: &KeyfileCache,
    digests: Digests,
) -> Result<Vec<Written>> {
    let created = Created::new();
    created.remove_at_interrupt()?;
    let written = outputs.iter().map(|output| write_one(&created, output, images, (cache, digests)));
    let written = written.collect::<Result<Vec<_>>>()?;
    created.keep();
    Ok(written)
}

fn write_one(
    created: &Created,
    output: &Output,
    images: &ImageSet,
    (cache, digests): (&KeyfileCache, Digests),
) -> Result<Written> {
    let Output { path, content } = output;
    created.create_directory(path)?;
    let (plan, strategy) = content.plan(images, cache).with_context(|| path.display().to_string())?;
    let file = NewFile::create(path, content.access())?;
    let sha256 = write_plan(&file, &plan, digests)?;
    created.commit(file, path)?;
    let layout = strategy.map(|strategy| strategy.to_string());
    let (path, what, access) = (path.clone(), content.to_string(), content.access());
    Ok(Written { path, what, len: plan.len(), sha256, layout, access })
}

/// Writes a plan, computes its digest at the same time, and shows a progress bar on a terminal.
pub(super) fn write_plan(file: &NewFile, plan: &Plan, digests: Digests) -> Result<Option<Digest>> {
    let bar = file_bar(plan.len());
    let (written, digest) = std::thread::scope(|scope| {
        let digest = digests.are_of(plan).then(|| scope.spawn(|| plan.sha256()));
        let written = file.write_plan_telling(plan, &mut |len| bar.set_position(len));
        let digest = digest.map(|digest| digest.join().unwrap_or_else(|_| plan.sha256()));
        (written, digest)
    });
    bar.finish_and_clear();
    written?;
    Ok(digest.transpose()?)
}
