//! The library of images against servers that behave and servers that do not.
//!
//! Each test has a directory and servers of its own, on loopback. Processes that are killed are this program again, with
//! one of its ignored tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod adoption;
mod arriving;
mod bucket;
mod certificates;
mod downloads;
mod hostile;
mod local;
mod minimal;
mod processes;
mod program;
mod resume;
mod server;
mod support;
