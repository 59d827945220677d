//! The page in a browser: its contents, its functions, and downloads.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod access;
mod api_docs;
mod appearance;
mod base_images;
mod browser;
mod creation;
mod downloads;
mod form_hosts;
mod hosts;
mod infra_envs;
mod page_files;
mod service;
mod service_address;
#[path = "../support/mod.rs"]
mod support;

fn run_test(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}
