//! The API for versions and base images.

mod bodies;
mod routes;
mod support;
mod view;

pub(super) use routes::routes;
