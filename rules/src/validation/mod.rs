//! The validations of hosts and clusters: their registry, their results and the decisions based on them.
//!
//! A validation is a pure function from facts to a typed outcome. An outcome has a status and arguments, such as
//! numbers and names. The message and the remedy are formatted only when a client asks for them. The results of a host
//! or cluster are the outcomes of all its validations, evaluated together. The caller stores results as text, and only
//! if they [differ](ValidationResults::has_same_outcomes) from the stored results.
//!
//! To add a validation, create a file in `host/` or `cluster/` with an enum that implements `TypedOutcome`. Then add
//! its module and its line in the registry to `mod.rs` of that folder. `docs/validations.md` is generated.
//!
//! Ids, statuses and messages match the Assisted Installer, because clients depend on them.

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
