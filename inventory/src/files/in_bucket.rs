//! File storage in a bucket of an object store.

use std::time::Duration;

use chrono::{DateTime, Utc};
use object_store::RetryConfig;
use object_store::aws::{AmazonS3, AmazonS3Builder};

use super::error::Cause;
use super::path::FilePath;
use crate::bucket::{BucketTransport, remove_incomplete_uploads};

/// Time limits for requests to an object store. No limit applies to a whole transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketLimits {
    /// Maximum time without sent or received bytes before a request fails, and time limit for the body of an error. The
    /// kernel buffers sent bytes, so a part of this time may pass while the last bytes of a slow upload are in transit.
    pub stall: Duration,
    /// The time from the start of a request after which it is not retried.
    pub retry: Duration,
}

impl Default for BucketLimits {
    fn default() -> Self {
        Self { stall: Duration::from_secs(60), retry: Duration::from_secs(10) }
    }
}

/// A bucket, and the prefix of the keys of its files.
#[derive(Debug)]
pub(super) struct FileBucket {
    bucket: AmazonS3,
    transport: BucketTransport,
    name: String,
    /// Empty, or a path that ends with a slash.
    prefix: String,
}

impl FileBucket {
    /// Opens a bucket without sending a request.
    pub(super) fn open(
        settings: AmazonS3Builder,
        name: &str,
        prefix: Option<&FilePath>,
        limits: BucketLimits,
    ) -> Result<Self, Cause> {
        let transport = BucketTransport::with_system_certificates(limits.stall)?;
        let retry = RetryConfig { retry_timeout: limits.retry, ..RetryConfig::default() };
        let bucket = settings.with_retry(retry).with_http_connector(transport.clone()).build()?;
        let prefix = prefix.map(|prefix| format!("{prefix}/")).unwrap_or_default();
        Ok(Self { bucket, transport, name: name.to_owned(), prefix })
    }

    /// Returns the client for the objects of the bucket.
    pub(super) fn objects(&self) -> AmazonS3 {
        self.bucket.clone()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Removes uploads of files that began at this time or earlier, but no uploads of other programs to the same
    /// bucket.
    pub(super) async fn remove_incomplete_uploads(&self, before: DateTime<Utc>) -> Result<usize, Cause> {
        let is_own = |path: &str| FilePath::join(path.split('/')).is_ok();
        remove_incomplete_uploads((&self.bucket, &self.transport), &self.prefix, before, is_own).await
    }
}
