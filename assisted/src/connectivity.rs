//! The step `connectivity-check`: the hosts to check, and the report about them.

use serde::{Deserialize, Serialize};

use crate::id::HostId;
use crate::list::List;
use crate::text::Text;
use crate::wire::{null_as_default, reported};

/// A host to check. The argument of the step is a list of hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectivityCheckHost {
    /// Id of the host.
    pub host_id: HostId,
    /// Network interfaces of the host.
    #[serde(default, deserialize_with = "null_as_default")]
    pub nics: List<ConnectivityCheckNic>,
}

/// A network interface of a host to check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectivityCheckNic {
    /// IP addresses, without prefix length.
    #[serde(default, deserialize_with = "null_as_default")]
    pub ip_addresses: List<String>,
    /// MAC address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mac: String,
    /// Name of the interface.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

reported! {
    /// The connectivity report: the reply to `connectivity-check`.
    ConnectivityReport<'a> {
        /// Results, one per checked host.
        remote_hosts: List<RemoteHost<'a>>,
    }

    /// Results of the checks of one host.
    RemoteHost<'a> {
        /// Id of the host.
        host_id: Text<'a>,
        /// Results of ARP and neighbor discovery, for addresses in the same network segment.
        l2_connectivity: List<LinkReport<'a>>,
        /// Results of pings.
        l3_connectivity: List<PingReport<'a>>,
        /// Results of pings with packets as large as the MTU.
        mtu_report: List<MtuReport<'a>>,
    }

    /// Result of a check whether an address in the same network segment belongs to the checked host.
    LinkReport<'a> {
        /// Interface that sent the packets.
        outgoing_nic: Text<'a>,
        /// Address that sent the packets.
        outgoing_ip_address: Text<'a>,
        /// The checked address.
        remote_ip_address: Text<'a>,
        /// MAC address that replied.
        remote_mac: Text<'a>,
        /// Whether the MAC address belongs to the checked host.
        successful: bool,
    }

    /// Result of pings to an address.
    PingReport<'a> {
        /// Interface that sent the packets. Agents leave it empty.
        outgoing_nic: Text<'a>,
        /// The checked address.
        remote_ip_address: Text<'a>,
        /// Whether the checked host replied.
        successful: bool,
        /// Average round-trip time, in milliseconds.
        average_rtt_ms: f64,
        /// Proportion of lost packets, in percent.
        packet_loss_percentage: f64,
    }

    /// Result of a check whether packets as large as the MTU reach an address.
    MtuReport<'a> {
        /// Interface that sent the packets.
        outgoing_nic: Text<'a>,
        /// The checked address.
        remote_ip_address: Text<'a>,
        /// Whether packets as large as the MTU of the sending interface arrived.
        mtu_successful: bool,
    }
}
