//! Events: what happened to clusters, infra-envs and hosts, for people to read.

mod model;
mod routes;
mod told;

pub use model::{Category, Event, EventPage, EventPosition, EventQuery, EventView, Severity, SeverityCounts};
pub(crate) use routes::routes;
pub use told::ToldEvent;
