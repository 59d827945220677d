//! The download of one image. It resumes with further requests after temporary failures.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::{SemaphorePermit, mpsc};
use tokio::time::Instant;

use super::dedicated_thread::on_dedicated_thread;
use super::error::{FetchError, error_chain};
use super::managed_image::{ManagedImage, PROGRESS_PAUSE};
use super::partial_file::{CompleteImage, PartialFile};
use super::record::RemoteVersion;
use super::remote::{ByteStream, ImageResponse};
use super::settings::LibrarySettings;
use super::state::BaseImageState;

/// Maximum number of chunks in the channel between the socket and the disk. A chunk is about 10 KB long.
const CHUNKS: usize = 32;

/// Maximum length of an image that a user added. A live ISO is one to two gigabytes long.
const MAX_ADDED_LEN: u64 = 8 << 30;

/// Downloads the missing bytes of an image, verifies the image and publishes it.
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
        let has_advanced = part.received_len() > before && !matches!(error, FetchError::TooSlow { .. });
        failures = if has_advanced { 1 } else { failures + 1 };
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
    let wipe = on_dedicated_thread(move || {
        if is_last {
            part.discard();
            return Ok(part);
        }
        part.wipe().map(|()| part)
    });
    wipe.await?
}

async fn finish_partial_file(
    managed: &Arc<ManagedImage>,
    part: PartialFile,
) -> Result<CompleteImage, FetchError> {
    let total = part.received_len();
    managed.publish_unready(BaseImageState::Verifying { have: total, total });
    let slot = Arc::clone(managed);
    on_dedicated_thread(move || part.verify_and_publish(&slot)).await?
}

/// Sends one request and writes the response to the partial file. After an error in the inner result, the partial file
/// is still usable. After an outer error, it is lost.
async fn attempt_request(
    managed: &Arc<ManagedImage>,
    part: PartialFile,
) -> Result<(PartialFile, Result<(), FetchError>), FetchError> {
    let Ok(slot) = managed.limits().downloads.acquire().await else { return Err(FetchError::GivenUp) };
    if part.is_complete() {
        return Ok((part, Ok(())));
    }
    match request_missing_bytes(managed, &part).await {
        Ok(response) => write_response(managed, part, (response, slot)).await,
        Err(error) => Ok((part, Err(error))),
    }
}

/// Requests the missing bytes of a partial file, or all bytes if the file cannot be resumed.
async fn request_missing_bytes(
    managed: &ManagedImage,
    part: &PartialFile,
) -> Result<ImageResponse, FetchError> {
    let Some(remote) = &managed.remote else { return Err(FetchError::GivenUp) };
    // Without a validator, only the SHA-256 digest in the catalogue can prove that the bytes of two requests belong to
    // the same version.
    let can_resume = |origin: &&RemoteVersion| origin.validator.is_some() || managed.image.sha256.is_some();
    let origin = part.remote_version().filter(|_| part.received_len() > 0).filter(can_resume);
    let from = origin.map(|origin| (part.received_len(), origin));
    // The limit applies to all redirects and informational responses together, because there may be many of them.
    let limit = managed.shared.settings.stall;
    let timeout_error =
        |_| FetchError::Request { source: format!("timed out: no response within {limit:?}").into() };
    let response = tokio::time::timeout(limit, remote.request_from(from)).await.map_err(timeout_error)??;
    let len = response.origin.len;
    if managed.is_added && len > MAX_ADDED_LEN {
        return Err(FetchError::TooLarge { len, most: MAX_ADDED_LEN });
    }
    Ok(response)
}

