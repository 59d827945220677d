//! `kindling discovery`: images from manifests and options, on an administrator's machine.
//!
//! The manifests in `manifests/` are typical: a rack with bonds and VLANs, a single node behind a proxy, two address
//! families as a list in JSON, and a disconnected site with a mirror.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod base_images;
mod images;
mod interrupted;
mod messages;
mod plan_files;
mod refused_inputs;
mod selection;
mod served_images;
#[path = "../support/mod.rs"]
mod support;

use std::path::PathBuf;
use std::sync::LazyLock;

use fixtures::{Architecture, Era, Recipe};

use support::{RunOutput, Scratch};

/// The directories of manifests. The last one is `examples/site`.
const SITES: [&str; 5] = ["bonded", "single-node", "dual-stack", "disconnected", "example"];

const SERVICE: &str = "http://192.0.2.1:8090";
const ROOTFS: &str = "http://192.0.2.1/rootfs.img";

/// A base image with `nmstatectl` in its root file system.
static BASE: LazyLock<Vec<u8>> = LazyLock::new(|| base_recipe().build());

fn base_recipe() -> Recipe {
    Recipe::new(Architecture::X86_64, Era::E2024_12).with_program()
}

fn manifests_folder(site: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    if site == "example" {
        root.join("examples/site")
    } else {
        root.join("tests/offline/manifests").join(site)
    }
}

/// Creates a folder with the base image and the manifests of a site.
fn scratch_with_site(site: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.write("base.iso", &*BASE);
    for entry in manifests_folder(site).read_dir().unwrap() {
        copy_folder(&scratch, "manifests", &entry.unwrap().path());
    }
    scratch
}

fn copy_folder(scratch: &Scratch, folder: &str, path: &std::path::Path) {
    let name = format!("{folder}/{}", path.file_name().unwrap().to_str().unwrap());
    if path.is_dir() {
        path.read_dir().unwrap().for_each(|entry| copy_folder(scratch, &name, &entry.unwrap().path()));
    } else {
        scratch.write(&name, std::fs::read(path).unwrap());
    }
}

/// Options that all commands support.
const SOURCE: [&str; 6] = ["--manifests", "manifests", "--base", "base.iso", "--service-url", SERVICE];

/// Runs `discovery create` with these options in addition to `SOURCE`.
fn run_create(scratch: &Scratch, options: &[&str]) -> RunOutput {
    scratch.command(["discovery", "create"].iter().chain(&SOURCE).chain(options)).run()
}
