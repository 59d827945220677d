//! The download of one image: as many requests as it takes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::StreamExt;
use isogen::Source;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::sync::oneshot;

use super::apart::{apart, spawn};
use super::arrival::{ArrivingFile, Ask};
use super::base::Base;
use super::error::{FetchError, chain};
use super::part::{Announced, Complete, Part};
use super::record::Origin;
use super::remote::{Body, Offer};
use super::slot::{PROGRESS_PAUSE, Slot};
use super::state::State;
use super::verify;
use crate::http::zerocopy::BaseFile;

/// Chunks between the socket and the disk. One has some ten kilobytes.
const CHUNKS: usize = 32;

/// Fetches what is missing of an image, and makes it one if it is good.
pub(super) async fn download(slot: &Arc<Slot>, mut part: Part) -> Result<Complete, FetchError> {
    let retry = slot.shared.settings.retry;
    let mut failures = 0;
    loop {
        let before = part.have();
        let outcome;
        (part, outcome) = attempt(slot, part).await?;
        let Err(error) = outcome else { return finish(slot, part).await };
        failures = if part.have() > before { 1 } else { failures + 1 };
        let is_last = !error.is_passing() || failures > retry.at_once;
        if !error.leaves_part() {
            slot.change(|known| known.arriving = None);
            part = wiped(part, is_last).await?;
        }
        if is_last {
            apart(move || part.put_back()).await?;
            return Err(error);
        }
        let pause = retry.pause(failures);
        let (have, error) = (part.have(), chain(&error));
        tracing::warn!(image = slot.shelf.name(), url = %slot.location, have, error, ?pause, "download failed, retrying");
        tokio::time::sleep(pause).await;
    }
}

async fn wiped(mut part: Part, is_last: bool) -> Result<Part, FetchError> {
    let wiped = apart(move || {
        if is_last {
            part.discard();
            return Ok(part);
        }
        part.wipe().map(|()| part)
    });
    wiped.await?
}

async fn finish(slot: &Arc<Slot>, part: Part) -> Result<Complete, FetchError> {
    let total = part.have();
    slot.publish(State::Verifying { have: total, total });
    let of = Arc::clone(slot);
    let outcome = apart(move || part.finish(&of)).await?;
    slot.change(|known| known.arriving = None);
    outcome
}

