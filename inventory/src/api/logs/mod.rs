//! The API for logs of hosts and of the controller.

mod download;
mod routes;
mod upload;

pub(super) use routes::routes;
