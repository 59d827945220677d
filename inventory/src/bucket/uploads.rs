//! Removes incomplete uploads: parts that a killed process left in a bucket. These parts are not visible as files, but
//! take up space.

use std::time::Duration;

use axum::http::Method;
use chrono::{DateTime, Utc};
use http_body_util::BodyExt;
use object_store::aws::AmazonS3;
use object_store::client::{HttpRequestBody, HttpService};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::signer::{SignedUrlOptions, Signer};

use super::failure::{BucketFailure, without_response};
use super::transport::BucketTransport;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Maximum number of uploads in one list.
const MAX_UPLOADS: &str = "500";
/// Maximum number of lists in one removal.
const MAX_LISTS: usize = 100;
/// Maximum length of a list in bytes.
const MAX_LIST: usize = 1 << 20;
/// Validity of the signed URL of a list.
const VALIDITY: Duration = Duration::from_secs(300);

#[derive(Clone, Debug, PartialEq, Eq)]
struct IncompleteUpload {
    key: String,
    id: String,
    begun_at: DateTime<Utc>,
}

/// The last upload of a list. The next list begins after this upload.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListMarker {
    key: String,
    upload_id: Option<String>,
}

/// Removes incomplete uploads that began at the time `before` or earlier. The keys of these uploads begin with
/// `prefix`, and `is_own` returns `true` for the rest of the key. Returns the number of removed uploads.
pub(crate) async fn remove_incomplete_uploads(
    (bucket, transport): (&AmazonS3, &BucketTransport),
    prefix: &str,
    before: DateTime<Utc>,
    is_own: impl Fn(&str) -> bool,
) -> Result<usize, Cause> {
    let mut removed = 0;
    let mut after = None;
    for _ in 0..MAX_LISTS {
        let list = list_uploads((bucket, transport), prefix, after.as_ref()).await?;
        for upload in parse_uploads(&list) {
            let is_below = upload.key.strip_prefix(prefix).is_some_and(&is_own);
            if is_below && upload.begun_at <= before {
                let removal = bucket.abort_multipart(&Path::from(upload.key.as_str()), &upload.id).await;
                removal.map_err(|error| without_response(error.into()))?;
                tracing::info!(file = upload.key, "removed an incomplete upload");
                removed += 1;
            }
        }
        after = next_marker(&list)?;
        if after.is_none() {
            return Ok(removed);
        }
    }
    tracing::warn!(
        lists = MAX_LISTS,
        "the bucket has too many incomplete uploads; the last ones were not checked"
    );
    Ok(removed)
}

/// Requests a list of uploads, which the client of the object store does not offer.
async fn list_uploads(
    (bucket, transport): (&AmazonS3, &BucketTransport),
    prefix: &str,
    after: Option<&ListMarker>,
) -> Result<String, Cause> {
    let mut query = vec![("uploads", ""), ("prefix", prefix), ("max-uploads", MAX_UPLOADS)];
    if let Some(marker) = after {
        query.push(("key-marker", marker.key.as_str()));
        query.extend(marker.upload_id.as_deref().map(|id| ("upload-id-marker", id)));
    }
    let options = SignedUrlOptions::new().with_query(query);
    let url = bucket.signed_url_opts(Method::GET, &Path::from(""), VALIDITY, &options).await;
    let url = url.map_err(|error| without_response(error.into()))?;
    let request = axum::http::Request::get(url.as_str()).body(HttpRequestBody::empty())?;
    let response = transport.call(request).await.map_err(|error| without_response(error.into()))?;
    if !response.status().is_success() {
        return Err(BucketFailure::Invalid.into());
    }
    let body = http_body_util::Limited::new(response.into_body(), MAX_LIST);
    let body = body.collect().await.map_err(|_| BucketFailure::Invalid)?;
    Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned())
}

