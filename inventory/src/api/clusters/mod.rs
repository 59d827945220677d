//! The API for clusters: routes, request bodies and responses.

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
mod view;

pub use hosts::ShownHosts;
pub(super) use routes::routes;
