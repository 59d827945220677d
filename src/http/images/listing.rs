//! The list of an infra-env's files, with sizes and entity tags.

use serde::Serialize;
use utoipa::ToSchema;

use super::artifact::{Artifact, BaseImageFile, SCRIPT};
use super::inputs::ImageCredentials;
use super::plans::{PlanKind, PlannedFile};
use super::server::{ImageServer, no_such_image_error};
use inventory::api::ApiError;
use inventory::catalogue::{CpuArchitecture, ImageType};
use inventory::id::InfraEnvId;

/// The files of an infra-env.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = infra_env_files)]
pub(super) struct InfraEnvFiles {
    #[schema(value_type = String, format = Uuid)]
    infra_env_id: InfraEnvId,
    openshift_version: String,
    /// Version of the base image.
    version: String,
    #[schema(value_type = String)]
    cpu_architecture: CpuArchitecture,
    /// Whether the base image is available. If not, sizes and entity tags are unknown, and a request for a file waits
    /// until it is.
    ready: bool,
    files: Vec<ListedFile>,
    script_url: String,
    boot_trace_url: String,
}

/// A file of an infra-env.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = infra_env_file)]
struct ListedFile {
    name: &'static str,
    url: String,
    sha256_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    /// Why the file cannot be generated from this base image.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl ImageServer {
    /// Lists the files of an infra-env. `who` is the id or token in the URL of the request, and also in the listed
    /// URLs.
    pub(super) async fn list_files(
        &self,
        id: InfraEnvId,
        access: &ImageCredentials,
        who: &str,
    ) -> Result<InfraEnvFiles, ApiError> {
        let current = self.current_snapshot(id, Artifact::FullIso, access).await?;
        let (version, architecture) = self.base_image_version(&current, (id, access)).await?;
        let base_version = (version.as_str(), architecture);
        let image =
            self.os_image(base_version, ImageType::Full).ok_or_else(|| no_such_image_error(base_version))?;
        let base = self.0.live_images.base_now(&image).ok();
        let urls = InfraEnvUrls::new(self, who, access);
        let images = Artifact::all(architecture).map(|artifact| PlanKind::Image(artifact, None));
        let mut files = Vec::new();
        for what in images.chain(BaseImageFile::all(architecture).map(PlanKind::File)) {
            let planned = match (&base, what) {
                (None, _) => None,
                (Some(base), PlanKind::Image(artifact, machine)) => {
                    Some(self.planned_image((id, &current), (&image, base), (artifact, machine)).await)
                }
                (Some(base), PlanKind::File(file)) => Some(self.planned_file(base, file).await),
            };
            files.push(urls.listed_file(what.name(), planned.as_ref().map(|planned| planned.as_deref())));
        }
        Ok(InfraEnvFiles {
            infra_env_id: id,
            openshift_version: image.openshift_version.clone(),
            version: image.version.clone(),
            cpu_architecture: architecture,
            ready: base.is_some(),
            files,
            script_url: urls.file_url(SCRIPT),
            boot_trace_url: urls.file_url("boot-trace"),
        })
    }
}

/// Builds URLs of an infra-env's files with the caller's credentials.
struct InfraEnvUrls {
    prefix: String,
    query: String,
}

impl InfraEnvUrls {
    fn new(server: &ImageServer, who: &str, access: &ImageCredentials) -> Self {
        let base = server.0.base_url.as_str().trim_end_matches('/');
        let query = match access {
            ImageCredentials::ApiKey(token) if token.reveal() != who => {
                format!("?api_key={}", token.reveal())
            }
            ImageCredentials::ImageToken(token) => format!("?image_token={}", token.reveal()),
            _ => String::new(),
        };
        Self { prefix: format!("{base}/i/{who}"), query }
    }

    fn file_url(&self, name: &str) -> String {
        format!("{}/{name}{}", self.prefix, self.query)
    }

    fn listed_file(
        &self,
        name: &'static str,
        planned: Option<Result<&PlannedFile, &ApiError>>,
    ) -> ListedFile {
        let content =
            planned.as_ref().and_then(|planned| planned.as_ref().ok()).map(|planned| &planned.content);
        ListedFile {
            name,
            url: self.file_url(name),
            sha256_url: self.file_url(&format!("{name}.sha256")),
            size: content.map(|content| content.representation().plan().len()),
            etag: content.map(|content| content.representation().etag().to_owned()),
            error: planned.and_then(Result::err).map(|refusal| refusal.reason().to_owned()),
        }
    }
}
