//! Operations on events: listing, and storing the events that clients report.

mod list;
mod reported;

pub use list::{EventListQuery, EventSubject, SelectedEvents};
