//! Infra-envs in the API.

mod bodies;
mod model;
mod routes;
mod view;

pub use model::InfraEnv;
pub(super) use routes::routes;
