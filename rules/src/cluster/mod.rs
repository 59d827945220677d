//! Decisions about clusters.

pub mod connectivity_groups;
pub mod machine_networks;
pub mod peer_facts;
pub mod roles;
pub mod state;
pub mod vips;
