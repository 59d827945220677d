//! The metrics of the server in the Prometheus format.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Response, StatusCode, header};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::certificate_metrics::CertificateCollector;
use super::controllers::{ControllerCollector, ControllerHealth, Controllers};
use super::listener::Certificate;
use super::source_metrics::SourceMetrics;
use super::store_metrics::StoreCollector;
use super::task_metrics::TaskCollector;
use crate::images::library::{BaseImageState, ImageState};
use inventory::Inventory;
use inventory::api::ApiError;

/// The media type of the text from [`Metrics::to_text`].
pub(super) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The upper bounds of histogram buckets in seconds.
const BUCKETS: [f64; 11] = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];

/// The metrics of a server. Clones share the counters.
#[derive(Clone, Debug)]
pub(super) struct Metrics(Arc<MetricFamilies>);

#[derive(Debug)]
struct MetricFamilies {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    head_seconds: Family<AreaLabel, Histogram, fn() -> Histogram>,
    /// The entries of `requests` and `head_seconds` for ranges of images. They are stored here because most requests
    /// are for such ranges.
    ranges: (Counter, Histogram),
    answers: Family<AnswerLabels, Counter>,
    bytes: Family<FileLabel, Counter>,
    plans: Family<OutcomeLabel, Counter>,
    plan_seconds: Histogram,
    live_images: Family<BaseImageStateLabels, Gauge>,
    live_image_bytes: Family<BaseImageLabel, Gauge>,
    deleted_image_bytes: Gauge,
    store: StoreCollector,
    tasks: TaskCollector,
    certificate: CertificateCollector,
    controllers: ControllerCollector,
    memory: Gauge,
    descriptors: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    area: &'static str,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AreaLabel {
    area: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    file: &'static str,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FileLabel {
    file: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BaseImageStateLabels {
    image: String,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BaseImageLabel {
    image: String,
}

impl RequestLabels {
    fn new(area: RequestArea, status: StatusCode) -> Self {
        Self { area: area.as_str(), status: status.as_u16() }
    }
}

/// The part of the server that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestArea {
    /// The API of the inventory.
    Api,
    /// Images and files of base images.
    Images,
    /// Health and metrics, pages, and unknown paths.
    Other,
}

impl RequestArea {
    /// Returns the area that a path belongs to.
    pub(super) fn from_path(path: &str) -> Self {
        match path.split('/').nth(1) {
            Some("api") => Self::Api,
            Some("i" | "images" | "byid" | "byapikey" | "bytoken" | "boot-artifacts") => Self::Images,
            _ => Self::Other,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Images => "images",
            Self::Other => "other",
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        fn duration_histogram() -> Histogram {
            Histogram::new(BUCKETS)
        }
        let requests = Family::<RequestLabels, Counter>::default();
        let head_seconds = Family::new_with_constructor(duration_histogram as fn() -> Histogram);
        let of_ranges = RequestLabels::new(RequestArea::Images, StatusCode::PARTIAL_CONTENT);
        let ranges = (
            requests.get_or_create(&of_ranges).clone(),
            head_seconds.get_or_create(&AreaLabel { area: of_ranges.area }).clone(),
        );
        let mut counts = MetricFamilies {
            registry: Registry::with_prefix("kindling"),
            requests,
            head_seconds,
            ranges,
            answers: Family::default(),
            bytes: Family::default(),
            plans: Family::default(),
            plan_seconds: duration_histogram(),
            live_images: Family::default(),
            live_image_bytes: Family::default(),
            deleted_image_bytes: Gauge::default(),
            store: StoreCollector::default(),
            tasks: TaskCollector::default(),
            certificate: CertificateCollector::default(),
            controllers: ControllerCollector::default(),
            memory: Gauge::default(),
            descriptors: Gauge::default(),
        };
        counts.register();
        Self(Arc::new(counts))
    }
}

impl MetricFamilies {
    fn register(&mut self) {
        let Self { registry, .. } = self;
        registry.register("requests", "Requests with a response, by area and status", self.requests.clone());
        registry.register(
            "request_head_seconds",
            "Time from a request to the head of its response",
            self.head_seconds.clone(),
        );
        registry.register(
            "image_answers",
            "Responses with image bytes, by file and kind of request",
            self.answers.clone(),
        );
        registry.register("image_bytes", "Image bytes sent", self.bytes.clone());
        registry.register("plans", "Attempts to make a plan, by outcome", self.plans.clone());
        registry.register("plan_seconds", "Time to make a plan", self.plan_seconds.clone());
        registry.register(
            "live_image_state",
            "1 for the current state of a base image",
            self.live_images.clone(),
        );
        registry.register(
            "live_image_bytes",
            "Bytes of a base image that the library has",
            self.live_image_bytes.clone(),
        );
        registry.register(
            "deleted_image_bytes",
            "Bytes of removed or replaced base images that readers in progress keep on the disk",
            self.deleted_image_bytes.clone(),
        );
        registry.register_collector(Box::new(self.store.clone()));
        registry.register_collector(Box::new(self.tasks.clone()));
        registry.register_collector(Box::new(self.certificate.clone()));
        registry.register_collector(Box::new(self.controllers.clone()));
        registry.register("private_memory_bytes", "Anonymous memory of the process", self.memory.clone());
        registry.register(
            "open_descriptors",
            "Open file descriptors of the process",
            self.descriptors.clone(),
        );
    }
}

impl Metrics {
    /// Counts a response. `after` is the time from the request to the response head.
    pub(super) fn count_response(&self, area: RequestArea, status: StatusCode, after: Duration) {
        if area == RequestArea::Images && status == StatusCode::PARTIAL_CONTENT {
            let (requests, seconds) = &self.0.ranges;
            requests.inc();
            seconds.observe(after.as_secs_f64());
            return;
        }
        let labels = RequestLabels::new(area, status);
        self.0.requests.get_or_create(&labels).inc();
        self.0.head_seconds.get_or_create(&AreaLabel { area: labels.area }).observe(after.as_secs_f64());
    }

