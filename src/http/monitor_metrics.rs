//! The measurements of the inventory's monitor, as metrics.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::store_metrics::encode_durations;
use inventory::Inventory;
use inventory::monitor::MonitorHealth;

/// Exports the measurements of a monitor. Clones are the same collector. It exports nothing before it has an inventory.
#[derive(Clone, Debug, Default)]
pub(super) struct MonitorCollector(Arc<OnceLock<Inventory>>);

impl MonitorCollector {
    /// Sets the inventory, unless the collector already has one. A server has one inventory.
    pub(super) fn set(&self, inventory: &Inventory) {
        self.0.get_or_init(|| inventory.clone());
    }
}

impl Collector for MonitorCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(monitor) = self.0.get().map(Inventory::monitor) else { return Ok(()) };
        let help = "Whether this replica monitors the hosts";
        let is_active = monitor.health(Duration::MAX) == Some(MonitorHealth::Active);
        let active = encoder.encode_descriptor("monitor_active", help, None, MetricType::Gauge)?;
        ConstGauge::new(i64::from(is_active)).encode(active)?;
        let help = "Time of the monitor's passes over all hosts";
        let seconds = encoder.encode_descriptor("monitor_pass_seconds", help, None, MetricType::Histogram)?;
        encode_durations(seconds, monitor.passes())?;
        let help = "Hosts that this replica disconnected because they did not check in";
        let hosts =
            encoder.encode_descriptor("monitor_disconnected_hosts", help, None, MetricType::Counter)?;
        ConstCounter::new(monitor.disconnected_hosts()).encode(hosts)
    }
}
