//! S3 buckets, configured by environment variables.

use object_store::aws::AmazonS3Builder;

/// Returns a builder for a bucket with the `AWS_*` variables, at `S3_ENDPOINT_URL` if that is set.
pub fn s3_from_env(bucket: &str) -> AmazonS3Builder {
    let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    let Some(endpoint) = std::env::var_os("S3_ENDPOINT_URL") else { return builder };
    // A value that is not UTF-8 is not a URL, so requests fail. They must not go to the default endpoint instead.
    let endpoint = endpoint.to_string_lossy();
    builder.with_allow_http(endpoint.starts_with("http://")).with_endpoint(endpoint)
}
