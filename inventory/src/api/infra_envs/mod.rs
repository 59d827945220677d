//! Routes of infra-envs.

mod routes;
pub(crate) mod view;

pub(super) use routes::routes;
