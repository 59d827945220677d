//! The operations of the inventory, which take typed parameters and return records or errors. The API, the background
//! tasks and other parts of the program share them.
//!
//! All operations are methods of [`Inventory`]. Lists take a query, such as [`HostQuery`], and return a stream that
//! reads page by page. `request` is the id of the API request that caused the operation, which is recorded in events.
//! Callers without an API request pass `None`.
//!
//! # Boxed futures
//!
//! The public operations are functions that return a [`BoxFuture`](futures_util::future::BoxFuture) instead of async
//! functions. An async function is compiled in each crate that awaits it, together with all futures inside, down to the
//! database statements. A function that boxes its future is compiled once, in this crate. The cost of the allocation is
//! negligible compared with a query.

mod access;
mod caches;
pub(crate) mod cluster_views;
pub(crate) mod clusters;
pub(crate) mod events;
pub(crate) mod hosts;
pub mod infra_envs;
mod inventory;
mod jobs;
mod leadership;
mod lease;
pub(crate) mod logs;
pub mod os_images;
mod task_states;
#[cfg(test)]
pub(crate) mod test_inventory;
mod watch;

pub use clusters::ClusterQuery;
pub use events::{EventListQuery, EventSubject, SelectedEvents};
pub use hosts::details::{HostDetails, HostVersion};
pub use hosts::list::{HostQuery, HostStream};
pub use hosts::urls::HostUrls;
pub use infra_envs::{Ensured, ImageUrls, InfraEnvQuery, PreflightFindings};
pub use inventory::Inventory;
pub use leadership::Leadership;
pub(crate) use lease::LEASE_DURATION;
pub use task_states::{MonitorHealth, TaskState, TaskStates};
pub use watch::{ResourceChange, ResourceId, WatchEvent, WatchQuery};
