//! Versions and base images in the API.

mod bodies;
mod routes;
mod support;
mod view;

pub(super) use routes::routes;
