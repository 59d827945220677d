//! Exports the state of the controllers of custom resources in the server's metrics and health response.

use std::fmt;

use operator::{ControllerMetrics, Leadership, Operator, OperatorMetrics};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::http::{App, ControllerHealth, Controllers, encode_durations};

/// Adds the controllers of an operator to the metrics and the health response of a server.
pub(super) fn export(operator: &Operator, app: &App) {
    app.export_controllers(Box::new(OperatorCollector::new(operator)));
}

/// A collector of the metrics of an operator.
#[derive(Debug)]
struct OperatorCollector {
    metrics: OperatorMetrics,
    leadership: Leadership,
}

/// The name and the help text of a gauge, and a function that returns its value.
type ControllerGauge = (&'static str, &'static str, fn(&ControllerMetrics) -> usize);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabel {
    controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    kind: String,
    verb: &'static str,
    outcome: &'static str,
}

impl OperatorCollector {
    fn new(operator: &Operator) -> Self {
        Self { metrics: operator.metrics(), leadership: operator.leadership() }
    }

    fn encode_controllers(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let controllers = &self.metrics.controllers;
        let label = |metrics: &ControllerMetrics| ControllerLabel { controller: metrics.name() };
        let gauges: [ControllerGauge; 2] = [
            (
                "kube_queue_depth",
                "Custom resources that wait for a reconciliation or are being reconciled",
                ControllerMetrics::queue_depth,
            ),
            (
                "kube_failing_objects",
                "Custom resources whose last reconciliation failed",
                ControllerMetrics::failing_objects,
            ),
        ];
        for (name, help, value) in gauges {
            let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for metrics in controllers {
                let value = i64::try_from(value(metrics)).unwrap_or(i64::MAX);
                ConstGauge::new(value).encode(gauge.encode_family(&label(metrics))?)?;
            }
        }
        let help = "Time of reconciliations of custom resources, including failed ones";
        let mut seconds =
            encoder.encode_descriptor("kube_reconciliation_seconds", help, None, MetricType::Histogram)?;
        for metrics in controllers {
            encode_durations(seconds.encode_family(&label(metrics))?, metrics.durations())?;
        }
        let help = "Reconciliations of custom resources that failed and are retried";
        let mut failures =
            encoder.encode_descriptor("kube_reconciliation_failures", help, None, MetricType::Counter)?;
        for metrics in controllers {
            ConstCounter::new(metrics.failures()).encode(failures.encode_family(&label(metrics))?)?;
        }
        Ok(())
    }

    fn encode_requests(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let requests = self.metrics.requests.snapshot();
        if requests.is_empty() {
            return Ok(());
        }
        let help = "Requests to the Kubernetes API without watches and leases";
        let mut counter = encoder.encode_descriptor("kube_requests", help, None, MetricType::Counter)?;
        for ((kind, verb, outcome), count) in requests {
            let labels = RequestLabels { kind, verb: verb.as_str(), outcome };
            ConstCounter::new(count).encode(counter.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl Collector for OperatorCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "1 if this replica is the leader, which alone reconciles custom resources";
        let leader = encoder.encode_descriptor("kube_leader", help, None, MetricType::Gauge)?;
        ConstGauge::new(i64::from(self.leadership.is_valid())).encode(leader)?;
        self.encode_controllers(&mut encoder)?;
        self.encode_requests(&mut encoder)
    }
}

impl Controllers for OperatorCollector {
    fn health(&self) -> ControllerHealth {
        ControllerHealth { leader: self.leadership.is_valid(), synced: self.metrics.is_synced() }
    }
}
