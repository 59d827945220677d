//! The change feed: which records change, reported to caches and to other parts of the service.
//!
//! Changes of this process are reported when they are on disk, before the caller gets the result. Changes of other
//! replicas arrive through PostgreSQL's LISTEN and NOTIFY (see [`listener`]): the notification is a part of the
//! transaction that makes the change. A feed never reports a change too early, but it may report one twice, or report a
//! change that failed. So a subscriber reads the record again instead of trusting the event.
//!
//! Events that belong to no change of a record, reports of hosts and check-ins are not in the feed. Validation results
//! are an exception, because they change without their host: their changes have the kind [`Kind::HostResults`].
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
