//! Checks that a file is a base image that can be used.

use std::io;
use std::path::Path;

use isogen::{Architecture, BaseImage, Source};

use super::error::{FetchError, error_chain};
use inventory::catalogue::CpuArchitecture;

/// Prefixes of the volume identifiers of base images.
const VOLUME_IDS: [&str; 3] = ["rhcos-", "fedora-coreos-", "scos-"];
const INITRD: &str = "images/pxeboot/initrd.img";
/// The smallest sizes that published images have. Smaller ones cause a warning, but work.
const USUAL_ROOTFS: u64 = 100 << 20;
const USUAL_KERNEL: u64 = 5 << 20;

/// Offset of the identifier of the first volume descriptor, after its type byte.
pub(super) const MARK_AT: u64 = 16 * 2048 + 1;
pub(super) const MARK: &[u8] = b"CD001";
/// The number of bytes that show whether a file is an ISO image.
pub(super) const RECOGNIZABLE: u64 = MARK_AT + 5;

/// Opens a base image. Checks that it contains all files that artifacts need, and that its architecture, if the image
/// states one, is the architecture of its entry.
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

/// Returns the architecture of a base image, if the image states it.
pub(crate) fn image_architecture(image: &BaseImage) -> Option<CpuArchitecture> {
    match image.architecture()? {
        Architecture::X86_64 => Some(CpuArchitecture::X86_64),
        Architecture::Aarch64 => Some(CpuArchitecture::Arm64),
        Architecture::Ppc64le => Some(CpuArchitecture::Ppc64le),
        Architecture::S390x => Some(CpuArchitecture::S390x),
        _ => None,
    }
}

/// Returns whether minimal ISOs can be made from the image's own description. If not, Kindling re-lays out minimal
/// ISOs, as for images without a description.
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

/// Logs what is unusual about a valid image.
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

/// Returns the start of a file that is not an image, safe to print. If it is an error page, it shows the reason.
pub(super) fn start_for_message(bytes: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(bytes.get(..MAX_START_LEN).unwrap_or(bytes)).into_owned();
    let text: Vec<&str> = text.split_whitespace().collect();
    format!("it begins with {:?}", text.join(" "))
}

/// The most bytes of a start in a message.
const MAX_START_LEN: usize = 80;

/// Returns a constructor of errors of the file system.
pub(super) fn disk_error<'a>(doing: &'static str, path: &'a Path) -> impl Fn(io::Error) -> FetchError + 'a {
    move |source| FetchError::Disk { doing, path: path.to_owned(), source }
}
