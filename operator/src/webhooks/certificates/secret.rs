//! The Secret that stores the certificates.
//!
//! `state.json` contains the whole state. `ca.crt`, `tls.crt` and `tls.key` repeat parts of it for users and other
//! programs.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};

use super::{CertificateState, SECRET};
use crate::errors::RequestError;
use crate::object::Version;
use crate::requests::Verb;
use crate::writer::{Writer, with_version};

const STATE: &str = "state.json";

/// Returns the state in the Secret, or `None` if the Secret has no valid state.
pub(super) fn state_of(secret: &Secret) -> Option<CertificateState> {
    let ByteString(text) = secret.data.as_ref()?.get(STATE)?;
    match serde_json::from_slice(text) {
        Ok(state) => Some(state),
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, secret = SECRET, "cannot read the certificates of the webhooks");
            None
        }
    }
}

/// Reads the Secret. Returns its state and version, or `None` for each of them that does not exist.
///
/// # Errors
///
/// Returns an error if the request fails.
pub(crate) async fn read(
    writer: &Writer,
    api: &Api<Secret>,
) -> Result<(Option<CertificateState>, Option<Version>), RequestError> {
    match writer.send::<Secret, _>(Verb::Get, api.get(SECRET)).await {
        Ok(secret) => Ok((state_of(&secret), Some(Version::from_meta(&secret.metadata)))),
        Err(RequestError::Gone) => Ok((None, None)),
        Err(error) => Err(error),
    }
}

/// Creates the Secret, or replaces its state if it still has this version.
///
/// # Errors
///
/// Returns an error if the Secret has another version, or if the request fails.
pub(crate) async fn write(
    writer: &Writer,
    api: &Api<Secret>,
    (state, version): (&CertificateState, Option<&Version>),
) -> Result<(), RequestError> {
    let (certificate, key) = state.serving();
    let text = serde_json::to_string(state).unwrap_or_default();
    let data = [
        (STATE, text),
        ("ca.crt", state.bundle()),
        ("tls.crt", certificate.to_owned()),
        ("tls.key", key.to_owned()),
    ];
    let data = data.into_iter().map(|(name, text)| (name.to_owned(), ByteString(text.into_bytes())));
    let metadata = ObjectMeta { name: Some(SECRET.to_owned()), ..ObjectMeta::default() };
    let secret = Secret {
        metadata,
        data: Some(data.collect()),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    };
    match version {
        None => {
            let params = PostParams::default();
            writer.send::<Secret, _>(Verb::Create, api.create(&params, &secret)).await?;
        }
        Some(version) => {
            let patch = with_version(serde_json::json!({"data": secret.data}), version);
            let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
            writer.send::<Secret, _>(Verb::Patch, api.patch(SECRET, &params, &patch)).await?;
        }
    }
    Ok(())
}
