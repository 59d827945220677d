//! Kubernetes manifests as the description of an infra-env: the files that users of zero-touch provisioning and of the
//! agent-based installer have already.
//!
//! [`Manifests::read`] takes a directory of YAML and JSON files. [`Manifests::draft`] follows the references from one
//! `InfraEnv`: its pull secret, its `NMStateConfig`s by label, its mirrors, and by way of `ClusterDeployment` and
//! `AgentClusterInstall` the `ClusterImageSet` that tells the version. Every finding has its file and line.

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

use crate::discovery::Findings;

/// All manifests of a directory.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    objects: Vec<Object>,
    /// The mirrors in the directory's own file, which stands beside the manifests of the agent-based installer.
    registries: Option<Loose>,
    /// Who signed their certificates.
    registries_authority: Option<Loose>,
    directory: PathBuf,
    /// What was found while they were read.
    findings: Findings,
}

/// A file that is no manifest.
#[derive(Clone, Debug)]
struct Loose {
    file: Arc<str>,
    text: String,
}

impl Manifests {
    /// The manifests, in the order of their files and of the places in them.
    #[must_use]
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// The manifests of a kind.
    fn of_kind<'a>(&'a self, kind: &str) -> impl Iterator<Item = &'a Object> {
        self.objects.iter().filter(move |object| object.kind() == kind)
    }
}
