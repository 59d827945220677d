//! The images that machines boot, and the releases they install: which ones there are.

mod architecture;
mod catalogue;
mod list;
mod release;
mod version;

pub use architecture::{CpuArchitecture, ImageType};
pub use catalogue::{Catalogue, CatalogueError, OsImage};
pub use release::{OpenshiftVersion, ReleaseArchitecture, ReleaseImage, SupportLevel, VersionQuery};
pub use version::Version;
