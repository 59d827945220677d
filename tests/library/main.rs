//! The image library against correct and faulty servers.
//!
//! Each test has its own directory and servers, on loopback. The processes that tests kill are this test program, which
//! runs one of its ignored tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod added_images;
mod adoption;
mod bucket;
mod certificates;
mod downloads;
mod hostile;
mod local_images;
mod minimal_description;
mod nmstatectl;
mod processes;
mod resume;
mod server;
#[path = "../support/skip.rs"]
mod skip;
mod slow_servers;
mod support;