async fn write_response(
    managed: &ManagedImage,
    mut part: PartialFile,
    (response, slot): (ImageResponse, SemaphorePermit<'_>),
) -> Result<(PartialFile, Result<(), FetchError>), FetchError> {
    let ImageResponse { origin, start, body } = response;
    let (total, settings) = (origin.len, &managed.shared.settings);
    tracing::info!(image = managed.paths.name(), url = %managed.location, start, total, "download of the base image started");
    let (sender, receiver) = mpsc::channel(CHUNKS);
    let have = Arc::new(AtomicU64::new(start));
    let target = ResponseWriter { origin, start, have: Arc::clone(&have) };
    let writer = on_dedicated_thread(move || {
        let write_result = target.write_chunks(&mut part, receiver);
        (part, write_result)
    });
    let work = async { tokio::join!(feed_writer((body, sender), settings), writer) };
    let turn = managed.is_added.then_some(settings.added_turn);
    let (feed_result, write_result) = tokio::select! {
        done = work => done,
        never = publish_progress(managed, &have, total) => match never {},
        never = hold_slot(slot, turn) => match never {},
    };
    let (part, write_result) = write_result?;
    let have = part.received_len();
    let outcome = match (write_result, feed_result) {
        (Err(error), _) | (Ok(()), Err(error @ FetchError::TooSlow { .. })) => Err(error),
        (Ok(()), Err(error)) if have < total => {
            Err(FetchError::Truncated { have, total, source: Some(Box::new(error)) })
        }
        (Ok(()), Ok(())) if have < total => Err(FetchError::Truncated { have, total, source: None }),
        (Ok(()), _) => Ok(()),
    };
    Ok((part, outcome))
}

/// Holds the slot of a download until this future is dropped, but at most for the duration `turn`. A slow download then
/// continues without a slot, so that other downloads can start.
async fn hold_slot(slot: SemaphorePermit<'_>, turn: Option<Duration>) -> Infallible {
    if let Some(turn) = turn {
        tokio::time::sleep(turn).await;
        drop(slot);
    }
    pending().await
}

/// Passes the received chunks to the writer. Returns an error if the server sends too few bytes in a time window. The
/// time spent waiting for the writer does not count.
async fn feed_writer(
    (mut body, sender): (ByteStream, mpsc::Sender<Bytes>),
    settings: &LibrarySettings,
) -> Result<(), FetchError> {
    let (window, least) = (settings.stall, settings.least_received());
    let mut window_end = pin!(tokio::time::sleep(window));
    let mut received = 0;
    loop {
        // Stop when the writer stops, even if no more chunks arrive. The writer returns the error.
        let chunk = tokio::select! {
            chunk = body.next() => chunk,
            () = sender.closed() => None,
            () = &mut window_end => {
                if received < least {
                    return Err(FetchError::TooSlow { received, least, window });
                }
                received = 0;
                window_end.as_mut().reset(Instant::now() + window);
                continue;
            }
        };
        let Some(chunk) = chunk.transpose()? else { return Ok(()) };
        received += chunk.len() as u64;
        let sending = Instant::now();
        if sender.send(chunk).await.is_err() {
            return Ok(());
        }
        // Extend the window by this time, in which the server could not send anything.
        let end = window_end.deadline() + sending.elapsed();
        window_end.as_mut().reset(end);
    }
}

/// Publishes the progress until this future is dropped.
async fn publish_progress(managed: &ManagedImage, have: &AtomicU64, total: u64) -> Infallible {
    let mut pauses = tokio::time::interval(PROGRESS_PAUSE);
    let mut published = None;
    loop {
        pauses.tick().await;
        let have = have.load(Ordering::Relaxed);
        if published != Some(have) {
            published = Some(have);
            managed.publish_unready(BaseImageState::Downloading { have, total: Some(total) });
        }
    }
}

/// Writes the response of one request to a partial file.
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
            let response_start = format!("bytes from offset {}", self.start);
            return Err(FetchError::WrongRange { asked: part.received_len(), found: response_start });
        }
        while let Some(chunk) = chunks.blocking_recv() {
            part.append(&chunk)?;
            self.have.store(part.received_len(), Ordering::Relaxed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    const WINDOW: Duration = Duration::from_secs(60);
    /// Time that the writer takes before it receives the first chunk.
    const DISK: Duration = Duration::from_secs(100);

    fn chunk(len: usize) -> Result<Bytes, FetchError> {
        Ok(Bytes::from(vec![0; len]))
    }

    /// Returns the result and the duration of a download. The server sends 20 bytes immediately and 60 after a pause.
    async fn download_to_slow_disk(pause: Duration) -> (Result<(), FetchError>, Duration) {
        let mut settings = LibrarySettings::new("/nonexistent");
        (settings.stall, settings.min_rate) = (WINDOW, 1);
        let last = stream::once(async move {
            tokio::time::sleep(pause).await;
            chunk(60)
        });
        let body = stream::iter([chunk(10), chunk(10)]).chain(last).boxed();
        // The channel holds one chunk, so the second chunk waits for the writer.
        let (sender, mut receiver) = mpsc::channel(1);
        let start = Instant::now();
        let writer = async {
            tokio::time::sleep(DISK).await;
            while receiver.recv().await.is_some() {}
        };
        let (result, ()) = tokio::join!(feed_writer((body, sender), &settings), writer);
        (result, start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn slow_disk_does_not_count_as_slow_server() {
        let (fed, _) = download_to_slow_disk(WINDOW / 2).await;
        assert!(fed.is_ok(), "{fed:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_server_fails_after_the_window_plus_disk_time() {
        let (fed, time) = download_to_slow_disk(WINDOW * 2).await;
        assert!(matches!(fed, Err(FetchError::TooSlow { received: 20, least: 60, .. })), "{fed:?}");
        assert!((DISK + WINDOW..DISK + WINDOW * 2).contains(&time), "{time:?}");
    }
}
