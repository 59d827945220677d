//! What goes into the discovery images of an infra-env: from its inputs to an Ignition config, network files and kernel
//! arguments.
//!
//! The inventory, an external inventory and files on the command line have the same [`Inputs`]. Other code edits base
//! images with the result.

mod error;
mod inputs;
mod rendered;

pub use crate::tar::LongName;
pub use error::DiscoveryError;
pub use inputs::{Inputs, newest_spec};
pub use rendered::RenderedConfig;
