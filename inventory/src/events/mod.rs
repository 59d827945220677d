//! Events: the history of clusters, infra-envs and hosts, for users.

mod model;
mod reported;
mod routes;
mod stream;

use model::EventView;
pub use model::{Category, Event, EventPage, EventPosition, EventQuery, Severity, SeverityCounts};
pub(crate) use routes::routes;
