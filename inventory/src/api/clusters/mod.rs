//! Routes of clusters.

mod bodies;
mod defaults;
mod host_networks;
mod hosts;
mod list;
mod model;
mod operators;
mod routes;
mod split;
mod text;

pub(super) use routes::routes;
