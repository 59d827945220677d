//! The API for events, and the stream of changes.

mod routes;
mod stream;
mod view;

pub(crate) use routes::routes;
