//! Operations on events.

mod list;
mod reported;

pub(crate) use list::EventListParams;
pub(crate) use reported::ReportedEvent;
