//! Limits on what a summary keeps of the replies of an agent. Agents are not trusted.
//!
//! Two kinds of limits bound a list: its number of items, and the bytes that all its items have on the heap. If one is
//! exceeded, the summary has the first items only, and records that in [`HostSummary::excess`](super::HostSummary).

/// Maximum length of a text in bytes, such as an id of a disk or a reason of the agent.
pub const MAX_TEXT: usize = 256;

/// Maximum length of an error text in bytes.
pub const MAX_ERROR_TEXT: usize = 4096;

/// Maximum length of a URL in bytes.
pub const MAX_URL: usize = 2048;

/// Maximum length of the name of a network interface in bytes. Linux allows 15.
pub const MAX_NIC_NAME: usize = 64;

/// Maximum length of a MAC address in bytes. An InfiniBand address has 59.
pub const MAX_MAC: usize = 64;

/// Maximum length of an IP address that is kept as text, in bytes.
pub const MAX_ADDRESS_TEXT: usize = 64;

/// Maximum number of disks.
pub const MAX_DISKS: usize = 256;

/// Maximum number of bytes of the texts of all disks. An average disk has less than 200.
pub const MAX_DISK_BYTES: usize = 64 << 10;

/// Maximum number of the agent's reasons against an installation on a disk.
pub const MAX_REASONS: usize = 16;

/// Maximum number of network interfaces.
pub const MAX_NICS: usize = 64;

/// Maximum number of addresses of a network interface, of a peer, or of a name.
pub const MAX_ADDRESSES: usize = 16;

/// Maximum number of routes.
pub const MAX_ROUTES: usize = 256;

/// Maximum number of graphics cards.
pub const MAX_GPUS: usize = 32;

/// Maximum number of other hosts in a connectivity report.
pub const MAX_PEERS: usize = 1024;

/// Maximum number of bytes of the addresses of all peers: four addresses for each of them, and some with a broken MTU.
pub const MAX_PEER_BYTES: usize = 96 << 10;

/// Maximum number of addresses that several MAC addresses answer for.
pub const MAX_COLLISIONS: usize = 64;

/// Maximum number of MAC addresses that answer for the same address.
pub const MAX_COLLIDING_MACS: usize = 8;

/// Maximum number of bytes of all collisions.
pub const MAX_COLLISION_BYTES: usize = 8 << 10;

/// Maximum number of networks with unused addresses.
pub const MAX_FREE_NETWORKS: usize = 16;

/// Maximum number of host bits of a network with unused addresses: 10 for a /22 of IPv4.
pub const MAX_HOST_BITS: u32 = 10;

/// Maximum length of the state of a time server in bytes. `not_combined` is the longest one.
pub const MAX_TIME_STATE: usize = 16;

/// Maximum number of time servers.
pub const MAX_TIME_SOURCES: usize = 64;

/// Maximum number of names in a report of DNS lookups. Six are asked for.
pub const MAX_NAMES: usize = 64;

/// Maximum number of bytes of all DNS lookups.
pub const MAX_NAME_BYTES: usize = 16 << 10;

/// Maximum number of virtual IP addresses.
pub const MAX_VIPS: usize = 16;

/// Maximum length of the JSON of the Tang servers in an Ignition config, in bytes. A server has about 100.
pub const MAX_TANG_SERVERS: usize = 8192;

/// Maximum number of disks with the result of a speed check.
pub const MAX_DISK_SPEEDS: usize = 64;

/// Maximum number of container images.
pub const MAX_IMAGES: usize = 64;

/// Maximum number of bytes that a summary has in memory, whatever the replies are.
pub const MAX_MEMORY: usize = 512 << 10;
