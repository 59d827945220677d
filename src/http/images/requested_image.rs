//! Parses a request for an image: its path, query and headers.

use std::convert::Infallible;
use std::future::pending;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri, Version};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use discovery::{ImageRevision, InvalidRevision};
use ignition::network::MacAddr;

use super::artifact::Artifact;
use super::inputs::ImageCredentials;
use crate::http::listener::{ClientAddress, ShutdownSignal};
use crate::http::zerocopy::BodyMode;
use inventory::Secret;
use inventory::api::ApiError;
use inventory::api::Query;
use inventory::catalogue::CpuArchitecture;
use inventory::id::InfraEnvId;

/// The parts of a request other than its path parameters.
#[derive(Debug)]
pub(super) struct ImageRequest {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) version: Version,
    pub(super) headers: HeaderMap,
    pub(super) query: Query,
    pub(super) client: ClientAddress,
    pub(super) mode: BodyMode,
    /// The shutdown signal of the server. `None` if another HTTP server passed the request.
    shutdown: Option<ShutdownSignal>,
}

impl<S: Send + Sync> FromRequestParts<S> for ImageRequest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        Ok(Self {
            query: Query::from_request_parts(parts, state).await?,
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            version: parts.version,
            headers: std::mem::take(&mut parts.headers),
            client: parts.extensions.get().copied().unwrap_or_default(),
            mode: BodyMode::from_request_parts(parts, state).await?,
            shutdown: parts.extensions.get().cloned(),
        })
    }
}

impl ImageRequest {
    /// Waits until the shutdown of the server begins.
    pub(super) async fn shutdown_begun(&self) {
        match &self.shutdown {
            Some(signal) => signal.clone().begun().await,
            None => pending().await,
        }
    }

    /// Returns the credentials in the query or the headers, for paths without a token.
    pub(super) fn credentials(&self) -> ImageCredentials {
        if let Some(token) = self.query.text("api_key") {
            return ImageCredentials::ApiKey(Secret::new(token));
        }
        if let Some(token) = self.query.text("image_token") {
            return ImageCredentials::ImageToken(Secret::new(token));
        }
        // A header that is not text counts as missing. The authentication policy then refuses the request.
        let authorization = self.headers.get("authorization").and_then(|value| value.to_str().ok());
        authorization
            .map_or(ImageCredentials::Nothing, |token| ImageCredentials::Authorization(Secret::new(token)))
    }

    /// Returns the version and CPU architecture of the base image from the query.
    pub(super) fn base_image_version(&self) -> Result<(String, CpuArchitecture), ApiError> {
        let version = self.query.text("version");
        let version = version.ok_or_else(|| ApiError::malformed("version in query is required"))?;
        let name = self.query.text("arch").unwrap_or("x86_64");
        match CpuArchitecture::from_name(name) {
            Some(architecture) => Ok((version.to_owned(), architecture)),
            None => {
                Err(ApiError::malformed(format!("arch in query is {name:?}, which is not an architecture")))
            }
        }
    }
}

/// The image that a request selects.
#[derive(Debug)]
pub(super) struct RequestedImage {
    pub(super) infra_env: InfraEnvId,
    pub(super) artifact: Artifact,
    /// The MAC address of the host, if the image is for one host only.
    pub(super) machine: Option<MacAddr>,
    /// The version and CPU architecture of the base image, if the URL contains them. Otherwise, the infra-env selects
    /// the base image.
    pub(super) live_image: Option<(String, CpuArchitecture)>,
    pub(super) access: ImageCredentials,
    /// Whether the request is for the SHA-256 digest of the image.
    pub(super) is_digest: bool,
    /// The revision in the URL. `None` for the current image.
    pub(super) revision: Option<RequestedRevision>,
}

/// A revision in a URL, with the form of that URL.
#[derive(Debug)]
pub(super) struct RequestedRevision {
    pub(super) revision: ImageRevision,
    pub(super) form: RevisionUrl,
}

/// The form of a URL with a revision. An error names the current URL in the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RevisionUrl {
    ById,
    ByApiKey,
    ByToken,
    Initrd,
}

