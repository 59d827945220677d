//! A compile-time proof that no summary exceeds [`MAX_MEMORY`]: it adds up all other limits.

use std::mem::size_of;

use ignition::Cidr;

use super::connectivity::{AddressCollision, PeerSummary};
use super::excess::Excess;
use super::free_addresses::FreeAddresses;
use super::host_summary::HostSummary;
use super::inventory::{DiskSummary, InventorySummary, NicSummary, RouteSummary};
use super::limits::{
    MAX_ADDRESSES, MAX_COLLISION_BYTES, MAX_COLLISIONS, MAX_DISK_BYTES, MAX_DISK_SPEEDS, MAX_DISKS,
    MAX_ERROR_TEXT, MAX_FREE_NETWORKS, MAX_GPUS, MAX_HOST_BITS, MAX_IMAGES, MAX_MAC, MAX_MEMORY,
    MAX_NAME_BYTES, MAX_NAMES, MAX_NIC_NAME, MAX_NICS, MAX_PEER_BYTES, MAX_PEERS, MAX_ROUTES,
    MAX_TANG_SERVERS, MAX_TEXT, MAX_TIME_SOURCES, MAX_TIME_STATE, MAX_URL, MAX_VIPS,
};
use super::names::ResolvedName;
use super::preparation::{DiskSpeed, ImageAvailability};
use super::time_sources::TimeSource;
use super::vips::VerifiedVip;

/// Maximum size of an inventory in bytes: nine short texts, one error text and the lists.
const INVENTORY: usize = size_of::<InventorySummary>()
    + 9 * MAX_TEXT
    + MAX_ERROR_TEXT
    + MAX_GPUS * (size_of::<Box<str>>() + MAX_TEXT)
    + MAX_NICS * (size_of::<NicSummary>() + MAX_NIC_NAME + MAX_MAC + MAX_ADDRESSES * size_of::<Cidr>())
    + MAX_ROUTES * (size_of::<RouteSummary>() + MAX_NIC_NAME)
    + MAX_DISKS * size_of::<DiskSummary>()
    + MAX_DISK_BYTES;

/// Maximum size of the connectivity to other hosts, in bytes.
const PEERS: usize = MAX_PEERS * size_of::<PeerSummary>()
    + MAX_PEER_BYTES
    + MAX_COLLISIONS * size_of::<AddressCollision>()
    + MAX_COLLISION_BYTES;

/// Maximum size of the data about the Ignition endpoint, in bytes.
const IGNITION_ENDPOINT: usize = MAX_URL + MAX_ERROR_TEXT + MAX_TANG_SERVERS + MAX_TEXT;

/// Maximum size of all other parts, in bytes.
const OTHERS: usize = MAX_FREE_NETWORKS * (size_of::<FreeAddresses>() + (1 << MAX_HOST_BITS) / 8)
    + MAX_TIME_SOURCES * (size_of::<TimeSource>() + MAX_TEXT + MAX_TIME_STATE)
    + MAX_NAMES * size_of::<ResolvedName>()
    + MAX_NAME_BYTES
    + MAX_VIPS * size_of::<VerifiedVip>()
    + MAX_ERROR_TEXT
    + MAX_DISK_SPEEDS * (size_of::<DiskSpeed>() + MAX_TEXT)
    + MAX_IMAGES * (size_of::<ImageAvailability>() + MAX_TEXT)
    + 64 * size_of::<Excess>();

const _: () =
    assert!(size_of::<HostSummary>() + INVENTORY + PEERS + IGNITION_ENDPOINT + OTHERS <= MAX_MEMORY);
