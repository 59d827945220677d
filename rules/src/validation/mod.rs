//! The validations of hosts and clusters: a registry, their results, and what follows from them.
//!
//! A validation is a pure function from facts to a typed outcome. An outcome has a status and arguments such as numbers
//! and names; its message and its remedy are rendered when a client asks. The results are all outcomes of one host or
//! cluster at one time. A caller stores them as text, and only if they
//! [differ](ValidationResults::has_same_outcomes).
//!
//! To add a validation, write a file in `host/` or `cluster/` with an enum that implements `TypedOutcome`, and add its
//! module and its line in the registry to `mod.rs` of that folder. `docs/validations.md` is generated.
//!
//! Ids, statuses and messages are those of the Assisted Installer, because clients depend on them.

mod changes;
pub mod cluster;
mod definition;
#[cfg(test)]
mod document;
pub mod host;
mod ignored;
mod outcome;
mod remedy;
mod results;
mod settings;
mod stored;
mod unimplemented;

pub use changes::{ValidationChange, ValidationChangeKind, ValidationEvent, changes};
pub use cluster::{ClusterResults, ClusterValidationId};
pub use definition::{ListOrder, ValidationCategory, ValidationDefinition, ValidationId};
pub use host::{HostInput, HostOutcome, HostResults, HostValidationId};
pub use ignored::{IgnoredListError, IgnoredValidations};
pub use outcome::{OutcomeDescription, OutcomeStatus, ValidationInput, ValidationOutcome};
pub use remedy::{remedy_of_cluster, remedy_of_host};
pub use results::ValidationResults;
pub use settings::{DisabledListError, DisabledValidations, ValidationSettings};
pub use stored::StoredResultsError;
