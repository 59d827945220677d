//! `kindling discovery`: images from manifests and options, on an administrator's own machine.
//!
//! The manifests of `manifests/` are as their users write them: a rack with bonds and VLANs, a single node behind a proxy, two
//! address families as a list in JSON, and a site without the internet and with a mirror.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod bases;
mod images;
mod interrupted;
mod messages;
mod plan_files;
mod refused;
mod selection;
mod served;
#[path = "../support/mod.rs"]
mod support;

use std::path::PathBuf;
use std::sync::LazyLock;

use fixtures::{Architecture, Era, Recipe};

use support::{Output, Scratch};

/// The directories of manifests.
const SITES: [&str; 4] = ["bonded", "single-node", "dual-stack", "disconnected"];

const SERVICE: &str = "http://192.0.2.1:8090";
const ROOTFS: &str = "http://192.0.2.1/rootfs.img";

/// A live image whose root file system has what the early boot needs.
static BASE: LazyLock<Vec<u8>> = LazyLock::new(|| recipe().build());

fn recipe() -> Recipe {
    Recipe::new(Architecture::X86_64, Era::E2024_12).with_program()
}

/// The manifests of a site.
fn manifests(site: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/offline/manifests").join(site)
}

/// A folder with the live image, and the manifests of a site.
fn scratch(site: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.write("base.iso", &*BASE);
    for entry in manifests(site).read_dir().unwrap() {
        copy(&scratch, "manifests", &entry.unwrap().path());
    }
    scratch
}

fn copy(scratch: &Scratch, folder: &str, path: &std::path::Path) {
    let name = format!("{folder}/{}", path.file_name().unwrap().to_str().unwrap());
    if path.is_dir() {
        path.read_dir().unwrap().for_each(|entry| copy(scratch, &name, &entry.unwrap().path()));
    } else {
        scratch.write(&name, std::fs::read(path).unwrap());
    }
}

/// The options that all commands have.
const SOURCE: [&str; 6] = ["--manifests", "manifests", "--base", "base.iso", "--service-url", SERVICE];

/// Runs `discovery create` with these options beside the usual ones.
fn create(scratch: &Scratch, options: &[&str]) -> Output {
    scratch.command(["discovery", "create"].iter().chain(&SOURCE).chain(options)).output()
}
