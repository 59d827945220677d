//! The list of files of an infra-env, with sizes and entity tags.

use serde::Serialize;

use super::artifact::{Artifact, BootFile, SCRIPT};
use super::inputs::Access;
use super::plans::{Planned, What};
use super::server::{ImageServer, no_such_image};
use crate::api_error::ApiError;
use crate::images::{CpuArchitecture, ImageType};
use crate::inventory::id::InfraEnvId;

/// The files of an infra-env.
#[derive(Debug, Serialize)]
pub(super) struct Listing {
    infra_env_id: InfraEnvId,
    openshift_version: String,
    /// The version of the base image.
    version: String,
    cpu_architecture: CpuArchitecture,
    /// Whether the base image is available. If not, sizes and entity tags are unknown, and a request for a file waits
    /// for the base image.
    ready: bool,
    files: Vec<Listed>,
    script_url: String,
    boot_trace_url: String,
}

/// A file of an infra-env.
#[derive(Debug, Serialize)]
struct Listed {
    name: &'static str,
    url: String,
    sha256_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    /// The reason why this base image does not provide the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl ImageServer {
    /// Lists the files of an infra-env. `who` is the id or token in the URL of the request, and is used in the listed
    /// URLs.
    pub(super) async fn listing(
        &self,
        id: InfraEnvId,
        access: &Access,
        who: &str,
    ) -> Result<Listing, ApiError> {
        let current = self.current(id, Artifact::FullIso, access).await?;
        let (version, architecture) = self.live_image_of(&current, (id, access)).await?;
        let named = (version.as_str(), architecture);
        let image = self.os_image(named, ImageType::Full).ok_or_else(|| no_such_image(named))?;
        let base = self.0.live_images.base_now(image).ok();
        let urls = Urls::new(self, who, access);
        let images = Artifact::all(architecture).map(|artifact| What::Image(artifact, None));
        let mut files = Vec::new();
        for what in images.chain(BootFile::all(architecture).map(What::File)) {
            let planned = match (&base, what) {
                (None, _) => None,
                (Some(base), What::Image(artifact, machine)) => {
                    Some(self.planned_image((id, &current), (image, base), (artifact, machine)).await)
                }
                (Some(base), What::File(file)) => Some(self.planned_file(base, file).await),
            };
            files.push(urls.listed(what.name(), planned.as_ref().map(|planned| planned.as_deref())));
        }
        Ok(Listing {
            infra_env_id: id,
            openshift_version: image.openshift_version.clone(),
            version: image.version.clone(),
            cpu_architecture: architecture,
            ready: base.is_some(),
            files,
            script_url: urls.of(SCRIPT),
            boot_trace_url: urls.of("boot-trace"),
        })
    }
}

/// The URLs of an infra-env, with the credentials of the caller.
struct Urls {
    prefix: String,
    query: String,
}

impl Urls {
    fn new(server: &ImageServer, who: &str, access: &Access) -> Self {
        let base = server.0.base_url.as_str().trim_end_matches('/');
        let query = match access {
            Access::ApiKey(token) if token.reveal() != who => format!("?api_key={}", token.reveal()),
            Access::ImageToken(token) => format!("?image_token={}", token.reveal()),
            _ => String::new(),
        };
        Self { prefix: format!("{base}/i/{who}"), query }
    }

    fn of(&self, name: &str) -> String {
        format!("{}/{name}{}", self.prefix, self.query)
    }

    fn listed(&self, name: &'static str, planned: Option<Result<&Planned, &ApiError>>) -> Listed {
        let content =
            planned.as_ref().and_then(|planned| planned.as_ref().ok()).map(|planned| &planned.content);
        Listed {
            name,
            url: self.of(name),
            sha256_url: self.of(&format!("{name}.sha256")),
            size: content.map(|content| content.plan().len()),
            etag: content.map(|content| content.etag().to_owned()),
            error: planned.and_then(Result::err).map(|refusal| refusal.reason().to_owned()),
        }
    }
}
