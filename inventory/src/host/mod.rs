//! Hosts: machines that booted the image of an infra-env.
//!
//! The agent on a host registers it and polls for steps. Its replies are stored as reports, and the status of the host
//! follows from them. The rules of the statuses are in the crate `rules`. This service does not install hosts.

pub(crate) mod bounds;
pub(crate) mod cluster;
pub(crate) mod disks;
pub(crate) mod draft;
mod events;
pub(crate) mod findings;
pub(crate) mod inventory_report;
mod key;
pub(crate) mod membership;
pub(crate) mod progress;
mod record;
pub(crate) mod refresh;
pub(crate) mod refused_report;
pub(crate) mod reply;
mod reported;
pub(crate) mod steps;
pub(crate) mod update;
pub(crate) mod validation;

pub use assisted::host::{HostKind, HostRole, HostStage, HostStatus, LogsState, MediaStatus};
pub use findings::{HostFindings, RefusedReport, ReportSummary};
pub use record::{Choices, HostRecord, InstallationDisk, Logs, Progress};
