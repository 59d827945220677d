//! A typed and compact summary of everything that the agent of a host has reported. Its size is limited.
//!
//! A reply is parsed once, when it arrives. A setter of [`HostSummary`] then replaces the part of the summary that this
//! kind of reply describes. Validations, steps and roles read only the summary, never the replies. A [stored
//! summary](HostSummary::to_stored) has a version. If a release stores different facts, it recreates the summary from
//! the stored replies.
//!
//! # Size
//!
//! A host with two network interfaces, two disks and five peers has a summary of about 2.3 KiB as JSON and 4 KiB in
//! memory. Agents are not trusted, so each text and list has a limit in [`limits`]. No replies can make a summary
//! larger than [`limits::MAX_MEMORY`] (512 KiB). [`HostSummary::excess`] records the omitted parts.
//!
//! # Invalid values
//!
//! Some hardware reports invalid values about itself, such as an address without a prefix length. An invalid value in a
//! report about the host itself is omitted. Other replies are about values that the service has sent. If such a reply
//! contains an invalid value, it is refused with [`InvalidReply`], and the summary does not change.

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
