//! Static networks: converts nmstate documents to `NetworkManager` keyfiles, for one host or for all hosts of an image.
//!
//! * [`keyfiles`] generates keyfiles from one document with the `nmstate` crate, in this process. That crate is large
//!   and was written for trusted input. Therefore, this module first parses each document within limits, catches panics
//!   of the generator, and checks the generated file names. A document always results in the same files. Where the
//!   generator is random, this module sorts the result or rejects the document: the numbers of routing rules, the
//!   controller of a port with two controllers, and the order of files. If several interfaces are faulty, the error
//!   always names the same one.
//! * [`HostNetwork`] is a document and the MAC addresses that identify its machine. [`check::check_hosts`] checks all
//!   hosts of an image before the image is built. [`HostNetworkFiles::generate`] generates their files: for the early
//!   boot of a minimal ISO or a network boot, and for the Ignition config of a full ISO. A [`KeyfileCache`] keeps the
//!   files for the next image.
//! * At boot, a script in the image selects the machine's host. It replaces the interface names in the host's keyfiles
//!   with the names that the kernel uses.
//!
//! This module does not read or change the network of the machine that it runs on.
//!
//! # Examples
//!
//! The keyfiles of one document:
//!
//! ```
//! let files = ignition::network::keyfiles(
//!     b"interfaces: [{name: eth1, type: ethernet, state: up, ipv4: {enabled: true, dhcp: true}}]",
//! )?;
//! assert_eq!(files[0].name, "eth1.nmconnection");
//! assert!(files[0].contents.contains("method=auto"));
//! # Ok::<(), ignition::network::NetworkError>(())
//! ```
//!
//! All hosts of an image: first they are checked, then the files for their early boot are generated. The generator does
//! not run again for hosts that are in the cache.
//!
//! ```
//! use ignition::network::check::{ClusterNetworks, check_hosts};
//! use ignition::network::{
//!     HostNetwork, HostNetworkFiles, InitrdOptions, KeyfileCache, MacAddr, NetworkGeneration,
//! };
//!
//! let document = "
//! interfaces:
//! - name: eth0
//!   type: ethernet
//!   state: up
//!   ipv4:
//!     enabled: true
//!     address: [{ip: 192.0.2.10, prefix-length: 24}]
//! ";
//! let mac: MacAddr = "52:54:00:aa:bb:01".parse()?;
//! let hosts = [HostNetwork::new(document, [("eth0", mac)]).with_name("node-0")];
//!
//! let cache = KeyfileCache::default();
//! let report = check_hosts(&hosts, &ClusterNetworks::default(), &cache);
//! assert!(!report.is_fatal(), "{report}");
//!
//! let files = HostNetworkFiles::generate(&hosts, NetworkGeneration::Keyfiles, &cache)?;
//! let entries = files.initrd_entries(&InitrdOptions::default());
//! let paths: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
//! assert_eq!(paths[0], "/etc/assisted/network/host0/eth0.nmconnection");
//! assert!(paths.contains(&"/usr/local/bin/pre-network-manager-config.sh"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Hosts from a user's file, which is either one nmstate document or a list in the form of the API:
//!
//! ```
//! let list = r#"[{"network_yaml": "interfaces: []", "mac_interface_map": []}]"#;
//! let hosts = ignition::network::read_hosts("hosts.json", list.as_bytes())?;
//! assert_eq!(hosts[0].name(), Some("hosts.json[0]"));
//! # Ok::<(), ignition::network::HostsFileError>(())
//! ```

mod cache;
mod cancel;
pub mod check;
mod document;
mod error;
mod files;
mod generate;
mod host;
mod input;
mod keyfile;
mod mac;
mod nmstate_policy;
mod numeric_mac;
mod panics;
mod parallel;
mod version;
pub mod yaml;

pub use cache::KeyfileCache;
pub use cancel::Cancel;
pub use error::{HostError, NetworkError};
pub use files::{EntryKind, HostNetworkFiles, IgnitionFiles, IgnitionUnit, InitrdOptions, NetworkEntry};
pub use generate::keyfiles;
pub use host::{HostNetwork, MacInterface};
pub use input::{HostsFileError, is_host_list, read_hosts};
pub use keyfile::Keyfile;
pub use mac::{MacAddr, MacError};
pub use numeric_mac::restore_macs;
pub use version::{NetworkGeneration, needs_nmstatectl};

/// Maximum number of hosts of one image.
///
/// At boot, a machine reads the MAC addresses of all hosts.
pub const MAX_HOSTS: usize = 100_000;
