//! Restricts the servers of added images: base images that users add while the service runs.
//!
//! A user who adds an image chooses the server to which this service sends requests. To prevent server-side request
//! forgery, services on this machine and the metadata services of clouds are forbidden. The library checks addresses
//! for each connection, also after redirects, because a host name may resolve to another address at each lookup.

use std::collections::BTreeSet;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::error::FetchError;

/// Addresses of metadata services outside of the link-local networks. Amazon's prefix `fd00:ec2` is checked separately.
const METADATA_SERVICES: [IpAddr; 8] = [
    // Alibaba Cloud.
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x100, 0, 0, 0, 0, 0x100, 0x200)),
    // Azure.
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    // Google.
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    // Oracle Cloud: the old IPv4 address and the IPv6 address.
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe)),
    // Akamai (Linode).
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1)),
    // Scaleway.
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42)),
];

/// The servers that may provide added images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AddedImageServers {
    /// Servers on other machines, with public or private addresses. Forbids loopback, unspecified, link-local and
    /// multicast addresses, and addresses of metadata services. Does not recognize other addresses of this machine.
    #[default]
    OtherMachines,
    /// Servers with these host names or addresses, in the form of a URL's host.
    Listed(BTreeSet<String>),
}

impl AddedImageServers {
    /// Checks the URL of an image to add. Does not resolve the host name: downloads check the resolved addresses and
    /// the targets of redirects.
    ///
    /// # Errors
    ///
    /// Returns the reason why images from the URL are refused.
    pub fn check_url(&self, text: &str) -> Result<(), String> {
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        self.check(&url).map_err(|error| error.to_string())
    }

    /// Returns an error if the host of a URL is forbidden. The [resolver](Self::resolver) checks the addresses of a
    /// host name.
    pub(super) fn check(&self, url: &Url) -> Result<(), FetchError> {
        let host = url.host_str().unwrap_or_default();
        let is_allowed = match self {
            Self::OtherMachines => literal_address(host).is_none_or(is_on_another_machine),
            Self::Listed(hosts) => hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host)),
        };
        if is_allowed { Ok(()) } else { Err(FetchError::ForbiddenServer { host: host.to_owned() }) }
    }

    /// Returns a resolver that omits forbidden addresses, or `None` if listed host names may have any address.
    pub(super) fn resolver(&self) -> Option<Arc<dyn Resolve>> {
        match self {
            Self::OtherMachines => Some(Arc::new(OtherMachines)),
            Self::Listed(_) => None,
        }
    }
}

/// Parses the host of a URL as an IP address. Returns `None` for a host name.
fn literal_address(host: &str) -> Option<IpAddr> {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).parse().ok()
}

/// Converts an IPv6 address that embeds the IPv4 address of the destination to that IPv4 address. These are mapped and
/// compatible addresses (RFC 4291), and addresses that a gateway translates (RFC 6052, RFC 8215, RFC 2765, RFC 3056).
fn canonical(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address.to_canonical() else { return address.to_canonical() };
    let [_, _, a, b, c, d, .., w, x, y, z] = v6.octets();
    match v6.segments() {
        // NAT64, IPv4-translated and IPv4-compatible addresses. The IPv6 loopback and unspecified addresses become
        // 0.0.0.1 and 0.0.0.0, which are also forbidden.
        [0x64, 0xff9b, 0, 0, 0, 0, ..]
        | [0x64, 0xff9b, 1, ..]
        | [0, 0, 0, 0, 0xffff, 0, ..]
        | [0, 0, 0, 0, 0, 0, ..] => Ipv4Addr::new(w, x, y, z).into(),
        // 6to4.
        [0x2002, ..] => Ipv4Addr::new(a, b, c, d).into(),
        _ => v6.into(),
    }
}

fn is_on_another_machine(address: IpAddr) -> bool {
    let address = canonical(address);
    let is_near = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast() || address.octets()[0] == 0,
        IpAddr::V6(address) => {
            address.is_unicast_link_local() || address.segments().starts_with(&[0xfd00, 0xec2])
        }
    };
    let is_special = address.is_loopback() || address.is_unspecified() || address.is_multicast();
    !is_near && !is_special && !METADATA_SERVICES.contains(&address)
}

/// A resolver that omits forbidden addresses.
#[derive(Debug)]
struct OtherMachines;

