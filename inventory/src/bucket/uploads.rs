//! Removal of incomplete uploads: parts that a killed process left in a bucket. They are not visible as files, and take
//! up space.

use std::time::Duration;

use axum::http::Method;
use chrono::{DateTime, TimeDelta, Utc};
use http_body_util::BodyExt;
use object_store::aws::AmazonS3;
use object_store::client::{HttpRequestBody, HttpService};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::signer::{SignedUrlOptions, Signer};

use super::failure::{BucketFailure, without_response};
use super::transport::BucketTransport;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The most uploads of one list. The next removal continues.
const MAX_UPLOADS: &str = "500";
/// The most bytes of a list.
const MAX_LIST: usize = 1 << 20;
/// How long the signed URL of a list is valid.
const VALIDITY: Duration = Duration::from_secs(300);

/// An incomplete upload.
#[derive(Clone, Debug, PartialEq, Eq)]
struct IncompleteUpload {
    key: String,
    id: String,
    begun_at: DateTime<Utc>,
}

/// Removes uploads that began more than `age` ago, of keys with a prefix for which `is_own` is true. Returns their
/// number.
pub(crate) async fn remove_incomplete_uploads(
    (bucket, transport): (&AmazonS3, &BucketTransport),
    prefix: &str,
    age: Duration,
    is_own: impl Fn(&str) -> bool,
) -> Result<usize, Cause> {
    let age = TimeDelta::from_std(age).unwrap_or(TimeDelta::MAX);
    let Some(before) = Utc::now().checked_sub_signed(age) else { return Ok(0) };
    let list = list_uploads((bucket, transport), prefix).await?;
    let mut removed = 0;
    for upload in parse_uploads(&list) {
        let is_below = upload.key.strip_prefix(prefix).is_some_and(&is_own);
        if is_below && upload.begun_at <= before {
            let removal = bucket.abort_multipart(&Path::from(upload.key.as_str()), &upload.id).await;
            removal.map_err(|error| without_response(error.into()))?;
            tracing::info!(file = upload.key, "removed an incomplete upload");
            removed += 1;
        }
    }
    Ok(removed)
}

/// Requests the list of uploads, which the client of the object store does not offer.
async fn list_uploads(
    (bucket, transport): (&AmazonS3, &BucketTransport),
    prefix: &str,
) -> Result<String, Cause> {
    let query = [("uploads", ""), ("prefix", prefix), ("max-uploads", MAX_UPLOADS)];
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

/// Reads the uploads of a list. Keys with characters that XML escapes are not those of this program.
fn parse_uploads(list: &str) -> impl Iterator<Item = IncompleteUpload> {
    list.split("<Upload>").skip(1).filter_map(|upload| {
        Some(IncompleteUpload {
            key: element(upload, "Key")?,
            id: element(upload, "UploadId")?,
            begun_at: DateTime::parse_from_rfc3339(&element(upload, "Initiated")?).ok()?.to_utc(),
        })
    })
}

fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (value, _) = rest.split_once(&format!("</{name}>"))?;
    (!value.contains(['<', '&'])).then(|| value.trim().to_owned())
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
}
