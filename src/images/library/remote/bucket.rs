//! Images in buckets that speak S3.

use std::ops::Range;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectStore, RetryConfig};

use super::{Body, Client, Offer};
use crate::bucket;
use crate::images::library::error::{FetchError, LibraryError};
use crate::images::library::record::{Origin, Validator};

/// Short: the library tries again itself, and tells that it does.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// An image in a bucket.
#[derive(Debug)]
pub(in crate::images::library) struct Bucket {
    objects: Box<dyn ObjectStore>,
    key: Path,
    url: String,
}

impl Bucket {
    /// An object of a bucket, as the [environment](bucket::from_env) describes it.
    pub(super) fn new(bucket: &str, key: &str, client: &Client) -> Result<Self, LibraryError> {
        let failed = |error: object_store::Error| LibraryError::Client { source: error.into() };
        let retry = RetryConfig { max_retries: 1, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
        let builder = bucket::from_env(bucket).with_retry(retry).with_http_connector(client.clone());
        let objects = Box::new(builder.build().map_err(failed)?);
        Ok(Self { objects, key: Path::from(key), url: format!("s3://{bucket}/{key}") })
    }

    pub(super) async fn open(&self, from: Option<(u64, &Origin)>) -> Result<Offer, FetchError> {
        let mut options = GetOptions::default();
        if let Some((have, origin)) = from {
            options.range = Some(GetRange::Offset(have));
            options.if_match = etag(origin);
        }
        let result = self.get(options).await?;
        let start = result.range.start;
        let offered = Origin {
            url: self.url.clone(),
            len: result.meta.size,
            validator: result.meta.e_tag.clone().map(Validator::Etag),
        };
        if from.is_some_and(|(have, origin)| have != start || *origin != offered) {
            return Err(FetchError::Changed);
        }
        Ok(Offer { origin: offered, start, body: body(result) })
    }

    pub(super) async fn range(&self, origin: &Origin, range: &Range<u64>) -> Result<Body, FetchError> {
        let range = Some(GetRange::Bounded(range.clone()));
        let result = self.get(GetOptions { range, if_match: etag(origin), ..GetOptions::default() }).await?;
        Ok(body(result))
    }

    async fn get(&self, options: GetOptions) -> Result<GetResult, FetchError> {
        self.objects.get_opts(&self.key, options).await.map_err(failed)
    }
}

fn etag(origin: &Origin) -> Option<String> {
    match &origin.validator {
        Some(Validator::Etag(etag)) => Some(etag.clone()),
        _ => None,
    }
}

fn body(result: GetResult) -> Body {
    result.into_stream().map_err(failed).boxed()
}

fn failed(error: object_store::Error) -> FetchError {
    match error {
        object_store::Error::Precondition { .. } => FetchError::Changed,
        object_store::Error::NotFound { .. } => FetchError::Status { status: 404 },
        object_store::Error::PermissionDenied { .. } => FetchError::Status { status: 403 },
        error => FetchError::Request { source: error.into() },
    }
}