impl Resolve for OtherMachines {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let resolved = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let (allowed, refused): (Vec<SocketAddr>, Vec<SocketAddr>) =
                resolved.partition(|address| is_on_another_machine(address.ip()));
            if let (true, Some(refused)) = (allowed.is_empty(), refused.first()) {
                let error =
                    FetchError::ForbiddenServer { host: format!("{} ({})", name.as_str(), refused.ip()) };
                return Err(Box::new(error) as Box<dyn Error + Send + Sync>);
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(servers: &AddedImageServers, url: &str) -> bool {
        servers.check(&url.parse().unwrap()).is_ok()
    }

    #[test]
    fn rejected_urls_have_a_reason() {
        let reason = |url: &str| AddedImageServers::OtherMachines.check_url(url).unwrap_err();
        assert_eq!(reason("http://10.0.0.256/a.iso"), "invalid IPv4 address");
        let near = "images must not be added from 127.0.0.1, which is not one of the servers that the service allows";
        assert_eq!(reason("http://127.1/a.iso"), near);
        assert_eq!(AddedImageServers::OtherMachines.check_url("http://mirror.example/a.iso"), Ok(()));
    }

    #[test]
    fn servers_of_this_machine_and_metadata_services_are_refused() {
        let refused = [
            "http://127.0.0.1/",
            "http://127.8.9.10:8090/",
            "http://0.0.0.0/",
            "http://0.1.2.3/",
            "http://[::1]/",
            "http://[::]/",
            "http://169.254.169.254/latest/meta-data",
            "http://[fe80::1]/",
            "http://224.0.0.1/",
            "http://255.255.255.255/",
            "http://[ff02::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:169.254.169.254]/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://100.100.100.200/",
            "http://[fd00:ec2::254]/",
            "http://[fd00:ec2::23]/",
            "http://168.63.129.16/",
            "http://[::ffff:168.63.129.16]/",
            "http://[fd20:ce::254]/computeMetadata/v1/",
            "http://192.0.0.192/",
            "http://[fd00:c1::a9fe:a9fe]/opc/v2/",
            "http://[fd00:100::100:200]/",
            "http://[fd00:a9fe:a9fe::1]/",
            "http://[fd00:42::42]/",
            "http://[64:ff9b::127.0.0.1]/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[64:ff9b::168.63.129.16]/",
            "http://[64:ff9b:1::169.254.169.254]/",
            "http://[::ffff:0:127.0.0.1]/",
            "http://[2002:7f00:1::]/",
            "http://[::127.0.0.1]/",
            "http://[::169.254.169.254]/",
            "http://[::168.63.129.16]/",
            "http://[::224.0.0.1]/",
            "http://[::2]/",
        ];
        for url in refused {
            assert!(!is_allowed(&AddedImageServers::OtherMachines, url), "{url}");
        }
        let allowed = [
            "https://mirror.example/live.iso",
            "http://192.168.1.5/",
            "http://10.0.0.1/",
            "http://[fd00::1]/",
            "http://[fd00:c1::1]/",
            "http://[64:ff9b::8.8.8.8]/",
            "http://[2002:808:808::1]/",
            "http://[::8.8.8.8]/",
            "http://8.8.8.8/",
        ];
        for url in allowed {
            assert!(is_allowed(&AddedImageServers::OtherMachines, url), "{url}");
        }
    }

    #[test]
    fn only_listed_servers_are_allowed() {
        let listed = ["Mirror.example", "127.0.0.1", "[::1]"].map(str::to_owned);
        let servers = AddedImageServers::Listed(listed.into());
        for url in ["https://mirror.example:8443/a", "http://127.0.0.1:80/", "http://[::1]:1/"] {
            assert!(is_allowed(&servers, url), "{url}");
        }
        for url in ["http://mirror.example.org/", "http://127.0.0.2/", "http://localhost/"] {
            assert!(!is_allowed(&servers, url), "{url}");
        }
    }

    #[tokio::test]
    async fn rejects_names_that_resolve_to_this_machine() {
        let resolver = AddedImageServers::OtherMachines.resolver().unwrap();
        let Err(error) = resolver.resolve("localhost".parse().unwrap()).await else {
            panic!("localhost is allowed")
        };
        let text = error.to_string();
        assert!(text.contains("localhost (127.0.0.1)") || text.contains("localhost (::1)"), "{text}");
    }
}
