//! Metrics for the validity of the server's certificate.

use std::fmt;
use std::sync::{Arc, OnceLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::listener::Certificate;

/// Exports the validity of a certificate. Exports nothing until a certificate is set. Clones share the certificate.
#[derive(Clone, Debug, Default)]
pub(super) struct CertificateCollector(Arc<OnceLock<Certificate>>);

impl CertificateCollector {
    /// Sets the certificate. Later calls have no effect, because a server has one certificate, which it may reload.
    pub(super) fn set(&self, certificate: &Certificate) {
        self.0.get_or_init(|| certificate.clone());
    }
}

impl Collector for CertificateCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(period) = self.0.get().and_then(Certificate::validity) else { return Ok(()) };
        for (name, help, time) in [
            (
                "tls_certificate_not_before_timestamp_seconds",
                "Time since when the whole certificate chain of the server is valid",
                period.begin,
            ),
            (
                "tls_certificate_not_after_timestamp_seconds",
                "Time when the first certificate in the chain of the server expires",
                period.end,
            ),
        ] {
            let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(time.timestamp()).encode(gauge)?;
        }
        Ok(())
    }
}
