//! Images over HTTP: which one a URL means, what goes into it, and the plan that is kept for the next range.
//!
//! A request for an image comes through four steps. [`Artifact`] says what the URL means. [`ImageInputs`] says whether
//! the caller may have it, and in which revision it is now. [`Plans`] has the plan of that revision, or makes it once. What
//! is left is HTTP, and [`Content`](crate::http::content::Content) does it.

mod artifact;
mod embedded;
mod external;
mod inputs;
mod known;
mod listing;
mod plans;
mod routes;
mod serving;
mod trace;
mod turns;
mod wanted;
mod watched;

use std::sync::Arc;

use axum::Router;

pub use artifact::{Artifact, BootFile};
pub use embedded::Embedded;
pub use external::{External, ExternalError, ExternalSettings, QUIET, TRUST};
pub use inputs::{Access, Current, ImageInputs, Origin};
pub(crate) use known::Asker;
pub use plans::{Plans, What};
pub(super) use routes::only_reads;
pub use turns::MAX_REQUESTS;
pub(crate) use watched::Watched;

use crate::api_error::ApiError;
use crate::http::metrics::Metrics;
use crate::images::library::Library;
use crate::images::{CpuArchitecture, ImageType, OsImage};
use crate::inventory::auth::GuardedRouter;
use ignition::discovery::HttpUrl;
use known::Known;
use trace::Traces;
use turns::Turns;

/// The name of the script with which iPXE boots the machines of an infra-env, in our own URLs.
const SCRIPT: &str = "script.ipxe";

/// Serves images. Clones are the same server.
#[derive(Clone, Debug)]
pub struct ImageServer(Arc<Parts>, Turns);

#[derive(Debug)]
struct Parts {
    /// What URLs may ask for.
    images: Vec<OsImage>,
    live_images: Library,
    inputs: Arc<dyn ImageInputs>,
    plans: Plans,
    known: Known,
    traces: Traces,
    metrics: Metrics,
    /// Where machines reach this server.
    base_url: HttpUrl,
}

impl ImageServer {
    /// A server of images that are made on live images of a library, of which URLs know those of a catalogue.
    #[must_use]
    pub fn new(
        images: impl IntoIterator<Item = OsImage>,
        library: Library,
        inputs: Arc<dyn ImageInputs>,
        base_url: HttpUrl,
    ) -> Self {
        let images = images.into_iter().collect();
        let (plans, known, traces, metrics) = Default::default();
        let parts = Parts { images, live_images: library, inputs, plans, known, traces, metrics, base_url };
        Self(Arc::new(parts), Turns::default())
    }

    /// The same with another number of requests that are answered at a time; others wait.
    #[must_use]
    pub fn answering(self, most: usize) -> Self {
        Self(self.0, Turns::new(most))
    }

    /// Its routes.
    pub fn router(&self) -> Router {
        self.guarded_router().into_parts().0
    }

    /// Its routes, with the access to each of them.
    pub(crate) fn guarded_router(&self) -> GuardedRouter {
        routes::routes().map(|router| router.with_state(self.clone()))
    }

    /// What it counts.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The live images.
    #[must_use]
    pub fn live_images(&self) -> &Library {
        &self.0.live_images
    }

    /// The live image that a version in a URL means: one of that version of its own, else one for that version of
    /// OpenShift. Disconnected images have live images of their own.
    fn os_image(
        &self,
        (version, architecture): (&str, CpuArchitecture),
        image_type: ImageType,
    ) -> Option<&OsImage> {
        let fits =
            |image: &&OsImage| image.cpu_architecture == architecture && image.image_type == image_type;
        let images = || self.0.images.iter().filter(fits);
        let by_own = images().find(|image| image.version == version);
        by_own.or_else(|| images().find(|image| image.openshift_version == version))
    }

    /// Where machines fetch the root file system of a live image.
    fn rootfs_url(&self, image: &OsImage) -> String {
        let base = self.0.base_url.as_str().trim_end_matches('/');
        format!("{base}/boot-artifacts/rootfs?arch={}&version={}", image.cpu_architecture, image.version)
    }
}

/// What a client hears of a version that there is no image for.
fn no_such_image((version, architecture): (&str, CpuArchitecture)) -> ApiError {
    ApiError::not_found(format!("no image of version {version} for {architecture} is served here"))
}

/// What a client hears of a query that names such a version: as it always was, that it is a bad request.
fn bad_version((version, architecture): (&str, CpuArchitecture)) -> ApiError {
    ApiError::bad(no_such_image((version, architecture)).reason())
}
