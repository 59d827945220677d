//! hosts.

mod routes;

pub(crate) use routes::routes;