    /// Returns the counters for responses with a file. `file` is the name of the file in URLs under `/i`.
    pub(super) fn file_meter(&self, file: &'static str) -> FileMeter {
        let kind = |kind| self.0.answers.get_or_create(&AnswerLabels { file, kind }).clone();
        FileMeter(Arc::new(FileCounts {
            whole: kind("whole"),
            range: kind("range"),
            ranges: kind("ranges"),
            not_modified: kind("not_modified"),
            refused: kind("refused"),
            bytes: self.0.bytes.get_or_create(&FileLabel { file }).clone(),
        }))
    }

    /// Counts an attempt to create a plan.
    pub(super) fn count_plan(&self, within: Duration, is_made: bool) {
        let outcome = if is_made { "made" } else { "failed" };
        self.0.plans.get_or_create(&OutcomeLabel { outcome }).inc();
        self.0.plan_seconds.observe(within.as_secs_f64());
    }

    /// Adds the metrics of an inventory.
    pub(super) fn add_inventory(&self, inventory: &Inventory) {
        self.0.store.set(inventory.records().store());
        self.0.tasks.set(inventory);
    }

    /// Adds the validity of the server's certificate.
    pub(super) fn add_certificate(&self, certificate: &Certificate) {
        self.0.certificate.set(certificate);
    }

    /// Adds the metrics of the controllers of custom resources.
    pub(super) fn add_controllers(&self, controllers: Box<dyn Controllers>) {
        self.0.controllers.set(controllers);
    }

    /// Returns the health of the controllers of custom resources. Returns `None` if this process runs none.
    pub(super) fn controller_health(&self) -> Option<ControllerHealth> {
        self.0.controllers.health()
    }

