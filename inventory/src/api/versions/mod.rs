//! Routes of versions and base images.

mod model;
mod routes;
mod support;

use model::ComponentVersions;
pub(super) use routes::routes;
use support::SupportedArchitectures;
