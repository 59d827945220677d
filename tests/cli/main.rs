//! The command line as users use it: every verb on generated images, invalid input and hostile files.
//!
//! The tests need only Kindling and `sh`; `leader_crash` also needs a PostgreSQL server. `installer_oracle` compares
//! the same command lines with `coreos-installer`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod auth;
mod base_image_wait;
mod boot_test;
mod clock;
mod connection_resets;
mod crash;
#[cfg(feature = "kube-api")]
mod crd;
mod cross_site;
#[path = "../inventory/database.rs"]
mod database;
mod deleted_images;
#[cfg(feature = "demo")]
mod demo;
mod disconnects;
mod documentation;
mod downloads;
mod event_streams;
mod files;
mod full_disk;
mod generated_files;
mod help;
mod host_limits;
mod hostile;
mod ignition;
mod image_memory;
mod infra_env;
mod installer_link;
mod json_output;
#[cfg(feature = "kube-api")]
mod kube;
mod large_bodies;
mod leader_crash;
mod listeners;
mod long_lists;
mod network;
mod nmstatectl;
mod not_ignition;
mod reach;
mod serve;
mod settings;
mod settings_file;
mod simulate;
mod simulated_clusters;
mod standard_streams;
#[path = "../support/mod.rs"]
mod support;
mod terminal;
mod usage;
mod verbs;

use std::collections::BTreeMap;

use fixtures::{Architecture, Era};

use support::{FixtureImage, ScratchFile, fixture, skip};

/// Returns an image that supports every verb.
fn full_featured_image() -> &'static FixtureImage {
    fixture(Architecture::X86_64, Era::E2024_12)
}

/// Returns the mode of a file. Assertions on modes print no megabytes of contents when they fail.
fn file_mode(files: &BTreeMap<String, ScratchFile>, name: &str) -> u32 {
    files[name].mode
}
