//! The catalogue: the OpenShift releases and base images in the configuration of the service.

mod error;
mod list;
mod os_image;
mod release;
mod release_image;

pub use assisted::architecture::{CpuArchitecture, ImageType, ReleaseArchitecture};
pub use error::{CatalogueError, CatalogueList};
pub use ignition::version::Version;
pub use os_image::{Catalogue, MAX_IMAGE_VERSION_LEN, OsImage, os_image_in_url};
pub use release::VersionQuery;
pub use release_image::{ReleaseImage, SupportLevel};
