//! The change feed, which reports changed records to caches and to other parts of the service.
//!
//! Changes by this process are reported after they are on disk and before the caller gets the result. Changes by other
//! replicas arrive through PostgreSQL's LISTEN and NOTIFY (see [`listener`]), where the notification is part of the
//! transaction. A change is never reported too early. But it may be reported twice, or reported although it failed. So
//! subscribers read the record again instead of relying on the event.
//!
//! The feed does not contain check-ins, host reports, or events that are not part of a record's change. Validation
//! results are the only reports whose changes the feed contains, because they change without their host. These changes
//! have the kind [`Kind::HostResults`].
//!
//! [`Kind::HostResults`]: super::Kind::HostResults

mod cache;
mod change_feed;
mod contact;
mod event;
pub(super) mod listener;
mod message;
mod metrics;
mod own_change;
mod recent;
mod undecided;

pub use cache::FeedCache;
pub use change_feed::{Feed, FeedReader};
pub use contact::Contact;
pub use event::{ChangeKind, FeedEvent, RecordChange};
pub use metrics::FeedMetrics;
pub(super) use own_change::OwnChange;
pub use recent::FeedPosition;
