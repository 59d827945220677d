//! The API for infra-envs: operations, request bodies and responses.

mod bodies;
mod routes;
mod view;

pub(super) use routes::routes;
