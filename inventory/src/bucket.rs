//! S3 buckets, configured by environment variables.
//!
//! Settings are checked once, before the first request. Otherwise, the client of the object store would panic at each
//! request if a setting cannot be written into a URL or a header.

mod failure;
mod transport;
mod uploads;

use std::ffi::OsString;

use axum::http::Uri;
use object_store::ClientConfigKey;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use reqwest::Url;

pub use failure::{BucketFailure, without_response};
pub use transport::BucketTransport;
pub(crate) use uploads::remove_incomplete_uploads;

const ENDPOINT: &str = "S3_ENDPOINT_URL";

/// The reason why the settings of a bucket are unusable. Values that may contain a credential are not shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BucketError {
    /// The name of the bucket is invalid.
    #[error(
        "invalid name of a bucket (3 to 63 letters, digits, `.`, `-` and `_` expected); use s3://BUCKET/PREFIX, and \
         AWS_* variables for credentials"
    )]
    Name,
    /// The URL of the object store is invalid.
    #[error("{name}: {problem}; set it to http://HOST:PORT or https://HOST:PORT")]
    Endpoint {
        /// Name of the environment variable.
        name: &'static str,
        /// Why the URL is invalid.
        problem: &'static str,
    },
    /// The region is invalid.
    #[error("AWS_REGION: {region:?} is not a region, such as us-east-1")]
    Region {
        /// The invalid region.
        region: String,
    },
    /// A credential is invalid.
    #[error("{name}: {problem}")]
    Credential {
        /// Name of the environment variable.
        name: &'static str,
        /// Why the credential is invalid.
        problem: &'static str,
    },
    /// A variable is not text.
    #[error("{name}: the value is not UTF-8")]
    NotText {
        /// Name of the environment variable.
        name: String,
    },
}

/// Returns a builder for a bucket. It uses the `AWS_*` variables, and the endpoint in `S3_ENDPOINT_URL` if that is set.
///
/// # Errors
///
/// Returns an error if the name of the bucket or a variable is invalid.
pub fn s3_from_env(bucket: &str) -> Result<AmazonS3Builder, BucketError> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    for (name, value) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if (name.starts_with("AWS_") || name == ENDPOINT) && value.to_str().is_none() {
            return Err(BucketError::NotText { name: name.into_owned() });
        }
    }
    if let Some(endpoint) = std::env::var_os(ENDPOINT).and_then(|value| OsString::into_string(value).ok()) {
        // Set both keys of the endpoint, because an `AWS_*` variable for one of them would otherwise take precedence.
        builder = builder
            .with_allow_http(true)
            .with_config(AmazonS3ConfigKey::S3Endpoint, endpoint.clone())
            .with_endpoint(endpoint);
    }
    check_settings(&builder)?;
    Ok(builder)
}

fn check_settings(builder: &AmazonS3Builder) -> Result<(), BucketError> {
    let value = |key| builder.get_config_value(&key);
    let name = value(AmazonS3ConfigKey::Bucket).unwrap_or_default();
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    if !(3..=63).contains(&name.len()) || name.starts_with('.') || !name.bytes().all(is_name_byte) {
        return Err(BucketError::Name);
    }
    let allows_http = value(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp));
    let allows_http = allows_http.is_some_and(|value| value == "true");
    for (key, name) in [
        (AmazonS3ConfigKey::S3Endpoint, "S3_ENDPOINT_URL or AWS_ENDPOINT_URL_S3"),
        (AmazonS3ConfigKey::Endpoint, "S3_ENDPOINT_URL or AWS_ENDPOINT_URL"),
    ] {
        if let Some(endpoint) = value(key) {
            check_endpoint(&endpoint, allows_http)
                .map_err(|problem| BucketError::Endpoint { name, problem })?;
        }
    }
    if let Some(region) = value(AmazonS3ConfigKey::Region)
        && !is_region(&region)
    {
        return Err(BucketError::Region { region: region.chars().take(64).collect() });
    }
    check_credentials(builder)
}

/// Returns an error if an endpoint is not the URL of a server.
fn check_endpoint(endpoint: &str, allows_http: bool) -> Result<(), &'static str> {
    let url = Url::parse(endpoint).map_err(|_| "not a valid URL")?;
    // Parse the endpoint as `Uri` too, as the client of the object store does: `Url` repairs values that `Uri` refuses.
    let uri = endpoint.parse::<Uri>().map_err(|_| "not a valid URL")?;
    match url.scheme() {
        "https" => {}
        "http" if allows_http => {}
        "http" => return Err("http needs AWS_ALLOW_HTTP=true, or the variable S3_ENDPOINT_URL"),
        _ => return Err("not a URL with http or https"),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a URL with a user or password; use AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("a URL with a query or fragment");
    }
    if uri.host().is_none_or(str::is_empty) { Err("a URL without a host") } else { Ok(()) }
}

