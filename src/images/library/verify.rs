//! Checks that a file is a usable base image.

use std::io;
use std::path::Path;

use isogen::{Architecture, BaseImage, Source};

use super::error::{FetchError, error_chain};
use inventory::catalogue::CpuArchitecture;

/// Prefixes of the volume identifiers of base images.
const VOLUME_IDS: [&str; 3] = ["rhcos-", "fedora-coreos-", "scos-"];
const INITRD: &str = "images/pxeboot/initrd.img";
/// Minimum sizes of the root file system and the kernel in published images. Smaller files cause a warning.
const USUAL_ROOTFS: u64 = 100 << 20;
const USUAL_KERNEL: u64 = 5 << 20;

/// Offset of the identifier in the first volume descriptor, which follows the type byte.
pub(super) const MARK_AT: u64 = 16 * 2048 + 1;
pub(super) const MARK: &[u8] = b"CD001";
/// Number of bytes from the start of a file that suffice to recognize an ISO image.
pub(super) const RECOGNIZABLE: u64 = MARK_AT + 5;

/// Opens a base image. Checks that the image contains all files that artifacts need, and that the architecture matches
/// the entry if the image contains it.
pub(super) fn open_base_image(source: Source, expected: CpuArchitecture) -> Result<BaseImage, FetchError> {
    let image = BaseImage::from_source(source).map_err(structure_error)?;
    let volume_id = image.volume().id();
    if !VOLUME_IDS.iter().any(|prefix| volume_id.starts_with(prefix)) {
        return Err(FetchError::VolumeId { volume_id: volume_id.to_owned() });
    }
    image.kernel().map_err(structure_error)?;
    image.require_file(INITRD).map_err(structure_error)?;
    image.rootfs().map_err(structure_error)?;
    match image_architecture(&image).filter(|actual| *actual != expected) {
        None => Ok(image),
        Some(actual) => Err(FetchError::Architecture { expected, found: actual }),
    }
}

/// Returns the architecture of a base image, or `None` if the image does not contain it.
pub(crate) fn image_architecture(image: &BaseImage) -> Option<CpuArchitecture> {
    match image.architecture()? {
        Architecture::X86_64 => Some(CpuArchitecture::X86_64),
        Architecture::Aarch64 => Some(CpuArchitecture::Arm64),
        Architecture::Ppc64le => Some(CpuArchitecture::Ppc64le),
        Architecture::S390x => Some(CpuArchitecture::S390x),
        _ => None,
    }
}

/// Returns `true` if the image contains a valid description of the minimal ISO. Otherwise, Kindling re-lays out minimal
/// ISOs.
pub(super) fn has_valid_minimal_description(
    name: &str,
    path: &Path,
    image: &BaseImage,
) -> Result<bool, FetchError> {
    match image.verify_minimal() {
        Ok(()) => Ok(true),
        Err(isogen::Error::Read { source, .. }) => Err(disk_error("reading", path)(source)),
        Err(isogen::Error::NoMinimal { .. }) => Ok(false),
        Err(error) => {
            let error = error_chain(&error);
            tracing::warn!(
                image = name,
                error,
                "coreos/miniso.dat is invalid, minimal ISOs get a new layout"
            );
            Ok(false)
        }
    }
}

/// Logs a warning about unusual properties of a valid image.
pub(super) fn warn_if_unusual(name: &str, image: &BaseImage) {
    let lens = [("kernel", image.kernel(), USUAL_KERNEL), ("rootfs", image.rootfs(), USUAL_ROOTFS)];
    for (file, plan, usual) in lens {
        let Ok(len) = plan.map(|plan| plan.len()) else { continue };
        if len < usual {
            tracing::warn!(
                image = name,
                file,
                len,
                usual,
                "file in the base image is smaller than in any published image"
            );
        }
    }
    if let Some(gpt) = image.partitions().gpt.as_ref().filter(|_| image.partitions().backup_gpt.is_none()) {
        let backup = gpt.backup;
        tracing::warn!(
            image = name,
            backup,
            "base image has no backup partition table, its last bytes may be missing"
        );
    }
}

fn structure_error(source: isogen::Error) -> FetchError {
    FetchError::Structure { source }
}

/// Formats the start of a file that is not an image, for a message, because an error page contains the reason there.
pub(super) fn start_for_message(bytes: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(bytes.get(..MAX_START_LEN).unwrap_or(bytes)).into_owned();
    let text: Vec<&str> = text.split_whitespace().collect();
    format!("it begins with {:?}", text.join(" "))
}

/// Maximum number of bytes of a file to quote in a message.
const MAX_START_LEN: usize = 80;

/// Returns a function that converts an I/O error of an operation on a file to a [`FetchError`].
pub(super) fn disk_error<'a>(doing: &'static str, path: &'a Path) -> impl Fn(io::Error) -> FetchError + 'a {
    move |source| FetchError::Disk { doing, path: path.to_owned(), source }
}
