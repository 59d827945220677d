//! Infra-envs from Kubernetes manifests. Users of zero-touch provisioning and of the agent-based installer already have
//! these files.
//!
//! [`Manifests::read`] reads a directory of YAML and JSON files. [`Manifests::draft`] follows the references of one
//! `InfraEnv`: to its pull secret, by label to its `NMStateConfig`s, to its mirrors, and to its `ClusterDeployment`.
//! From there it follows `AgentClusterInstall` to the `ClusterImageSet`, which determines the version. Every finding
//! contains its file and line.

mod cluster;
mod draft;
mod hosts;
mod nmstate_config;
mod object;
mod read;
mod reference;
mod selection;
mod selector;
mod written;

pub use hosts::HostFiles;
pub use object::Object;
pub use read::ReadError;

use std::path::PathBuf;
use std::sync::Arc;

use crate::DiscoveryReport;

/// The manifests of a directory, or from another source.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    objects: Vec<Object>,
    /// `registries.conf`, which configures mirrors, at its path in the directory layout of the agent-based installer.
    registries: Option<OtherFile>,
    /// The CA certificates for the mirrors.
    registries_authority: Option<OtherFile>,
    /// The source directory or file. `None` if texts or objects were added.
    directory: Option<PathBuf>,
    ids: IdSource,
    /// The findings from reading the files.
    findings: DiscoveryReport,
}

/// The source of an infra-env's id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdSource {
    /// The id in the image URLs of the object's status, or else a hash of the object's namespace and name.
    #[default]
    Name,
    /// `metadata.uid`, which the API server sets.
    Uid,
}

/// A file of the directory that is not a manifest.
#[derive(Clone, Debug)]
struct OtherFile {
    file: Arc<str>,
    text: String,
}

impl Manifests {
    /// Sets the source of infra-env ids. Default: [`IdSource::Name`].
    #[must_use]
    pub fn with_ids_from(self, ids: IdSource) -> Self {
        Self { ids, ..self }
    }

    /// Returns the common location of the manifests, for messages.
    fn location(&self) -> String {
        self.directory.as_ref().map_or_else(|| "the manifests".to_owned(), |it| it.display().to_string())
    }

    /// Returns the manifests, in the order of the files and of the documents in them.
    #[must_use]
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// Returns the manifests of a kind.
    fn objects_of_kind<'a>(&'a self, kind: &str) -> impl Iterator<Item = &'a Object> {
        self.objects.iter().filter(move |object| object.kind() == kind)
    }
}
