//! The versions of what this service works with.

mod model;
mod routes;
mod support;

pub use model::ComponentVersions;
pub(crate) use routes::routes;
pub use support::{ArchitectureSupport, Support, SupportedArchitectures};
