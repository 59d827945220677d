//! Kubernetes manifests as the description of an infra-env: the files that users of zero-touch provisioning and of the
//! agent-based installer already have.
//!
//! [`Manifests::read`] reads a directory of YAML and JSON files. [`Manifests::draft`] follows the references of one
//! `InfraEnv`: to its pull secret, to its `NMStateConfig`s by label, to its mirrors, and through `ClusterDeployment`
//! and `AgentClusterInstall` to the `ClusterImageSet` with the version. Every finding has its file and line.

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

/// All manifests of a directory.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    objects: Vec<Object>,
    /// The `registries.conf` with mirrors, in the directory layout of the agent-based installer.
    registries: Option<OtherFile>,
    /// The authorities that signed the certificates of the mirrors.
    registries_authority: Option<OtherFile>,
    /// The directory or file that was read; `None` if texts or objects were added.
    directory: Option<PathBuf>,
    ids: IdSource,
    /// The findings of reading the files.
    findings: DiscoveryReport,
}

/// What the id of an infra-env is made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdSource {
    /// The URLs in the status of the object if it has any, otherwise its namespace and name.
    #[default]
    Name,
    /// `metadata.uid`, which the API server sets.
    Uid,
}

/// A file that is not a manifest.
#[derive(Clone, Debug)]
struct OtherFile {
    file: Arc<str>,
    text: String,
}

impl Manifests {
    /// Sets what the ids of infra-envs are made from. Default: [`IdSource::Name`].
    #[must_use]
    pub fn with_ids_from(self, ids: IdSource) -> Self {
        Self { ids, ..self }
    }

    /// Returns the location of all manifests, for messages.
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
