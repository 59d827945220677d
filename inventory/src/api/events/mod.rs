//! Routes of events and of the stream of changes.

mod model;
mod routes;
mod stream;

pub(crate) use routes::routes;
