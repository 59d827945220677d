//! Operations on events.

mod list;
mod reported;

pub use list::{EventListQuery, EventSubject, SelectedEvents};
