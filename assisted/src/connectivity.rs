//! The step `connectivity-check`: the hosts to check, and the report about them.

use serde::{Deserialize, Serialize};

use crate::id::HostId;
use crate::list::List;
use crate::text::Text;
use crate::wire::{null_as_default, reported};

/// A host whose connectivity an agent checks. The argument of the step is a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectivityCheckHost {
    /// Id of the host.
    pub host_id: HostId,
    /// Its network interfaces.
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
        /// Results, one for each checked host.
        remote_hosts: List<RemoteHost<'a>>,
    }

    /// Connectivity to one host.
    RemoteHost<'a> {
        /// Id of the host.
        host_id: Text<'a>,
        /// Results in the same network segment.
        l2_connectivity: List<LinkReport<'a>>,
        /// Results over IP.
        l3_connectivity: List<PingReport<'a>>,
        /// Results with the largest packets of each interface.
        mtu_report: List<MtuReport<'a>>,
    }

    /// Connectivity to an address in the same network segment.
    LinkReport<'a> {
        /// Interface that sent the packets.
        outgoing_nic: Text<'a>,
        /// Address that sent the packets.
        outgoing_ip_address: Text<'a>,
        /// Checked address.
        remote_ip_address: Text<'a>,
        /// MAC address that answered.
        remote_mac: Text<'a>,
        /// Whether the MAC address belongs to the host.
        successful: bool,
    }

    /// Connectivity to an address over IP.
    PingReport<'a> {
        /// Interface that sent the packets. Agents leave it empty.
        outgoing_nic: Text<'a>,
        /// Checked address.
        remote_ip_address: Text<'a>,
        /// Whether the host answered.
        successful: bool,
        /// Average round-trip time, in milliseconds.
        average_rtt_ms: f64,
        /// Lost packets, in percent.
        packet_loss_percentage: f64,
    }

    /// Whether large packets reach an address.
    MtuReport<'a> {
        /// Interface that sent the packets.
        outgoing_nic: Text<'a>,
        /// Checked address.
        remote_ip_address: Text<'a>,
        /// Whether packets as large as the MTU of the interface arrived.
        mtu_successful: bool,
    }
}
