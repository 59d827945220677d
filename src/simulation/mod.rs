//! Simulated hosts: agents that register, poll and reply like the agents on real machines. The server may be Kindling
//! or an Assisted Service.
//!
//! A [`Simulation`] runs one [`agent::Agent`] for each machine of an [`agent::simulated::SimulatedSite`]. All agents
//! share a pool of connections and run on the caller's thread. Hosts start one after the other at a limited rate, so
//! that their polls are also distributed over time.
//!
//! | module | content |
//! |---|---|
//! | `profile` | built-in profiles, and profiles from files |
//! | `fleet` | the start and the execution of the agents |
//! | `boot_image` | the image that hosts read when they boot |
//! | `figures` | counts and latencies of requests |
//! | `report` | the reports about a running simulation |
//! | `explanation` | the reasons for the statuses of hosts and clusters |

mod boot_image;
mod error;
mod explanation;
mod figures;
mod fleet;
mod profile;
mod report;

pub use boot_image::{BootImage, BootImageError};
pub use error::SimulationError;
pub use explanation::{
    ClusterExplanation, Explanation, ExplanationError, FailingValidation, HostExplanation, HostGroup,
    StatusGroup, UnreadableCluster, ValidationGroup, explain,
};
pub use fleet::{Simulation, SimulationOptions};
pub use profile::{BUILT_IN_PROFILES, ProfileFileError, read_profile};
pub use report::{HostCounts, RequestFigures, SimulationReport, StepCounts};
