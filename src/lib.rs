//! Kindling makes per-cluster boot images from CoreOS base images, on demand.
//!
//! All functions of the program are also available as a library. Each part can be used without the parts that follow
//! it:
//!
//! * [`isogen`] describes edited images as plans over an unmodified base image.
//! * [`ignition`] generates the configs that these images contain.
//! * [`discovery`] combines both: it turns typed values or Kubernetes manifests into the images of an infra-env.
//!   [`discovery::Image`] reads an image: as `AsyncRead` and `AsyncSeek`, by ranges, or as a response body.
//!   [`discovery::representation`] builds the HTTP responses for an image, as RFC 9110 requires.
//! * [`images::library`] is the image library: it downloads, verifies and opens base images.
//! * [`inventory`] is the API of infra-envs, clusters and hosts. [`http::app`] combines it with the images as a `tower`
//!   service, for any server or for [`http::serve`].
//! * [`simulation::Simulation`] runs the agents of simulated hosts against any server.
//! * [`boot_test::BootTest`] boots an image in QEMU and waits for a marker on its console.
//!
//! The folder `examples` contains programs that use these parts.

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
