//! Kubernetes controllers that manage the inventory through the custom resources of the Assisted Installer.
//!
//! [`Operator::run`] watches the resources and reconciles them with the inventory. It runs in the same process as the
//! inventory, so it applies changes by function calls. All replicas watch, but only the leader writes.
//!
//! The modules, from low-level to high-level:
//!
//! * `crds` contains the custom resource types. `object`, `selector` and `merge_patch` implement rules of the
//!   Kubernetes API.
//! * `caches`, `watches` and `paced_client` cache the watched objects. `queue` contains the objects to reconcile, and
//!   `writer` sends all writes. `leader` decides which replica writes. `events` creates Kubernetes events. `memory`
//!   returns freed memory to the system.
//! * `classification` implements AgentClassifications.
//! * `projection` and `networks` are pure: they convert records and resources.
//! * `mapping` and `bridge` find the resources that depend on a changed object or record.
//! * `controllers` contains one controller for each kind.
//! * `webhooks` are admission webhooks, which deny invalid objects.

pub mod classification;
pub mod crds;
pub mod label_value;

mod bridge;
mod cached_agent;
mod cached_condition;
mod caches;
mod conditions;
mod controllers;
mod errors;
mod events;
mod leader;
mod mapping;
mod memory;
mod merge_patch;
mod metrics;
mod networks;
mod object;
mod operator;
mod paced_client;
mod projection;
mod queue;
mod record_id;
mod references;
mod requests;
mod selector;
mod settings;
mod status_members;
mod watches;
mod webhooks;
mod writer;

pub use kube;
pub use leader::{LEASE, Leadership};
pub use metrics::ControllerMetrics;
pub use operator::{Operator, OperatorMetrics};
pub use requests::{RequestCounts, Verb};
pub use settings::Settings;
pub use webhooks::{
    SECRET as WEBHOOK_SECRET, WebhookCertificate, WebhookEndpoint, WebhookSettings, WebhookTls,
};
