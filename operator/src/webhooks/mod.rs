//! Admission webhooks: they deny objects with faults when they are applied.
//!
//! `rules` has the rules of the Assisted Installer's webhooks. `faults` finds what a reconciliation would report later. A
//! fault that an object had before a change does not block the change.

mod faults;
pub(crate) mod rules;
