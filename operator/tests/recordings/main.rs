//! Compares the custom resources with recordings of upstream's assisted-service on a Kubernetes hub.
//!
//! A recording contains the requests of a client, and the changes that the client saw after each request: conditions,
//! labels, annotations, finalizers, owners and members of `status`. The test sends the same requests and waits for the
//! same changes. It then compares all values that the objects had at any time. [`known`] lists the differences and
//! their reasons.
//!
//! The recordings were made with assisted-service 063b2579 (2026-08-21), without authentication and webhooks.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

#[path = "../hub/mod.rs"]
mod hub;
#[path = "../controllers/machine.rs"]
mod machine;
#[path = "../controllers/site.rs"]
mod site;

mod comparison;
mod known;
mod machines;
mod observer;
mod player;
mod recording;
mod words;

use self::player::Player;
use self::recording::Recording;
use self::site::{Site, hub};

#[tokio::test]
async fn infra_envs_change_as_recorded() {
    let Some(hub) = hub().await else { return };
    let recording = Recording::parse(include_str!("images.json"));
    let recorded_writes = recording.writes;
    let played = Player::new(Site::open(hub).await, recording, known::IMAGES).run().await;
    played.assert_equal();
    // Every write of this service changes a visible value, but upstream's service also writes unchanged statuses. So
    // this service must need fewer than half of the writes.
    assert!(played.writes < recorded_writes / 2, "{} writes", played.writes);
}

#[tokio::test]
async fn agents_and_classifications_change_as_recorded() {
    let Some(hub) = hub().await else { return };
    let recording = Recording::parse(include_str!("pool.json"));
    let recorded_writes = recording.writes;
    let played = Player::new(Site::open(hub).await, recording, known::POOL).run().await;
    played.assert_equal();
    assert!(played.writes < recorded_writes / 3, "{} writes", played.writes);
}
