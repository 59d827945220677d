//! Hosts: machines that booted the image of an infra-env.
//!
//! The agent on a host registers it and polls for steps. The agent's replies are stored as reports, and determine the
//! status of the host. The crate `rules` contains the rules for statuses. This service does not install hosts.

pub(crate) mod agent_spec;
pub(crate) mod assessment;
pub(crate) mod bounds;
pub(crate) mod cluster;
pub(crate) mod connection;
pub(crate) mod draft;
mod events;
pub(crate) mod facts;
pub(crate) mod findings;
pub(crate) mod inventory_report;
mod key;
pub(crate) mod membership;
mod owner;
pub(crate) mod progress;
mod record;
pub(crate) mod refused_report;
pub(crate) mod reply;
mod reported;
mod restore;
pub(crate) mod stored_results;
pub(crate) mod stored_summary;
pub(crate) mod update;

pub use agent_spec::HostSpec;
pub use assisted::host::{HostKind, HostRole, HostStage, HostStatus, LogsState, MediaStatus};
pub use findings::{HostFindings, RefusedReport, ReportSummary};
pub use owner::{HostOwner, OptionalChoice};
pub use record::{Choices, HostRecord, InstallationDisk, Logs, Progress};
pub use restore::RestoredHost;