impl RequestedRevision {
    pub(super) fn parse(text: &str, form: RevisionUrl) -> Result<Self, ApiError> {
        let revision =
            text.parse().map_err(|error: InvalidRevision| ApiError::not_found(error.to_string()))?;
        Ok(Self { revision, form })
    }
}

impl RequestedImage {
    /// Parses the path of a short URL of the Assisted Image Service.
    pub(super) fn from_short_url(
        infra_env: InfraEnvId,
        [version, architecture, file]: [String; 3],
        access: ImageCredentials,
    ) -> Result<Self, ApiError> {
        let (file, is_digest) = strip_digest_suffix(&file);
        let artifact = Artifact::from_iso_file_name(file).ok_or_else(|| no_such_file_error(file))?;
        let Some(cpu_architecture) = CpuArchitecture::from_name(&architecture) else {
            return Err(ApiError::not_found(format!("unknown architecture {architecture:?}")));
        };
        Ok(Self {
            infra_env,
            artifact,
            machine: None,
            live_image: Some((version, cpu_architecture)),
            access,
            is_digest,
            revision: None,
        })
    }

    /// Selects the revision that the URL contains.
    pub(super) fn with_revision(self, revision: RequestedRevision) -> Self {
        Self { revision: Some(revision), ..self }
    }

    /// Parses a long URL of the Assisted Image Service.
    pub(super) fn from_long_url(
        id: &str,
        artifact: Artifact,
        request: &ImageRequest,
    ) -> Result<Self, ApiError> {
        Ok(Self {
            infra_env: parse_infra_env_id(id)?,
            artifact,
            machine: None,
            live_image: Some(request.base_image_version()?),
            access: request.credentials(),
            is_digest: false,
            revision: None,
        })
    }
}

pub(super) fn no_such_file_error(name: &str) -> ApiError {
    ApiError::not_found(format!("image {name:?} does not exist"))
}

/// Strips the suffix `.sha256`. The second value is `true` if the suffix was present.
pub(super) fn strip_digest_suffix(file: &str) -> (&str, bool) {
    file.strip_suffix(".sha256").map_or((file, false), |file| (file, true))
}

/// Parses an infra-env id. As in the Assisted Image Service, only lower case is valid.
pub(super) fn parse_infra_env_id(text: &str) -> Result<InfraEnvId, ApiError> {
    let id: Option<InfraEnvId> = text.parse().ok().filter(|id: &InfraEnvId| id.to_string() == text);
    id.ok_or_else(|| ApiError::not_found("not a valid infra-env id (expected a UUID in lower case)"))
}

/// Returns the infra-env in the claims of a token. The authentication policy verifies the claims later.
pub(super) fn infra_env_in_token(token: &str) -> Result<InfraEnvId, ApiError> {
    let claims =
        token.split('.').nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part.trim_end_matches('=')).ok());
    let claims: Option<serde_json::Value> = claims.and_then(|json| serde_json::from_slice(&json).ok());
    let claim = |name: &str| claims.as_ref()?.get(name)?.as_str()?.parse().ok();
    claim("sub")
        .or_else(|| claim("infra_env_id"))
        .ok_or_else(|| ApiError::not_found("not a token of an infra-env"))
}

/// Parses the first segment of a URL under `/i`: the id of an infra-env or a token for it.
pub(super) fn infra_env_and_credentials(
    who: &str,
    request: &ImageRequest,
) -> Result<(InfraEnvId, ImageCredentials), ApiError> {
    if who.contains('.') {
        return Ok((infra_env_in_token(who)?, ImageCredentials::ApiKey(Secret::new(who))));
    }
    Ok((parse_infra_env_id(who)?, request.credentials()))
}

/// Parses a MAC address in a path, with colons or dashes.
pub(super) fn parse_mac(text: &str) -> Result<MacAddr, ApiError> {
    let mac = text.replace('-', ":").parse();
    mac.map_err(|error: ignition::network::MacError| ApiError::not_found(error.to_string()))
}
