//! Sources of downloads: HTTP servers and buckets behind one interface.

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

/// A stream of the bytes of a response.
pub(super) type ByteStream = BoxStream<'static, Result<Bytes, FetchError>>;

/// A successful response that starts to send an image.
pub(super) struct ImageResponse {
    /// The version of the image.
    pub(super) origin: RemoteVersion,
    /// The offset of the first byte.
    pub(super) start: u64,
    /// The bytes from `start` to the end of the image.
    pub(super) body: ByteStream,
}

impl DownloadSource {
    /// Returns the remote of a location, or `None` for files on this machine.
    pub(super) fn new(location: &ImageLocation, client: &RemoteClient) -> Result<Option<Self>, LibraryError> {
        match location {
            ImageLocation::Http(url) => Ok(Some(Self::Server(HttpSource::new(client.clone(), url.clone())))),
            ImageLocation::Bucket { bucket, key } => {
                BucketSource::new(bucket, key, client).map(Self::Bucket).map(Some)
            }
            ImageLocation::File(_) => Ok(None),
        }
    }

    /// Requests an image from its start, or the bytes after those received of a version. The remote may send the image
    /// from its start in both cases.
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
