//! Routes of clusters.

pub(crate) mod model;
mod routes;
pub(crate) mod text;

pub(super) use routes::routes;
