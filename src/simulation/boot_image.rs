//! Reads the discovery image of a simulated host before the agent starts. The requests resemble the requests of a BMC's
//! virtual media: first the volume descriptors, then the whole image in consecutive ranges.

use std::net::Ipv4Addr;
use std::ops::Range;
use std::time::Duration;

use assisted::client::reqwest::header::{CONTENT_LENGTH, RANGE};
use assisted::client::reqwest::{self, Client};
use tokio::time::sleep;

/// The volume descriptors of an ISO image.
const VOLUME_DESCRIPTORS: Range<u64> = 16 * SECTOR..18 * SECTOR;
const SECTOR: u64 = 2048;
/// Approximate number of ranges in which a host reads the image. Several ranges make the progress visible.
const RANGES: u64 = 64;
/// Minimum length of a range.
const MIN_RANGE: u64 = 32 * SECTOR;
/// Pause after each range.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum time to wait for data from the server.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The loopback address of the first host, if each host has its own address.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 11);

/// The reason why a simulated host cannot read its image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootImageError {
    /// The server cannot be reached, or refused the request.
    #[error("cannot read the image of a simulated host")]
    Request(#[from] reqwest::Error),
    /// The response to `HEAD` does not contain the length of the image.
    #[error("cannot read the image of a simulated host: the response to HEAD has no valid Content-Length")]
    NoLength,
}

/// An image that simulated hosts read when they boot. The requests do not use a proxy.
#[derive(Clone, Debug)]
pub struct BootImage {
    url: String,
    has_own_addresses: bool,
}

impl BootImage {
    /// Returns the image at a URL.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), has_own_addresses: false }
    }

    /// Assigns each host its own loopback address for the requests, so that the server can distinguish the hosts. The
    /// URL must contain an IPv4 loopback address.
    #[must_use]
    pub fn own_addresses(mut self) -> Self {
        self.has_own_addresses = true;
        self
    }

    /// Reads the whole image for the host with the number `host`.
    pub(super) async fn read(&self, host: u32) -> Result<(), BootImageError> {
        let client = self.client(host)?;
        let response = client.head(&self.url).send().await?.error_for_status()?;
        let len =
            response.headers().get(CONTENT_LENGTH).and_then(|len| len.to_str().ok()?.parse::<u64>().ok());
        let len = len.ok_or(BootImageError::NoLength)?;
        self.read_range(&client, VOLUME_DESCRIPTORS).await?;
        let step = (len / RANGES).next_multiple_of(SECTOR).max(MIN_RANGE);
        let mut start: u64 = 0;
        while start < len {
            let end = start.saturating_add(step).min(len);
            self.read_range(&client, start..end).await?;
            sleep(PAUSE).await;
            start = end;
        }
        Ok(())
    }

    fn client(&self, host: u32) -> Result<Client, reqwest::Error> {
        // Do not use a proxy, because firmware does not use one.
        let mut client = Client::builder().no_proxy().read_timeout(READ_TIMEOUT);
        if self.has_own_addresses {
            let address = Ipv4Addr::from_bits(FIRST_ADDRESS.to_bits().saturating_add(host));
            client = client.local_address(Some(address.into()));
        }
        client.build()
    }

    async fn read_range(&self, client: &Client, range: Range<u64>) -> Result<(), reqwest::Error> {
        let bytes = format!("bytes={}-{}", range.start, range.end.saturating_sub(1));
        let response = client.get(&self.url).header(RANGE, bytes).send().await?;
        let mut response = response.error_for_status()?;
        while response.chunk().await?.is_some() {}
        Ok(())
    }
}
