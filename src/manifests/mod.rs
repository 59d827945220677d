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

use crate::discovery::DiscoveryReport;

/// All manifests of a directory.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    objects: Vec<Object>,
    /// The `registries.conf` with mirrors, in the directory layout of the agent-based installer.
    registries: Option<OtherFile>,
    /// The authorities that signed the certificates of the mirrors.
    registries_authority: Option<OtherFile>,
    directory: PathBuf,
    /// The findings of reading the files.
    findings: DiscoveryReport,
}

/// A file that is not a manifest.
#[derive(Clone, Debug)]
struct OtherFile {
    file: Arc<str>,
    text: String,
}

impl Manifests {
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
