//! The facts about a host from the replies of its agent: typed, compact and bounded.
//!
//! A reply is parsed once, when it arrives, and a setter of [`HostSummary`] replaces the part that it is about.
//! Validations, steps and roles read only the summary, never the reply. A [stored summary](HostSummary::to_stored) has
//! a version: a release that stores other facts makes the summary again from the stored replies.
//!
//! # Size
//!
//! A machine with two network interfaces, two disks and five peers has about 2.3 KiB of JSON and 4 KiB in memory. Agents
//! are not trusted, so each text and list has a limit in [`limits`], and no replies make a summary larger than
//! [`limits::MAX_MEMORY`] (512 KiB). [`HostSummary::excess`] records what was left out.
//!
//! # Invalid values
//!
//! Machines are odd, so an invalid value in a report about the host itself is left out, such as an address without a
//! prefix length in an inventory. A reply about values that the service has sent is refused with [`InvalidReply`] if one
//! of them is invalid, and the summary does not change.

mod bits;
mod compact;
mod connectivity;
mod error;
mod excess;
mod free_addresses;
mod host_summary;
mod ignition_endpoint;
mod inventory;
pub mod limits;
mod measurements;
mod memory;
mod memory_limit;
mod names;
mod preparation;
mod replies;
mod stored;
mod tang;
mod time_sources;
mod vips;

pub use connectivity::{AddressCollision, BrokenMtu, PeerAddress, PeerSummary, Peers};
pub use error::{DamagedSummary, InvalidReply};
pub use excess::{Excess, ExcessPart};
pub use free_addresses::FreeAddresses;
pub use host_summary::HostSummary;
pub use ignition_endpoint::IgnitionEndpoint;
pub use inventory::{
    DiskSummary, InventorySummary, NicSummary, RouteSummary, Truncation, VendorSummary, VirtualInterfaces,
};
pub use measurements::MeasurementLimits;
pub use names::ResolvedName;
pub use preparation::{DiskSpeed, ImageAvailability};
pub use stored::{StoredSummary, VERSION};
pub use tang::TangServers;
pub use time_sources::TimeSource;
pub use vips::{VerifiedVip, VipLeases};
