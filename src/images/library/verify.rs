//! Whether a file is an image that can be used.

use std::io;
use std::path::Path;

use isogen::{BaseImage, Source};

use super::error::{FetchError, chain};
use crate::images::OsImage;

/// What the volume identifiers of live images begin with.
const VOLUME_IDS: [&str; 3] = ["rhcos-", "fedora-coreos-", "scos-"];
const INITRD: &str = "images/pxeboot/initrd.img";
/// The least that published images have; smaller ones are odd and work.
const USUAL_ROOTFS: u64 = 100 << 20;
const USUAL_KERNEL: u64 = 5 << 20;

/// Where the first volume descriptor has its mark, behind its type.
pub(super) const MARK_AT: u64 = 16 * 2048 + 1;
pub(super) const MARK: &[u8] = b"CD001";
/// With so many bytes it can be told whether something is an ISO image.
pub(super) const RECOGNIZABLE: u64 = MARK_AT + 5;

/// Opens an image and makes sure that it has what is needed of it.
pub(super) fn open(source: Source) -> Result<BaseImage, FetchError> {
    let image = BaseImage::from_source(source).map_err(structure)?;
    let volume_id = image.volume().id();
    if !VOLUME_IDS.iter().any(|prefix| volume_id.starts_with(prefix)) {
        return Err(FetchError::VolumeId { volume_id: volume_id.to_owned() });
    }
    image.kernel().map_err(structure)?;
    image.require_file(INITRD).map_err(structure)?;
    image.rootfs().map_err(structure)?;
    Ok(image)
}

/// Returns whether minimal ISOs can be made as the image describes them. If not, they get a new layout, as those of
/// images without a description.
pub(super) fn minimal(name: &str, path: &Path, image: &BaseImage) -> Result<bool, FetchError> {
    match image.verify_minimal() {
        Ok(()) => Ok(true),
        Err(isogen::Error::Read { source, .. }) => Err(disk("reading", path)(source)),
        Err(isogen::Error::NoMinimal { .. }) => Ok(false),
        Err(error) => {
            let error = chain(&error);
            tracing::warn!(image = name, error, "coreos/miniso.dat is wrong: minimal ISOs get a new layout");
            Ok(false)
        }
    }
}

/// Says what is unusual about an image that is good.
pub(super) fn warn(name: &str, wanted: &OsImage, image: &BaseImage) {
    let lens = [("kernel", image.kernel(), USUAL_KERNEL), ("rootfs", image.rootfs(), USUAL_ROOTFS)];
    for (file, plan, usual) in lens {
        let Ok(len) = plan.map(|plan| plan.len()) else { continue };
        if len < usual {
            tracing::warn!(
                image = name,
                file,
                len,
                usual,
                "this file of the image is smaller than any published one"
            );
        }
    }
    if let Some(gpt) = image.partitions().gpt.as_ref().filter(|_| image.partitions().backup_gpt.is_none()) {
        let backup = gpt.backup;
        tracing::warn!(
            image = name,
            backup,
            "the image has no second partition table: its last bytes may be missing"
        );
    }
    let wanted = wanted.cpu_architecture;
    let found = image.architecture().map(|architecture| format!("{architecture:?}").to_ascii_lowercase());
    let is_other = |found: &str| crate::images::CpuArchitecture::from_name(found) != Some(wanted);
    if let Some(found) = found.filter(|found| is_other(found)) {
        tracing::warn!(image = name, %wanted, found, "the image seems to be for other machines");
    }
}

fn structure(source: isogen::Error) -> FetchError {
    FetchError::Structure { source }
}

/// The beginning of something that is no image, as it may be shown: an error page tells what is wrong.
pub(super) fn glimpse(bytes: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(bytes.get(..MOST_GLIMPSE).unwrap_or(bytes)).into_owned();
    let text: Vec<&str> = text.split_whitespace().collect();
    format!("it begins with {:?}", text.join(" "))
}

const MOST_GLIMPSE: usize = 80;

/// An error of the file system.
pub(super) fn disk<'a>(doing: &'static str, path: &'a Path) -> impl Fn(io::Error) -> FetchError + 'a {
    move |source| FetchError::Disk { doing, path: path.to_owned(), source }
}
