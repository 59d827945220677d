//! Metrics for the inventory's background tasks.

use std::fmt;
use std::sync::{Arc, OnceLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::store_metrics::encode_durations;
use inventory::Inventory;
use inventory::background::SILENCE;
use inventory::service::TaskStates;

/// Exports the metrics of background tasks. Exports nothing until an inventory is set. Clones share the inventory.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskCollector(Arc<OnceLock<Inventory>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TaskLabel {
    task: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    task: &'static str,
    result: &'static str,
}

impl TaskCollector {
    /// Sets the inventory. Later calls have no effect, because a server has one inventory.
    pub(super) fn set(&self, inventory: &Inventory) {
        self.0.get_or_init(|| inventory.clone());
    }
}

impl Collector for TaskCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(tasks) = self.0.get().map(Inventory::tasks) else { return Ok(()) };
        encode_monitor(&mut encoder, tasks)?;
        encode_tasks(&mut encoder, tasks)
    }
}

/// Encodes the metrics of the tasks that disconnect silent hosts and assess clusters.
fn encode_monitor(encoder: &mut DescriptorEncoder<'_>, tasks: &TaskStates) -> Result<(), fmt::Error> {
    let help = "Whether this replica monitors the hosts";
    let active = encoder.encode_descriptor("monitor_active", help, None, MetricType::Gauge)?;
    ConstGauge::new(i64::from(tasks.is_leader())).encode(active)?;
    if let Some(silence) = tasks.find(SILENCE) {
        let help = "Time of the monitor's passes over all hosts";
        let seconds = encoder.encode_descriptor("monitor_pass_seconds", help, None, MetricType::Histogram)?;
        encode_durations(seconds, silence.durations())?;
    }
    let help = "Hosts that this replica disconnected because they did not check in";
    let hosts = encoder.encode_descriptor("monitor_disconnected_hosts", help, None, MetricType::Counter)?;
    ConstCounter::new(tasks.disconnected_hosts()).encode(hosts)?;
    let help = "Assessments of clusters by this replica";
    let clusters = encoder.encode_descriptor("assessed_clusters", help, None, MetricType::Counter)?;
    ConstCounter::new(tasks.assessed_clusters()).encode(clusters)?;
    let help = "Hosts whose validation results these assessments wrote";
    let hosts = encoder.encode_descriptor("assessment_written_hosts", help, None, MetricType::Counter)?;
    ConstCounter::new(tasks.written_results()).encode(hosts)
}

fn encode_tasks(encoder: &mut DescriptorEncoder<'_>, tasks: &TaskStates) -> Result<(), fmt::Error> {
    let tasks = tasks.all();
    if tasks.is_empty() {
        return Ok(());
    }
    let help = "Runs of background tasks";
    let mut runs = encoder.encode_descriptor("task_runs", help, None, MetricType::Counter)?;
    for state in &tasks {
        for (result, count) in [("success", state.durations().count()), ("error", state.failures())] {
            let labels = ResultLabels { task: state.name(), result };
            ConstCounter::new(count).encode(runs.encode_family(&labels)?)?;
        }
    }
    let help = "Time of runs of background tasks that succeeded";
    let mut seconds =
        encoder.encode_descriptor("task_duration_seconds", help, None, MetricType::Histogram)?;
    for state in &tasks {
        encode_durations(seconds.encode_family(&TaskLabel { task: state.name() })?, state.durations())?;
    }
    let help = "Whether the latest run of a background task failed; the log has the error";
    let mut failing = encoder.encode_descriptor("task_failing", help, None, MetricType::Gauge)?;
    for state in &tasks {
        let is_failing = i64::from(state.last_error().is_some());
        ConstGauge::new(is_failing).encode(failing.encode_family(&TaskLabel { task: state.name() })?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ignition::discovery::HttpUrl;
    use inventory::Settings;
    use inventory::auth::Policy;
    use inventory::catalogue::Catalogue;
    use inventory::files::FileStore;
    use inventory::store::SqlStore;
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;

    use super::*;

    /// The smallest valid catalogue.
    const OS_IMAGES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64",
        "url": "http://192.0.2.1/418.iso", "version": "418.94.1"}]"#;

    fn text_of(registry: &Registry) -> String {
        let mut text = String::new();
        text::encode(&mut text, registry).unwrap();
        text
    }

    #[tokio::test]
    async fn runs_of_background_tasks_are_exported() {
        let directory = tempfile::TempDir::new().unwrap();
        let store = Arc::new(SqlStore::open_file(&directory.path().join("kindling.db")).await.unwrap());
        let files = FileStore::in_directory(&directory.path().join("files")).unwrap();
        let url = HttpUrl::parse("origin", "http://192.0.2.1").unwrap();
        let catalogue = Catalogue::parse(OS_IMAGES).unwrap();
        let settings = Settings::new(url.clone(), url);
        let inventory = Inventory::new(store, files, catalogue, settings, Policy::Open);
        let collector = TaskCollector::default();
        let mut registry = Registry::with_prefix("kindling");
        registry.register_collector(Box::new(collector.clone()));
        collector.set(&inventory);
        assert!(!text_of(&registry).contains("kindling_task_"));

        let leads_and_has_run = async {
            let has_run = || inventory.tasks().find(SILENCE).is_some_and(|task| task.durations().count() > 0);
            while !(inventory.tasks().is_leader() && has_run()) {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            () = inventory::background::run(inventory.clone(), std::future::pending()) => {}
            () = leads_and_has_run => {}
            () = tokio::time::sleep(std::time::Duration::from_secs(20)) => panic!("it does not lead"),
        }
        let text = text_of(&registry);
        for line in [
            "kindling_monitor_active 1\n",
            "kindling_monitor_pass_seconds_count 1\n",
            "kindling_monitor_disconnected_hosts_total 0\n",
            "kindling_assessed_clusters_total 0\n",
            "kindling_assessment_written_hosts_total 0\n",
            "kindling_task_runs_total{task=\"silence\",result=\"success\"} 1\n",
            "kindling_task_runs_total{task=\"retention\",result=\"error\"} 0\n",
            "kindling_task_duration_seconds_count{task=\"silence\"} 1\n",
            "kindling_task_failing{task=\"silence\"} 0\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        inventory.close().await;
    }
}