fn is_region(region: &str) -> bool {
    let is_region_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=64).contains(&region.len()) && region.bytes().all(is_region_byte)
}

fn check_credentials(builder: &AmazonS3Builder) -> Result<(), BucketError> {
    const KEY_ID: &str = "AWS_ACCESS_KEY_ID";
    const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
    let value = |key| builder.get_config_value(&key);
    let (key_id, secret) = (value(AmazonS3ConfigKey::AccessKeyId), value(AmazonS3ConfigKey::SecretAccessKey));
    let token = value(AmazonS3ConfigKey::Token);
    let missing =
        |name| BucketError::Credential { name, problem: "not set, but the other part of the key is" };
    match (&key_id, &secret) {
        (None, Some(_)) => return Err(missing(KEY_ID)),
        (Some(_), None) => return Err(missing(SECRET)),
        _ => {}
    }
    for (name, value) in [(KEY_ID, key_id), (SECRET, secret), ("AWS_SESSION_TOKEN", token)] {
        let Some(value) = value else { continue };
        // In the `Authorization` header, a slash ends the access key id, so the id must not contain one.
        let is_fit = |byte: u8| byte.is_ascii_graphic() && (name != KEY_ID || !b"/,".contains(&byte));
        let problem = match value.as_str() {
            "" => "empty; set it or remove the variable",
            value if !value.bytes().all(is_fit) => {
                "contains characters that no key has, such as spaces or line ends"
            }
            _ => continue,
        };
        return Err(BucketError::Credential { name, problem });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid() -> AmazonS3Builder {
        AmazonS3Builder::new()
            .with_bucket_name("kindling-files")
            .with_region("us-east-1")
            .with_access_key_id("AKIA123")
            .with_secret_access_key("abc/def+ghi=")
            .with_token("token==")
            .with_allow_http(true)
            .with_endpoint("http://127.0.0.1:9000")
    }

    #[test]
    fn usual_settings_are_accepted() {
        check_settings(&valid()).unwrap();
        check_settings(&AmazonS3Builder::new().with_bucket_name("a.b_c")).unwrap();
        for endpoint in ["https://s3.example.com", "https://s3.example.com/", "http://[::1]:9000/store"] {
            check_settings(&valid().with_endpoint(endpoint)).unwrap();
        }
    }

    #[test]
    fn rejects_invalid_endpoints_without_showing_them() {
        for endpoint in [
            "",
            "s3cret",
            "s3cret.example.com:9000",
            "ftp://s3cret.example.com",
            "http://",
            "http://a b/s3cret",
            "http://127.0.0.1:99999/s3cret",
            "http://127.0.0.1:9000/s3cret\n",
            " http://127.0.0.1/s3cret",
            "http://user:s3cret@127.0.0.1:9000",
            "http://s3cret@127.0.0.1:9000",
            "http://127.0.0.1:9000/?token=s3cret",
            "http://127.0.0.1:9000/#s3cret",
            "http://b\u{fc}cher.example/s3cret",
        ] {
            let error = check_settings(&valid().with_endpoint(endpoint)).unwrap_err();
            assert!(matches!(error, BucketError::Endpoint { .. }), "{endpoint:?}: {error}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
            let specific = valid().with_config(AmazonS3ConfigKey::S3Endpoint, endpoint);
            assert!(check_settings(&specific).is_err(), "{endpoint:?}");
        }
        let plain = valid().with_allow_http(false);
        assert!(check_settings(&plain).unwrap_err().to_string().contains("AWS_ALLOW_HTTP"));
    }

    #[test]
    fn rejects_invalid_regions_keys_and_buckets() {
        for region in ["", "us east", "us-east-1\n", "../..", "\u{fc}", &"a".repeat(65)] {
            let error = check_settings(&valid().with_region(region)).unwrap_err();
            assert!(matches!(error, BucketError::Region { .. }), "{error}");
        }
        for credential in ["", "s3cret s3cret", "s3cret\r\nx: y", "s3cret\u{fc}", "s3cret\0"] {
            for builder in [
                valid().with_access_key_id(credential),
                valid().with_secret_access_key(credential),
                valid().with_token(credential),
            ] {
                let error = check_settings(&builder).unwrap_err();
                assert!(matches!(error, BucketError::Credential { .. }), "{error}");
                assert!(!error.to_string().contains("s3cret"), "{error}");
            }
        }
        let half = AmazonS3Builder::new().with_bucket_name("files").with_access_key_id("AKIA123");
        assert!(check_settings(&half).unwrap_err().to_string().starts_with("AWS_SECRET_ACCESS_KEY"));
        for bucket in ["", "ab", "a b c", "user:s3cret@bucket", "..", &"a".repeat(64)] {
            let error = check_settings(&valid().with_bucket_name(bucket)).unwrap_err();
            assert_eq!(error, BucketError::Name);
        }
    }
}
