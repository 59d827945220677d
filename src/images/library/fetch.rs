//! The download of one image, in as many requests as it needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::mpsc;

use super::dedicated_thread::on_dedicated_thread;
use super::error::{FetchError, error_chain};
use super::managed_image::{ManagedImage, PROGRESS_PAUSE};
use super::partial_file::{CompleteImage, PartialFile};
use super::record::RemoteVersion;
use super::remote::{ByteStream, ImageResponse};
use super::state::BaseImageState;

/// Chunks in the channel between the socket and the disk. A chunk has some ten kilobytes.
const CHUNKS: usize = 32;

/// The most bytes of an image that a user added. A live ISO has one to two gigabytes.
const MAX_ADDED_LEN: u64 = 8 << 30;

/// Downloads the missing bytes of an image and completes it if it is valid.
pub(super) async fn download_image(
    managed: &Arc<ManagedImage>,
    mut part: PartialFile,
) -> Result<CompleteImage, FetchError> {
    let retry = managed.shared.settings.retry;
    let mut failures = 0;
    loop {
        let before = part.received_len();
        let outcome;
        (part, outcome) = attempt_request(managed, part).await?;
        let Err(error) = outcome else { return finish_partial_file(managed, part).await };
        failures = if part.received_len() > before { 1 } else { failures + 1 };
        let is_last = !error.is_transient() || failures > retry.at_once;
        if !error.keeps_partial_file() {
            part = wipe_partial_file(part, is_last).await?;
        }
        if is_last {
            on_dedicated_thread(move || part.keep_for_next_attempt()).await?;
            return Err(error);
        }
        let pause = retry.pause(failures);
        let (have, error) = (part.received_len(), error_chain(&error));
        tracing::warn!(image = managed.paths.name(), url = %managed.location, have, error, ?pause, "download failed, retrying");
        tokio::time::sleep(pause).await;
    }
}

async fn wipe_partial_file(mut part: PartialFile, is_last: bool) -> Result<PartialFile, FetchError> {
    let wiped = on_dedicated_thread(move || {
        if is_last {
            part.discard();
            return Ok(part);
        }
        part.wipe().map(|()| part)
    });
    wiped.await?
}

async fn finish_partial_file(
    managed: &Arc<ManagedImage>,
    part: PartialFile,
) -> Result<CompleteImage, FetchError> {
    let total = part.received_len();
    managed.publish_unready(BaseImageState::Verifying { have: total, total });
    let of = Arc::clone(managed);
    on_dedicated_thread(move || part.verify_and_publish(&of)).await?
}

/// Sends one request and writes the response. The outer error means that the part is lost.
async fn attempt_request(
    managed: &Arc<ManagedImage>,
    mut part: PartialFile,
) -> Result<(PartialFile, Result<(), FetchError>), FetchError> {
    let shared = &managed.shared;
    let downloads = if managed.is_added { &shared.added_downloads } else { &shared.downloads };
    let Ok(_permit) = downloads.acquire().await else { return Err(FetchError::GivenUp) };
    let Some(remote) = &managed.remote else { return Err(FetchError::GivenUp) };
    if part.is_complete() {
        return Ok((part, Ok(())));
    }
    // Without a validator, only the SHA-256 digest of the catalogue can show whether the bytes of two requests belong
    // together.
    let can_resume = |origin: &&RemoteVersion| origin.validator.is_some() || managed.image.sha256.is_some();
    let origin = part.remote_version().filter(|_| part.received_len() > 0).filter(can_resume).cloned();
    let from = origin.as_ref().map(|origin| (part.received_len(), origin));
    let offer = match remote.request_from(from).await {
        Ok(offer) => offer,
        Err(error) => return Ok((part, Err(error))),
    };
    let ImageResponse { origin, start, body } = offer;
    let total = origin.len;
    if managed.is_added && total > MAX_ADDED_LEN {
        return Ok((part, Err(FetchError::TooLarge { len: total, most: MAX_ADDED_LEN })));
    }
    tracing::info!(image = managed.paths.name(), url = %managed.location, start, total, "download of the base image started");

    let (sender, receiver) = mpsc::channel(CHUNKS);
    let have = Arc::new(AtomicU64::new(start));
    let target = ResponseWriter { origin, start, have: Arc::clone(&have) };
    let writer = on_dedicated_thread(move || {
        let written = target.write_chunks(&mut part, receiver);
        (part, written)
    });
    let work = async { tokio::join!(feed_writer(body, sender), writer) };
    let (fed, written) = tokio::select! {
        done = work => done,
        () = publish_progress(managed, &have, total) => return Err(FetchError::GivenUp),
    };
    let (part, written) = written?;
    let have = part.received_len();
    let outcome = match (written, fed) {
        (Err(error), _) => Err(error),
        (Ok(()), Err(error)) if have < total => {
            Err(FetchError::Truncated { have, total, source: Some(Box::new(error)) })
        }
        (Ok(()), Ok(())) if have < total => Err(FetchError::Truncated { have, total, source: None }),
        (Ok(()), _) => Ok(()),
    };
    Ok((part, outcome))
}

/// Passes the received chunks to the writer.
async fn feed_writer(mut body: ByteStream, sender: mpsc::Sender<Bytes>) -> Result<(), FetchError> {
    loop {
        // Stop when the writer stops, even if no more chunks arrive. The writer returns the reason itself.
        let chunk = tokio::select! {
            chunk = body.next() => chunk,
            () = sender.closed() => None,
        };
        let Some(chunk) = chunk else { return Ok(()) };
        if sender.send(chunk?).await.is_err() {
            return Ok(());
        }
    }
}

/// Publishes the progress until it is dropped.
async fn publish_progress(managed: &ManagedImage, have: &AtomicU64, total: u64) {
    let mut pauses = tokio::time::interval(PROGRESS_PAUSE);
    let mut told = None;
    loop {
        pauses.tick().await;
        let have = have.load(Ordering::Relaxed);
        if told != Some(have) {
            told = Some(have);
            managed.publish_unready(BaseImageState::Downloading { have, total: Some(total) });
        }
    }
}

/// Where the response of one request is written.
struct ResponseWriter {
    origin: RemoteVersion,
    start: u64,
    have: Arc<AtomicU64>,
}

impl ResponseWriter {
    fn write_chunks(
        &self,
        part: &mut PartialFile,
        mut chunks: mpsc::Receiver<Bytes>,
    ) -> Result<(), FetchError> {
        if self.start == 0 {
            part.begin_version(&self.origin)?;
        } else if self.start != part.received_len() {
            let found = format!("bytes from offset {}", self.start);
            return Err(FetchError::WrongRange { asked: part.received_len(), found });
        }
        while let Some(chunk) = chunks.blocking_recv() {
            part.append(&chunk)?;
            self.have.store(part.received_len(), Ordering::Relaxed);
        }
        Ok(())
    }
}
