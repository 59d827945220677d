//! Operations on hosts: registration, check-ins, reports, binding, changes and deletion.

mod agent_spec;
mod binding;
mod change;
pub(crate) mod check_in;
mod context;
pub(crate) mod counts;
pub(crate) mod details;
pub(crate) mod list;
pub(crate) mod measured_reports;
mod progress;
pub(crate) mod recent_replies;
mod refusals;
pub(crate) mod registration;
pub(crate) mod release;
mod replies;
mod restoration;
pub(crate) mod silence;
mod unimplemented;
mod update;
pub(crate) mod urls;
