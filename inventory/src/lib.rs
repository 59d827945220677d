//! The inventory: clusters, infra-envs and hosts, with the API of the Assisted Installer.
//!
//! [`Inventory`] is the service. Its functions are the operations, and need no HTTP. [`Inventory::router`] returns the
//! API, and `Inventory::to_api_*` return records as the API represents them. The module `service` contains the
//! operations, `host`, `cluster` and `infra_env` contain the records and their rules, `background` contains the work
//! outside of requests, and `api` contains the routes. Each module imports only from lower modules;
//! `docs/architecture.md` lists the order. `docs/api-compatibility.md` lists the differences from the Assisted
//! Installer.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "most tests do not depend on the clock"))]

mod address_finding;
pub mod api;
pub mod auth;
pub mod background;
mod blocking;
mod bucket;
pub mod catalogue;
pub mod clock;
pub mod cluster;
pub mod error;
pub mod event;
pub mod files;
pub mod host;
pub mod id;
pub mod infra_env;
pub mod job;
mod journal;
pub mod json;
mod nearest_name;
mod os_image;
pub mod request_id;
pub mod service;
mod settings;
pub mod store;
mod tar;

pub use address_finding::AddressFinding;
pub use assisted;
pub use assisted::{Secret, time};
pub use blocking::in_background;
pub use bucket::{BucketError, BucketFailure, BucketTransport, s3_from_env, without_response};
pub use clock::{Clock, ManualClock, SystemClock};
pub use error::{Error, ErrorKind};
pub use ignition::discovery::HttpUrl;
pub use nearest_name::nearest_name;
pub use request_id::RequestId;
pub use service::Inventory;
pub use settings::{AddedImageRule, AllowedHosts, ClusterNetworks, HostLimits, Settings};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
