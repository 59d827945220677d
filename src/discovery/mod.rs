//! Discovery images: from the inputs of an infra-env to an Ignition config, network files, kernel arguments and plans.
//!
//! This module combines `ignition`, which writes configs, and `isogen`, which edits images. [`Inputs`] are the same for
//! the inventory, an external inventory and files on the command line.

mod build;
mod create_params;
mod draft;
mod finding;
mod image_set;
mod plan_file;

pub use build::{BaseContext, PackedConfig};
pub(crate) use draft::reason;
pub use draft::{Draft, Host, HostOrigin, ServiceContext, Text};
pub use finding::{DiscoveryFinding, DiscoveryReport, Located, SourceLocation};
pub use image_set::{Form, ImageSet};
pub use inventory::discovery::{DiscoveryError, Inputs, RenderedConfig};
pub use plan_file::{ImageIdentity, PlanFile, PlanFileError};
