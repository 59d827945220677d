//! Agents as the cache holds them: without the inventory and other large texts.

use kube::api::ObjectMeta;
use sha2::{Digest as _, Sha256};

use crate::caches::{CachedObject, pruned_meta};
use crate::crds::names::INFRA_ENV_LABEL;
use crate::crds::{Agent, AgentInstallCondition, AgentSpec, AgentStatus};

/// Maximum length of an annotation that the cache holds as a text. Of a longer one, the digest is enough to see a change.
const MAX_ANNOTATION: usize = 128;

/// An Agent without its large parts.
#[derive(Debug)]
pub(crate) struct CachedAgent {
    meta: ObjectMeta,
    pub(crate) spec: AgentSpec,
    pub(crate) conditions: Vec<AgentInstallCondition>,
    status_digest: Option<[u8; 32]>,
}

impl CachedObject for CachedAgent {
    type Kind = Agent;

    fn from_object(object: Agent) -> Self {
        let mut meta = pruned_meta(object.metadata);
        for text in meta.annotations.iter_mut().flatten().map(|(_, text)| text) {
            *text = cached_text(text);
        }
        let status_digest = object.status.as_ref().and_then(digest);
        let conditions = object.status.map(|status| status.conditions).unwrap_or_default();
        Self { meta, spec: object.spec, conditions, status_digest }
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }
}

impl CachedAgent {
    /// Returns `true` if the Agent shows this status.
    pub(crate) fn shows(&self, status: &AgentStatus) -> bool {
        self.status_digest.is_some() && self.status_digest == digest(status)
    }

    /// Returns `true` if the Agent has this annotation.
    pub(crate) fn has_annotation(&self, key: &str, text: &str) -> bool {
        let annotation = self.meta.annotations.as_ref().and_then(|annotations| annotations.get(key));
        annotation.is_some_and(|annotation| *annotation == cached_text(text))
    }

    /// Returns the label with this key.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.meta.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// Returns the name of the InfraEnv.
    pub(crate) fn infra_env(&self) -> Option<&str> {
        self.label(INFRA_ENV_LABEL)
    }
}

fn cached_text(text: &str) -> String {
    if text.len() <= MAX_ANNOTATION {
        return text.to_owned();
    }
    let digest = Sha256::digest(text);
    digest.iter().fold("sha256:".to_owned(), |hex, byte| format!("{hex}{byte:02x}"))
}

fn digest(status: &AgentStatus) -> Option<[u8; 32]> {
    let text = serde_json::to_vec(status).ok()?;
    Some(Sha256::digest(&text).into())
}
