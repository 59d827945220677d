//! Downloads of base images from S3 buckets.

use std::ops::Range;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, RetryConfig};

use super::{ByteStream, ImageResponse, RemoteClient};
use crate::images::library::error::{FetchError, LibraryError};
use crate::images::library::record::{RemoteVersion, VersionValidator};
use inventory::{BucketFailure, s3_from_env, without_response};

/// Maximum time for retries of the S3 client. It is short, because the library retries and reports failures itself.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// A base image in a bucket.
#[derive(Debug)]
pub(in crate::images::library) struct BucketSource {
    objects: Box<dyn ObjectStore>,
    key: Path,
    url: String,
}

impl BucketSource {
    /// Creates a client for one object, with the S3 settings from the [environment](s3_from_env).
    ///
    /// # Errors
    ///
    /// Returns an error if the settings are invalid.
    pub(super) fn new(bucket: &str, key: &str, client: &RemoteClient) -> Result<Self, LibraryError> {
        let failed = |error: object_store::Error| LibraryError::Client { source: error.into() };
        let retry = RetryConfig { max_retries: 1, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
        let settings = s3_from_env(bucket).map_err(|error| LibraryError::Client { source: error.into() })?;
        let builder = settings.with_retry(retry).with_http_connector(client.clone());
        let objects = Box::new(builder.build().map_err(failed)?);
        Ok(Self { objects, key: Path::from(key), url: format!("s3://{bucket}/{key}") })
    }

    pub(super) async fn request_from(
        &self,
        from: Option<(u64, &RemoteVersion)>,
    ) -> Result<ImageResponse, FetchError> {
        let mut options = GetOptions::default();
        if let Some((have, origin)) = from {
            options.range = Some(GetRange::Offset(have));
            options.if_match = strong_etag(origin);
        }
        let result = self.get_object(options).await?;
        let offered = self.remote_version(&result.meta);
        if from.is_some_and(|(_, origin)| *origin != offered) {
            return Err(FetchError::Changed);
        }
        let start = from.map_or(0, |(have, _)| have);
        check_range(&result, &(start..offered.len))?;
        Ok(ImageResponse { origin: offered, start, body: body_stream(result) })
    }

    /// Returns the version of the image in a response.
    fn remote_version(&self, meta: &ObjectMeta) -> RemoteVersion {
        // Ignore a weak entity tag, because different bytes may have the same weak tag.
        let etag = meta.e_tag.clone().filter(|etag| !etag.starts_with("W/"));
        RemoteVersion { url: self.url.clone(), len: meta.size, validator: etag.map(VersionValidator::Etag) }
    }

    async fn get_object(&self, options: GetOptions) -> Result<GetResult, FetchError> {
        self.objects.get_opts(&self.key, options).await.map_err(bucket_error)
    }
}

/// Checks that a response contains the requested range.
fn check_range(result: &GetResult, range: &Range<u64>) -> Result<(), FetchError> {
    let received = &result.range;
    if received == range {
        return Ok(());
    }
    let received = format!("bytes {} to {}", received.start, received.end);
    Err(FetchError::WrongRange { asked: range.start, found: received })
}

fn strong_etag(origin: &RemoteVersion) -> Option<String> {
    match &origin.validator {
        Some(VersionValidator::Etag(etag)) => Some(etag.clone()),
        _ => None,
    }
}

fn body_stream(result: GetResult) -> ByteStream {
    result.into_stream().map_err(bucket_error).boxed()
}

fn bucket_error(error: object_store::Error) -> FetchError {
    match error {
        object_store::Error::Precondition { .. } => FetchError::Changed,
        object_store::Error::NotFound { .. } => FetchError::Status { status: 404 },
        error => match BucketFailure::find(&error) {
            Some(BucketFailure::MissingBucket) => FetchError::MissingBucket,
            Some(BucketFailure::Refused { status, .. }) => FetchError::Status { status },
            _ => FetchError::Request { source: without_response(error.into()) },
        },
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use async_trait::async_trait;
    use chrono::{DateTime, Utc};
    use futures_util::stream::BoxStream;
    use object_store::memory::InMemory;
    use object_store::{
        CopyOptions, ListResult, MultipartUpload, ObjectStoreExt, PutMultipartOptions, PutOptions,
        PutPayload, PutResult, Result,
    };

    use super::*;

    /// A store that alters the responses of another store.
    #[derive(Debug)]
    struct Altering {
        store: InMemory,
        alter: fn(&mut GetResult),
    }

    impl fmt::Display for Altering {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("altering")
        }
    }

    #[async_trait]
    impl ObjectStore for Altering {
        async fn put_opts(&self, to: &Path, content: PutPayload, options: PutOptions) -> Result<PutResult> {
            self.store.put_opts(to, content, options).await
        }

        async fn put_multipart_opts(
            &self,
            to: &Path,
            options: PutMultipartOptions,
        ) -> Result<Box<dyn MultipartUpload>> {
            self.store.put_multipart_opts(to, options).await
        }

        async fn get_opts(&self, from: &Path, options: GetOptions) -> Result<GetResult> {
            let mut result = self.store.get_opts(from, options).await?;
            (self.alter)(&mut result);
            Ok(result)
        }

        fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
            self.store.delete_stream(paths)
        }

        fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
            self.store.list(prefix)
        }

