//! The image server: the catalogue, the base images, and what it remembers of earlier requests.

use std::sync::Arc;

use ignition::discovery::HttpUrl;

use super::inputs::ImageInputs;
use super::plans::Plans;
use super::recent_answers::RecentAnswers;
use super::request_slots::RequestSlots;
use super::trace::Traces;
use crate::api_error::ApiError;
use crate::http::metrics::Metrics;
use crate::images::library::Library;
use crate::images::{CpuArchitecture, ImageType, OsImage};

/// Serves images. Clones are the same server.
#[derive(Clone, Debug)]
pub struct ImageServer(pub(super) Arc<Parts>, pub(super) RequestSlots);

#[derive(Debug)]
pub(super) struct Parts {
    /// What URLs may ask for.
    pub(super) images: Vec<OsImage>,
    pub(super) live_images: Library,
    pub(super) inputs: Arc<dyn ImageInputs>,
    pub(super) plans: Plans,
    pub(super) recent: RecentAnswers,
    pub(super) traces: Traces,
    pub(super) metrics: Metrics,
    /// Where machines reach this server.
    pub(super) base_url: HttpUrl,
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
        let (plans, recent, traces, metrics) = Default::default();
        let parts = Parts { images, live_images: library, inputs, plans, recent, traces, metrics, base_url };
        Self(Arc::new(parts), RequestSlots::default())
    }

    /// The same with another number of requests that are answered at a time; others wait.
    #[must_use]
    pub fn answering(self, most: usize) -> Self {
        Self(self.0, RequestSlots::new(most))
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
    pub(super) fn os_image(
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
    pub(super) fn rootfs_url(&self, image: &OsImage) -> String {
        let base = self.0.base_url.as_str().trim_end_matches('/');
        format!("{base}/boot-artifacts/rootfs?arch={}&version={}", image.cpu_architecture, image.version)
    }
}

/// The error for a version without a base image.
pub(super) fn no_such_image((version, architecture): (&str, CpuArchitecture)) -> ApiError {
    ApiError::not_found(format!("no image of version {version} for {architecture} is served here"))
}

/// What a client hears of a query that names such a version: as it always was, that it is a bad request.
pub(super) fn bad_version((version, architecture): (&str, CpuArchitecture)) -> ApiError {
    ApiError::bad(no_such_image((version, architecture)).reason())
}
