//! Operations on events.

mod changes;
mod list;
mod reported;

pub(crate) use changes::ChangeSubscription;
pub use list::{EventFilter, EventList, EventSubject};
