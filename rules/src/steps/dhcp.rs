//! The arguments of the `dhcp-lease-allocate` step: a network interface, and a MAC address for each virtual IP address.

use assisted::ClusterId;
use assisted::request::{DhcpRequest, StepRequest};

use super::input::StepError;
use crate::view::{ClusterSettings, HostView};

/// Returns the arguments of the step, or `None` if VIP DHCP allocation is off, the machine network is unknown, or the
/// host has no inventory report.
pub(super) fn request(host: &HostView, cluster: &ClusterSettings) -> Result<Option<StepRequest>, StepError> {
    let Some(network) = cluster.machine_networks.first() else { return Ok(None) };
    if !cluster.vip_dhcp_allocation || host.summary.inventory.is_none() {
        return Ok(None);
    }
    let nic = host.nic_in(*network).ok_or_else(|| StepError::NotInMachineNetwork(network.to_string()))?.0;
    Ok(Some(StepRequest::DhcpLeases(DhcpRequest {
        api_vip_lease: cluster.api_vip_lease.to_string(),
        api_vip_mac: api_vip_mac(cluster.id),
        ingress_vip_lease: cluster.ingress_vip_lease.to_string(),
        ingress_vip_mac: ingress_vip_mac(cluster.id),
        interface: nic.name.to_string(),
    })))
}

/// Returns the MAC address with which the agent requests a DHCP lease for the cluster's API virtual IP address.
#[must_use]
pub fn api_vip_mac(cluster: ClusterId) -> String {
    mac_of_key(&format!("{cluster}-api"))
}

/// Returns the MAC address with which the agent requests a DHCP lease for the cluster's ingress virtual IP address.
#[must_use]
pub fn ingress_vip_mac(cluster: ClusterId) -> String {
    mac_of_key(&format!("{cluster}-ingress"))
}

fn mac_of_key(key: &str) -> String {
    let [a, b, c] = [0, 1, 2].map(|index| pearson_hash(key.as_bytes(), index));
    format!("00:1a:4a:{a:02x}:{b:02x}:{c:02x}")
}

/// Returns byte number `index` of a Pearson hash. The index is added to the first byte of the key.
#[expect(clippy::indexing_slicing, reason = "the table has an entry for every byte")]
fn pearson_hash(key: &[u8], index: u8) -> u8 {
    let permute = |byte: u8| PERMUTATION[usize::from(byte)];
    let first = key.first().copied().unwrap_or(0);
    key.iter().fold(permute(first.wrapping_add(index)), |hash, byte| permute(hash ^ byte))
}

/// The permutation table of the Pearson hash, from RFC 3074.
#[rustfmt::skip]
const PERMUTATION: [u8; 256] = [
    251, 175, 119, 215,  81,  14,  79, 191, 103,  49, 181, 143, 186, 157,   0, 232,
     31,  32,  55,  60, 152,  58,  17, 237, 174,  70, 160, 144, 220,  90,  57, 223,
     59,   3,  18, 140, 111, 166, 203, 196, 134, 243, 124,  95, 222, 179, 197,  65,
    180,  48,  36,  15, 107,  46, 233, 130, 165,  30, 123, 161, 209,  23,  97,  16,
     40,  91, 219,  61, 100,  10, 210, 109, 250, 127,  22, 138,  29, 108, 244,  67,
    207,   9, 178, 204,  74,  98, 126, 249, 167, 116,  34,  77, 193, 200, 121,   5,
     20, 113,  71,  35, 128,  13, 182,  94,  25, 226, 227, 199,  75,  27,  41, 245,
    230, 224,  43, 225, 177,  26, 155, 150, 212, 142, 218, 115, 241,  73,  88, 105,
     39, 114,  62, 255, 192, 201, 145, 214, 168, 158, 221, 148, 154, 122,  12,  84,
     82, 163,  44, 139, 228, 236, 205, 242, 217,  11, 187, 146, 159,  64,  86, 239,
    195,  42, 106, 198, 118, 112, 184, 172,  87,   2, 173, 117, 176, 229, 247, 253,
    137, 185,  99, 164, 102, 147,  45,  66, 231,  52, 141, 211, 194, 206, 246, 238,
     56, 110,  78, 248,  63, 240, 189,  93,  92,  51,  53, 183,  19, 171,  72,  50,
     33, 104, 101,  69,   8, 252,  83, 120,  76, 135,  85,  54, 202, 125, 188, 213,
     96, 235, 136, 208, 162, 129, 190, 132, 156,  38,  47,   1,   7, 254,  24,   4,
    216, 131,  89,  21,  28, 133,  37, 153, 149,  80, 170,  68,   6, 169, 234, 151,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutation_contains_each_byte_once() {
        let mut sorted = PERMUTATION;
        sorted.sort_unstable();
        assert!(sorted.iter().enumerate().all(|(index, byte)| usize::from(*byte) == index));
    }

    #[test]
    fn mac_addresses_follow_from_the_cluster_id() {
        let cluster = "4f630ba3-0297-4d99-a7c7-f62e7bca1332".parse().unwrap();
        assert_eq!(api_vip_mac(cluster), "00:1a:4a:d5:1d:74");
        assert_eq!(ingress_vip_mac(cluster), "00:1a:4a:22:72:01");
    }

    #[test]
    fn index_is_added_to_the_first_byte_of_the_key() {
        let entry = |byte: u8| PERMUTATION[usize::from(byte)];
        assert_eq!(pearson_hash(&[255], 1), entry(entry(0) ^ 255));
        assert_eq!(pearson_hash(&[255, 7], 1), entry(pearson_hash(&[255], 1) ^ 7));
    }
}
