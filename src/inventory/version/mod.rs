//! The versions of what this service works with.

mod model;
mod routes;

pub use model::ComponentVersions;
pub(crate) use routes::routes;
