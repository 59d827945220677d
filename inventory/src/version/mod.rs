//! Versions of components and OpenShift, and the base images that clients add.

mod model;
mod os_image;
mod routes;
mod support;

use model::ComponentVersions;
use os_image::{OsImageParams, OsImageView};
pub(crate) use routes::routes;
use support::SupportedArchitectures;
