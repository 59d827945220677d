//! Decisions about a cluster: its status, its machine networks, the roles of its hosts and its virtual IP addresses.

pub mod connectivity_groups;
pub mod machine_networks;
pub mod peer_facts;
pub mod roles;
pub mod state;
pub mod vips;
