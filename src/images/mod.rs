//! The images that machines boot, and the releases they install: which ones there are, and the live images on this machine.

mod architecture;
mod catalogue;
pub mod library;
mod list;
mod release;
mod version;

pub use architecture::{CpuArchitecture, ImageType};
pub use catalogue::{Catalogue, CatalogueError, OsImage};
pub use release::{OpenshiftVersion, ReleaseArchitecture, ReleaseImage, SupportLevel, VersionQuery};
pub use version::Version;
