//! Finds the embed areas of a base image: the regions reserved for Ignition and kernel arguments.
//!
//! Builders have described the areas in different ways over the years: in JSON files under `coreos/`, in headers at the
//! end of the system area, or not at all. The newest description has precedence. No offset is hard-coded.

mod description;
mod features;
mod header;
mod ignition;
mod kargs;
mod marker;

pub(crate) use description::{DescribedImage, IGNITION_INFO, KARGS_INFO};
pub use features::Features;
pub(crate) use header::SystemAreaHeaders;
pub use ignition::{IgnitionArea, IgnitionOrigin};
pub(crate) use kargs::{KargsDescription, read_kargs_areas};
