//! `kindling serve --kube-api` on a real hub: the page about custom resources, step by step, and the measurements of a
//! large hub.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]
#![allow(clippy::duplicate_mod, reason = "the hub and the support of black-box tests report skipped tests")]

#[path = "../inventory/database.rs"]
mod database;
#[path = "../../operator/tests/hub/mod.rs"]
mod hub;
mod objects;
mod page;
mod paused_leader;
mod scale;
mod service;
#[path = "../support/mod.rs"]
mod support;
use support::skip;
mod webhooks;
