//! Infra-envs in the API.

mod bodies;
mod routes;
mod view;

pub(super) use routes::routes;
