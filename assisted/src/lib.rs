//! The wire types of the Assisted Installer REST API v2, and an async client.
//!
//! The types describe the JSON that the Assisted Service, its clients, its agents and its controllers exchange. Each
//! type can be read and written, so a service, a client and a simulated agent share it. The formats of times, the
//! omitted keys and the key order match the Go service; see [`Millis`], [`List`] and the conventions below.
//!
//! | module | contents |
//! |---|---|
//! | [`cluster`], [`infra_env`], [`host`] | the resources, their parts, and the request bodies of their operations |
//! | [`step`], [`request`] | the steps for an agent, and the arguments of each type of step |
//! | [`reply`], [`inventory_report`], [`connectivity`] | an agent's replies, and the reports in them |
//! | [`event`], [`version`], [`error`] | events, versions and errors |
#![cfg_attr(feature = "client", doc = "| [`client`] | the client |")]
//!
//! The crate contains no server, no validation of values, and no state machines.
//!
//! # Conventions
//!
//! * **Omitted keys.** Texts, numbers and flags at their zero value are omitted, and so are absent optional values.
//!   Times are never omitted: an unset time is in the year 1. Lists in resources are always written. [`List`]
//!   distinguishes null from an empty list.
//! * **Reading.** An absent key has the same meaning as the zero value, unless the value is required. Null also has
//!   this meaning in optional values, lists and reports; in other values of a resource, null is an error. Unknown keys
//!   in resources, reports and step arguments are ignored. Unknown keys in request bodies are refused, as services
//!   refuse them, except in parts that resources also contain. Keys of reports and of these parts match
//!   case-insensitively.
//! * **Changes.** In the body of a PATCH request, `None` leaves a value unchanged. An empty text or list removes a
//!   value if the field documents that.
//! * **JSON in strings.** Some values are JSON documents inside a string. Methods of the types parse them, such as
//!   [`Host::inventory_report`](host::Host::inventory_report).
//!
//! # Values from newer services
//!
//! Services have added statuses, roles, stages, step types, architectures and network plugins over time. Where a client
//! only reads such a value, its type is an [`Extensible`], which keeps strings that this crate does not know:
//!
//! * [`Cluster`](cluster::Cluster): `kind`, `status`, `cpu_architecture`, `network_type`, `hyperthreading`,
//!   `high_availability_mode`, `logs_info`, the type of `platform`, the stage in `progress`, the status of
//!   `last_installation_preparation`, the statuses of operators
//! * the parts of a cluster that request bodies also contain: the values of
//!   [`DiskEncryption`](cluster::DiskEncryption), [`LoadBalancer`](cluster::LoadBalancer), [`Vip`](cluster::Vip) and
//!   [`ExternalPlatform`](cluster::ExternalPlatform)
//! * [`InfraEnv`](infra_env::InfraEnv): `type`, `cpu_architecture`
//! * [`Host`](host::Host): `kind`, `status`, `role`, `suggested_role`, `media_status`, `progress_stages`, `logs_info`,
//!   and the stage in `progress`; the status of a [`Validation`](host::Validation)
//! * [`Steps`](step::Steps), [`Step`](step::Step) and [`StepReply`](reply::StepReply): `post_step_action`, `step_type`
//! * [`VerifiedVip`](reply::VerifiedVip): `verification`, `vip_type`
//! * [`ListedEvent`](event::ListedEvent): `severity`
//! * [`version`]: support levels, architectures and image types
//!
//! All other enums, in request bodies and step arguments, accept only the known values.
//!
//! # Features
//!
//! * `client`: the client, over any `tower` service. It includes no async runtime, no connections and no TLS.
//! * `reqwest`: `client`, and connections over `reqwest` with `rustls`. The program must install a crypto provider.
//! * `aws-lc-rs`: `reqwest`, with the crypto provider aws-lc-rs.
//! * `openapi`: `utoipa` schemas of the types. Their names and descriptions match the API document of Kindling's
//!   service. Fields that this service does not return yet are not part of the schemas.
//!
//! # Examples
//!
//! ```
//! use assisted::cluster::{Cluster, ClusterStatus};
//!
//! let text = r#"{"kind":"Cluster","id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332","href":"","status":"ready",
//!     "status_info":"Cluster ready to be installed","image_info":{}}"#;
//! let cluster: Cluster = serde_json::from_str(text)?;
//! assert_eq!(cluster.status, ClusterStatus::Ready);
//! # Ok::<(), serde_json::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod architecture;
#[cfg(feature = "client")]
pub mod client;
pub mod cluster;
pub mod connectivity;
pub mod error;
pub mod event;
mod extensible;
pub mod host;
mod id;
pub mod infra_env;
pub mod inventory_report;
mod list;
pub mod reply;
pub mod request;
mod secret;
pub mod step;
mod string_enum;
mod subnet;
mod text;
pub mod time;
pub mod version;
mod wire;

pub use extensible::Extensible;
pub use id::{ClusterId, HostId, InfraEnvId};
pub use list::List;
pub use secret::Secret;
pub use subnet::Subnet;
pub use text::Text;
pub use time::{Micros, Millis};

/// The examples of the README, compiled as doctests.
#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../README.md")]
struct Readme;
