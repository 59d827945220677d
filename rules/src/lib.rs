//! What an Assisted Installer decides: pure functions from facts to decisions.
//!
//! A caller collects facts, such as the status of a host and whether it has checked in recently, and calls a function,
//! which returns a decision: the next status, the stages of an installation, or the reason why a value is refused. The
//! same facts always lead to the same decision. There is no async, no SQL, no HTTP and no clock, so the tests of all
//! rules take milliseconds.
//!
//! | to | use |
//! |---|---|
//! | change the status of a host | [`host::state`] |
//! | know what the status of a host allows | [`host::status`] |
//! | list the stages of a host's installation | [`host::stages`] |
//! | change the status of a cluster, and know what a status allows | [`cluster::state`] |
//! | know what the reports of a host say | [`summary`], [`view`] |
//! | choose the steps of an agent, and their arguments | [`steps`] |
//! | know the hardware that a host needs | [`requirements`] |
//! | choose an installation disk | [`disk`] |
//! | validate hosts and clusters | [`validation`] |
//! | draw all conclusions about a cluster with its hosts | [`assessment`] |
//! | check values that clusters and infra-envs have in common | [`values`] |
//!
//! A report becomes a [`summary::HostSummary`], which is a part of a [`view::HostView`]. Steps and validations read
//! views. `README.md` has an example.
//!
//! The crate stores nothing and has no records: `inventory` collects the facts and applies the decisions. Statuses,
//! texts and errors are those of the Assisted Installer, because clients depend on them. `docs/state-machines.md` and
//! `docs/validations.md` are generated from the tables of this crate.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod assessment;
pub mod cluster;
pub mod disk;
pub mod host;
pub mod requirements;
#[cfg(test)]
mod state_machines;
pub mod steps;
pub mod summary;
mod transitions;
pub mod validation;
pub mod values;
pub mod view;
