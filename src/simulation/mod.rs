//! Simulated hosts against any server: agents that register, poll and reply as on real machines.
//!
//! A [`Simulation`] runs one [`agent::Agent`] for each machine of an [`agent::simulated::SimulatedSite`]. All agents
//! share the connections and run on the caller's thread. Hosts start one after the other, at a limited rate, and
//! therefore also poll one after the other.
//!
//! | module | has |
//! |---|---|
//! | `profile` | profiles from files, and the built-in ones |
//! | `fleet` | the agents and their start |
//! | `boot_image` | the image that hosts read when they boot |
//! | `figures` | counts and latencies of requests |
//! | `report` | what a simulation shows |
//! | `explanation` | why hosts and clusters have their statuses |

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
