//! Downloads from HTTP servers and S3 buckets, with one interface for both.

mod bucket;
mod http;

use bytes::Bytes;
use futures_util::stream::BoxStream;

use super::error::{FetchError, LibraryError};
use super::location::ImageLocation;
use super::record::RemoteVersion;

use bucket::BucketSource;
use http::HttpSource;
pub(super) use http::RemoteClient;

/// The source of a download.
#[derive(Debug)]
pub(super) enum DownloadSource {
    Server(HttpSource),
    Bucket(BucketSource),
}

/// The body of a response as a stream of chunks.
pub(super) type ByteStream = BoxStream<'static, Result<Bytes, FetchError>>;

/// The head of a successful response, and the body with bytes of the image.
pub(super) struct ImageResponse {
    /// The version of the image on the server.
    pub(super) origin: RemoteVersion,
    /// The offset of the first byte of the body in the image.
    pub(super) start: u64,
    /// The bytes from `start` to the end of the image.
    pub(super) body: ByteStream,
}

impl DownloadSource {
    /// Returns the source for a location, or `None` for a file on this machine.
    pub(super) fn new(location: &ImageLocation, client: &RemoteClient) -> Result<Option<Self>, LibraryError> {
        match location {
            ImageLocation::Http(url) => Ok(Some(Self::Server(HttpSource::new(client.clone(), url.clone())))),
            ImageLocation::Bucket { bucket, key } => {
                BucketSource::new(bucket, key, client).map(Self::Bucket).map(Some)
            }
            ImageLocation::File(_) => Ok(None),
        }
    }

    /// Requests the whole image, or only the missing bytes of a version if `from` contains the number of received bytes
    /// and that version. The server may send the whole image in both cases.
    pub(super) async fn request_from(
        &self,
        from: Option<(u64, &RemoteVersion)>,
    ) -> Result<ImageResponse, FetchError> {
        match self {
            Self::Server(server) => server.request_from(from).await,
            Self::Bucket(bucket) => bucket.request_from(from).await,
        }
    }
}
