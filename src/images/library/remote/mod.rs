//! Where images are fetched from: one face for servers and buckets.

mod bucket;
mod http;

use std::ops::Range;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use super::error::{FetchError, LibraryError};
use super::location::Location;
use super::record::Origin;

use bucket::Bucket;
pub(super) use http::Client;
use http::Server;

/// Where an image is fetched from.
#[derive(Debug)]
pub(super) enum Remote {
    Server(Server),
    Bucket(Bucket),
}

/// Bytes that come.
pub(super) type Body = BoxStream<'static, Result<Bytes, FetchError>>;

/// Bytes that a remote is about to send.
pub(super) struct Offer {
    /// Of what they are.
    pub(super) origin: Origin,
    /// The first of them.
    pub(super) start: u64,
    /// The rest of the image.
    pub(super) body: Body,
}

impl Remote {
    /// The remote of a location; none for files of this machine.
    pub(super) fn of(location: &Location, client: &Client) -> Result<Option<Self>, LibraryError> {
        match location {
            Location::Http(url) => Ok(Some(Self::Server(Server::new(client.clone(), url.clone())))),
            Location::Bucket { bucket, key } => Bucket::new(bucket, key, client).map(Self::Bucket).map(Some),
            Location::File(_) => Ok(None),
        }
    }

    /// Asks for an image: from its start, or what is behind the first bytes of a version of it. It may answer from the
    /// start nevertheless.
    pub(super) async fn open(&self, from: Option<(u64, &Origin)>) -> Result<Offer, FetchError> {
        match self {
            Self::Server(server) => server.open(from).await,
            Self::Bucket(bucket) => bucket.open(from).await,
        }
    }

    /// Asks for a few bytes of a version of an image.
    pub(super) async fn range(&self, origin: &Origin, range: Range<u64>) -> Result<Bytes, FetchError> {
        let mut body = match self {
            Self::Server(server) => server.range(origin, &range).await?,
            Self::Bucket(bucket) => bucket.range(origin, &range).await?,
        };
        let wanted = range.end.saturating_sub(range.start);
        let mut bytes = Vec::new();
        while let Some(chunk) = body.next().await {
            bytes.extend_from_slice(&chunk?);
            if bytes.len() as u64 > wanted {
                return Err(FetchError::TooLong { total: wanted });
            }
        }
        if bytes.len() as u64 == wanted {
            Ok(bytes.into())
        } else {
            Err(FetchError::Truncated { have: bytes.len() as u64, total: wanted, source: None })
        }
    }
}
