//! The wire types of the Assisted Installer REST API v2, and an async client.
//!
//! The types describe the JSON that the Assisted Service, its clients, its agents and its controllers exchange. Each
//! type is read and written, so that a service, a client and a simulated agent use the same one. Times, omitted keys
//! and the order of keys are those of the Go service; see [`Millis`], [`List`] and the conventions below.
//!
//! | module | has |
//! |---|---|
//! | [`cluster`], [`infra_env`], [`host`] | the resources, their parts, and the bodies of requests |
//! | [`step`], [`request`] | the steps for an agent, and the arguments of each type of step |
//! | [`reply`], [`inventory_report`], [`connectivity`] | the replies of an agent, and their reports |
//! | [`event`], [`version`], [`error`] | events, versions and errors |
#![cfg_attr(feature = "client", doc = "| [`client`] | the client |")]
//!
//! The crate has no server, no validation of values, and no state machines.
//!
//! # Conventions
//!
//! * **Omitted keys.** Texts, numbers and flags at their zero value are omitted, as are absent optional values. Times
//!   are never omitted: an unset time is in the year 1. Lists of resources are always written; [`List`] keeps the
//!   difference between null and an empty list.
//! * **Reading.** An absent key and the zero value are the same, except where a value is required. Null is also the
//!   same in optional values, lists and reports; in other values of a resource, null is an error. Unknown keys in
//!   resources, reports and arguments of steps are ignored. Unknown keys in bodies of requests are refused, as services
//!   refuse them, but not in the parts that resources contain as well. Keys of reports and of these parts match
//!   case-insensitively.
//! * **Changes.** In a body for PATCH, `None` leaves a value unchanged, and an empty text or list removes it where the
//!   field says so.
//! * **JSON in strings.** Some values are JSON in a string. The types have methods that parse them, such as
//!   [`Host::inventory_report`](host::Host::inventory_report).
//!
//! # Values that newer services add
//!
//! Services have added statuses, roles, stages, step types, architectures and network plugins over time. In everything
//! that a client only reads, such a value is an [`Extensible`], which keeps a string that this crate does not know:
//!
//! * [`Cluster`](cluster::Cluster): `kind`, `status`, `cpu_architecture`, `network_type`, `hyperthreading`,
//!   `high_availability_mode`, `logs_info`, the type of `platform`, the stage in `progress`, the status of
//!   `last_installation_preparation`, the statuses of operators
//! * the parts of a cluster that requests contain as well: the values of [`DiskEncryption`](cluster::DiskEncryption),
//!   [`LoadBalancer`](cluster::LoadBalancer), [`Vip`](cluster::Vip) and [`ExternalPlatform`](cluster::ExternalPlatform)
//! * [`InfraEnv`](infra_env::InfraEnv): `type`, `cpu_architecture`
//! * [`Host`](host::Host): `kind`, `status`, `role`, `suggested_role`, `media_status`, `progress_stages`, `logs_info`,
//!   and the stage in `progress`; the status of a [`Validation`](host::Validation)
//! * [`Steps`](step::Steps), [`Step`](step::Step) and [`StepReply`](reply::StepReply): `post_step_action`, `step_type`
//! * [`VerifiedVip`](reply::VerifiedVip): `verification`, `vip_type`
//! * [`ListedEvent`](event::ListedEvent): `severity`
//! * [`version`]: support levels, architectures and image types
//!
//! All other enums are closed: those in bodies of requests and in arguments of steps.
//!
//! # Features
//!
//! * `client`: the client, over any `tower` service. It has no async runtime, no connections and no TLS.
//! * `reqwest`: `client`, and it connects to services itself: over `reqwest` with `rustls`, and the crypto provider that
//!   the program installed.
//! * `aws-lc-rs`: `reqwest`, with the crypto provider aws-lc-rs.
//! * `openapi`: schemas of the types, for `utoipa`. Their names and descriptions are those of the API document of
//!   Kindling's service. Fields that this service does not serve yet are not part of the schemas.
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

/// The examples of the README, as tests.
#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../README.md")]
struct Readme;
