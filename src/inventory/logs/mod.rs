//! Logs of hosts and of the controllers of clusters.

mod routes;

pub(crate) use routes::routes;
