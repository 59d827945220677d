//! Routes of logs.

mod download;
mod routes;
mod upload;

pub(super) use routes::routes;