/// One request, and what comes of it.
async fn attempt(slot: &Arc<Slot>, mut part: Part) -> Result<(Part, Result<(), FetchError>), FetchError> {
    let Ok(_permit) = slot.shared.downloads.acquire().await else { return Err(FetchError::GivenUp) };
    let Some(remote) = &slot.remote else { return Err(FetchError::GivenUp) };
    if part.is_complete() {
        return Ok((part, Ok(())));
    }
    // Without anything to tell versions apart by, only the digest can tell whether the bytes belong together.
    let can_resume = |origin: &&Origin| origin.validator.is_some() || slot.image.sha256.is_some();
    let origin = part.origin().filter(|_| part.have() > 0).filter(can_resume).cloned();
    let from = origin.as_ref().map(|origin| (part.have(), origin));
    let offer = match remote.open(from).await {
        Ok(offer) => offer,
        Err(error) => return Ok((part, Err(error))),
    };
    let Offer { origin, start, body } = offer;
    let total = origin.len;
    tracing::info!(image = slot.shelf.name(), url = %slot.location, start, total, "the image is being fetched");

    let (sender, receiver) = mpsc::channel(CHUNKS);
    let have = Arc::new(AtomicU64::new(start));
    let target =
        Target { slot: Arc::clone(slot), origin, start, have: Arc::clone(&have), runtime: Handle::current() };
    let writer = apart(move || {
        let written = target.write(&mut part, receiver);
        (part, written)
    });
    let work = async { tokio::join!(feed(body, sender), writer) };
    let (fed, written) = tokio::select! {
        done = work => done,
        () = tell(slot, &have, total) => return Err(FetchError::GivenUp),
    };
    let (part, written) = written?;
    let have = part.have();
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

/// Hands what comes to the writer.
async fn feed(mut body: Body, sender: mpsc::Sender<Bytes>) -> Result<(), FetchError> {
    loop {
        // A writer that has stopped says why itself, even if nothing comes any more.
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

/// Tells how much there is, for ever.
async fn tell(slot: &Slot, have: &AtomicU64, total: u64) {
    let mut pauses = tokio::time::interval(PROGRESS_PAUSE);
    let mut told = None;
    loop {
        pauses.tick().await;
        let have = have.load(Ordering::Relaxed);
        if told != Some(have) {
            told = Some(have);
            slot.publish(State::Downloading { have, total: Some(total) });
        }
    }
}

/// Where the bytes of a request go.
struct Target {
    slot: Arc<Slot>,
    origin: Origin,
    start: u64,
    have: Arc<AtomicU64>,
    runtime: Handle,
}

impl Target {
    /// Writes what comes.
    fn write(&self, part: &mut Part, mut chunks: mpsc::Receiver<Bytes>) -> Result<(), FetchError> {
        if self.start == 0 {
            self.slot.change(|known| known.arriving = None);
            part.begin(&self.origin)?;
        } else if self.start != part.have() {
            let found = format!("bytes from {} on", self.start);
            return Err(FetchError::WrongRange { asked: part.have(), found });
        }
        while let Some(chunk) = chunks.blocking_recv() {
            part.push(&chunk)?;
            self.have.store(part.have(), Ordering::Relaxed);
            // Not before it is known to be an image at all.
            if part.have() >= verify::RECOGNIZABLE
                && let Some(announced) = part.announce()?
            {
                open_early(&self.slot, announced, self.runtime.clone())?;
            }
        }
        Ok(())
    }
}

/// Opens an image that is coming as soon as the bytes for that are there.
fn open_early(slot: &Arc<Slot>, announced: Announced, runtime: Handle) -> Result<(), FetchError> {
    let slot = Arc::clone(slot);
    spawn(move || {
        let Announced { file, origin, arrival } = announced;
        let len = origin.len;
        let ask = ask(&slot, origin, runtime);
        let (file, opening) = ArrivingFile::new(file, len, Arc::clone(&arrival), Some(ask));
        let file = Arc::new(file);
        let name = slot.shelf.image().display().to_string();
        match verify::open(Source::new(name, len, Arc::clone(&file))) {
            Ok(image) => {
                drop(opening);
                let file = Arc::new(BaseFile::downloading(Arc::clone(image.source()), file));
                let base = Arc::new(Base::arriving((image, file), slot.image.clone(), slot.shelf.clone()));
                slot.change(|known| {
                    if arrival.is_coming() && known.base.is_none() {
                        known.arriving = Some(base);
                    }
                });
            }
            // Whatever it is, it is found again at the end.
            Err(error) => {
                tracing::debug!(
                    image = slot.shelf.name(),
                    error = chain(&error),
                    "not opened while it comes"
                );
            }
        }
    })
}

fn ask(slot: &Arc<Slot>, origin: Origin, runtime: Handle) -> Ask {
    // Weak: readers of the image may live longer than the library.
    let slot = Arc::downgrade(slot);
    Box::new(move |range| {
        let slot = slot.upgrade().ok_or(io::ErrorKind::NotConnected)?;
        let (sender, receiver) = oneshot::channel();
        let origin = origin.clone();
        // As a task of the runtime: one that ends drops it, where waiting for the answer here would be a panic.
        runtime.spawn(async move {
            let answer = match &slot.remote {
                Some(remote) => remote.range(&origin, range).await.map_err(io::Error::other),
                None => Err(io::ErrorKind::Unsupported.into()),
            };
            // Whoever has asked waits for it.
            let _ = sender.send(answer);
        });
        receiver.blocking_recv().map_err(|_| io::ErrorKind::NotConnected)?
    })
}
