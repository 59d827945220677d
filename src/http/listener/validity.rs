//! Determines for which time a certificate chain is valid.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore};

/// A time after the expiry of every certificate: the first second of the year 10000.
const AFTER_ALL: Duration = Duration::from_secs(253_402_300_800);

/// The time during which all certificates of a chain are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) struct ValidityPeriod {
    /// When the last of the certificates becomes valid.
    pub(in crate::http) begin: DateTime<Utc>,
    /// When the first of the certificates expires.
    pub(in crate::http) end: DateTime<Utc>,
}

impl ValidityPeriod {
    /// Returns the validity of a chain. Returns `None` if no certificate can be parsed.
    pub(super) fn of_chain(chain: &[CertificateDer<'_>]) -> Option<Self> {
        chain
            .iter()
            .filter_map(Self::of_certificate)
            .reduce(|one, other| Self { begin: one.begin.max(other.begin), end: one.end.min(other.end) })
    }

    /// Returns the validity of a certificate. rustls reveals the dates only in verification errors. Verification checks
    /// the dates first, so this function verifies the certificate at a time before and at a time after its validity.
    fn of_certificate(certificate: &CertificateDer<'_>) -> Option<Self> {
        let parsed = ParsedCertificate::try_from(certificate).ok()?;
        let verify = |at: Duration| {
            let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms.all;
            let time = UnixTime::since_unix_epoch(at);
            verify_server_cert_signed_by_trust_anchor(&parsed, &RootCertStore::empty(), &[], time, algorithms)
        };
        let Err(Error::InvalidCertificate(CertificateError::NotValidYetContext {
            not_before: begin, ..
        })) = verify(Duration::ZERO)
        else {
            return None;
        };
        let Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after: end, .. })) =
            verify(AFTER_ALL)
        else {
            return None;
        };
        let date = |time: UnixTime| DateTime::from_timestamp(i64::try_from(time.as_secs()).ok()?, 0);
        Some(Self { begin: date(begin)?, end: date(end)? })
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn certificate(from: i32, until: i32) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(from, 1, 2), date_time_ymd(until, 3, 4));
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    fn date(text: &str) -> DateTime<Utc> {
        format!("{text}T00:00:00Z").parse().unwrap()
    }

    #[test]
    fn validity_is_common_to_all_certificates_of_a_chain() {
        let (first, second) = (certificate(2001, 2040), certificate(2020, 2060));
        let period = |begin, end| Some(ValidityPeriod { begin: date(begin), end: date(end) });
        assert_eq!(ValidityPeriod::of_chain(from_ref(&first)), period("2001-01-02", "2040-03-04"));
        assert_eq!(ValidityPeriod::of_chain(from_ref(&second)), period("2020-01-02", "2060-03-04"));
        assert_eq!(ValidityPeriod::of_chain(&[first, second]), period("2020-01-02", "2040-03-04"));
        assert_eq!(ValidityPeriod::of_chain(&[certificate(1999, 9999)]), period("1999-01-02", "9999-03-04"));
    }

    #[test]
    fn chain_without_a_certificate_has_no_validity() {
        assert_eq!(ValidityPeriod::of_chain(&[]), None);
        assert_eq!(ValidityPeriod::of_chain(&[CertificateDer::from(vec![0x30, 0])]), None);
    }
}
