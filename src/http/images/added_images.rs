//! Keeps an image server informed of base images that users add while the service runs, on any replica.

use std::time::Duration;

use inventory::Inventory;
use inventory::store::{FeedEvent, Kind};

use super::server::ImageServer;

/// The pause before the next attempt after a database error.
const PAUSE: Duration = Duration::from_secs(5);

/// Passes user-added base images to an image server ([`ImageServer::set_added_images`]), and does so again after every
/// change in the inventory. Ends when the database of the inventory is closed.
pub async fn follow_added_images(inventory: Inventory, server: ImageServer) {
    let mut feed = inventory.records().store().feed().subscribe();
    loop {
        match inventory.added_images().await {
            Ok(images) => server.set_added_images(&images),
            Err(error) => {
                tracing::warn!(%error, "the added base images cannot be read, will retry");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        }
        loop {
            match feed.next().await {
                Some(FeedEvent::Changed(change)) if change.key.kind != Kind::OsImage => {}
                Some(FeedEvent::Changed(_) | FeedEvent::Resync) => break,
                None => return,
            }
        }
    }
}
