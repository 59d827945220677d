//! Buckets that speak S3, as the environment describes them.

use object_store::aws::AmazonS3Builder;

/// A bucket with the credentials of the variables `AWS_*`, and at `S3_ENDPOINT_URL` if that is set.
pub(crate) fn from_env(bucket: &str) -> AmazonS3Builder {
    let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    match std::env::var("S3_ENDPOINT_URL") {
        Ok(endpoint) => builder.with_allow_http(endpoint.starts_with("http://")).with_endpoint(endpoint),
        Err(_) => builder,
    }
}
