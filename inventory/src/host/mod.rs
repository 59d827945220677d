//! Hosts: machines that booted the image of an infra-env.
//!
//! The agent on a host registers it and polls for steps. Its replies are stored as reports, and the status of the host
//! follows from them. This module decides the statuses before an installation; it does not install.

mod bounds;
mod check_in;
mod cluster;
mod create;
mod draft;
mod events;
mod key;
mod machine;
mod membership;
mod model;
mod progress;
mod recent_replies;
mod record;
mod refresh;
mod refused_report;
mod reply;
mod reported;
mod routes;
mod stage;
pub(crate) mod state;
mod status;
mod steps;
mod update;
mod validation;
mod view;

pub(crate) use cluster::{DeletedHosts, HostCounts, find_in_cluster, host_counts, release_hosts};
pub(crate) use key::{HostKey, host_cache};
pub(crate) use model::LogsProgressParams;
pub(crate) use progress::record_log_upload;
pub(crate) use recent_replies::RecentReplies;
pub use record::{Choices, HostFindings, HostRecord, InstallationDisk, Logs, Progress, ReportSummary};
pub(crate) use refresh::disconnect_silent;
pub use refused_report::RefusedReport;
pub(crate) use routes::routes;
pub use stage::{HostRole, HostStage, LogsState};
pub(crate) use state::statuses_before_disconnection;
pub use status::{HostKind, HostStatus, MediaStatus};
pub(crate) use validation::connected_since;
pub use validation::{Validation, ValidationStatus};
pub(crate) use view::{HostDetail, views_of_cluster};