    /// Returns all metrics as text, including the states of the base images and of the source of infra-envs.
    /// `deleted_bytes` is the total length of deleted base images that are still open.
    ///
    /// # Errors
    ///
    /// Returns an error if a metric cannot be formatted as text.
    pub(super) fn to_text(
        &self,
        (images, deleted_bytes): (&[ImageState], u64),
        source: SourceMetrics,
    ) -> Result<String, ApiError> {
        self.0.live_images.clear();
        self.0.live_image_bytes.clear();
        for image in images {
            let (state, bytes) = match &image.state {
                BaseImageState::Absent => ("absent", 0),
                BaseImageState::Downloading { have, .. } => ("downloading", *have),
                BaseImageState::Verifying { total, .. } => ("verifying", *total),
                BaseImageState::Ready { len, .. } => ("ready", *len),
                BaseImageState::Failed { .. } => ("failed", 0),
            };
            let name = || image.name.clone();
            self.0.live_images.get_or_create(&BaseImageStateLabels { image: name(), state }).set(1);
            // No file is longer than the maximum value of a gauge.
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            self.0.live_image_bytes.get_or_create(&BaseImageLabel { image: name() }).set(bytes);
        }
        self.0.deleted_image_bytes.set(i64::try_from(deleted_bytes).unwrap_or(i64::MAX));
        // If the system reports no value, the metric keeps its previous value.
        private_memory().map(|bytes| self.0.memory.set(bytes));
        open_descriptors().map(|count| self.0.descriptors.set(count));
        let mut of_source = Registry::with_prefix("kindling");
        of_source.register_collector(Box::new(source));
        let mut text = String::new();
        text::encode_registry(&mut text, &self.0.registry)
            .and_then(|()| text::encode_registry(&mut text, &of_source))
            .and_then(|()| text::encode_eof(&mut text))
            .map_err(|error| ApiError::broken(format_args!("metrics cannot be written as text: {error}")))?;
        Ok(text)
    }
}

/// The counters for responses with one file.
#[derive(Clone, Debug)]
pub(super) struct FileMeter(Arc<FileCounts>);

#[derive(Debug)]
struct FileCounts {
    whole: Counter,
    range: Counter,
    ranges: Counter,
    not_modified: Counter,
    refused: Counter,
    bytes: Counter,
}

impl FileMeter {
    /// Counts the head of a response by kind: whole file, one range, several ranges, not modified, or refused.
    pub(super) fn count_head<B>(&self, response: &Response<B>) {
        let counter = match response.status() {
            StatusCode::OK => &self.0.whole,
            StatusCode::PARTIAL_CONTENT if response.headers().contains_key(header::CONTENT_RANGE) => {
                &self.0.range
            }
            StatusCode::PARTIAL_CONTENT => &self.0.ranges,
            StatusCode::NOT_MODIFIED => &self.0.not_modified,
            _ => &self.0.refused,
        };
        counter.inc();
    }

    /// Counts the head of a response with a single range.
    pub(super) fn count_range_head(&self) {
        self.0.range.inc();
    }

    /// Counts sent bytes.
    pub(super) fn count_sent(&self, len: u64) {
        self.0.bytes.inc_by(len);
    }
}

/// Returns the private memory of this process: memory without a file behind it. Returns `None` if the system does not
/// report it.
fn private_memory() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn open_descriptors() -> Option<i64> {
    i64::try_from(std::fs::read_dir("/proc/self/fd").ok()?.count()).ok()
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
    use prometheus_client::metrics::MetricType;

    use super::*;

    /// A metric that cannot be formatted as text.
    #[derive(Debug)]
    struct Unwritable;

    impl EncodeMetric for Unwritable {
        fn encode(&self, _: MetricEncoder<'_>) -> Result<(), fmt::Error> {
            Err(fmt::Error)
        }

        fn metric_type(&self) -> MetricType {
            MetricType::Gauge
        }
    }

    #[test]
    fn metric_without_text_is_an_error() {
        let source = || SourceMetrics { is_reachable: true };
        let mut metrics = Metrics::default();
        metrics.to_text((&[], 0), source()).unwrap();
        Arc::get_mut(&mut metrics.0).unwrap().registry.register("unwritable", "No text", Unwritable);
        assert_eq!(
            metrics.to_text((&[], 0), source()).unwrap_err().status(),
            StatusCode::INTERNAL_SERVER_ERROR
        );
    }
}
