//! Kindling makes per-cluster boot images of CoreOS live images, on the fly.
//!
//! The crate is the product around two others: [`isogen`], which describes changed images as byte plans over an
//! untouched base, and [`ignition`], which makes the configs that go into them. What the program does, a library call
//! does as well:
//!
//! * [`manifests`] reads an infra-env from Kubernetes manifests, as a [`discovery::Draft`]; or a draft is filled by hand.
//! * [`discovery::Draft::inputs`] makes typed [`discovery::Inputs`] of it, or tells all that is wrong, with the places.
//! * [`discovery::ImageSet`] gives the images of the inputs on a base as plans; [`discovery::PlanFile`] takes one elsewhere.
//! * [`Image`] reads a plan: as `AsyncRead` and `AsyncSeek`, by ranges, or as the body of an answer. [`http::Content`] answers
//!   HTTP requests for one to the letter.
//! * [`images::library`] is the cache of live images: it fetches, verifies and opens them.
//! * [`inventory`] is the API of infra-envs, clusters and hosts; [`http::app`] is it together with the images, as a
//!   `tower` service for any server, or for the one of [`http::serve`].
//! * [`boot_test::BootTest`] boots an image in QEMU and waits until it is up.
//!
//! The folder `examples` has a program for each.

pub mod api_error;
pub mod boot_test;
mod bucket;
pub mod cli;
pub mod customize;
pub mod discovery;
pub mod doctor;
pub mod http;
mod image;
pub mod images;
pub mod inventory;
pub mod manifests;
mod recent;
mod trust;

pub use image::{Image, ImageBody, ImageReader};
pub use {ignition, isogen};
