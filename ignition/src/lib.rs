//! Ignition configs and static network configuration, generated and checked in process.
//!
//! [Ignition](https://coreos.github.io/ignition/) configures a CoreOS machine at its first boot according to a JSON
//! document, the Ignition config. This crate parses, checks, merges, translates and generates such configs, in all spec
//! versions from 3.0.0 to 3.6.0. It also converts nmstate documents to the `NetworkManager` keyfiles of hosts with
//! static networks.
//!
//! The crate has no I/O: it reads no files, opens no sockets and runs no programs. Callers pass bytes or typed inputs
//! and receive typed values or bytes. The same inputs result in the same bytes on every machine. Secrets such as tokens
//! and pull secrets have their own types, which hide them in `Debug` output and errors.
//!
//! # What it is not
//!
//! * Not Ignition itself: it does not apply a config to a machine, and it does not fetch the configs that Ignition
//!   merges at boot.
//! * Not Butane: it reads configs as JSON, not Butane's YAML.
//! * Not a set of Rust types for each spec version. A config is one tree for all versions. The crate `ignition-config`
//!   has such types.
//! * Not a tool for images: embedding a config into an image is the task of the crate `isogen`.
//!
//! # Walk-through
//!
//! A service that applies a user's change to a config takes these steps:
//!
//! 1. [`lint::check`] parses and checks the text, for an immediate response to the user. It returns a [`report`], whose
//!    findings have a severity, a JSON pointer and a line.
//! 2. [`Config::parse`](config::Config::parse) returns the config for further work.
//! 3. [`merge::merge`] merges another config over it, as Ignition does. [`translate::translate`] changes only the spec
//!    version.
//! 4. [`validate::validate`] checks the result, because merging two valid configs can result in an invalid config.
//! 5. [`Config::to_json`](config::Config::to_json) writes the result. If the output must have the format of
//!    `coreos-installer`, [`rewrite::rewrite`] converts the text.
//!
//! ```
//! use ignition::config::Config;
//! use ignition::merge::merge;
//! use ignition::validate::validate;
//!
//! let parse = |text: &str| Config::parse(text.as_bytes()).map(|parsed| parsed.config);
//! let parent = r#"{"ignition": {"version": "3.1.0"}, "storage": {"files": [{"path": "/a", "user": {"id": 1}}]}}"#;
//! let child = r#"{"ignition": {"version": "3.3.0"}, "storage": {"files": [{"path": "/a", "user": {"name": "b"}}]}}"#;
//! assert!(!ignition::lint::check(parent.as_bytes()).is_fatal());
//! assert!(!ignition::lint::check(child.as_bytes()).is_fatal());
//!
//! let merged = merge(&parse(parent)?, &parse(child)?);
//! let report = validate(&merged);
//! assert_eq!(report.findings()[0].to_string(), "error: /storage/files/0/user: an owner has either an id or a name");
//! # Ok::<(), ignition::config::ConfigError>(())
//! ```
//!
//! # Modules by task
//!
//! | to | use |
//! |---|---|
//! | parse and write a config of any supported [spec version](spec) | [`config`] |
//! | check a config against Ignition's rules, and for probable mistakes | [`validate`], [`lint`], [`report`] |
//! | merge a config over another, or change its spec version | [`merge`], [`translate`] |
//! | write a config as `coreos-installer` does | [`rewrite`] |
//! | show the contents of a config | [`summary`] |
//! | make a config from files, units, certificate authorities and child configs | [`builder`] |
//! | make the config of a host that waits to be installed | [`discovery`] |
//! | make the config of a host that Metal3 manages | [`mod@ironic`] |
//! | make the config of an installed host | [`mod@pointer`] |
#![cfg_attr(
    feature = "network",
    doc = "| turn nmstate documents into keyfiles, for one host or for an image | [`network`] |"
)]
//! | compare versions of OpenShift | [`version`] |
//!
//! # Features
//!
//! * `network`, on by default: the module `network`, and the static networks of the configs in [`discovery`] and
//!   [`mod@ironic`]. It needs the crate `nmstate`, which is larger than all other dependencies together.

#![forbid(unsafe_code)]

#[cfg(all(doctest, feature = "network"))]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod builder;
mod byte_set;
#[cfg_attr(not(feature = "network"), expect(dead_code, reason = "`network` uses all of it"))]
mod cidr;
pub mod config;
pub mod discovery;
pub mod ironic;
mod json;
mod json_pointer;
pub mod lint;
pub mod merge;
#[cfg(feature = "network")]
pub mod network;
pub mod pointer;
mod position;
pub mod report;
mod resource;
pub mod rewrite;
mod schema;
pub mod spec;
pub mod summary;
pub mod translate;
pub mod validate;
pub mod version;
mod visible;

pub use cidr::Cidr;
