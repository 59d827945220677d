//! Controllers that drive the inventory from custom resources of the Assisted Installer.
//!
//! [`Operator::run`] watches the resources and reconciles them with the inventory, in the process of the inventory: a change of a
//! resource is a function call. All replicas watch; the leader alone writes.
//!
//! The modules, from the bottom to the top:
//!
//! * `crds` has our kinds. `object`, `selector` and `merge_patch` have rules of the Kubernetes API.
//! * `caches`, `watches` and `paced_client` hold the watched objects, `queue` the objects to reconcile, and `writer` sends
//!   all writes. `leader` decides which replica writes. `events` makes events on objects.
//! * `classification` has the rules of AgentClassifications.
//! * `projection` and `networks` are pure: they convert records and resources.
//! * `mapping` and `bridge` find the resources that depend on a changed object or record.
//! * `controllers` has one controller per kind.
//! * `webhooks` deny objects with faults when they are applied.

pub mod classification;
pub mod crds;
pub mod label_value;

mod bridge;
mod cached_agent;
mod caches;
mod conditions;
mod controllers;
mod errors;
mod events;
mod leader;
mod mapping;
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
pub use webhooks::{SECRET as WEBHOOK_SECRET, WebhookCertificate, WebhookEndpoint, WebhookSettings};
