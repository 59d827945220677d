//! The page in a browser: what is seen, what can be done, and what is downloaded.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod access;
mod browser;
mod creation;
mod downloads;
mod infra_envs;
mod live_images;
mod looks;
mod parts;
mod service;
#[path = "../support/mod.rs"]
mod support;

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}
