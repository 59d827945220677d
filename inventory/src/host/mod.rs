//! Hosts: machines that booted the image of an infra-env.
//!
//! The agent on a host registers it and polls for steps. Its replies are stored as reports, and the status of the host
//! follows from them. This module decides the statuses before an installation; it does not install.

pub(crate) mod bounds;
pub(crate) mod cluster;
pub(crate) mod draft;
mod events;
pub(crate) mod key;
pub(crate) mod machine;
pub(crate) mod membership;
pub(crate) mod model;
pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod refresh;
pub(crate) mod refused_report;
pub(crate) mod reply;
pub(crate) mod reported;
pub(crate) mod stage;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod steps;
pub(crate) mod update;
pub(crate) mod validation;

pub(crate) use key::HostKey;
pub use record::{Choices, HostFindings, HostRecord, InstallationDisk, Logs, Progress, ReportSummary};
pub use refused_report::RefusedReport;
pub use stage::{HostRole, HostStage, LogsState};
pub use status::{HostKind, HostStatus, MediaStatus};
pub use validation::{Validation, ValidationStatus};
