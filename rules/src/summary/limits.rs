//! Limits for the size of a summary. Agents are not trusted, so each text and list of a reply is limited.
//!
//! A list has a limit on its number of items, and may have a limit on the heap bytes of all its items. If the list
//! exceeds a limit, the summary contains only its first items and records the excess in
//! [`HostSummary::excess`](super::HostSummary).

/// Maximum length in bytes of a text without its own limit, such as a disk id or a reason of the agent.
pub const MAX_TEXT: usize = 256;

/// Maximum length of an error text in bytes.
pub const MAX_ERROR_TEXT: usize = 4096;

/// Maximum length of a URL in bytes.
pub const MAX_URL: usize = 2048;

/// Maximum length of the name of a network interface in bytes. Linux allows 15 bytes.
pub const MAX_NIC_NAME: usize = 64;

/// Maximum length of a MAC address in bytes. The MAC address of an InfiniBand interface is 59 bytes long.
pub const MAX_MAC: usize = 64;

/// Maximum length in bytes of an IP address stored as text.
pub const MAX_ADDRESS_TEXT: usize = 64;

/// Maximum number of disks.
pub const MAX_DISKS: usize = 256;

/// Maximum number of heap bytes of all disks together. An average disk uses less than 200 bytes.
pub const MAX_DISK_BYTES: usize = 64 << 10;

/// Maximum number of reasons for one disk.
pub const MAX_REASONS: usize = 16;

/// Maximum number of network interfaces.
pub const MAX_NICS: usize = 64;

/// Maximum number of addresses of a network interface, of a peer, or of a domain name.
pub const MAX_ADDRESSES: usize = 16;

/// Maximum number of routes.
pub const MAX_ROUTES: usize = 256;

/// Maximum number of graphics cards.
pub const MAX_GPUS: usize = 32;

/// Maximum number of other hosts in a connectivity report.
pub const MAX_PEERS: usize = 1024;

/// Maximum number of heap bytes of all peers together: enough for four addresses for each peer, and for some addresses
/// with a broken MTU.
pub const MAX_PEER_BYTES: usize = 96 << 10;

/// Maximum number of addresses that several MAC addresses claim.
pub const MAX_COLLISIONS: usize = 64;

/// Maximum number of stored MAC addresses for an address that several MAC addresses claim.
pub const MAX_COLLIDING_MACS: usize = 8;

/// Maximum number of heap bytes of all addresses that several MAC addresses claim.
pub const MAX_COLLISION_BYTES: usize = 8 << 10;

/// Maximum number of networks with a list of unused addresses.
pub const MAX_FREE_NETWORKS: usize = 16;

/// Maximum number of host bits of a network with a list of unused addresses. An IPv4 /22 has 10 host bits.
pub const MAX_HOST_BITS: u32 = 10;

/// Maximum length of the state of a time server in bytes. The longest valid state is `not_combined`.
pub const MAX_TIME_STATE: usize = 16;

/// Maximum number of time servers.
pub const MAX_TIME_SOURCES: usize = 64;

/// Maximum number of domain names in a report of DNS lookups. The service asks for six names.
pub const MAX_NAMES: usize = 64;

/// Maximum number of heap bytes of all DNS lookups together.
pub const MAX_NAME_BYTES: usize = 16 << 10;

/// Maximum number of virtual IP addresses.
pub const MAX_VIPS: usize = 16;

/// Maximum length in bytes of the JSON that lists the Tang servers of an Ignition config. One server takes about 100
/// bytes.
pub const MAX_TANG_SERVERS: usize = 8192;

/// Maximum number of disks with a measured write speed.
pub const MAX_DISK_SPEEDS: usize = 64;

/// Maximum number of container images.
pub const MAX_IMAGES: usize = 64;

/// Maximum size of a summary in memory, in bytes. No sequence of replies can exceed it.
pub const MAX_MEMORY: usize = 512 << 10;