/// Reads the uploads in a list. The keys of this program contain no characters that XML escapes.
fn parse_uploads(list: &str) -> impl Iterator<Item = IncompleteUpload> {
    list.split("<Upload>").skip(1).filter_map(|upload| {
        Some(IncompleteUpload {
            key: element(upload, "Key")?,
            id: element(upload, "UploadId")?,
            begun_at: DateTime::parse_from_rfc3339(&element(upload, "Initiated")?).ok()?.to_utc(),
        })
    })
}

/// Returns the marker for the next list, or `None` if the list is the last one.
fn next_marker(list: &str) -> Result<Option<ListMarker>, BucketFailure> {
    if element(list, "IsTruncated").as_deref() != Some("true") {
        return Ok(None);
    }
    let marker = |name| content(list, name).and_then(unescape).filter(|marker| !marker.is_empty());
    let key = marker("NextKeyMarker").ok_or(BucketFailure::Invalid)?;
    Ok(Some(ListMarker { key, upload_id: marker("NextUploadIdMarker") }))
}

fn element(text: &str, name: &str) -> Option<String> {
    let value = content(text, name)?;
    (!value.contains(['<', '&'])).then(|| value.trim().to_owned())
}

/// Returns the escaped content of the first element with a name.
fn content<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (value, _) = rest.split_once(&format!("</{name}>"))?;
    Some(value)
}

/// Replaces XML escapes with their characters. The marker may be the key of another program.
fn unescape(text: &str) -> Option<String> {
    let mut parts = text.split('&');
    let mut plain = parts.next()?.to_owned();
    for part in parts {
        let (name, rest) = part.split_once(';')?;
        plain.push(escaped_char(name)?);
        plain.push_str(rest);
    }
    Some(plain)
}

fn escaped_char(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let code = name.strip_prefix('#')?;
            let code = match code.strip_prefix('x') {
                Some(code) => u32::from_str_radix(code, 16),
                None => code.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uploads_are_read_from_a_list() {
        let list = "<?xml version=\"1.0\"?><ListMultipartUploadsResult><Bucket>b</Bucket>\
            <Upload><Key>a/b.tar</Key><UploadId>x-1</UploadId><Initiated>2024-05-06T07:08:09.000Z</Initiated></Upload>\
            <Upload><Key>a&amp;b</Key><UploadId>x</UploadId><Initiated>2024-05-06T07:08:09Z</Initiated></Upload>\
            <Upload><Key>a</Key><UploadId>x</UploadId><Initiated>yesterday</Initiated></Upload>\
            </ListMultipartUploadsResult>";
        let begun_at = "2024-05-06T07:08:09Z".parse().unwrap();
        let expected = IncompleteUpload { key: "a/b.tar".to_owned(), id: "x-1".to_owned(), begun_at };
        assert_eq!(parse_uploads(list).collect::<Vec<_>>(), [expected]);
        assert_eq!(parse_uploads("<html>").count(), 0);
    }

    #[test]
    fn marker_is_read_from_a_truncated_list() {
        let list = |truncated, key, id| {
            format!(
                "<IsTruncated>{truncated}</IsTruncated><NextKeyMarker>{key}</NextKeyMarker>\
                 <NextUploadIdMarker>{id}</NextUploadIdMarker>"
            )
        };
        let marker = |key: &str, id: Option<&str>| {
            Some(ListMarker { key: key.to_owned(), upload_id: id.map(str::to_owned) })
        };
        assert_eq!(next_marker(&list("true", "a/b", "x-1")), Ok(marker("a/b", Some("x-1"))));
        assert_eq!(next_marker(&list("true", "&lt;&amp;lt;&#13;&#x41;", "")), Ok(marker("<&lt;\rA", None)));
        assert_eq!(next_marker(&list("false", "a", "x")), Ok(None));
        assert_eq!(next_marker("<html>"), Ok(None));
        for key in ["", "&", "&;", "&bogus;", "&#x110000;"] {
            assert_eq!(next_marker(&list("true", key, "x")), Err(BucketFailure::Invalid), "{key}");
        }
    }
}
