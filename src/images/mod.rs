//! The images that machines boot: which ones there are.

mod architecture;
mod catalogue;

pub use architecture::{CpuArchitecture, ImageType};
pub use catalogue::{Catalogue, CatalogueError, OsImage};
