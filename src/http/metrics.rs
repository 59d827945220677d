//! The metrics of the server, in the format of Prometheus.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Response, StatusCode, header};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::images::library::{ImageState, State};

/// The media type of [`Metrics::text`].
pub(super) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The upper bounds of the histogram buckets, in seconds.
const BUCKETS: [f64; 11] = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];

/// The metrics of a server. Clones share the counters.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    head_seconds: Family<AreaLabel, Histogram, fn() -> Histogram>,
    /// The entries of `requests` and `head_seconds` for ranges of images, which most requests are for.
    ranges: (Counter, Histogram),
    answers: Family<AnswerLabels, Counter>,
    bytes: Family<FileLabel, Counter>,
    plans: Family<OutcomeLabel, Counter>,
    plan_seconds: Histogram,
    live_images: Family<LiveImageLabels, Gauge>,
    live_image_bytes: Family<LiveImageLabel, Gauge>,
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
struct LiveImageLabels {
    image: String,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LiveImageLabel {
    image: String,
}

impl RequestLabels {
    fn new(area: Area, status: StatusCode) -> Self {
        Self { area: area.as_str(), status: status.as_u16() }
    }
}

/// The area of the server that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Area {
    /// The inventory.
    Api,
    /// Images, and files of base images.
    Images,
    /// Health and metrics, and unknown paths.
    Other,
}

impl Area {
    /// Returns the area of a path.
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
        fn times() -> Histogram {
            Histogram::new(BUCKETS)
        }
        let requests = Family::<RequestLabels, Counter>::default();
        let head_seconds = Family::new_with_constructor(times as fn() -> Histogram);
        let of_ranges = RequestLabels::new(Area::Images, StatusCode::PARTIAL_CONTENT);
        let ranges = (
            requests.get_or_create(&of_ranges).clone(),
            head_seconds.get_or_create(&AreaLabel { area: of_ranges.area }).clone(),
        );
        let mut counts = Counts {
            registry: Registry::with_prefix("kindling"),
            requests,
            head_seconds,
            ranges,
            answers: Family::default(),
            bytes: Family::default(),
            plans: Family::default(),
            plan_seconds: times(),
            live_images: Family::default(),
            live_image_bytes: Family::default(),
            memory: Gauge::default(),
            descriptors: Gauge::default(),
        };
        counts.register();
        Self(Arc::new(counts))
    }
}

impl Counts {
    fn register(&mut self) {
        let Self { registry, .. } = self;
        registry.register("requests", "Requests that were answered", self.requests.clone());
        registry.register(
            "request_head_seconds",
            "Time from a request to the head of its answer",
            self.head_seconds.clone(),
        );
        registry.register(
            "image_answers",
            "Answers with bytes of images, by what was asked for",
            self.answers.clone(),
        );
        registry.register("image_bytes", "Bytes of images that were sent", self.bytes.clone());
        registry.register("plans", "Plans that were made", self.plans.clone());
        registry.register("plan_seconds", "Time to make a plan", self.plan_seconds.clone());
        registry.register(
            "live_image_state",
            "1 for the state that a live image is in",
            self.live_images.clone(),
        );
        registry.register(
            "live_image_bytes",
            "Bytes of a live image that are there",
            self.live_image_bytes.clone(),
        );
        registry.register(
            "private_memory_bytes",
            "Memory of the process that is backed by no file",
            self.memory.clone(),
        );
        registry.register(
            "open_descriptors",
            "Descriptors that the process has open",
            self.descriptors.clone(),
        );
    }
}

impl Metrics {
    /// Counts a response.
    pub(super) fn answered(&self, area: Area, status: StatusCode, after: Duration) {
        if area == Area::Images && status == StatusCode::PARTIAL_CONTENT {
            let (requests, seconds) = &self.0.ranges;
            requests.inc();
            seconds.observe(after.as_secs_f64());
            return;
        }
        let labels = RequestLabels::new(area, status);
        self.0.requests.get_or_create(&labels).inc();
        self.0.head_seconds.get_or_create(&AreaLabel { area: labels.area }).observe(after.as_secs_f64());
    }

    /// Returns the counters of the answers with a file, by its name in our URLs.
    pub(super) fn meter(&self, file: &'static str) -> Meter {
        let kind = |kind| self.0.answers.get_or_create(&AnswerLabels { file, kind }).clone();
        Meter(Arc::new(FileCounts {
            whole: kind("whole"),
            range: kind("range"),
            ranges: kind("ranges"),
            not_modified: kind("not_modified"),
            refused: kind("refused"),
            bytes: self.0.bytes.get_or_create(&FileLabel { file }).clone(),
        }))
    }

    /// Counts an attempt to make a plan.
    pub(super) fn planned(&self, within: Duration, is_made: bool) {
        let outcome = if is_made { "made" } else { "failed" };
        self.0.plans.get_or_create(&OutcomeLabel { outcome }).inc();
        self.0.plan_seconds.observe(within.as_secs_f64());
    }

    /// Returns all metrics as text, with the current states of base images.
    pub(super) fn text(&self, images: &[ImageState]) -> String {
        self.0.live_images.clear();
        for image in images {
            let (state, bytes) = match &image.state {
                State::Absent => ("absent", 0),
                State::Downloading { have, .. } => ("downloading", *have),
                State::Verifying { total, .. } => ("verifying", *total),
                State::Ready { len, .. } => ("ready", *len),
                State::Failed { .. } => ("failed", 0),
            };
            let name = || image.name.clone();
            self.0.live_images.get_or_create(&LiveImageLabels { image: name(), state }).set(1);
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            self.0.live_image_bytes.get_or_create(&LiveImageLabel { image: name() }).set(bytes);
        }
        self.0.memory.set(private_memory().unwrap_or(0));
        self.0.descriptors.set(open_descriptors().unwrap_or(0));
        let mut text = String::new();
        if text::encode(&mut text, &self.0.registry).is_err() {
            // Writing to a `String` does not fail.
            let _ = text.write_str("# EOF\n");
        }
        text
    }
}

/// The counters of the responses with one file.
#[derive(Clone, Debug)]
pub(super) struct Meter(Arc<FileCounts>);

#[derive(Debug)]
struct FileCounts {
    whole: Counter,
    range: Counter,
    ranges: Counter,
    not_modified: Counter,
    refused: Counter,
    bytes: Counter,
}

impl Meter {
    /// Counts the head of a response.
    pub(super) fn answered<B>(&self, response: &Response<B>) {
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

    /// Counts the head of a response with one range.
    pub(super) fn answered_range(&self) {
        self.0.range.inc();
    }

    /// Counts `len` sent bytes.
    pub(super) fn sent(&self, len: u64) {
        self.0.bytes.inc_by(len);
    }
}

/// Returns the memory of this process that no file backs, if the system reports it.
fn private_memory() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn open_descriptors() -> Option<i64> {
    i64::try_from(std::fs::read_dir("/proc/self/fd").ok()?.count()).ok()
}
