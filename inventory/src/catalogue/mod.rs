//! The catalogue: the OpenShift releases and the base images that the service is configured with.

mod architecture;
mod list;
mod os_image;
mod release;

pub use architecture::{CpuArchitecture, ImageType};
pub use ignition::version::Version;
pub(crate) use os_image::read_digest;
pub use os_image::{Catalogue, CatalogueError, MAX_IMAGE_VERSION_LEN, OsImage};
pub use release::{OpenshiftVersion, ReleaseArchitecture, ReleaseImage, SupportLevel, VersionQuery};
