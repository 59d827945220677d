//! Metrics for the source of infra-envs: whether it can be reached, and the change feed of the database.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use inventory::store::{Contact, DurationHistogram, Store};

/// The source of infra-envs at the time of a scrape.
#[derive(Clone, Debug)]
pub(super) struct SourceMetrics {
    /// Whether the source can be reached, as far as is known.
    pub(super) is_reachable: bool,
}

impl Collector for SourceMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        gauge(
            &mut encoder,
            ("source_reachable", "1 if the database or the external inventory can be reached"),
            f64::from(u8::from(self.is_reachable)),
        )
    }
}

/// The name and help text of a metric.
type Described = (&'static str, &'static str);

/// Encodes the metrics of the change feed.
pub(super) fn encode_feed(encoder: &mut DescriptorEncoder<'_>, store: &dyn Store) -> Result<(), fmt::Error> {
    let feed = store.feed();
    let metrics = feed.metrics();
    let is_connected = feed.contact() == Contact::Connected;
    let described = ("feed_connected", "1 if changes of other replicas are reported");
    gauge(encoder, described, f64::from(u8::from(is_connected)))?;
    let described = ("feed_silence_seconds", "Time since cached records were last known to be current");
    gauge(encoder, described, feed.silence().as_secs_f64())?;
    let described = ("feed_lag_seconds", "Time from sending a notification to its arrival");
    let mut lag = describe(encoder, described, MetricType::Histogram)?;
    histogram(&mut lag, metrics.lag())?;
    let described = ("feed_notifications", "Notifications that arrived from other replicas");
    counter(encoder, described, metrics.notifications())?;
    counter(encoder, ("feed_resyncs", "Times that changes may have been missed"), metrics.resyncs())?;
    let described = ("feed_repairs", "Cached records that differed from the database");
    counter(encoder, described, metrics.repairs())
}

fn describe<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    (name, help): Described,
    kind: MetricType,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, help, None, kind)
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, described: Described, value: f64) -> Result<(), fmt::Error> {
    describe(encoder, described, MetricType::Gauge)?.encode_gauge(&value)
}

fn counter(encoder: &mut DescriptorEncoder<'_>, described: Described, value: u64) -> Result<(), fmt::Error> {
    describe(encoder, described, MetricType::Counter)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

fn histogram(encoder: &mut MetricEncoder<'_>, durations: &DurationHistogram) -> Result<(), fmt::Error> {
    let bounds = DurationHistogram::BOUNDS_MICROS.map(|micros| Duration::from_micros(micros).as_secs_f64());
    let bounds = bounds.into_iter().chain([f64::INFINITY]);
    let buckets = durations.buckets();
    let counted: Vec<_> = bounds.zip(buckets).collect();
    let count = buckets.iter().sum();
    encoder.encode_histogram::<NoLabelSet>(durations.sum().as_secs_f64(), count, &counted, None)
}
