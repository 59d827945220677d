//! Metrics for the inventory's store.

use std::fmt;
use std::sync::{Arc, OnceLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

use super::source_metrics::encode_feed;
use inventory::store::{DurationHistogram, Operation, Store, StoreMetrics};

/// Exports the metrics of a store. Exports nothing until a store is set. Clones share the store.
#[derive(Clone, Debug, Default)]
pub(super) struct StoreCollector(Arc<OnceLock<Arc<dyn Store>>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabel {
    operation: &'static str,
}

impl StoreCollector {
    /// Sets the store. Later calls have no effect, because a server has one inventory.
    pub(super) fn set(&self, store: &Arc<dyn Store>) {
        self.0.get_or_init(|| Arc::clone(store));
    }
}

impl Collector for StoreCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(store) = self.0.get() else { return Ok(()) };
        encode_feed(&mut encoder, store.as_ref())?;
        encode(encoder, store.metrics())
    }
}

fn encode(mut encoder: DescriptorEncoder<'_>, metrics: &StoreMetrics) -> Result<(), fmt::Error> {
    let label = |operation: Operation| OperationLabel { operation: operation.as_str() };
    let help = "Time of operations of the database, including failed ones";
    let mut seconds =
        encoder.encode_descriptor("store_operation_seconds", help, None, MetricType::Histogram)?;
    for operation in Operation::ALL {
        encode_durations(seconds.encode_family(&label(operation))?, metrics.durations(operation))?;
    }
    let help = "Failed operations of the database; conflicts are not failures";
    let mut failures = encoder.encode_descriptor("store_failures", help, None, MetricType::Counter)?;
    for operation in Operation::ALL {
        let count = ConstCounter::new(metrics.failures(operation));
        count.encode(failures.encode_family(&label(operation))?)?;
    }
    let counters = [
        (
            "store_conflicts",
            "Commits that wrote nothing because they conflicted with another change",
            metrics.conflicts(),
        ),
        ("store_retries", "Changes planned again after a conflict", metrics.retries()),
        ("host_check_ins", "Polls of agents", metrics.check_ins()),
        ("host_check_ins_stored", "Check-ins stored together with others", metrics.stored_check_ins()),
    ];
    for (name, help, count) in counters {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(count).encode(metric)?;
    }
    Ok(())
}

pub(crate) fn encode_durations(
    mut encoder: MetricEncoder<'_>,
    durations: &DurationHistogram,
) -> Result<(), fmt::Error> {
    let counts = durations.buckets();
    let bounds = DurationHistogram::BOUNDS_MICROS.into_iter();
    let bounds = bounds.map(|micros| std::time::Duration::from_micros(micros).as_secs_f64());
    let buckets: Vec<_> = bounds.chain([f64::INFINITY]).zip(counts).collect();
    // Read the sum after the buckets. Operations that end in between are in the sum, but are not yet counted.
    let (sum, count) = (durations.sum().as_secs_f64(), counts.iter().sum());
    encoder.encode_histogram::<OperationLabel>(sum, count, &buckets, None)
}

#[cfg(test)]
mod tests {
    use inventory::store::{Changes, Key, Kind, Outcome, SqlStore, Step};
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;
    use uuid::Uuid;

    use super::*;

    fn text_of(registry: &Registry) -> String {
        let mut text = String::new();
        text::encode(&mut text, registry).unwrap();
        text
    }

    #[tokio::test]
    async fn operations_failures_and_conflicts_are_exported() {
        let directory = tempfile::TempDir::new().unwrap();
        let collector = StoreCollector::default();
        let mut registry = Registry::with_prefix("kindling");
        registry.register_collector(Box::new(collector.clone()));
        assert_eq!(text_of(&registry), "# EOF\n");
        let store = SqlStore::open_file(&directory.path().join("kindling.db")).await.unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        collector.set(&store);
        let key = Key { kind: Kind::Cluster, parent: None, id: Uuid::new_v4() };
        assert_eq!(store.get(key).await.unwrap(), None);
        let changes = Changes { steps: vec![Step::RequireAt(key, 7)], events: Vec::new() };
        assert_eq!(store.commit(changes).await.unwrap(), Outcome::Overtaken);
        store.close().await;
        store.get(key).await.unwrap_err();
        let text = text_of(&registry);
        for line in [
            "# TYPE kindling_store_operation_seconds histogram",
            r#"kindling_store_operation_seconds_count{operation="read"} 2"#,
            r#"kindling_store_operation_seconds_count{operation="commit"} 1"#,
            r#"kindling_store_operation_seconds_count{operation="reserve"} 0"#,
            r#"kindling_store_operation_seconds_bucket{le="0.0001",operation="reserve"} 0"#,
            r#"kindling_store_operation_seconds_bucket{le="+Inf",operation="read"} 2"#,
            "# TYPE kindling_store_failures counter",
            r#"kindling_store_failures_total{operation="read"} 1"#,
            r#"kindling_store_failures_total{operation="commit"} 0"#,
            "kindling_store_conflicts_total 1",
            "kindling_store_retries_total 0",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
    }
}
