//! Operations on events.

mod list;
mod reported;

pub use list::{EventFilter, EventList, EventSubject};
