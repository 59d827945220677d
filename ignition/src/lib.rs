//! Ignition configs and static network configuration, built and checked in process.
//!
//! The crate reads no file, opens no socket and runs no program: bytes come in, typed values or bytes go out.
//! The same inputs give the same bytes on every machine.
//!
//! * [`config`] reads a config of any supported spec version into its own types and writes it back.
//! * [`document`] reads it into one tree for all versions, which [`merge`], [`translate`], [`validate`] and [`lint`]
//!   work on; they answer with a [`report`].
//! * [`builder`] puts a new config together from files, units, certificate authorities and child configs.
//! * [`discovery`] builds the config of a machine that waits to be installed, [`mod@pointer`] that of an installed one.
//! * [`resource`] is the `data:` form in which a config carries contents.
//! * [`network`] turns an nmstate document into `NetworkManager` keyfiles.
//!
//! The types of the configs themselves are those of the `ignition-config` crate.

#![forbid(unsafe_code)]

pub mod builder;
mod bytes;
pub mod config;
pub mod discovery;
pub mod document;
mod json;
pub mod lint;
pub mod merge;
pub mod network;
mod place;
pub mod pointer;
pub mod position;
pub mod report;
pub mod resource;
mod schema;
pub mod spec;
pub mod summary;
pub mod translate;
pub mod validate;
