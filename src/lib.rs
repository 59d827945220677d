//! Kindling makes per-cluster boot images from CoreOS base images, on demand.
//!
//! Everything that the program does is available as a library. Each of these crates can be used alone, without the
//! others above it:
//!
//! * [`isogen`] describes edited images as plans over an unmodified base image, and [`ignition`] makes the configs that
//!   go into them. [`discovery`] combines both: from typed values or Kubernetes manifests to the images of an infra-env.
//!   [`discovery::Image`] reads them: as `AsyncRead` and `AsyncSeek`, by ranges, or as a response body.
//!   [`discovery::representation`] answers HTTP requests for one as RFC 9110 requires.
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
pub mod doctor;
pub mod http;
pub mod images;
pub mod simulation;
mod sys;
mod trust;

pub use {agent, assisted, discovery, ignition, inventory, isogen};
