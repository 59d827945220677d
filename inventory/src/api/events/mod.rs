//! Routes of events and of the stream of changes.

mod model;
mod reported;
mod routes;
mod stream;

use model::EventView;
pub(crate) use routes::routes;
