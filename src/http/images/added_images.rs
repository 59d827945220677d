//! Base images that users add to an inventory while the service runs, on this replica or on another one.

use std::time::Duration;

use inventory::Inventory;
use inventory::store::{FeedEvent, Kind};

use super::server::ImageServer;

/// The pause after a failure of the database.
const PAUSE: Duration = Duration::from_secs(5);

/// Sets the [added base images](ImageServer::set_added_images) of a server whenever those of an inventory change, until
/// its database is closed.
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
