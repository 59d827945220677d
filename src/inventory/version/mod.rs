//! The versions of what this service works with.

mod model;
mod os_image;
mod routes;
mod support;

pub use model::ComponentVersions;
pub use os_image::{OsImageParams, OsImageView};
pub(crate) use routes::routes;
pub use support::{ArchitectureSupport, Support, SupportedArchitectures};
