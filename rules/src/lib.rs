//! The decisions of an Assisted Installer, as pure functions from facts to decisions.
//!
//! The caller collects facts, such as the status of a host and the time of its last check-in. A function turns them
//! into a decision: the next status, the stages of an installation, or the reason why a value is invalid. The same
//! facts always lead to the same decision. The crate uses no async, no SQL, no HTTP and no clock, so the tests of all
//! rules take milliseconds.
//!
//! | to | use |
//! |---|---|
//! | change the status of a host | [`host::state`] |
//! | check which operations the status of a host allows | [`host::status`] |
//! | list the stages of a host's installation | [`host::stages`] |
//! | change the status of a cluster, and check which operations it allows | [`cluster::state`] |
//! | read what a host has reported | [`summary`], [`view`] |
//! | choose the steps of an agent, and their arguments | [`steps`] |
//! | look up the hardware that a host needs | [`requirements`] |
//! | choose an installation disk | [`disk`] |
//! | validate hosts and clusters | [`validation`] |
//! | decide everything about a cluster and its hosts in one call | [`assessment`] |
//! | check values that both clusters and infra-envs have | [`values`] |
//!
//! Agents send reports about their hosts. [`summary::HostSummary`] is the stored form of these reports, and a
//! [`view::HostView`] contains it. Steps and validations read views. `README.md` has an example.
//!
//! The crate stores nothing: `inventory` collects the facts and applies the decisions. Statuses, texts and errors match
//! the Assisted Installer, because clients depend on them. `docs/state-machines.md` and `docs/validations.md` are
//! generated from the tables of this crate.

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
