//! Machines that exist only as a description of their hardware.
//!
//! A [`Profile`] describes groups of equal hosts and their network. A [`SimulatedSite`] creates any number of hosts
//! from a profile, and a [`SimulatedMachine`] is one of the hosts. All machines share the profile, so each one takes
//! little memory. Reports are computed when a service requests them. Equal seeds create equal hosts.
//!
//! Steps take no time. Durations in reports, such as the times of image downloads, are computed from the profile. Two
//! runs of a step return equal reports, except for `connectivity-check`: each check measures a different latency, as on
//! a real network. The latency is computed from the seed, the two hosts and the number of earlier checks.
//!
//! | module | contents |
//! |---|---|
//! | `profile` | the description of the hosts, usually read from a file |
//! | `segment` | the IPv4 networks of the hosts |
//! | `site` | ids, names, addresses and faults of all hosts |
//! | `fault`, `step_fault` | the names of faults, and the ways in which steps fail |
//! | `hardware` | the inventory report |
//! | `connectivity` | links, pings and large packets to other hosts |
//! | `network` | free addresses, names, time servers |
//! | `storage` | speed of disks, downloads of images |
//! | `machine` | the reply to each step |
//!
//! The installation itself is not simulated: the step `install` fails.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//!
//! use agent::simulated::{Profile, SimulatedSite};
//!
//! let profile: Profile = serde_json::from_str(r#"{"groups": [{"name": "master", "count": 3}]}"#)?;
//! let site = Arc::new(SimulatedSite::new(profile, 3, 42)?);
//! let names: Vec<_> = site.machines().map(|machine| machine.inventory_report().hostname).collect();
//! assert_eq!(names, ["master-1", "master-2", "master-3"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod connectivity;
mod fault;
mod fault_set;
mod hardware;
mod machine;
mod network;
mod profile;
mod segment;
mod site;
mod step_fault;
mod storage;

pub use fault::{Fault, UnknownFault};
pub use machine::SimulatedMachine;
pub use profile::{
    BootMode, DescribedDisk, DescribedInterface, DriveType, HostGroup, NetworkLatency, Profile, ProfileError,
};
pub use segment::{Ipv4Segment, SegmentError};
pub use site::SimulatedSite;
pub use step_fault::{StepFailureMode, StepFault, UnknownStepFault};
