//! What the images of an infra-env are made of: from inputs to an Ignition config, network files and kernel arguments.
//!
//! This is where `ignition`, which writes configs, and `isogen`, which puts them into images, meet. [`Inputs`] are the
//! same whether they come from the inventory, from another service or from files on a laptop.

mod build;
mod draft;
mod error;
mod finding;
mod image_set;
mod inputs;
mod plan_file;
pub(crate) mod tar;

pub use build::{BaseContext, PackedConfig, RenderedConfig};
pub(crate) use draft::reason;
pub use draft::{Draft, Host, HostOrigin, Surroundings, Text};
pub use error::DiscoveryError;
pub use finding::{Finding, Findings, Given, Place};
pub use image_set::{Form, ImageSet};
pub use inputs::{Inputs, newest_spec};
pub use plan_file::{PlanFile, PlanFileError, Stamp};
