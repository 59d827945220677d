//! Plans the minimal ISO of an image that describes it in `miniso.dat`.
//!
//! The minimal ISO has no root file system: its live system fetches the root file system from a URL in a kernel
//! argument. The module [`miniso`](crate::miniso) parses the description.

use crate::areas::{KARGS_INFO, KargsDescription};
use crate::base::BaseImage;
use crate::edits::Edits;
use crate::error::{Error, KargsError, OrInternal, Result};
use crate::kargs::{KargsEdit, KargsOperations};
use crate::plan::{Patch, Plan, Segment};
use crate::source::Source;

/// The kernel argument with the label of the ISO that contains the root file system. A minimal ISO does not have it.
const LIVEISO_KEY: &str = "coreos.liveiso=";
const ROOTFS_URL_KEY: &str = "coreos.live.rootfs_url=";

impl BaseImage {
    /// Plans the minimal ISO that `miniso.dat` describes, and applies the other edits to the embed areas of that ISO.
    pub(crate) fn plan_described_minimal(&self, edits: &Edits) -> Result<Plan> {
        self.require_pristine()?;
        let mastered = self.minimal_description()?.plan(self.source())?;
        let name = self.source().name().to_owned();
        let minimal = Self::from_source(Source::new(name, mastered.len(), mastered.clone()))?;
        let default = remove_liveiso_label(&minimal, minimal.require_kargs()?.current()?)?;
        let mut patches = minimal.require_kargs()?.patches(&self.edited_kargs(edits)?)?;
        patches.extend(minimal.minimal_kargs_description(default)?);
        if let Some(archive) = &edits.archive {
            patches.extend(minimal.require_ignition_area()?.patches(minimal.source().name(), archive)?);
        }
        mastered.patched_structures(patches)
    }

    /// Returns the kernel arguments after `edits`. A minimal ISO has the URL of the root file system instead of the ISO
    /// label.
    pub(crate) fn edited_kargs(&self, edits: &Edits) -> Result<String> {
        let areas = self.require_kargs()?;
        // Without an edit of the kernel arguments, apply an empty list of operations.
        let unchanged = KargsEdit::Current(KargsOperations::default());
        let kargs = areas.apply_edit(edits.kargs.as_ref().unwrap_or(&unchanged))?;
        let Some(minimal) = &edits.minimal else { return Ok(kargs) };
        let kargs = if kargs.contains(LIVEISO_KEY) { remove_liveiso_label(self, &kargs)? } else { kargs };
        let rootfs = minimal.rootfs_url.as_deref().map(rootfs_argument).transpose()?;
        Ok(rootfs.map_or(kargs.clone(), |rootfs| format!("{kargs} {rootfs}")))
    }

    /// Returns `kargs.json` with the new default arguments, padded with spaces to its old length.
    fn minimal_kargs_description(&self, default: String) -> Result<Option<Patch>> {
        let Some(mut description) = KargsDescription::read(self.described())? else {
            return Ok(None);
        };
        description.default = default;
        let extent = self.require_file(KARGS_INFO)?.extent;
        let mut json = description.to_json(self.described())?;
        let len = usize::try_from(extent.len()).or_internal("length of kargs.json", extent.offset())?;
        if json.len() > len {
            let reason = format!("the new description needs {} bytes, the file has only {len}", json.len());
            return Err(self.described().invalid_description(KARGS_INFO, reason));
        }
        json.resize(len, b' ');
        Ok(Some(Patch { offset: extent.offset(), segment: Segment::Bytes(json.into()) }))
    }
}

/// Removes the argument with the label of the ISO that contains the root file system.
pub(crate) fn remove_liveiso_label(image: &BaseImage, kargs: &str) -> Result<String> {
    let label = kargs.split_whitespace().find(|argument| argument.starts_with(LIVEISO_KEY));
    let without = label.ok_or(KargsError::MissingArgument { key: LIVEISO_KEY }).and_then(|label| {
        let delete = vec![label.to_owned()];
        KargsOperations { delete, ..KargsOperations::default() }.apply(kargs)
    });
    without.map_err(|reason| Error::Kargs { file: image.source().name().to_owned(), reason })
}

/// Returns the kernel argument with the URL of the root file system. The URL is in double quotes if GRUB would
/// interpret one of its characters.
///
/// GRUB removes the quotes. isolinux and s390x pass the quotes on, and the live system removes them.
///
/// # Errors
///
/// Returns an error if a boot loader would change the URL.
fn rootfs_argument(url: &str) -> Result<String> {
    let refused = |reason| Err(Error::InvalidEdit { what: "rootfs URL", value: url.to_owned(), reason });
    if url.chars().any(|character| character.is_whitespace() || character.is_control()) {
        return refused("a URL in a kernel argument must not contain white space");
    }
    if url.contains(['"', '\\', '$']) {
        return refused("GRUB interprets \" \\ and $ even between quotes");
    }
    let Some(rest) = ["http://", "https://", "tftp://"].iter().find_map(|scheme| url.strip_prefix(scheme))
    else {
        return refused("the live system fetches http:, https: and tftp: URLs only");
    };
    if rest.is_empty() || rest.starts_with(['/', '?', '#']) {
        return refused("it has no host");
    }
    let quote = if url.contains(['{', '}', '|', '&', ';', '<', '>', '\'']) { "\"" } else { "" };
    Ok(format!("{ROOTFS_URL_KEY}{quote}{url}{quote}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rootfs_argument_quotes_urls_that_grub_would_interpret() {
        let argument = |url| rootfs_argument(url).unwrap();
        assert_eq!(argument("https://example.com/r"), "coreos.live.rootfs_url=https://example.com/r");
        assert_eq!(argument("http://h/r?a=1&b=2"), "coreos.live.rootfs_url=\"http://h/r?a=1&b=2\"");
    }

    #[test]
    fn rejects_kernel_arguments_without_the_label() {
        let recipe = fixtures::Recipe::new(fixtures::Architecture::X86_64, fixtures::Era::E2023_07);
        let image = BaseImage::from_source(Source::from_bytes("base.iso", recipe.build())).unwrap();
        assert_eq!(remove_liveiso_label(&image, "rw coreos.liveiso=fedora quiet").unwrap(), "rw quiet");
        let error = remove_liveiso_label(&image, "rw quiet").unwrap_err();
        assert_eq!(error.to_string(), "base.iso: the kernel arguments have no coreos.liveiso=");
    }

    #[test]
    fn rejects_rootfs_urls_that_boot_loaders_would_change() {
        for url in [
            "http://h/a b",
            " http://h",
            "http://h/\"",
            "http://h/$x",
            "http://h/\\",
            "http://h/\n",
            "ftp://h",
            "http://",
            "https:///rootfs.img",
            "tftp://?h",
        ] {
            assert!(matches!(rootfs_argument(url), Err(Error::InvalidEdit { .. })), "{url:?}");
        }
    }
}
