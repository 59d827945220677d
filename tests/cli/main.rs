//! The command line as users meet it: every verb on generated images, on wrong input and in bad company.
//!
//! Needs no program but Kindling itself and `sh`. What `coreos-installer` makes of the same command lines is compared in
//! `installer_oracle`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod auth;
mod clock;
mod crash;
mod cross_site;
mod demo;
mod downloads;
mod files;
mod full_disk;
mod generated;
mod gone;
mod help;
mod hostile;
mod ignition;
mod installer_link;
mod listeners;
mod lists;
mod network;
mod nmstatectl;
mod not_ignition;
mod pages;
mod resets;
mod serve;
mod settings_file;
mod streams;
#[path = "../support/mod.rs"]
mod support;
mod usage;
mod verbs;

use std::collections::BTreeMap;

use fixtures::{Architecture, Era};

use support::{Entry, Image, image};

/// An image that can be asked for anything.
fn usual() -> &'static Image {
    image(Architecture::X86_64, Era::E2024_12)
}

/// One file of a folder without the others, for comparisons that shall not print megabytes.
fn mode(files: &BTreeMap<String, Entry>, name: &str) -> u32 {
    files[name].mode
}
