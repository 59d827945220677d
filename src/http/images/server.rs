//! The image server: its catalogue of base images, its library, and its caches.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use ignition::discovery::HttpUrl;

use super::boot_trace::ReaderTraces;
use super::inputs::{ImageInputs, SourceStatus};
use super::plans::SharedPlanCache;
use super::recent_answers::RecentAnswers;
use super::request_slots::RequestSlots;
use crate::http::metrics::Metrics;
use crate::images::library::Library;
use inventory::api::ApiError;
use inventory::catalogue::{CpuArchitecture, ImageType, OsImage, os_image_in_url};
use inventory::id::InfraEnvId;

/// The default time for a request to wait for a base image.
pub(crate) const BASE_IMAGE_WAIT: Duration = Duration::from_secs(60);

/// A server for images of infra-envs. The second field limits concurrent requests. The third one is the maximum time to
/// wait for a base image. Clones share the state.
#[derive(Clone, Debug)]
pub struct ImageServer(pub(super) Arc<ServerState>, pub(super) RequestSlots, pub(super) Duration);

#[derive(Debug)]
pub(super) struct ServerState {
    /// The catalogue: the base images that URLs can select.
    pub(super) images: Vec<Arc<OsImage>>,
    /// Base images that users added to the catalogue.
    pub(super) added_images: RwLock<Vec<Arc<OsImage>>>,
    pub(super) live_images: Library,
    pub(super) inputs: Arc<dyn ImageInputs>,
    pub(super) plans: Arc<SharedPlanCache>,
    pub(super) recent: RecentAnswers,
    pub(super) traces: ReaderTraces,
    pub(super) metrics: Metrics,
    /// The URL of this server as hosts reach it.
    pub(super) base_url: HttpUrl,
}

impl ImageServer {
    /// Creates a server whose images are based on the base images of a library. `images` is the catalogue, from which
    /// URLs can select.
    #[must_use]
    pub fn new(
        images: impl IntoIterator<Item = OsImage>,
        library: Library,
        inputs: Arc<dyn ImageInputs>,
        base_url: HttpUrl,
    ) -> Self {
        let images = images.into_iter().map(Arc::new).collect();
        let added_images = RwLock::default();
        let (recent, traces, metrics) = Default::default();
        let plans = new_plan_cache(&library, inputs.as_ref());
        let state = ServerState {
            images,
            added_images,
            live_images: library,
            inputs,
            plans,
            recent,
            traces,
            metrics,
            base_url,
        };
        Self(Arc::new(state), RequestSlots::default(), BASE_IMAGE_WAIT)
    }

    /// Sets the base images that users added. URLs can then select them, and the [library](Library::set_added)
    /// downloads them.
    pub fn set_added_images(&self, images: &[OsImage]) {
        // Update the URLs first, so that no URL selects an image that the library has already removed.
        let added = images.iter().cloned().map(Arc::new).collect();
        *self.0.added_images.write().unwrap_or_else(PoisonError::into_inner) = added;
        self.0.live_images.set_added(images.iter().cloned());
    }

    /// Sets the maximum number of concurrent image requests. Further requests wait.
    #[must_use]
    pub fn with_request_slots(self, count: usize) -> Self {
        Self(self.0, RequestSlots::new(count), self.2)
    }

    /// Sets how long a request waits for a base image that is being downloaded. After this time, the response is 503
    /// with `Retry-After`.
    #[must_use]
    pub fn with_base_image_wait(self, wait: Duration) -> Self {
        Self(self.0, self.1, wait)
    }

    #[must_use]
    pub(in crate::http) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(in crate::http) async fn source_status(&self) -> SourceStatus {
        self.0.inputs.source_status().await
    }

    /// Returns the image library, with the base images and their downloads.
    #[must_use]
    pub fn library(&self) -> &Library {
        &self.0.live_images
    }

    /// Returns the base image for a version in a URL.
    pub(super) fn os_image(
        &self,
        (version, architecture): (&str, CpuArchitecture),
        image_type: ImageType,
    ) -> Option<Arc<OsImage>> {
        let added = self.0.added_images.read().unwrap_or_else(PoisonError::into_inner);
        // The catalogue takes precedence over added images.
        let mut lists = [&self.0.images, &*added].into_iter();
        lists.find_map(|images| os_image_in_url(images, (version, architecture), image_type)).map(Arc::clone)
    }
}

/// Creates a plan cache that drops the plans of released base images and of removed infra-envs.
fn new_plan_cache(library: &Library, inputs: &dyn ImageInputs) -> Arc<SharedPlanCache> {
    let plans = Arc::<SharedPlanCache>::default();
    let released = Arc::downgrade(&plans);
    library.on_release(move |base| {
        if let Some(plans) = released.upgrade() {
            plans.drop_base(base.id());
        }
    });
    let removed = Arc::downgrade(&plans);
    inputs.on_removal(Box::new(move |id| {
        if let Some(plans) = removed.upgrade() {
            plans.drop_infra_env(InfraEnvId(id));
        }
    }));
    plans
}

/// Returns the error for a version without a base image.
pub(super) fn no_such_image_error((version, architecture): (&str, CpuArchitecture)) -> ApiError {
    ApiError::not_found(format!("no base image of version {version} for architecture {architecture}"))
}

/// Returns the error for a version in the query without a base image. Its status is 400, as in the Assisted Image
/// Service.
pub(super) fn bad_version_error((version, architecture): (&str, CpuArchitecture)) -> ApiError {
    ApiError::bad(no_such_image_error((version, architecture)).reason())
}
