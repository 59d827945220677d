//! Kindling makes per-cluster boot images from CoreOS base images, on demand.
//!
//! This crate uses two others: [`isogen`] describes edited images as plans over an unmodified base image, and
//! [`ignition`] makes the configs that go into them. Everything that the program does is available as a library:
//!
//! * [`manifests`] reads an infra-env from Kubernetes manifests, as a [`discovery::Draft`]. A draft can also be filled
//!   in directly.
//! * [`discovery::Draft::inputs`] returns typed [`discovery::Inputs`], or all findings with their positions.
//! * [`discovery::ImageSet`] returns the images of the inputs as plans over a base image. [`discovery::PlanFile`]
//!   stores a plan in a file, to make the same image elsewhere.
//! * [`Image`] reads a plan: as `AsyncRead` and `AsyncSeek`, by ranges, or as a response body. [`http::Representation`]
//!   answers HTTP requests for a plan as RFC 9110 requires.
//! * [`images::library`] is the image library: it downloads, verifies and opens base images.
//! * [`inventory`] is the API of infra-envs, clusters and hosts. [`http::app`] combines it with the images as a `tower`
//!   service, for any server or for [`http::serve`].
//! * [`simulation::Simulation`] runs the agents of simulated hosts against any server.
//! * [`boot_test::BootTest`] boots an image in QEMU and waits until it is up.
//!
//! The folder `examples` has programs that use these parts.

mod base_files;
pub mod boot_test;
pub mod cli;
pub mod customize;
pub mod discovery;
pub mod doctor;
pub mod http;
mod image;
pub mod images;
pub mod manifests;
pub mod simulation;
mod sys;
mod trust;

pub use image::{Image, ImageBody, ImageReader};
pub use {agent, assisted, ignition, inventory, isogen};
