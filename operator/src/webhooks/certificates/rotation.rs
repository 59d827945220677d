//! The certificates of the webhooks, and their renewal before they expire.
//!
//! A new certificate authority signs nothing until all API servers have had time to trust it. So API servers trust the
//! serving certificate at all times.

use chrono::{DateTime, TimeDelta, Utc};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use serde::{Deserialize, Serialize};

/// The lifetime of a certificate authority.
const AUTHORITY_LIFE: TimeDelta = TimeDelta::days(730);
/// The lifetime of a serving certificate. It ends before the lifetime of the authority, even if the authority is due
/// for renewal.
const SERVING_LIFE: TimeDelta = TimeDelta::days(90);
/// Time between publishing a new authority and its first signature.
const OVERLAP: TimeDelta = TimeDelta::hours(1);
/// Time for which a certificate is already valid before its creation, so that clients whose clocks are slow accept it.
const CLOCK_SKEW: TimeDelta = TimeDelta::hours(1);

/// All certificates and keys of the webhooks. The Secret stores them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CertificateState {
    /// The authority that signs serving certificates.
    signing: Authority,
    /// The authority that will sign after the API servers have had time to trust it.
    next: Option<Authority>,
    /// Former authorities, which sign nothing any more.
    retired: Vec<RetiredAuthority>,
    /// The current serving certificate.
    serving: ServingCertificate,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Authority {
    name: String,
    certificate: String,
    key: KeyText,
    validity: Validity,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RetiredAuthority {
    certificate: String,
    until: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ServingCertificate {
    names: Vec<String>,
    certificate: String,
    key: KeyText,
    validity: Validity,
}

/// A private key in PEM.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct KeyText(String);

impl std::fmt::Debug for KeyText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[key]")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Validity {
    since: DateTime<Utc>,
    until: DateTime<Utc>,
}

/// The error for a certificate that cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a certificate for the webhooks")]
pub(crate) struct RotationError(#[from] rcgen::Error);

impl Validity {
    fn from_life(since: DateTime<Utc>, life: TimeDelta) -> Self {
        Self { since, until: since + life }
    }

    /// Returns `true` if two thirds of the lifetime have passed.
    fn is_due(self, now: DateTime<Utc>) -> bool {
        now >= self.since + (self.until - self.since) * 2 / 3
    }
}

impl CertificateState {
    /// Returns the state after all due renewals, or `None` if nothing is due. An absent or expired state is replaced.
    ///
    /// The caller must have published the [`bundle`](Self::bundle) of `stored` before.
    ///
    /// # Errors
    ///
    /// Returns an error if a certificate cannot be created.
    pub(crate) fn renewed(
        stored: Option<&Self>,
        now: DateTime<Utc>,
        names: &[String],
    ) -> Result<Option<Self>, RotationError> {
        let Some(stored) = stored.filter(|state| now < state.signing.validity.until) else {
            return Ok(Some(Self::create(now, names)?));
        };
        let mut state = stored.clone();
        state.retired.retain(|authority| now < authority.until);
        if state.next.is_none() && state.signing.validity.is_due(now) {
            state.next = Some(Authority::create(now)?);
        }
        if let Some(next) = state.next.take_if(|next| now >= next.validity.since + OVERLAP) {
            let Authority { certificate, validity, .. } = std::mem::replace(&mut state.signing, next);
            state.retired.push(RetiredAuthority { certificate, until: validity.until });
            state.serving = state.signing.sign(now, names)?;
        }
        if state.serving.validity.is_due(now) || state.serving.names != names {
            state.serving = state.signing.sign(now, names)?;
        }
        Ok((state != *stored).then_some(state))
    }

    fn create(now: DateTime<Utc>, names: &[String]) -> Result<Self, RotationError> {
        let signing = Authority::create(now)?;
        let serving = signing.sign(now, names)?;
        Ok(Self { signing, next: None, retired: Vec::new(), serving })
    }

    /// Returns the certificates of all authorities, in PEM. The API server must trust them.
    pub(crate) fn bundle(&self) -> String {
        let current = [Some(&self.signing), self.next.as_ref()];
        let current = current.into_iter().flatten().map(|authority| authority.certificate.as_str());
        current.chain(self.retired.iter().map(|authority| authority.certificate.as_str())).collect()
    }

    /// Returns the serving certificate and its key, in PEM.
    pub(crate) fn serving(&self) -> (&str, &str) {
        (&self.serving.certificate, &self.serving.key.0)
    }
}

impl Authority {
    fn create(now: DateTime<Utc>) -> Result<Self, RotationError> {
        let (key, validity) = (KeyPair::generate()?, Validity::from_life(now, AUTHORITY_LIFE));
        // The name differs for each authority, so that clients can find the authority of a certificate.
        let name = format!("kindling-webhook-ca {}", now.format("%Y-%m-%dT%H:%M:%SZ"));
        let certificate = authority_params(&name, validity).self_signed(&key)?.pem();
        Ok(Self { name, certificate, key: KeyText(key.serialize_pem()), validity })
    }

    fn sign(&self, now: DateTime<Utc>, names: &[String]) -> Result<ServingCertificate, RotationError> {
        let authority_key = KeyPair::from_pem(&self.key.0)?;
        let issuer = Issuer::new(authority_params(&self.name, self.validity), authority_key);
        let (key, validity) = (KeyPair::generate()?, Validity::from_life(now, SERVING_LIFE));
        let mut params = CertificateParams::new(names.to_vec())?;
        params.distinguished_name = common_name("kindling-webhook");
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        set_validity(&mut params, validity);
        let certificate = params.signed_by(&key, &issuer)?.pem();
        let key = KeyText(key.serialize_pem());
        Ok(ServingCertificate { names: names.to_vec(), certificate, key, validity })
    }
}

fn authority_params(name: &str, validity: Validity) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    set_validity(&mut params, validity);
    params
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished_name = DistinguishedName::new();
    distinguished_name.push(DnType::CommonName, name);
    distinguished_name
}

fn set_validity(params: &mut CertificateParams, validity: Validity) {
    let time = |time: DateTime<Utc>| {
        let seconds = u64::try_from(time.timestamp()).unwrap_or_default();
        date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(seconds)
    };
    params.not_before = time(validity.since - CLOCK_SKEW);
    params.not_after = time(validity.until);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio_rustls::rustls::RootCertStore;
    use tokio_rustls::rustls::client::WebPkiServerVerifier;
    use tokio_rustls::rustls::client::danger::ServerCertVerifier as _;
    use tokio_rustls::rustls::crypto::aws_lc_rs;
    use tokio_rustls::rustls::pki_types::pem::PemObject as _;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};

    use super::*;

    fn begin() -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap()
    }

    fn names() -> Vec<String> {
        vec!["kindling.ns.svc".to_owned(), "127.0.0.1".to_owned()]
    }

    /// Returns `true` if a client that trusts `bundle` accepts the serving certificate for both names.
    fn is_trusted(bundle: &str, serving: &str, now: DateTime<Utc>) -> bool {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
            roots.add(certificate.unwrap()).unwrap();
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let certificate = CertificateDer::from_pem_slice(serving.as_bytes()).unwrap();
        let time = Duration::from_secs(u64::try_from(now.timestamp()).unwrap());
        names().iter().all(|name| {
            let name = ServerName::try_from(name.as_str()).unwrap();
            verifier
                .verify_server_cert(&certificate, &[], &name, &[], UnixTime::since_unix_epoch(time))
                .is_ok()
        })
    }

    fn renew(state: &CertificateState, now: DateTime<Utc>) -> Option<CertificateState> {
        CertificateState::renewed(Some(state), now, &names()).unwrap()
    }

    #[test]
    fn certificates_stay_trusted_with_the_previous_bundle_or_certificate() {
        let mut now = begin();
        let mut state = CertificateState::renewed(None, now, &names()).unwrap().unwrap();
        let (mut signers, mut renewals) = (std::collections::BTreeSet::new(), 0);
        while now < begin() + TimeDelta::days(5 * 365) {
            // After a renewal, an API server may still trust the previous bundle, or a replica may still serve the
            // previous certificate.
            if let Some(after) = renew(&state, now) {
                assert!(is_trusted(&state.bundle(), after.serving().0, now), "{now}");
                assert!(is_trusted(&after.bundle(), state.serving().0, now), "{now}");
                assert!(after.bundle().matches("BEGIN CERTIFICATE").count() <= 2);
                (state, renewals) = (after, renewals + 1);
            }
            assert!(is_trusted(&state.bundle(), state.serving().0, now), "{now}");
            signers.insert(state.signing.name.clone());
            now += TimeDelta::hours(5);
        }
        assert_eq!(signers.len(), 4);
        assert!((30..45).contains(&renewals), "{renewals}");
    }

    #[test]
    fn serving_certificate_is_renewed_at_two_thirds_of_its_life() {
        let state = CertificateState::renewed(None, begin(), &names()).unwrap().unwrap();
        assert_eq!(renew(&state, begin() + TimeDelta::days(60) - TimeDelta::seconds(1)), None);
        let renewed = renew(&state, begin() + TimeDelta::days(60)).unwrap();
        assert_ne!(renewed.serving, state.serving);
        assert_eq!(renewed.bundle(), state.bundle());
    }

    #[test]
    fn different_names_cause_a_new_certificate() {
        let state = CertificateState::renewed(None, begin(), &["other.ns.svc".to_owned()]).unwrap().unwrap();
        assert!(!is_trusted(&state.bundle(), state.serving().0, begin()));
        let renewed = renew(&state, begin()).unwrap();
        assert!(is_trusted(&renewed.bundle(), renewed.serving().0, begin()));
    }

    #[test]
    fn new_authority_is_published_before_it_signs() {
        let state = CertificateState::renewed(None, begin(), &names()).unwrap().unwrap();
        let due = begin() + AUTHORITY_LIFE * 2 / 3;
        let published = renew(&state, due).unwrap();
        assert!(published.bundle().starts_with(&state.bundle()) && published.bundle() != state.bundle());
        assert_eq!(published.signing, state.signing);
        assert_eq!(renew(&published, due + OVERLAP - TimeDelta::seconds(1)), None);
        let promoted = renew(&published, due + OVERLAP).unwrap();
        assert_eq!(Some(&promoted.signing), published.next.as_ref());
        assert!(is_trusted(&published.bundle(), promoted.serving().0, due + OVERLAP));
        assert!(is_trusted(&promoted.bundle(), published.serving().0, due + OVERLAP));
    }

    #[test]
    fn expired_authority_is_replaced() {
        let state = CertificateState::renewed(None, begin(), &names()).unwrap().unwrap();
        let now = begin() + AUTHORITY_LIFE;
        let replaced = renew(&state, now).unwrap();
        assert!(is_trusted(&replaced.bundle(), replaced.serving().0, now));
    }

    #[test]
    fn keys_are_not_logged() {
        let state = CertificateState::renewed(None, begin(), &names()).unwrap().unwrap();
        assert!(!format!("{state:?}").contains("PRIVATE KEY"));
    }
}