        async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
            self.store.list_with_delimiter(prefix).await
        }

        async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
            self.store.copy_opts(from, to, options).await
        }
    }

    async fn bucket(alter: fn(&mut GetResult)) -> BucketSource {
        let (store, key) = (InMemory::new(), Path::from("a.iso"));
        store.put(&key, PutPayload::from_static(b"0123456789")).await.unwrap();
        BucketSource {
            objects: Box::new(Altering { store, alter }),
            key,
            url: "s3://images/a.iso".to_owned(),
        }
    }

    async fn origin() -> RemoteVersion {
        bucket(|_| ()).await.request_from(None).await.map(|response| response.origin).unwrap()
    }

    #[tokio::test]
    async fn valid_responses_are_accepted_with_any_last_modified() {
        let origin = origin().await;
        assert_eq!((origin.len, origin.url.as_str()), (10, "s3://images/a.iso"));
        for alter in [
            |_: &mut GetResult| (),
            |result: &mut GetResult| result.meta.last_modified = DateTime::<Utc>::MIN_UTC,
            |result: &mut GetResult| result.meta.last_modified = DateTime::<Utc>::MAX_UTC,
        ] {
            let bucket = bucket(alter).await;
            let response = bucket.request_from(Some((4, &origin))).await.unwrap();
            assert_eq!((response.start, &response.origin), (4, &origin));
        }
    }

    #[tokio::test]
    async fn rejects_ranges_that_were_not_requested() {
        let origin = origin().await;
        for alter in [
            |result: &mut GetResult| result.range.start += 1,
            |result: &mut GetResult| result.range.end -= 1,
            |result: &mut GetResult| result.range.end += 1,
            |result: &mut GetResult| result.range = 0..0,
        ] {
            let bucket = bucket(alter).await;
            let whole = bucket.request_from(None).await.map(drop).unwrap_err();
            let rest = bucket.request_from(Some((4, &origin))).await.map(drop).unwrap_err();
            for (error, start) in [(whole, 0), (rest, 4)] {
                assert!(matches!(error, FetchError::WrongRange { asked, .. } if asked == start), "{error}");
            }
        }
    }

    #[tokio::test]
    async fn response_with_another_size_or_entity_tag_is_a_change() {
        let origin = origin().await;
        for alter in [
            |result: &mut GetResult| result.meta.size = 11,
            |result: &mut GetResult| result.meta.size = 0,
            |result: &mut GetResult| result.meta.e_tag = Some("other".to_owned()),
            |result: &mut GetResult| result.meta.e_tag = None,
        ] {
            let bucket = bucket(alter).await;
            let error = bucket.request_from(Some((4, &origin))).await.map(drop).unwrap_err();
            assert!(matches!(error, FetchError::Changed), "{error}");
        }
    }

    #[tokio::test]
    async fn weak_entity_tag_is_not_used_as_validator() {
        let bucket = bucket(|result| result.meta.e_tag = Some("W/\"a\"".to_owned())).await;
        assert_eq!(bucket.request_from(None).await.map(|response| response.origin.validator).unwrap(), None);
    }
}
