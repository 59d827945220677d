//! The operations of the inventory: typed parameters in, records or errors out. The API, the background tasks and other
//! parts of the program call the same functions.

mod access;
mod caches;
pub(crate) mod clusters;
pub(crate) mod events;
pub(crate) mod hosts;
pub mod infra_envs;
mod inventory;
mod jobs;
mod lease;
pub(crate) mod logs;
pub mod os_images;
mod task_states;
#[cfg(test)]
pub(crate) mod test_inventory;
mod watch;

pub use clusters::ClusterQuery;
pub use events::{EventFilter, EventList, EventSubject};
pub use hosts::list::{HostQuery, HostStream};
pub use infra_envs::{Ensured, InfraEnvQuery, PreflightFindings};
pub use inventory::Inventory;
pub use task_states::{MonitorHealth, TaskState, TaskStates};
pub use watch::{ResourceChange, ResourceId, WatchEvent, WatchOptions};
