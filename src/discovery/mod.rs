//! What the images of an infra-env are made of: from inputs to an Ignition config, network files and kernel arguments.
//!
//! This is where `ignition`, which writes configs, and `isogen`, which puts them into images, meet. [`Inputs`] are the
//! same whether they come from the inventory, from another service or from files on a laptop.

mod artifact;
mod error;
mod inputs;
pub(crate) mod tar;

pub use artifact::{Ground, Rendered};
pub use error::DiscoveryError;
pub use inputs::{Inputs, newest_spec};
